//! What came back from outside, and the events that a lost or failed call of the model means.

use lodestep_core::checkpoint::Phase;
use lodestep_core::event::{CallFailure, ErrorKind, ErrorLogged, Event};
use lodestep_core::rules::ask;
use lodestep_core::rules::settle::{Attempt, LookedUp, settle, settle_lookup};
use lodestep_core::{Checkpoint, Definition, Draft, Ordinal, Result};
use lodestep_model::{ModelError, Reply, Usage, text};

use crate::secrets::Removed;
use crate::tools::Sight;

/// A reply, and how it is stored.
pub(super) struct Answered {
    pub reply: Reply,
    /// JSON with its fields in a fixed order.
    pub transcript: Vec<u8>,
}

impl Answered {
    /// Of a reply that secrets have been looked for in: half of one would not be found in what is cut here.
    pub fn new(mut reply: Reply) -> Self {
        if let Some(json) = &mut reply.ill_formed {
            *json = around_half(json).to_owned();
        }
        // Encoding into a vector can't fail.
        let transcript = serde_json::to_vec(&reply).unwrap_or_default();
        Self { reply, transcript }
    }
}

/// So much is kept of the JSON of a text that was none.
const ILL_FORMED_BYTES: usize = 64 * 1024;

/// As much as is kept, with the first half of a pair in its middle.
fn around_half(json: &str) -> &str {
    let half = text::lone_half_at(json).unwrap_or_default();
    let from = half.saturating_sub(ILL_FORMED_BYTES / 2).min(json.len().saturating_sub(ILL_FORMED_BYTES));
    let from = json.ceil_char_boundary(from);
    &json[from..json.floor_char_boundary(from + ILL_FORMED_BYTES)]
}

/// What came back from outside.
pub(super) enum Done {
    Attempt { ordinal: Ordinal, attempt: u32, sight: Sight, removed: Removed },
    Lookup { ordinal: Ordinal, said: LookedUp, removed: Removed },
    Reply { call: u64, reply: std::result::Result<Answered, ModelError>, removed: Removed },
}

impl Done {
    /// Notes in the journal that values of secrets were taken out of it.
    pub fn note_removed(&self, draft: &mut Draft) -> Result<()> {
        let (kind, ordinal, note) = match self {
            Self::Attempt { ordinal, removed, .. } => (ErrorKind::Tool, Some(*ordinal), removed.note("its result")),
            Self::Lookup { ordinal, removed, .. } => {
                (ErrorKind::Tool, Some(*ordinal), removed.note("its lookup's answer"))
            }
            Self::Reply { removed, .. } => (ErrorKind::Reply, None, removed.note("a reply of the model")),
        };
        let Some(note) = note else { return Ok(()) };
        let text = draft.put(note);
        draft.push(Event::ErrorLogged(ErrorLogged { kind, ordinal, text }))
    }

    /// Pushes what an action came to; nothing for a reply of the model.
    pub fn settle(&self, draft: &mut Draft) -> Result<()> {
        match self {
            Self::Attempt { ordinal, attempt, sight, .. } => {
                let Sight { seen, text, artifact, retry_after_ms, .. } = sight.clone();
                let (ordinal, attempt) = (*ordinal, *attempt);
                settle(draft, Attempt { ordinal, attempt, seen, text, artifact, retry_after_ms })
            }
            Self::Lookup { ordinal, said, .. } => settle_lookup(draft, *ordinal, said.clone()),
            Self::Reply { .. } => Ok(()),
        }
    }
}

/// The tool whose outcome this is, for the fault points.
pub(super) fn tool_of(checkpoint: &Checkpoint, done: &Done) -> Option<String> {
    match done {
        Done::Attempt { ordinal, .. } | Done::Lookup { ordinal, .. } => {
            checkpoint.pending.get(ordinal).map(|action| action.tool.clone())
        }
        Done::Reply { .. } => Some("model".to_owned()),
    }
}

pub(super) fn fail(draft: &mut Draft, definition: &Definition, call: u64, error: &ModelError) -> Result<()> {
    let reported = match error {
        ModelError::Lost { reported, .. } => *reported,
        _ => Usage::default(),
    };
    if matches!(draft.checkpoint().phase, Phase::Cancelling { .. }) {
        return ask::give_up(draft, definition, call, reported);
    }
    let said = shortened(&error.to_string());
    let (why, wait_ms) = match error {
        ModelError::Lost { .. } => return ask::lose(draft, definition, call, &said, reported),
        ModelError::NotSent(_) => (CallFailure::NotSent, None),
        ModelError::Busy { retry_after_ms, .. } => (CallFailure::Busy, *retry_after_ms),
        ModelError::TooLong(_) => (CallFailure::TooLong, None),
        ModelError::Rejected(_) => (CallFailure::Rejected, None),
    };
    ask::fail(draft, definition, call, why, &said, wait_ms)
}

/// What a provider said, its beginning and its end. Secrets have been looked for in the whole: half of one would not be found.
fn shortened(said: &str) -> String {
    /// What is as long as this may have been cut where it was read, in the midst of a value.
    const MAYBE_CUT: usize = 48 << 10;
    const BEGINNING: usize = 600;
    const END: usize = 300;
    if said.len() >= MAYBE_CUT {
        return said.chars().take(BEGINNING).chain(" […]".chars()).collect();
    }
    let characters = said.chars().count();
    if characters <= BEGINNING + END {
        return said.to_owned();
    }
    let beginning: String = said.chars().take(BEGINNING).collect();
    let end: String = said.chars().skip(characters - END).collect();
    format!("{beginning} […] {end}")
}

#[cfg(test)]
mod tests {
    use lodestep_model::Reply;

    use super::*;
    use crate::secrets::{Scrubber, scrub_reply};

    #[test]
    fn g12_what_a_provider_said_is_cut_after_secrets_were_looked_for() {
        const SECRET: &str = "s3cret-key-of-28-characters!";
        let scrubber = Scrubber::new([("KEY", SECRET)]);
        for before in 570..620 {
            let said = format!("{}{SECRET}{}. Is the key right?", "x".repeat(before), "y".repeat(2_000));
            let mut reply: std::result::Result<Reply, _> = Err(ModelError::Rejected(said));
            scrub_reply(&scrubber, &mut reply);
            let told = shortened(&reply.expect_err("it is one").to_string());
            assert!(!told.contains("s3cret"), "{before}: {told}");
            assert!(told.chars().count() < 1_000 && told.ends_with("Is the key right?"), "{told}");
        }
        assert_eq!(shortened("short"), "short");
        // Of a body that was cut where it was read, half of a value at its end can't be found.
        let cut = format!("{}{}", "x".repeat((64 << 10) - 15), &SECRET[..15]);
        for end in ["", ". Is the key right?"] {
            let told = shortened(&ModelError::Rejected(format!("HTTP 400: {cut}{end}")).to_string());
            assert!(told.contains("HTTP 400") && !told.contains("s3cret"), "{told}");
        }
    }

    #[test]
    fn of_a_long_text_that_is_none_what_stands_around_its_half_is_kept() {
        for (before, after) in [(0, 0), (10, 100_000), (100_000, 10), (200_000, 200_000)] {
            let json = format!("\"{}\\ud99c{}\"", "é".repeat(before), "\\\\".repeat(after));
            let kept = around_half(&json);
            assert!(kept.contains("\\ud99c") && kept.len() <= ILL_FORMED_BYTES, "{before} {after}: {}", kept.len());
            assert!(kept.len() == json.len() || kept.len() > ILL_FORMED_BYTES - 4, "{before} {after}");
        }
        assert_eq!(around_half(""), "");
    }
}
