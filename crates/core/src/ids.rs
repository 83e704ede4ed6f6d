//! Names: of namespaces, runs and actions.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::error::{Error, Result};

/// Who a run belongs to when nothing is said.
pub const DEFAULT_NAMESPACE: &str = "default";

/// A run's public name: 26 characters made from a version 7 UUID, or the caller's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct RunId(#[n(0)] String);

/// Crockford's base 32 in lower case: no i, l, o or u, so that an id can be read out aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl RunId {
    /// A run id from the 128 bits of a version 7 UUID: its end is random, so that a short end names a run.
    pub fn from_uuid(bits: u128) -> Self {
        let digits = (0..26).rev().map(|place| ALPHABET[(bits >> (place * 5)) as usize & 31]);
        Self(digits.map(char::from).collect())
    }

    /// A run id of the caller's choosing: 1 to 64 of `a-z 0-9 . _ -`, starting with a letter or digit.
    ///
    /// # Errors
    ///
    /// `run.id_invalid` names the text.
    pub fn parse(text: &str) -> Result<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let sound = !text.is_empty()
            && text.len() <= 64
            && text.starts_with(plain)
            && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'));
        if sound {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::new(
            "run.id_invalid",
            format!("`{}` can't be a run's id", text.escape_default()),
            "use 1 to 64 of a-z 0-9 . _ - and start with a letter or a digit",
        ))
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A run's name within its store: the namespace, then the id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RunKey {
    /// Who the run belongs to.
    pub namespace: String,
    /// The run's id, unique in its namespace.
    pub run: RunId,
}

impl RunKey {
    /// A run of the default namespace.
    pub fn new(run: RunId) -> Self {
        Self { namespace: DEFAULT_NAMESPACE.to_owned(), run }
    }
}

/// The place of an action in its run, from 1. Given when the action is proposed, stored, never derived again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Ordinal(#[n(0)] pub u32);

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_order_and_their_random_end() {
        let early = RunId::from_uuid(0x0190_0000_0000_7000_8000_0000_0000_0001);
        let late = RunId::from_uuid(0x0190_0000_0001_7000_8000_0000_0000_0000);
        assert!(early < late);
        assert_eq!(early.as_str().len(), 26);
        assert!(early.as_str().ends_with("0001"));
        assert_eq!(RunId::parse(early.as_str()), Ok(early));
    }

    #[test]
    fn odd_ids_are_refused_by_name() {
        for text in ["", ".", "..", "A", "a b", "a/b", "-a", &"x".repeat(65)] {
            let error = RunId::parse(text).expect_err(text);
            assert_eq!(error.code(), "run.id_invalid");
        }
        assert!(RunId::parse("refund-4711").is_ok());
    }
}
