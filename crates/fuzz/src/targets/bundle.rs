//! A bundle: a run as one file from elsewhere.

use lodestep::bundle::check;
use lodestep_core::{Digest, Timestamp};

use super::answer_of;
use super::run::items as cbor_items;

/// The file's bytes.
pub(super) fn packed(input: &[u8]) -> u64 {
    answer_of(&check(input, Timestamp::from_micros(1_700_000_000_000_000)), |about| about.format.to_string())
}

/// The items within it: each gets its length, the last its digest, and all of them the frame.
pub(super) fn items(input: &[u8]) -> u64 {
    packed(&bundled(&cbor_items(input)))
}

/// Items as a bundle has them. An end with the digest over them is added.
pub(crate) fn bundled(items: &[&[u8]]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut digest = Digest::default();
    for item in items {
        plain.extend((item.len() as u64).to_le_bytes());
        plain.extend_from_slice(item);
        digest = Digest::over("lodestep bundle 1", &[digest.as_bytes(), item]);
    }
    let end = minicbor::to_vec((4_u32, [digest])).unwrap_or_default();
    plain.extend((end.len() as u64).to_le_bytes());
    plain.extend(end);
    zstd::bulk::compress(&plain, 1).unwrap_or_default()
}
