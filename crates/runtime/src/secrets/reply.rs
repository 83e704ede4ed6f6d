//! Values of secrets taken out of a model's reply, before it is judged or stored.

use lodestep_core::json::{canonical, parse_strict};
use lodestep_model::{Blocks, ModelError, Reply, text};

use super::scrub::{Removed, Scrubber};

/// Cleans a reply, or what a provider says in its place.
pub(crate) fn scrub_reply(scrubber: &Scrubber, reply: &mut Result<Reply, ModelError>) -> Removed {
    let mut removed = Removed::default();
    match reply {
        Ok(reply) => {
            removed.add(scrubber.scrub_text(&mut reply.text));
            for named in [&mut reply.model, &mut reply.request_id].into_iter().flatten() {
                removed.add(scrubber.scrub_text(named));
            }
            removed.add(unsigned(scrubber, &mut reply.blocks));
            if let Some(json) = &mut reply.ill_formed {
                removed.add(evidence(scrubber, json));
            }
            for call in &mut reply.calls {
                removed.add(scrubber.scrub_text(&mut call.id));
                removed.add(scrubber.scrub_text(&mut call.name));
                removed.add(scrubber.scrub_text(&mut call.arguments));
                removed.add(unescaped(scrubber, &mut call.arguments));
            }
        }
        Err(
            ModelError::NotSent(text)
            | ModelError::Busy { message: text, .. }
            | ModelError::Lost { message: text, .. }
            | ModelError::TooLong(text)
            | ModelError::Rejected(text),
        ) => removed.add(scrubber.scrub_text(text)),
    }
    removed
}

/// Signed blocks can't be altered: those with a secret in them are gone.
fn unsigned(scrubber: &Scrubber, blocks: &mut Option<Blocks>) -> Removed {
    let Some(given) = blocks else { return Removed::default() };
    let mut json = given.json.clone();
    let mut removed = scrubber.scrub_text(&mut json);
    removed.add(unescaped(scrubber, &mut json));
    if removed != Removed::default() {
        *blocks = None;
    }
    removed
}

/// The JSON string that a text came as. One in which a value is spelled by escapes is gone: that there was one stays said.
fn evidence(scrubber: &Scrubber, json: &mut String) -> Removed {
    let removed = scrubber.scrub_text(json);
    let meant = text::deserialize(&mut serde_json::Deserializer::from_str(json));
    let is_clean = meant.is_ok_and(|mut meant| scrubber.scrub_text(&mut meant) == Removed::default());
    if !is_clean {
        json.clear();
    }
    removed
}

/// JSON can spell any character as an escape, and arguments are stored without needless ones.
fn unescaped(scrubber: &Scrubber, arguments: &mut String) -> Removed {
    if !arguments.contains('\\') {
        return Removed::default();
    }
    let Ok(value) = parse_strict(arguments) else { return Removed::default() };
    let Ok(mut plain) = String::from_utf8(canonical(&value)) else { return Removed::default() };
    let removed = scrubber.scrub_text(&mut plain);
    if removed != Removed::default() {
        *arguments = plain;
    }
    removed
}
