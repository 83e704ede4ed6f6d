//! What a worker that is gone left open.

use crate::checkpoint::ActionState;
use crate::draft::Draft;
use crate::effect::Seen;
use crate::error::Result;
use crate::event::{CallLost, Event};
use crate::ids::Ordinal;
use crate::rules::settle::{Attempt, settle};

/// Closes what older epochs left open: a call of the model is charged in full, an attempt becomes unknown.
///
/// The caller has made sure that nothing of the old worker's tools is still running.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn recover(draft: &mut Draft) -> Result<()> {
    let epoch = draft.epoch();
    if let Some(open) = draft.checkpoint().model.open
        && open.epoch < epoch
    {
        draft.push(Event::CallLost(CallLost { call: open.call, charged: None }))?;
    }
    let left: Vec<(Ordinal, u32)> = draft
        .checkpoint()
        .pending
        .values()
        .filter_map(|action| match action.state {
            ActionState::Open { attempt, epoch: of, .. } if of < epoch => Some((action.ordinal, attempt)),
            _ => None,
        })
        .collect();
    for (ordinal, attempt) in left {
        let gone = Attempt {
            ordinal,
            attempt,
            seen: Seen::WorkerDied,
            text: b"the worker died between intent and outcome".to_vec(),
            artifact: None,
            retry_after_ms: None,
        };
        settle(draft, gone)?;
    }
    Ok(())
}
