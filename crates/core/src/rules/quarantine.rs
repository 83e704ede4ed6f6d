//! Runs that only a person lets go on: they crashed their workers, can't be read, or their store was put back.

use crate::checkpoint::Phase;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{Event, RunStopped, StopReason};

/// What a run whose store was put back to an older copy says of itself.
pub const REWOUND: &str = "the store was put back to an older copy: what the run did after that copy was made is not in \
                           it, and would be done again; compare its effects with what really happened, then release or \
                           cancel it";

/// Stops a run for `reason`, unless it is stopped for that already. One that is being cancelled or is over sends nothing
/// any more, and is left as it is.
///
/// # Errors
///
/// `run.illegal_event` when the reason is none of a quarantine and the run has stopped.
pub fn quarantine(draft: &mut Draft, reason: StopReason, text: impl Into<Vec<u8>>) -> Result<()> {
    match draft.checkpoint().phase {
        Phase::Cancelling { .. } | Phase::Ended { .. } => return Ok(()),
        Phase::Stopped { reason: of, .. } if of == reason => return Ok(()),
        Phase::Active | Phase::Stopped { .. } => {}
    }
    let text = draft.put(text);
    draft.push(Event::RunStopped(RunStopped { reason, text }))
}
