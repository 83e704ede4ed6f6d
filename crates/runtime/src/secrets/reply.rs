//! Values of secrets taken out of a model's reply, before it is judged or stored.

use lodestep_core::json::{canonical, parse_strict};
use lodestep_model::{Blocks, ModelError, Reply};

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
        ) => {
            removed.add(scrubber.scrub_text(text));
            removed.add(meant(scrubber, text));
        }
    }
    removed
}

/// What a provider says may be JSON as it came: one in which a value is spelled by escapes is told as it is meant.
fn meant(scrubber: &Scrubber, said: &mut String) -> Removed {
    let mut plain = loosely(said);
    let removed = scrubber.scrub_text(&mut plain);
    if removed != Removed::default() {
        *said = plain;
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
    if meant(scrubber, &mut json.clone()) != Removed::default() {
        json.clear();
    }
    removed
}

/// JSON can spell any character as an escape, and arguments are stored without needless ones.
fn unescaped(scrubber: &Scrubber, arguments: &mut String) -> Removed {
    if !arguments.contains('\\') {
        return Removed::default();
    }
    let read = parse_strict(arguments).ok().and_then(|value| String::from_utf8(canonical(&value)).ok());
    let is_json = read.is_some();
    let mut plain = read.unwrap_or_else(|| loosely(arguments));
    let removed = scrubber.scrub_text(&mut plain);
    if removed != Removed::default() {
        // What can't be read is refused as it is, and stays so: mended it could be done.
        *arguments = if is_json { plain } else { UNREADABLE.to_owned() };
    }
    removed
}

/// In the place of arguments that are no JSON and spell a value of a secret by escapes. It is none either.
const UNREADABLE: &str = "[a secret was taken out of what was no JSON]";

/// A text with every escape of JSON as what it means, whatever else is wrong with it.
fn loosely(json: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(json.len());
    let mut rest = json.chars();
    while let Some(character) = rest.next() {
        let mut buffer = [0; 2];
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut buffer));
            continue;
        }
        let digits = rest.as_str().strip_prefix('u').and_then(|digits| digits.get(..4));
        match digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
            Some(unit) => {
                units.push(unit);
                rest = rest.as_str()[5..].chars();
            }
            None => match rest.next() {
                Some('n') => units.push(u16::from(b'\n')),
                Some('r') => units.push(u16::from(b'\r')),
                Some('t') => units.push(u16::from(b'\t')),
                Some('b') => units.push(8),
                Some('f') => units.push(12),
                Some(other) => units.extend_from_slice(other.encode_utf16(&mut buffer)),
                None => units.push(u16::from(b'\\')),
            },
        }
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use lodestep_model::Call;

    use super::*;

    const SECRET: &str = "sk-attack-KEYVALUE-0123456789";

    fn scrubbed(reply: Result<Reply, ModelError>) -> Result<Reply, ModelError> {
        let mut reply = reply;
        let removed = scrub_reply(&Scrubber::new([("KEY", SECRET)]), &mut reply);
        assert_ne!(removed, Removed::default(), "{reply:?}");
        reply
    }

    #[test]
    fn g12_an_escape_hides_no_secret_in_what_can_not_be_read() {
        let spelled = SECRET.replacen('s', "\\u0073", 1);
        for json in [
            format!("{{\"id\":\"\\ud83d {spelled}\"}}"),
            format!("{{\"id\":1,\"id\":\"{spelled}\"}}"),
            format!("{{\"n\":1e999,\"id\":\"{spelled}\"}}"),
            format!("{{\"id\":\"{spelled}"),
            format!("{{}} \"{spelled}\""),
        ] {
            let call = Call { id: "c".to_owned(), name: "t".to_owned(), arguments: json.clone() };
            let blocks = Some(Blocks { of: "m".to_owned(), json: json.clone() });
            let reply = scrubbed(Ok(Reply { calls: vec![call], blocks, ..Reply::default() })).expect("a reply");
            assert_eq!((reply.calls[0].arguments.as_str(), reply.blocks), (UNREADABLE, None), "{json}");
            assert!(parse_strict(UNREADABLE).is_err(), "it stays refused");
            let error = scrubbed(Err(ModelError::Rejected(json.clone()))).expect_err("an error").to_string();
            assert!(!error.contains("attack-KEYVALUE"), "{json}: {error}");
        }
        assert_eq!(loosely(r##"\u0041 \\ \" \ud83e\udd80 \u12 \"##), "A \\ \" 🦀 u12 \\");
    }
}
