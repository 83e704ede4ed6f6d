//! Deadlines of actions: from then on no attempt of it begins.
//!
//! What can be said then depends on what is known. An action of which nothing was sent, or whose last attempt is known to
//! have done nothing, has failed, and the model is told so. One that may have done something is never called failed: an
//! attempt under way ends by its timeout, a lookup goes on, and an effect that only waited to be sent again under its key
//! is in doubt.

use std::collections::BTreeSet;

use crate::checkpoint::{Action, ActionState, Phase};
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{AttemptUnknown, DeadlinePassed, Event, Gate, Request, UnknownNext};
use crate::ids::Ordinal;
use crate::time::Timestamp;

/// Settles what its deadline settles. `busy` are the actions that are under way: a repeatable one has no intent that the
/// state could tell it by, and its attempt is waited for.
///
/// Of a request's expiry and a deadline that have both passed the earlier one counts, as if a worker had been there all
/// the time.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub(super) fn pass(draft: &mut Draft, busy: &BTreeSet<Ordinal>) -> Result<()> {
    let now = draft.now();
    if draft.checkpoint().phase != Phase::Active {
        return Ok(());
    }
    let due = |action: &&Action| {
        let deadline = action.ends_at().filter(|deadline| *deadline <= now);
        let comes_first = |deadline| expires_at(action).is_none_or(|expiry| deadline <= expiry);
        deadline.is_some_and(comes_first) && !busy.contains(&action.ordinal)
    };
    let passed: Vec<Action> = draft.checkpoint().pending.values().filter(due).cloned().collect();
    for action in passed {
        let text = draft.put(told(&action));
        let ordinal = action.ordinal;
        draft.push(if action.is_a_resend() {
            Event::AttemptUnknown(AttemptUnknown { ordinal, attempt: action.attempts, text, next: UnknownNext::Doubt })
        } else {
            Event::DeadlinePassed(DeadlinePassed { ordinal, text })
        })?;
    }
    Ok(())
}

/// Has it passed, so that no attempt of the action begins any more?
pub fn is_past(action: &Action, now: Timestamp) -> bool {
    action.deadline.is_some_and(|deadline| deadline <= now)
}

/// When the request that the action waits for expires, or the approval that has led to no intent yet.
fn expires_at(action: &Action) -> Option<Timestamp> {
    let request: Option<Request> = match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) } => Some(*request),
        ActionState::Ready { .. } | ActionState::Held { .. } => {
            action.approved.filter(|_| action.attempts == 0 && !action.class.is_repeatable())
        }
        _ => None,
    };
    request.and_then(|request| request.expires_at)
}

/// What the model is told, or what a person in whose hands it is.
fn told(action: &Action) -> String {
    let within = action.deadline.map_or(0, |deadline| deadline.ms_since(action.proposed_at));
    let within = format!("within {} of its proposal", shown(within));
    let attempts = match action.attempts {
        1 => "1 attempt".to_owned(),
        several => format!("{several} attempts"),
    };
    if action.is_a_resend() {
        return format!(
            "its deadline passed while it waited to be sent again under its key: it was to be done {within}"
        );
    }
    match (action.attempts, action.class.is_repeatable()) {
        (0, true) => format!("deadline: it was not done {within}"),
        (0, false) => format!("deadline: it was not sent {within}; nothing of it happened"),
        (_, true) => format!("deadline: it had no outcome in {attempts} {within}, and is not tried again"),
        (_, false) => format!("deadline: it could not be done in {attempts} {within}; nothing of it happened"),
    }
}

/// A duration as an agent file has it.
fn shown(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fits = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_duration_is_shown_as_a_file_has_it() {
        for (ms, expected) in [(0, "0ms"), (500, "500ms"), (90_000, "90s"), (7_200_000, "2h"), (86_400_000, "1d")] {
            assert_eq!(shown(ms), expected);
        }
    }
}
