//! Values of secrets taken out of a model's reply, before it is judged or stored.

use lodestep_core::json::{canonical, parse_strict};
use lodestep_model::{ModelError, Reply};

use super::scrub::{Removed, Scrubber};

/// Cleans a reply, or what a provider says in its place.
pub(crate) fn scrub_reply(scrubber: &Scrubber, reply: &mut Result<Reply, ModelError>) -> Removed {
    let mut removed = Removed::default();
    match reply {
        Ok(reply) => {
            removed.add(scrubber.scrub_text(&mut reply.text));
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
            | ModelError::Lost(text)
            | ModelError::TooLong(text)
            | ModelError::Rejected(text),
        ) => removed.add(scrubber.scrub_text(text)),
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
