//! How many tokens a text has, estimated upward. What a provider reports settles the quota afterwards.

use lodestep_model::Request;
use serde_json::Value;

use crate::json::canonical;

/// Bytes of a token, at least: common tokenizers take about four bytes of English and of code; three leaves
/// a margin of a third. Text in other scripts has more bytes a character and fewer characters a token.
pub const BYTES_PER_TOKEN: u64 = 3;

/// The tokens of so many bytes, rounded up.
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The canonical JSON of a request: what is counted and digested.
pub fn bytes_of(request: &Request) -> Vec<u8> {
    canonical(&serde_json::to_value(request).unwrap_or(Value::Null))
}
