//! Every random choice of a simulation, drawn from one seed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The choices. The order in which they are drawn is that of a single thread: a seed gives the same ones each time.
pub(super) struct Chance(Mutex<fastrand::Rng>);

impl Chance {
    pub(super) fn of_seed(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// Yes, in so many of a thousand cases.
    pub(super) fn permille(&self, yes: u32) -> bool {
        yes > 0 && self.with(|rng| rng.u32(0..1_000)) < yes
    }

    /// A number below `bound`; 0 when that is 0.
    pub(super) fn below(&self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.with(|rng| rng.usize(0..bound)) }
    }

    /// A duration of less than so many milliseconds.
    pub(super) fn ms_below(&self, bound: u64) -> Duration {
        Duration::from_micros(self.with(|rng| rng.u64(0..(bound * 1_000).max(1))))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
