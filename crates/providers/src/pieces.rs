//! Text that comes in pieces, which may be cut anywhere: between the halves of a surrogate pair, too.

use lodestep_model::text::well_formed;
use serde::de::{Deserializer, Visitor};

/// One piece: UTF-8 in which half of a surrogate pair may be spelled as if it were a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece(Vec<u8>);

/// What the pieces make.
#[derive(Clone, Debug, Default)]
pub struct Pieces(Vec<u8>);

impl Piece {
    /// The piece alone, to be looked at; a half that waits for its other one is replaced.
    pub fn shown(&self) -> String {
        well_formed(&self.0)
    }
}

impl Pieces {
    /// Adds the next piece.
    pub fn push(&mut self, piece: &Piece) {
        self.0.extend_from_slice(&piece.0);
    }

    /// The whole text, well-formed.
    pub fn text(&self) -> String {
        well_formed(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Piece;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Piece, E> {
                Ok(Piece(bytes.to_vec()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Piece, E> {
                Ok(Piece(text.as_bytes().to_vec()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

/// A number of tokens, for `#[serde(deserialize_with)]`: some servers write it as `12.0`. What is no number says nothing, and is no
/// reason to lose a reply.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
    let whole = |float: f64| (0.0..9e15).contains(&float).then_some(float as u64);
    Ok(value.as_u64().or_else(|| value.as_f64().and_then(whole)))
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
    }
}
