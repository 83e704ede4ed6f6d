//! How often what goes wrong. Rates are in thousandths.

use super::chance::Chance;

/// What can go wrong in a simulation, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of each poll of a task: the process dies before it.
    pub kill: u32,
    /// Of each poll: the process as a whole stands still for a while, as one that is swapped out or suspended.
    pub freeze: u32,
    /// The longest such while, in milliseconds; past a lease's length another worker takes over.
    pub longest_freeze_ms: u64,
    /// Of each poll: this task waits and others go first.
    pub stall: u32,
    /// Of each call of the store: it fails and has changed nothing.
    pub refuse: u32,
    /// Of each commit, start and message: it took effect, and its answer is lost.
    pub lose: u32,
    /// Of each call of the store: it takes a while, before its effect or after.
    pub delay: u32,
    /// The longest such while, in milliseconds.
    pub longest_delay_ms: u64,
    /// Of each call of the store that writes: the disk is full from now on for a while.
    pub full: u32,
    /// Of each attempt of a tool: it does not simply answer.
    pub tool: u32,
    /// Of each call of the model: it brings no reply, or a faulty one.
    pub model: u32,
    /// Of each word to a run: it is sent twice.
    pub twice: u32,
    /// Of each look of a person at a run: the wall clock jumps.
    pub jump: u32,
    /// Of each look of a person at a run: it is cancelled.
    pub cancel: u32,
    /// Of each request: it is denied.
    pub deny: u32,
}

impl Faults {
    /// Each kind of fault with its own rate, and some of them not at all.
    pub(super) fn random(chance: &Chance) -> Self {
        let rate = |most: usize| if chance.permille(400) { 0 } else { chance.below(most) as u32 };
        Self {
            kill: rate(12),
            freeze: rate(4),
            longest_freeze_ms: 90_000,
            stall: rate(300),
            refuse: rate(60),
            lose: rate(60),
            delay: rate(300),
            longest_delay_ms: 500,
            full: rate(8),
            tool: rate(500),
            model: rate(300),
            twice: rate(500),
            jump: rate(40),
            cancel: rate(15),
            deny: rate(500),
        }
    }

    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        kill: 0,
        freeze: 0,
        longest_freeze_ms: 0,
        stall: 0,
        refuse: 0,
        lose: 0,
        delay: 0,
        longest_delay_ms: 0,
        full: 0,
        tool: 0,
        model: 0,
        twice: 0,
        jump: 0,
        cancel: 0,
        deny: 0,
    };
}
