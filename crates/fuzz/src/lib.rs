//! Everything that Lodestep reads from outside, given what nobody meant: no panic, bounded time, bounded memory, and
//! what was read is written the same.
//!
//! # Layout
//!
//! - [`targets`]: a plain function for each thing that is read. Any fuzzer can call them.
//! - [`corpus`]: where mutation begins: golden files, example agents, and texts made here.
//! - [`mutate`]: bytes, words and CBOR items changed by chance, from a seed.
//! - [`judge`]: one input under the measures: panic, time, memory.
//! - [`hunt`]: inputs by chance, kept where a target answers in a new way; [`minimize`]: a small one that fails alike.
//! - [`heap`]: the allocator that knows its peak.
//!
//! The driver, `main.rs`, is what `cargo xtask fuzz` runs. It hunts in a process of its own, as a stack that overflows
//! ends one. What was found lies in `regressions/TARGET/` and is played again by every `cargo test`.

pub mod corpus;
pub mod heap;
pub mod hunt;
pub mod judge;
pub mod minimize;
pub mod mutate;
pub mod targets;
