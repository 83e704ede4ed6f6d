//! What an attempt came to, and what follows from it.

use crate::checkpoint::{Action, ActionState, Phase};
use crate::draft::Draft;
use crate::effect::after::Sent;
use crate::effect::{AfterUnknown, Class, Known, Seen, after_unknown, known};
use crate::error::Result;
use crate::event::{
    ActionFinished, ArtifactSaved, AttemptNotSent, AttemptUnknown, Event, LookupInconclusive, SettledBy, UnknownNext,
};
use crate::ids::Ordinal;
use crate::rules::deadline;
use crate::rules::standing::backoff_ms;
use crate::time::Timestamp;
use crate::value::ValueRef;

/// Attempts that may have ended with their worker rather than with the tool: after so many crashes without
/// an outcome a run is quarantined, so that more attempts than these beyond the tool's own are the tool's.
const CRASHES: u32 = 5;

/// What a worker saw of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The action.
    pub ordinal: Ordinal,
    /// Which attempt.
    pub attempt: u32,
    /// What was seen.
    pub seen: Seen,
    /// The result, or what was said about the failure.
    pub text: Vec<u8>,
    /// The artifact that it made.
    pub artifact: Option<NewArtifact>,
    /// How long the receiver asked to be left alone, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// The longest wait that a receiver's word is taken for: 30 days.
const LONGEST_WAIT_MS: u64 = 30 * 86_400_000;

/// How long a lookup that gives no answer is asked again, from the first send: one hour.
const LOOKUP_PATIENCE_MS: u64 = 3_600_000;

/// A version of an artifact whose bytes are stored, or are short enough to be stored with the transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArtifact {
    /// Its name.
    pub name: String,
    /// Its last version, where the checkpoint may have forgotten it; the new one follows on it.
    pub last_version: u32,
    /// Its bytes' name.
    pub content: ValueRef,
    /// The bytes, when they belong into the transition's row.
    pub inline: Option<Vec<u8>>,
}

/// What a lookup said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookedUp {
    /// It happened; this is its result.
    Done(Vec<u8>),
    /// It did not happen.
    Absent,
    /// It is still running.
    Running,
    /// Whoever knows gave no answer: that says nothing about the effect. It is asked again for an hour, then a person is.
    NoAnswer(String),
    /// It was not asked to the end, for a reason on this side: the worker stops, the database is busy. It is asked again,
    /// however long that takes.
    NotNow(String),
    /// It can't tell.
    Unknown(String),
}

/// Pushes what an attempt's outcome means. An outcome that comes late, for an action that is settled, means nothing.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn settle(draft: &mut Draft, attempt: Attempt) -> Result<()> {
    let Some(action) = draft.checkpoint().pending.get(&attempt.ordinal).cloned() else {
        return Ok(());
    };
    let known = known(attempt.seen);
    if !bears_on(&action, attempt.attempt, known) {
        return Ok(());
    }
    match known {
        Known::Applied => finish(draft, attempt, true),
        Known::Failed => finish(draft, attempt, false),
        Known::NotApplied => not_sent(draft, &action, attempt),
        Known::Unknown => unknown(draft, &action, attempt),
    }
}

/// Does the end of this attempt say anything about what the action waits for? That it happened, or never will,
/// is taken of any attempt that may have been sent; that nothing is known only of the one under way.
fn bears_on(action: &Action, attempt: u32, known: Known) -> bool {
    let proven = matches!(known, Known::Applied | Known::Failed);
    match action.state {
        ActionState::Open { attempt: of, .. } => attempt == of || (known == Known::Applied && attempt < of),
        ActionState::Ready { .. } => action.class.is_repeatable() || (proven && action.attempts > 0),
        ActionState::LookUp { .. } | ActionState::Doubt { .. } => proven,
        ActionState::Gated { .. } | ActionState::Held { .. } => false,
    }
}

fn finish(draft: &mut Draft, attempt: Attempt, ok: bool) -> Result<()> {
    let saved = match attempt.artifact.filter(|_| ok) {
        Some(artifact) => Some(save(draft, artifact)?),
        None => None,
    };
    let text = match saved {
        Some(saved) if attempt.text.is_empty() => saved.into_bytes(),
        _ => never_empty(attempt.text, ok),
    };
    let result = draft.put(text);
    draft.push(Event::ActionFinished(ActionFinished {
        ordinal: attempt.ordinal,
        attempt: attempt.attempt,
        ok,
        result,
        by: SettledBy::Answer,
    }))
}

/// Gives the artifact its version, here where versions can't collide, and says what was saved.
fn save(draft: &mut Draft, artifact: NewArtifact) -> Result<String> {
    if let Some(bytes) = artifact.inline {
        draft.put(bytes);
    }
    let known = draft.checkpoint().artifacts.get(&artifact.name).map_or(0, |known| known.version);
    let version = known.max(artifact.last_version).saturating_add(1);
    let (name, bytes) = (artifact.name.clone(), artifact.content.len);
    draft.push(Event::ArtifactSaved(ArtifactSaved { name: artifact.name, version, content: artifact.content }))?;
    Ok(format!("saved {name}, version {version}, {bytes} bytes"))
}

/// A model is never told nothing.
fn never_empty(text: Vec<u8>, ok: bool) -> Vec<u8> {
    match (text.is_empty(), ok) {
        (false, _) => text,
        (true, true) => b"done; it said nothing".to_vec(),
        (true, false) => b"it failed and said nothing".to_vec(),
    }
}

fn not_sent(draft: &mut Draft, action: &Action, attempt: Attempt) -> Result<()> {
    let is_last = attempt.attempt >= action.max_attempts;
    if is_last && action.class == Class::Keyed && action.maybe_sent {
        // This attempt was not sent, but one before it may have been: that is no failure.
        return doubt(draft, attempt);
    }
    let asked = draft.now().plus_ms(attempt.retry_after_ms.unwrap_or(0).min(LONGEST_WAIT_MS));
    let not_before = if is_last { draft.now() } else { retry_at(draft, action, attempt.attempt).max(asked) };
    let text = draft.put(never_empty(attempt.text.clone(), false));
    draft.push(Event::AttemptNotSent(AttemptNotSent {
        ordinal: attempt.ordinal,
        attempt: attempt.attempt,
        text,
        not_before,
    }))?;
    if !is_last {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&attempt.text).into_owned();
    let text = format!("it could not be sent in {} attempts: {said}", attempt.attempt);
    finish(draft, Attempt { text: text.into_bytes(), ..attempt }, false)
}

fn doubt(draft: &mut Draft, attempt: Attempt) -> Result<()> {
    let text = draft.put(never_empty(attempt.text, false));
    let (ordinal, attempt) = (attempt.ordinal, attempt.attempt);
    draft.push(Event::AttemptUnknown(AttemptUnknown { ordinal, attempt, text, next: UnknownNext::Doubt }))
}

fn unknown(draft: &mut Draft, action: &Action, attempt: Attempt) -> Result<()> {
    let died = attempt.seen == Seen::WorkerDied;
    if action.class.is_repeatable() && !died && attempt.attempt >= action.max_attempts {
        let said = String::from_utf8_lossy(&attempt.text).into_owned();
        let text = format!("no answer in {} attempts: {said}", attempt.attempt);
        return finish(draft, Attempt { text: text.into_bytes(), ..attempt }, false);
    }
    let next = next_after_unknown(draft, action, attempt.attempt, died);
    let text = draft.put(never_empty(attempt.text, false));
    draft.push(Event::AttemptUnknown(AttemptUnknown { ordinal: attempt.ordinal, attempt: attempt.attempt, text, next }))
}

fn next_after_unknown(draft: &Draft, action: &Action, attempts: u32, died: bool) -> UnknownNext {
    let now = draft.now();
    let last_possible = match action.state {
        ActionState::Open { send_by, .. } => send_by.min(now),
        _ => now,
    };
    let sent = Sent {
        class: action.class,
        first: action.first_sent.unwrap_or(now),
        last_possible,
        key_valid_for_ms: action.key_valid_for_ms,
        settles_after_ms: action.settles_after_ms,
        // A worker's death says nothing about the tool, and is counted as a crash of the run.
        attempts: if died { 0 } else { attempts },
        max_attempts: action.max_attempts,
    };
    let cancelling = matches!(draft.checkpoint().phase, Phase::Cancelling { .. });
    let too_late = deadline::is_past(action, now);
    match after_unknown(sent, now) {
        // After a cancel and after its deadline nothing is sent, not even under its key.
        AfterUnknown::SendAgain if cancelling || too_late => UnknownNext::Doubt,
        AfterUnknown::RunAgain | AfterUnknown::SendAgain if died => UnknownNext::Again(now),
        AfterUnknown::RunAgain | AfterUnknown::SendAgain => UnknownNext::Again(retry_at(draft, action, attempts)),
        AfterUnknown::LookUp(at) => UnknownNext::LookUp(at),
        AfterUnknown::Doubt => UnknownNext::Doubt,
    }
}

fn retry_at(draft: &Draft, action: &Action, attempt: u32) -> Timestamp {
    let run = draft.checkpoint().run.as_str();
    draft.now().plus_ms(backoff_ms(run, u64::from(action.ordinal.0), attempt))
}

/// Pushes what a lookup's answer means: done → recorded, absent → sent again, running → asked again, no answer → asked
/// again for an hour, unknown → a person.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn settle_lookup(draft: &mut Draft, ordinal: Ordinal, said: LookedUp) -> Result<()> {
    let Some(action) = draft.checkpoint().pending.get(&ordinal).cloned() else {
        return Ok(());
    };
    let ActionState::LookUp { attempt, .. } = action.state else {
        return Ok(());
    };
    let now = draft.now();
    let grace_until = match draft.checkpoint().phase {
        Phase::Cancelling { grace_until, .. } => Some(grace_until),
        _ => None,
    };
    let given_up = action.attempts >= action.max_attempts.saturating_add(CRASHES);
    let too_late = deadline::is_past(&action, now);
    let (text, next) = match said {
        LookedUp::Done(result) => {
            let result = draft.put(never_empty(result, true));
            return draft.push(Event::ActionFinished(ActionFinished {
                ordinal,
                attempt,
                ok: true,
                result,
                by: SettledBy::Lookup,
            }));
        }
        LookedUp::Absent if grace_until.is_some() || given_up || too_late => {
            let why = match (grace_until.is_some(), given_up) {
                (_, true) => "it was tried often enough",
                (true, false) => "the run is cancelled",
                (false, false) => "its deadline has passed",
            };
            let result = draft.put(format!("it did not happen: the lookup says that it is absent, and {why}"));
            return draft.push(Event::ActionFinished(ActionFinished {
                ordinal,
                attempt,
                ok: false,
                result,
                by: SettledBy::Lookup,
            }));
        }
        LookedUp::Absent => ("the lookup says that it did not happen".to_owned(), UnknownNext::Again(now)),
        LookedUp::Running if grace_until.is_some_and(|until| until <= now) => {
            ("the lookup says that it is still running, and the run is cancelled".to_owned(), UnknownNext::Doubt)
        }
        LookedUp::Running => ("the lookup says that it is still running".to_owned(), look_again(now, &action)),
        LookedUp::NoAnswer(why) => {
            let first = action.first_sent.unwrap_or(now);
            let until = grace_until.unwrap_or_else(|| first.plus_ms(LOOKUP_PATIENCE_MS));
            let next = if now >= until { UnknownNext::Doubt } else { look_again(now, &action) };
            (format!("the lookup gave no answer: {why}"), next)
        }
        LookedUp::NotNow(why) if grace_until.is_some_and(|until| until <= now) => {
            (format!("the lookup could not be asked, and the run is cancelled: {why}"), UnknownNext::Doubt)
        }
        LookedUp::NotNow(why) => {
            let again = now.plus_ms(action.settles_after_ms.clamp(15_000, 60_000));
            (format!("the lookup could not be asked: {why}"), UnknownNext::LookUp(again))
        }
        LookedUp::Unknown(why) => (format!("the lookup can't tell: {why}"), UnknownNext::Doubt),
    };
    let text = draft.put(text);
    draft.push(Event::LookupInconclusive(LookupInconclusive { ordinal, text, next }))
}

fn look_again(now: Timestamp, action: &Action) -> UnknownNext {
    UnknownNext::LookUp(now.plus_ms(action.settles_after_ms.clamp(1_000, 60_000)))
}
