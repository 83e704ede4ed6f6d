//! The reservation of a call of the model: the request is assembled, then paid for, then sent.

use lodestep_model::Usage;

use crate::checkpoint::Phase;
use crate::context::Assembled;
use crate::definition::Definition;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{CallFailed, CallFailure, CallLost, CallReserved, Event, RunStopped, StopReason};
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
    let amounts = at_most(definition, assembled.manifest.tokens, assembled.request.max_output_tokens);
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

/// The most that a call of so many tokens takes of the quotas.
fn at_most(definition: &Definition, input_tokens: u64, output_tokens: u64) -> Amounts {
    let usd_micro = definition.model.price.map_or(0, |price| price.at_most(input_tokens, output_tokens));
    Amounts { input_tokens, output_tokens, usd_micro, model_calls: 1, tool_calls: 0 }
}

/// What is charged for a lost answer of which this was reported: as if it had been held back from the start. `None` where no more
/// was reported than was held back.
fn beyond_reservation(draft: &Draft, definition: &Definition, reported: Usage) -> Option<Amounts> {
    let held = draft.checkpoint().model.open?.amounts;
    let input_tokens = reported.input_tokens.max(held.input_tokens);
    let output_tokens = reported.output_tokens.max(held.output_tokens);
    let is_more = (input_tokens, output_tokens) != (held.input_tokens, held.output_tokens);
    is_more.then(|| at_most(definition, input_tokens, output_tokens))
}

/// After so many calls in a row that brought no reply, pauses of our own grow under what a provider asks for: one that says to
/// ask again at once, for ever, would be asked without an end.
const BELIEVED: u32 = 3;

/// A wait that was asked for gets at most so much longer.
const MOST_JITTER_MS: u64 = 60_000;

/// How long to wait after that attempt, of which the provider may have said how long at least.
fn pause_ms(run: &str, call: u64, attempt: u32, asked_ms: Option<u64>) -> u64 {
    let Some(asked) = asked_ms else { return backoff_ms(run, call, attempt) };
    // Those that were told the same time come one after the other, none before it.
    let jitter = jitter_ms(run, call, attempt, (asked / 20).min(MOST_JITTER_MS));
    let own = if attempt > BELIEVED { backoff_ms(run, call, attempt - BELIEVED) } else { 0 };
    asked.saturating_add(jitter).max(own)
}

/// Pushes that the answer of a call is given up, of which this was reported.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn give_up(draft: &mut Draft, definition: &Definition, call: u64, reported: Usage) -> Result<()> {
    let charged = beyond_reservation(draft, definition, reported);
    draft.push(Event::CallLost(CallLost { call, charged }))
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
    failed(draft, definition, call, why, said, wait_ms, None)
}

/// As [`fail`] for an answer that was lost, of which the provider had reported this before.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn lose(draft: &mut Draft, definition: &Definition, call: u64, said: &str, reported: Usage) -> Result<()> {
    let charged = beyond_reservation(draft, definition, reported);
    failed(draft, definition, call, CallFailure::Lost, said, None, charged)
}

fn failed(
    draft: &mut Draft,
    definition: &Definition,
    call: u64,
    why: CallFailure,
    said: &str,
    wait_ms: Option<u64>,
    charged: Option<Amounts>,
) -> Result<()> {
    let model = &draft.checkpoint().model;
    let (attempt, lost) = (model.failed_in_row.saturating_add(1), model.lost_in_row.unwrap_or(0).saturating_add(1));
    let most = definition.model.max_attempts;
    let pause_ms = match why {
        CallFailure::TooLong => 0,
        _ => pause_ms(draft.checkpoint().run.as_str(), call, attempt, wait_ms),
    };
    let not_before = draft.now().plus_ms(pause_ms);
    let text = draft.put(said);
    draft.push(Event::CallFailed(CallFailed { call, why, text, not_before, charged }))?;
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
