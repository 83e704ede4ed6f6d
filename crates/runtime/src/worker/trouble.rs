//! A store that can't be written for a while: its disk is full, say, for a second or a day. Nothing is given up for it.
//!
//! Whoever has something to store keeps it and tries again with growing pauses. A person is told when the first of a
//! worker's runs meets it, and when the last one is through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lodestep_core::Error;

/// The shortest pause between two tries.
const FIRST: Duration = Duration::from_millis(50);

/// Doubled so often at most, to 3.2 s: room is found soon after it is made.
const DOUBLINGS: u32 = 6;

/// How often a commit is tried whose values were swept.
const SWEPT_TRIES: u32 = 20;

/// Can the same call succeed later, as it is?
pub(super) fn will_pass(error: &Error) -> bool {
    error.code() == "store.unavailable"
}

/// How many of a worker's acts the store refuses now.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    refused: AtomicUsize,
}

/// The tries of one act, and the pauses between them.
pub(super) struct Tries {
    trouble: Arc<Trouble>,
    refused: u32,
    is_told: bool,
}

impl Tries {
    pub(super) fn new(trouble: &Arc<Trouble>) -> Self {
        Self { trouble: trouble.clone(), refused: 0, is_told: false }
    }

    /// Is it worth another try? A value that was swept is stored anew with what is drafted anew; one that was stored
    /// before the draft is gone, and trying does not bring it back.
    pub(super) fn allow(&self, error: &Error) -> bool {
        will_pass(error) || (error.code() == "store.value_swept" && self.refused < SWEPT_TRIES)
    }

    /// The store refused it, and it will be tried again.
    pub(super) fn refused(&mut self, error: &Error) {
        self.refused = self.refused.saturating_add(1);
        if !will_pass(error) || self.is_told {
            return;
        }
        self.is_told = true;
        if self.trouble.refused.fetch_add(1, Ordering::SeqCst) == 0 {
            crate::note!("{error}\nnothing is sent until it can be written; what is known is kept and tried again");
        }
    }

    /// Waits, longer after each refusal.
    pub(super) async fn pause(&self) {
        tokio::time::sleep(FIRST * 2_u32.pow(self.refused.saturating_sub(1).min(DOUBLINGS))).await;
    }

    /// The store took it.
    pub(super) fn taken(&mut self) {
        self.refused = 0;
        if self.forget() {
            crate::note!("the store can be written again");
        }
    }

    /// True when this was the last one that was refused.
    fn forget(&mut self) -> bool {
        std::mem::take(&mut self.is_told) && self.trouble.refused.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

impl Drop for Tries {
    fn drop(&mut self) {
        // Given up: nothing is known of the store.
        self.forget();
    }
}
