//! Text that comes in pieces, which may be cut anywhere: between the halves of a surrogate pair, too.

use lodestep_model::Reply;
use lodestep_model::text::{has_lone_half, well_formed, well_formed_json};
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;

/// One piece: UTF-8 in which half of a surrogate pair may be spelled as if it were a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    bytes: Vec<u8>,
    /// As it was spelled in JSON, without the quotes.
    json: String,
}

/// What the pieces make.
#[derive(Clone, Debug, Default)]
pub struct Pieces(Vec<u8>);

/// The text of a reply, with the JSON that it came as.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pieces: Pieces,
    json: String,
}

impl Piece {
    /// A piece that is a text.
    pub fn of(text: &str) -> Self {
        // Encoding a text can't fail.
        let json = serde_json::to_string(text).unwrap_or_default();
        Self { bytes: text.as_bytes().to_vec(), json: unquoted(&json).to_owned() }
    }

    /// The piece alone, to be looked at; a half that waits for its other one is replaced.
    pub fn shown(&self) -> String {
        well_formed(&self.bytes)
    }

    /// A piece that is the whole of some JSON, well-formed.
    pub fn json(&self) -> String {
        well_formed_json(&self.bytes)
    }
}

impl Pieces {
    /// Adds the next piece.
    pub fn push(&mut self, piece: &Piece) {
        self.0.extend_from_slice(&piece.bytes);
    }

    /// The whole text, well-formed.
    pub fn text(&self) -> String {
        well_formed(&self.0)
    }

    /// The whole of what is some JSON, well-formed.
    pub fn json(&self) -> String {
        well_formed_json(&self.0)
    }
}

impl Text {
    /// Adds the next piece.
    pub fn push(&mut self, piece: &Piece) {
        self.pieces.push(piece);
        self.json.push_str(&piece.json);
    }

    /// Adds what comes behind it.
    pub fn join(&mut self, later: &Self) {
        self.pieces.0.extend_from_slice(&later.pieces.0);
        self.json.push_str(&later.json);
    }

    /// Has nothing been said?
    pub fn is_empty(&self) -> bool {
        self.pieces.0.is_empty()
    }

    /// Makes it the reply's: well-formed, and as it came where it was not.
    pub fn put_into(self, reply: &mut Reply) {
        reply.text = self.pieces.text();
        reply.ill_formed = has_lone_half(&self.pieces.0).then(|| format!("\"{}\"", self.json));
    }
}

fn unquoted(json: &str) -> &str {
    json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default()
}

impl<'de> serde::Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
        let read = serde_json::Deserializer::from_str(raw.get()).deserialize_bytes(Bytes);
        Ok(Self { bytes: read.map_err(D::Error::custom)?, json: unquoted(raw.get()).to_owned() })
    }
}

/// The bytes of a string, in which half of a surrogate pair may be spelled as if it were a character.
struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_str<E>(self, text: &str) -> Result<Vec<u8>, E> {
        Ok(text.as_bytes().to_vec())
    }
}

/// A number of tokens, for `#[serde(deserialize_with)]`: some servers write it as `12.0`. What is no number says nothing, and is no
/// reason to lose a reply; nor is a count that can't be true, which nobody could ever pay.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
    let whole = |float: f64| (0.0..9e15).contains(&float).then_some(float as u64);
    Ok(value.as_f64().and_then(whole))
}

/// An object that a reply is whole without, for `#[serde(deserialize_with)]`: what it can't be is taken for nothing.
pub fn or_nothing<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_be_cut_in_two() {
        let mut pieces = Pieces::default();
        for json in [r#""a\ud83e""#, r#""\udd80 b""#, r#""""#, r#""\ud83e c""#] {
            pieces.push(&serde_json::from_str::<Piece>(json).expect(json));
        }
        assert_eq!(pieces.text(), "a🦀 b\u{fffd} c");
        assert_eq!(serde_json::from_str::<Piece>(r#""a\ud83e""#).unwrap().shown(), "a\u{fffd}");
        assert!(serde_json::from_str::<Piece>("17").is_err());
    }

    #[test]
    fn a_text_with_half_of_a_pair_is_kept_as_it_came_and_no_other() {
        let of = |pieces: &[&str]| {
            let (mut text, mut reply) = (Text::default(), Reply::default());
            for json in pieces {
                text.push(&serde_json::from_str::<Piece>(json).expect(json));
            }
            text.put_into(&mut reply);
            (reply.text, reply.ill_formed)
        };
        assert_eq!(of(&[r#""\u0061\uD83E""#, r#""\udd80 \u2603\n""#]), ("a🦀 ☃\n".to_owned(), None));
        let kept = r#""\u0061\uD83E \u2603\n""#.to_owned();
        assert_eq!(of(&[r#""\u0061\uD83E""#, r#"" \u2603\n""#]), ("a\u{fffd} ☃\n".to_owned(), Some(kept)));
        assert_eq!(Piece::of("\"\\"), serde_json::from_str(r#""\"\\""#).unwrap());
    }
}
