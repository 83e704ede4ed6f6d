//! How waiting workers learn that something may have changed. A hint, never the truth: after it, look.

use tokio::sync::watch;

/// Hands out and receives hints.
#[derive(Clone, Debug)]
pub struct Changes {
    sender: watch::Sender<u64>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { sender: watch::Sender::new(0) }
    }
}

impl Changes {
    /// Says that something may have changed.
    pub fn notify(&self) {
        self.sender.send_modify(|count| *count = count.wrapping_add(1));
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
