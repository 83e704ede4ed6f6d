//! The store's hints, passed on to each listener in the order of listening: a channel with many listeners draws lots.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Who listens.
#[derive(Default)]
pub(super) struct Hints(Mutex<Vec<watch::Sender<u64>>>);

impl Hints {
    /// Listens to a store, for as long as it lasts.
    pub(super) fn follow(self: &Arc<Self>, mut changes: watch::Receiver<u64>) {
        let told = self.clone();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                told.pass_on();
            }
        });
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        let (sender, receiver) = watch::channel(0);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    fn pass_on(&self) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| !listener.is_closed());
        listeners.iter().for_each(|listener| listener.send_modify(|hints| *hints += 1));
    }
}
