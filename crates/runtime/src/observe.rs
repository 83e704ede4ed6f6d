//! What a runtime tells while it works, for progress lines and tests. Never needed for the work itself.

use lodestep_core::{Checkpoint, Event, RunKey};

/// Is told of each committed transition, after it is durable.
pub trait Observer: Send + Sync {
    /// A transition was committed: its events, the values that are new with it, and the state after it.
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint);

    /// A run is taken up, at this transition, after so many crashes.
    fn taken(&self, _run: &RunKey, _after: &Checkpoint, _crashes: u32) {}
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn committed(&self, _run: &RunKey, _events: &[Event], _values: &[Vec<u8>], _after: &Checkpoint) {}
}
