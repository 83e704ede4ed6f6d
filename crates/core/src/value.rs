//! Values: bytes that a journal names by digest and does not hold.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::digest::Digest;

/// Values of up to so many bytes stand in the transition's own row; larger ones are files. 64 KiB is about
/// where a second file's two syncs cost less than carrying the bytes through the write-ahead log and its checkpoint.
pub const INLINE_VALUE_BYTES: usize = 64 * 1024;

/// A value as an event names it: the bytes themselves may be erased and the journal still verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ValueRef {
    /// The digest of the bytes.
    #[n(0)]
    pub digest: Digest,
    /// How many bytes.
    #[n(1)]
    pub len: u64,
}

impl ValueRef {
    /// The name of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: Digest::of(bytes), len: bytes.len() as u64 }
    }
}

/// A value as a checkpoint names it: also where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, Serialize)]
pub struct Stored {
    /// The digest of the bytes.
    #[n(0)]
    pub digest: Digest,
    /// How many bytes.
    #[n(1)]
    pub len: u64,
    /// The transition of this run whose row holds it (when it is short enough to stand in a row).
    #[n(2)]
    pub seq: u64,
}

impl Stored {
    /// A value that the transition `seq` brought.
    pub fn at(value: ValueRef, seq: u64) -> Self {
        Self { digest: value.digest, len: value.len, seq }
    }

    /// The value without its place.
    pub fn value(&self) -> ValueRef {
        ValueRef { digest: self.digest, len: self.len }
    }
}

/// Values on their way into a transition: what the pure rules made, to be stored in the same commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(Vec<(Digest, Vec<u8>)>);

impl Values {
    /// No values yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes (once) and gives their name.
    pub fn put(&mut self, bytes: impl Into<Vec<u8>>) -> ValueRef {
        let bytes = bytes.into();
        let value = ValueRef::of(&bytes);
        if !self.0.iter().any(|(digest, _)| *digest == value.digest) {
            self.0.push((value.digest, bytes));
        }
        value
    }

    /// The bytes, in the order in which they were put.
    pub fn into_vec(self) -> Vec<Vec<u8>> {
        self.0.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// The bytes with their digests, in the order in which they were put.
    pub fn iter(&self) -> impl Iterator<Item = (Digest, &[u8])> {
        self.0.iter().map(|(digest, bytes)| (*digest, bytes.as_slice()))
    }
}
