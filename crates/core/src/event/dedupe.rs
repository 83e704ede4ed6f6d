//! Events of dedupe keys: what one run says to others about an effect that is meant once for all of them.

use minicbor::{Decode, Encode};

use crate::digest::Digest;
use crate::ids::{Ordinal, RunId};
use crate::value::ValueRef;

/// See [`Event::DedupeTaken`](super::Event::DedupeTaken).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct DedupeTaken {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The key, in the run's namespace.
    #[n(1)]
    pub key: String,
    /// What makes another run's effect the same as this one.
    #[n(2)]
    pub same: Digest,
}

/// How an action lets go of its dedupe key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupeEnd {
    /// It provably did not happen: the key is free.
    #[n(0)]
    Free,
    /// It happened, with this result: the key is kept for ever.
    #[n(1)]
    Done(#[n(0)] ValueRef),
    /// A person gave it up: nobody knows, and the key is kept for ever.
    #[n(2)]
    Unknown,
}

/// See [`Event::DedupeClosed`](super::Event::DedupeClosed).
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct DedupeClosed {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// What became of its effect.
    #[n(1)]
    pub end: DedupeEnd,
}

/// See [`Event::ActionHeld`](super::Event::ActionHeld).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionHeld {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The run whose action has the key.
    #[n(1)]
    pub run: RunId,
    /// That action.
    #[n(2)]
    pub action: Ordinal,
}
