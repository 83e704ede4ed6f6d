//! Words on what became of an action: a person resolves a doubt, a worker without its lease reports what it saw.

use super::{Became, Verdict, Word, accept, refused};
use crate::checkpoint::{Action, ActionState, Checkpoint, How, Phase, Settled};
use crate::digest::Digest;
use crate::draft::Draft;
use crate::effect::Seen;
use crate::error::Result;
use crate::event::{ActionFinished, DoubtResolved, Event, Resolution, SettledBy};
use crate::ids::Ordinal;

/// Ends a doubt. `said_of` is the attempt that the person was shown: meanwhile a later one may be in doubt, of which the
/// word says nothing. That it happened is true of the effect, whichever attempt did it.
pub(super) fn resolve(
    draft: &mut Draft,
    by: &str,
    ordinal: Ordinal,
    said_of: Option<u32>,
    became: &Became,
) -> Result<Verdict> {
    let checkpoint = draft.checkpoint();
    let Some(action) = checkpoint.pending.get(&ordinal) else {
        return match checkpoint.settled(ordinal) {
            Some(settled) if is_said_of(settled, became) => Ok(Verdict::AlreadyGiven(describe(checkpoint, ordinal))),
            _ => not_in_doubt(draft, ordinal),
        };
    };
    let (ActionState::Doubt { attempt, .. } | ActionState::LookUp { attempt, .. }) = action.state else {
        return not_in_doubt(draft, ordinal);
    };
    let happened_before = matches!(became, Became::Happened(_)) && said_of.is_some_and(|said_of| said_of < attempt);
    if let Some(said_of) = said_of.filter(|said_of| *said_of != attempt && !happened_before) {
        let what = format!("attempt {said_of} of action {ordinal} is not in doubt any more: attempt {attempt} is");
        return refused("action.not_in_doubt", what, "look at it again; nothing changed");
    }
    let stopping = matches!(checkpoint.phase, Phase::Cancelling { .. } | Phase::Ended { .. });
    let resolution = match became {
        Became::Happened(result) => Resolution::Happened(draft.put(happened(result))),
        Became::SendAgain if stopping => {
            return refused(
                "run.over",
                format!("action {ordinal} can't be sent again: the run is cancelled"),
                "say that it did not happen, that it happened, or give it up",
            );
        }
        Became::SendAgain => Resolution::SendAgain,
        Became::Abandoned(reason) => Resolution::Abandoned(draft.put(abandoned(reason))),
        Became::DidNotHappen => Resolution::DidNotHappen(draft.put(DID_NOT_HAPPEN)),
    };
    let event = DoubtResolved { ordinal, by: by.to_owned(), resolution };
    accept(draft, [Event::DoubtResolved(event)])
}

/// What the model is told of an action that happened, as a person says.
fn happened(result: &[u8]) -> &[u8] {
    if result.is_empty() { b"done, says a person" } else { result }
}

/// What the model is told of an action that did not happen.
const DID_NOT_HAPPEN: &str = "it did not happen, says a person, and was not sent again";

/// What the model is told of an action that was given up.
fn abandoned(reason: &str) -> String {
    format!("given up by a person, whether it happened is unknown: {reason}")
}

/// Is a settled action settled as this word would have it, to the byte?
fn is_said_of(settled: &Settled, became: &Became) -> bool {
    let as_said = |bytes: &[u8]| settled.result.digest == Digest::of(bytes);
    match (became, settled.how) {
        (Became::Happened(result), How::Done) => as_said(happened(result)),
        (Became::Abandoned(reason), How::Abandoned) => as_said(abandoned(reason).as_bytes()),
        (Became::DidNotHappen, How::Failed) => as_said(DID_NOT_HAPPEN.as_bytes()),
        _ => false,
    }
}

fn not_in_doubt(draft: &Draft, ordinal: Ordinal) -> Result<Verdict> {
    let checkpoint = draft.checkpoint();
    if ordinal.0 == 0 || ordinal.0 > checkpoint.last_ordinal {
        let what = format!("there is no action {ordinal}; the last is {}", checkpoint.last_ordinal);
        return refused("action.not_found", what, in_doubt(checkpoint));
    }
    let state = describe(checkpoint, ordinal);
    refused("action.not_in_doubt", format!("action {ordinal} is not in doubt: {state}"), in_doubt(checkpoint))
}

/// Which actions a word on a doubt could mean.
fn in_doubt(checkpoint: &Checkpoint) -> String {
    let doubt = |action: &&Action| matches!(action.state, ActionState::Doubt { .. } | ActionState::LookUp { .. });
    let doubts: Vec<&Action> = checkpoint.pending.values().filter(doubt).collect();
    match doubts.as_slice() {
        [] => "nothing changed: no action of the run is in doubt; `lodestep show RUN` shows it".to_owned(),
        [one] => format!("did you mean action {}, {}? nothing changed", one.ordinal, one.tool),
        several => {
            let named: Vec<String> = several.iter().map(|one| format!("{} ({})", one.ordinal, one.tool)).collect();
            format!("in doubt are {}; nothing changed", named.join(", "))
        }
    }
}

/// An action's state in a few words.
fn describe(checkpoint: &Checkpoint, ordinal: Ordinal) -> String {
    match (checkpoint.pending.get(&ordinal), checkpoint.settled(ordinal)) {
        (Some(action), _) => match action.state {
            ActionState::Gated { .. } => "it waits for a word",
            ActionState::Ready { .. } => "it is about to be sent",
            ActionState::Open { .. } => "an attempt is under way",
            ActionState::LookUp { .. } => "it is being looked up",
            ActionState::Doubt { .. } => "it is in doubt",
            ActionState::Held { .. } => "it waits for the action that has its dedupe key",
        }
        .to_owned(),
        (None, Some(settled)) => format!("it is settled: {:?}", settled.how).to_lowercase(),
        (None, None) => "it is settled".to_owned(),
    }
}

/// A late outcome settles a doubt that is still open, and moves nothing else.
pub(super) fn late_outcome(
    draft: &mut Draft,
    ordinal: Ordinal,
    attempt: u32,
    ok: bool,
    result: &[u8],
) -> Result<Verdict> {
    let open = draft.checkpoint().pending.get(&ordinal).is_some_and(|action| match action.state {
        // That an earlier attempt did it is the truth about the effect; that one failed says nothing of the later.
        ActionState::Doubt { attempt: of, .. } | ActionState::LookUp { attempt: of, .. } => {
            of == attempt || (ok && (1..of).contains(&attempt))
        }
        // Waiting to be sent again, under its key or on a person's word: the truth makes that needless.
        ActionState::Ready { .. } | ActionState::Held { .. } => {
            let sent = action.maybe_sent && action.attempts == attempt;
            sent || (ok && (1..=action.attempts).contains(&attempt))
        }
        _ => false,
    });
    if !open {
        return Ok(Verdict::AlreadyGiven("the attempt is settled".to_owned()));
    }
    let text = if result.is_empty() { b"done; it said nothing".to_vec() } else { result.to_vec() };
    let result = draft.put(text);
    let event = ActionFinished { ordinal, attempt, ok, result, by: SettledBy::LateReport };
    accept(draft, [Event::ActionFinished(event)])
}

/// The word of a worker that lost its lease, or nothing when what it saw proves nothing.
pub fn late_word(ordinal: Ordinal, attempt: u32, seen: Seen, result: Vec<u8>) -> Option<Word> {
    let ok = match seen {
        Seen::Done => true,
        Seen::Refused => false,
        _ => return None,
    };
    Some(Word::LateOutcome { ordinal, attempt, ok, result })
}
