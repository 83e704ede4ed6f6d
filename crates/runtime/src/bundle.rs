//! One file with a whole run: journal, values, artifacts, definition, inbox. It is checked from end to end when it is read.
//!
//! # Layout
//!
//! A zstd frame with a checksum. In it items, each a length in 8 bytes (little endian) and so many bytes of CBOR with
//! numbered fields: a head, every transition with the head of its chain, after each the large values that it names, the
//! messages, and an end with a digest over all items before it. Transcripts are evidence and are not taken along.
//!
//! - `write`: a run becomes a file.
//! - `read`: a file becomes a run that is held until a person releases it.

mod read;
mod write;

use lodestep_core::{Digest, Error};
use minicbor::{Decode, Encode};

pub use read::check;

/// The version of the layout.
pub const FORMAT: u32 = 1;

/// What a bundle says of itself, and what was written or taken in.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub struct About {
    /// The version of the layout.
    #[n(0)]
    pub format: u32,
    /// The namespace.
    #[n(1)]
    pub namespace: String,
    /// The run.
    #[n(2)]
    pub run: String,
    /// Its last transition.
    #[n(3)]
    pub seq: u64,
    /// The head of its chain.
    #[n(4)]
    pub head: Digest,
}

/// An item.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
enum Item {
    /// What it is of; the first item.
    #[n(0)]
    About(#[n(0)] About),
    /// A transition.
    #[n(1)]
    Transition(#[n(0)] Stored),
    /// A value that the transition before it names and that is too large for a row.
    #[n(2)]
    Value(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// A message.
    #[n(3)]
    Message(#[n(0)] Sent),
    /// The last item: a digest over all before it.
    #[n(4)]
    End(#[n(0)] Digest),
}

/// A transition as it is stored.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Stored {
    #[cbor(n(0), with = "minicbor::bytes")]
    envelope: Vec<u8>,
    /// `None` when they were erased.
    #[n(1)]
    values: Option<Vec<minicbor::bytes::ByteVec>>,
    /// The head of the chain after it.
    #[n(2)]
    head: Digest,
}

/// A message as it was sent.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Sent {
    #[n(0)]
    position: u64,
    #[n(1)]
    id: String,
    #[cbor(n(2), with = "minicbor::bytes")]
    message: Vec<u8>,
}

/// The digest over an item and all before it.
fn chained(before: &Digest, item: &[u8]) -> Digest {
    Digest::over("lodestep bundle 1", &[before.as_bytes(), item])
}

fn altered(what: impl Into<String>) -> Error {
    Error::new("bundle.altered", what, "nothing was taken in; have the run exported again")
}
