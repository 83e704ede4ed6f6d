//! What a tool does to the world, as its owner declares it.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A tool's class. It is stored with each action: a definition that has become weaker since does not weaken a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Changes nothing.
    #[n(0)]
    Read,
    /// A repeat leaves the same: tests, builds, PUT, file writes.
    #[n(1)]
    Idempotent,
    /// The receiver applies a key once.
    #[n(2)]
    Keyed,
    /// Has a lookup that tells whether it happened.
    #[n(3)]
    Checkable,
    /// None of these; the default.
    #[n(4)]
    Unsafe,
}

impl Class {
    /// Every class, weakest guard first.
    pub const ALL: [Self; 5] = [Self::Read, Self::Idempotent, Self::Keyed, Self::Checkable, Self::Unsafe];

    /// May it run again freely? Then the committed decision is intent enough, and no rule is needed to allow it.
    pub fn is_repeatable(self) -> bool {
        matches!(self, Self::Read | Self::Idempotent)
    }

    /// The word that agent files and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Keyed => "keyed",
            Self::Checkable => "checkable",
            Self::Unsafe => "unsafe",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
