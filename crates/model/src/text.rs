//! Text that comes in from a provider, where it enters: whatever was sent, what goes on is well-formed.
//!
//! JSON can spell half of a surrogate pair, as a cut within an emoji leaves it, and a string that has one can't be sent
//! to anybody any more. In what a model says each such half becomes U+FFFD. Not so in the arguments of a call: those are
//! kept as the JSON that they came as, and are refused by name.

use std::fmt;

use serde::de::{Deserializer, Visitor};

/// The text of bytes: UTF-8 in which halves of surrogate pairs may be spelled as if they were characters. Two that belong
/// together are their character; each other one, and each run of bytes that begins no character, becomes one U+FFFD.
pub fn well_formed(bytes: &[u8]) -> String {
    mended(bytes, |text, _| text.push(char::REPLACEMENT_CHARACTER))
}

/// The same for bytes that are JSON, as the arguments of a call are: half of a pair becomes the escape that it can be spelled as
/// there, so that whoever reads the JSON finds it. Where no escape can stand it is replaced, and the JSON is none.
pub fn well_formed_json(bytes: &[u8]) -> String {
    mended(bytes, |json, unit| {
        let backslashes = json.bytes().rev().take_while(|byte| *byte == b'\\').count();
        match backslashes % 2 {
            0 => json.push_str(&format!("\\u{unit:04x}")),
            _ => json.push(char::REPLACEMENT_CHARACTER),
        }
    })
}

/// Is half of a surrogate pair among them that belongs to no other?
pub fn has_lone_half(bytes: &[u8]) -> bool {
    let mut found = false;
    mended(bytes, |_, _| found = true);
    found
}

/// Where in a JSON string, as it is spelled, the first escape stands that is half of a surrogate pair and belongs to no other.
pub fn lone_half_at(json: &str) -> Option<usize> {
    let unit = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while let Some(ahead) = json.get(at..)?.find('\\') {
        at += ahead;
        let Some(first) = unit(at) else {
            at += 2;
            continue;
        };
        let second = unit(at + ESCAPE_BYTES);
        match char::decode_utf16([first].into_iter().chain(second)).next()? {
            Err(_) => return Some(at),
            Ok(whole) => at += ESCAPE_BYTES * whole.len_utf16(),
        }
    }
    None
}

/// The bytes of an escape such as `\u001f`.
const ESCAPE_BYTES: usize = 6;

fn mended(bytes: &[u8], mut alone: impl FnMut(&mut String, u16)) -> String {
    let (mut text, mut from) = (String::new(), 0);
    let mut at = 0;
    while at < bytes.len() {
        let Some(unit) = surrogate(&bytes[at..]) else {
            at += 1;
            continue;
        };
        text.push_str(&String::from_utf8_lossy(&bytes[from..at]));
        let pair = [Some(unit), surrogate(&bytes[at + SURROGATE_BYTES..])];
        let whole = char::decode_utf16(pair.into_iter().flatten()).next().and_then(Result::ok);
        match whole {
            Some(whole) => text.push(whole),
            None => alone(&mut text, unit),
        }
        at += if whole.is_some() { 2 * SURROGATE_BYTES } else { SURROGATE_BYTES };
        from = at;
    }
    text.push_str(&String::from_utf8_lossy(&bytes[from..]));
    text
}

/// The bytes of half of a surrogate pair, spelled as if it were a character.
const SURROGATE_BYTES: usize = 3;

/// The half of a surrogate pair that these bytes begin with.
fn surrogate(bytes: &[u8]) -> Option<u16> {
    match *bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f))
        }
        _ => None,
    }
}

/// Reads a JSON string as [`well_formed`] text, for `#[serde(deserialize_with)]`.
///
/// # Errors
///
/// The deserializer's, for anything but a string.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_bytes(Text)
}

struct Text;

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(well_formed(bytes))
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<String, serde_json::Error> {
        deserialize(&mut serde_json::Deserializer::from_str(json))
    }

    #[test]
    fn half_of_a_pair_becomes_one_replacement_and_the_rest_stays() {
        for (json, text) in [
            (r#""plain ☃ 🦀""#, "plain ☃ 🦀"),
            (r#""\ud83e\udd80 whole""#, "🦀 whole"),
            (r#""a\ud99cb""#, "a\u{fffd}b"),
            (r#""a\udc00""#, "a\u{fffd}"),
            (r#""\udd80\ud83e""#, "\u{fffd}\u{fffd}"),
            (r#""\\ud99c\u0000""#, "\\ud99c\0"),
            (r#""""#, ""),
        ] {
            assert_eq!(read(json).expect(json), text, "{json}");
        }
        assert!(read("17").is_err());
        assert_eq!(well_formed(b"a\xffb\xe2\x82"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn half_of_a_pair_in_json_stays_what_the_json_says() {
        let half = [0xed, 0xa6, 0x9c];
        for (before, after, json) in [
            (&br#"{"a":"x"#[..], &br#""}"#[..], r#"{"a":"x\ud99c"}"#),
            (br#"{"a":"\\"#, br#""}"#, r#"{"a":"\\\ud99c"}"#),
            (br#"{"a":"\"#, br#""}"#, "{\"a\":\"\\\u{fffd}\"}"),
        ] {
            let bytes = [before, &half, after].concat();
            assert_eq!(well_formed_json(&bytes), json);
            assert!(has_lone_half(&bytes));
        }
        let crab = [&b"x"[..], &[0xed, 0xa0, 0xbe, 0xed, 0xb6, 0x80]].concat();
        assert_eq!(well_formed_json(&crab), "x🦀");
        assert!(!has_lone_half(&crab) && !has_lone_half("\u{fffd}".as_bytes()));
    }

    #[test]
    fn a_half_is_found_where_it_is_spelled() {
        for (json, at) in [
            (r#""a\ud99cb""#, Some(2)),
            (r#""\ud83e\udd80\n\\ud99c \uD83E""#, Some(23)),
            (r#""\udd80\ud83e\udd80""#, Some(1)),
            (r#""\ud83e\u0041""#, Some(1)),
            (r#""plain ☃ \\\" \u""#, None),
            ("", None),
        ] {
            assert_eq!(lone_half_at(json), at, "{json}");
        }
    }
}
