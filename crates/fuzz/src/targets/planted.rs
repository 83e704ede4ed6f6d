//! Faults that are meant, each behind a word that no seed holds: they show that the driver finds a panic, a slow input, a
//! greedy one and a stack that overflows, and cuts what it found down to the word.

use std::hint::black_box;

use crate::judge::processor_ms;

/// The word that brings the fault about: a single sign, which a mutation finds soon.
fn is_met(input: &[u8]) -> bool {
    input.contains(&b'*')
}

/// Panics.
pub(super) fn panic(input: &[u8]) -> u64 {
    assert!(!is_met(input), "planted");
    0
}

/// Takes twice the processor time that it is allowed.
pub(super) fn slow(input: &[u8]) -> u64 {
    let began = processor_ms();
    while is_met(input) && processor_ms() - began < 40 {}
    0
}

/// Takes 128 MiB.
pub(super) fn memory(input: &[u8]) -> u64 {
    let bytes = if is_met(input) { 128 << 20 } else { 0 };
    black_box(vec![0_u8; bytes]).len() as u64
}

/// Calls itself until the stack is full.
pub(super) fn stack(input: &[u8]) -> u64 {
    fn deeper(level: u64) -> u64 {
        let frame = black_box([level; 64]);
        if level == 0 { 0 } else { black_box(deeper(level - 1)) + frame[0] }
    }
    deeper(if is_met(input) { 1 << 40 } else { 0 })
}

/// Nothing is wrong with it.
pub(super) fn sound(input: &[u8]) -> u64 {
    u64::from(is_met(input))
}
