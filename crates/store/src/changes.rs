//! How waiting workers learn that something may have changed. A hint, never the truth: after it, look.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Hands out and receives hints.
#[derive(Clone, Debug)]
pub struct Changes {
    sender: watch::Sender<u64>,
    holds: Arc<AtomicU64>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { sender: watch::Sender::new(0), holds: Arc::default() }
    }
}

impl Changes {
    /// Says that something may have changed.
    pub fn notify(&self) {
        self.sender.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The version of the holds that was seen last.
    pub fn holds_version(&self) -> u64 {
        self.holds.load(Ordering::Acquire)
    }

    /// The holds have this version; true when it is another than was seen last.
    pub fn sees_holds(&self, version: u64) -> bool {
        self.holds.swap(version, Ordering::AcqRel) != version
    }

    /// Is anybody listening?
    pub fn has_listeners(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// A receiver that has seen everything up to now.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.sender.subscribe()
    }
}
