//! Words that pass between the branches of a lineage: an outcome that is taken over, a part of what is left to spend.

use super::{Clock, Verdict, accept, closed_verdict, open_request, refused};
use crate::checkpoint::Closing;
use crate::definition::QuotaLimits;
use crate::digest::Digest;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{ActionFinished, Event, Gate, QuotaGiven, SettledBy};
use crate::ids::RunId;
use crate::quota::Quota;

/// The outcome of the equal effect that the request shows becomes this action's; nothing is sent.
pub(super) fn reuse(draft: &mut Draft, request: &Digest, clock: Clock) -> Result<Verdict> {
    let action = match open_request(draft, request, clock) {
        Ok((action, Gate::Approval(_))) => action,
        Ok(_) => {
            return refused("request.is_a_question", "this request is a question", "answer it with `lodestep answer`");
        }
        Err(closed) => return Ok(closed_verdict(draft, closed, Closing::Reused, Digest::default())),
    };
    let Some(result) = action.elsewhere.as_ref().and_then(|found| found.result) else {
        return refused(
            "request.nothing_to_reuse",
            format!("no equal effect of the lineage with a known outcome stands behind action {}", action.ordinal),
            "approve it to have it done, or deny it",
        );
    };
    let (ordinal, result) = (action.ordinal, result.value());
    let event = ActionFinished { ordinal, attempt: 0, ok: true, result, by: SettledBy::SameEffect };
    accept(draft, [Event::ActionFinished(event)])
}

/// Gives a fork a part of what is left of every limited quota.
pub(super) fn grant(draft: &mut Draft, by: &str, to: &RunId, amounts: &QuotaLimits) -> Result<Verdict> {
    let left = draft.checkpoint().remaining();
    for row in left.iter().filter(|row| row.quota != Quota::Deadline) {
        let (given, name) = (row.quota.limit(amounts), row.quota.as_str());
        match given {
            Some(given) if given <= row.left => {}
            Some(given) => {
                let what = format!("{given} of {name} can't be given: {} is left", row.left);
                return refused("quota.not_enough", what, "give less; nothing changed");
            }
            None => {
                let what = format!("the run has a limit of {name}, and the fork would have none");
                return refused("quota.not_enough", what, "name an amount; nothing changed");
            }
        }
    }
    accept(draft, [Event::QuotaGiven(QuotaGiven { to: to.clone(), amounts: *amounts, by: by.to_owned() })])
}
