//! The reservation of a call of the model: the request is assembled, then paid for, then sent.

use crate::checkpoint::Phase;
use crate::context::Assembled;
use crate::definition::Definition;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{CallFailed, CallFailure, CallReserved, Event, RunStopped, StopReason};
use crate::quota::{Amounts, Quota};
use crate::rules::standing::{backoff_ms, jitter_ms};

/// How a run says why it stopped whose model asks it to wait beyond its deadline.
pub const RATE_LIMITED: &str = "rate limited until ";

/// Reserves quota for one call of this request, or stops the run when a quota has no room.
///
/// Returns the call's number when it may be sent after the commit.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn reserve(draft: &mut Draft, definition: &Definition, assembled: &Assembled) -> Result<Option<u64>> {
    let input_tokens = assembled.manifest.tokens;
    let output_tokens = assembled.request.max_output_tokens;
    let amounts = Amounts {
        input_tokens,
        output_tokens,
        usd_micro: definition.model.price.map_or(0, |price| price.at_most(input_tokens, output_tokens)),
        model_calls: 1,
        tool_calls: 0,
    };
    if let Some(quota) = draft.checkpoint().quota.refuses(amounts) {
        let text = draft.put(Quota::no_room_for_a_call(&draft.checkpoint().quota, quota, amounts));
        draft.push(Event::RunStopped(RunStopped { reason: StopReason::Quota, text }))?;
        return Ok(None);
    }
    let call = draft.checkpoint().model.calls.saturating_add(1);
    let manifest = draft.put(assembled.manifest.to_bytes());
    draft.push(Event::CallReserved(CallReserved { call, amounts, request: assembled.digest, manifest }))?;
    Ok(Some(call))
}

/// Pushes that a call brought no answer, and stops the run when it was tried often enough or can't help.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn fail(
    draft: &mut Draft,
    definition: &Definition,
    call: u64,
    why: CallFailure,
    said: &str,
    wait_ms: Option<u64>,
) -> Result<()> {
    let model = &draft.checkpoint().model;
    let (attempt, lost) = (model.failed_in_row.saturating_add(1), model.lost_in_row.unwrap_or(0).saturating_add(1));
    let most = definition.model.max_attempts;
    let run = draft.checkpoint().run.as_str();
    let wait_ms = match wait_ms {
        // Those that were told the same time come one after the other, none before it.
        Some(asked) => asked.saturating_add(jitter_ms(run, call, attempt, asked / 20)),
        None => backoff_ms(run, call, attempt),
    };
    let not_before = draft.now().plus_ms(if why == CallFailure::TooLong { 0 } else { wait_ms });
    let text = draft.put(said);
    draft.push(Event::CallFailed(CallFailed { call, why, text, not_before }))?;
    let deadline = draft.checkpoint().deadline();
    let reason = match why {
        // It would wait for nothing.
        CallFailure::Busy if deadline.is_some_and(|deadline| deadline <= not_before) => StopReason::Model,
        CallFailure::Rejected => StopReason::Model,
        // The smaller request is tried once, however often the provider was busy before.
        CallFailure::TooLong if draft.checkpoint().model.too_long_in_row >= 2 => StopReason::Context,
        // Each of them is charged.
        CallFailure::Lost if lost >= most => StopReason::Model,
        // A service that has never answered is likely named wrongly; one that has is waited for, and costs nothing.
        CallFailure::NotSent if attempt >= most && draft.checkpoint().model.answered == 0 => StopReason::Model,
        _ => return Ok(()),
    };
    if draft.checkpoint().phase != Phase::Active {
        // A run that stopped or is being cancelled meanwhile has its reason.
        return Ok(());
    }
    let text = draft.put(match why {
        CallFailure::Busy => format!("{RATE_LIMITED}{not_before}, when the run's deadline has passed: {said}"),
        // Asking once more would not help.
        CallFailure::Rejected => said.to_owned(),
        CallFailure::TooLong | CallFailure::NotSent => format!("the model gave no reply ({attempt} in a row): {said}"),
        CallFailure::Lost => {
            format!("the model gave no reply ({lost} in a row, its charge is unconfirmed): {said}")
        }
    });
    draft.push(Event::RunStopped(RunStopped { reason, text }))
}
