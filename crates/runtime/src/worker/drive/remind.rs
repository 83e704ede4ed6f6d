//! Reminders of requests that stay open: told to the observer, never committed.
//!
//! The store has a worker come to a run when its next reminder falls due, and the claim is what lets one worker alone
//! tell of it.

use lodestep_core::Checkpoint;
use lodestep_core::rules::remind;

use super::Drive;

impl Drive {
    /// Tells of the reminders that have fallen due in this committed state, each once in this claim.
    pub(super) fn remind(&mut self, checkpoint: &Checkpoint) {
        let due = remind::due(checkpoint, self.runtime.store.now());
        let new: Vec<remind::Reminder> =
            due.iter().filter(|reminder| !self.reminded.contains(reminder)).copied().collect();
        if !new.is_empty() {
            self.observer.reminded(&self.claim.run.key, checkpoint, &new);
        }
        self.reminded = due;
    }
}
