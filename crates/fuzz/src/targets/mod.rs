//! The targets: a plain function for each thing that is read from outside. It never panics, whatever the bytes are.
//!
//! A target gives a number that stands for its answer: a refusal's words, or how far the input got. The hunt keeps inputs
//! whose answer is new. Where the format has one spelling of a thing, what was read is written the same, and the target
//! says so with an assertion.

mod agent;
mod bundle;
mod http;
mod json;
mod model;
mod packed;
mod planted;
mod reply;
mod run;
mod schema;
mod stored;
mod text;

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::judge::MOST_MS;
use crate::mutate::Shape;

pub(crate) use bundle::bundled;

/// A thing that is read from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, on the command line and of its folder of regressions.
    pub name: &'static str,
    /// Reads an input; gives a number that stands for the answer.
    pub run: fn(&[u8]) -> u64,
    /// How its inputs are built.
    pub shape: Shape,
    /// Bytes of memory allowed for each byte of an input, above what any input may take.
    pub times: usize,
    /// The most processor time of an input, in milliseconds.
    pub most_ms: u64,
}

/// The bytes allowed for a byte of an input, where nothing is packed.
const PLAIN: usize = 1_000;

/// What a byte of a zstd frame can come to: 4 bytes are a block of 128 KiB.
const UNPACKED: usize = 40_000;

const fn target(name: &'static str, run: fn(&[u8]) -> u64, shape: Shape) -> Target {
    Target { name, run, shape, times: PLAIN, most_ms: MOST_MS }
}

/// Every target.
pub const ALL: [Target; 17] = [
    target("envelope", stored::envelope, Shape::Cbor),
    target("checkpoint", stored::checkpoint, Shape::Cbor),
    target("definition", stored::definition, Shape::Text),
    target("journal", run::journal, Shape::Cbor),
    target("message", run::message, Shape::Cbor),
    Target { times: UNPACKED, ..target("packed", packed::packed, Shape::Bytes) },
    target("values", packed::values, Shape::Cbor),
    target("agent", agent::agent_file, Shape::Text),
    target("wiring", agent::wiring, Shape::Text),
    target("json", json::json, Shape::Text),
    target("reply", reply::reply, Shape::Text),
    target("schema", schema::schema, Shape::Text),
    Target { times: UNPACKED, ..target("bundle", bundle::packed, Shape::Bytes) },
    target("items", bundle::items, Shape::Cbor),
    target("text", text::text, Shape::Text),
    target("http", http::answer_of_a_receiver, Shape::Bytes),
    target("model", model::answer_of_a_service, Shape::Text),
];

/// Targets with a fault that is meant: they show that the driver finds it.
pub const PLANTED: [Target; 5] = [
    target("planted-panic", planted::panic, Shape::Text),
    Target { most_ms: 20, ..target("planted-slow", planted::slow, Shape::Text) },
    target("planted-memory", planted::memory, Shape::Text),
    target("planted-stack", planted::stack, Shape::Text),
    target("planted-sound", planted::sound, Shape::Text),
];

/// The target of that name, the planted ones included.
pub fn named(name: &str) -> Option<&'static Target> {
    ALL.iter().chain(&PLANTED).find(|target| target.name == name)
}

/// The number of an answer. Digits are left out: else each length and place would be an answer of its own.
fn answer(said: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for byte in said.bytes().filter(|byte| !byte.is_ascii_digit()).take(60) {
        byte.hash(&mut hasher);
    }
    hasher.finish()
}

/// The number of what was read, or of why it was refused.
fn answer_of<T, E: ToString>(read: &Result<T, E>, kind: impl FnOnce(&T) -> String) -> u64 {
    match read {
        Ok(read) => answer(&kind(read)),
        Err(error) => answer(&error.to_string()),
    }
}
