//! Simulated time: it follows tokio's paused clock, so that it moves only when every task waits.

use std::sync::atomic::{AtomicI64, Ordering};

use lodestep_core::Timestamp;
use lodestep_store::Clock;
use tokio::time::Instant;

/// Wall time at the start: an arbitrary day.
const START_US: i64 = 1_800_000_000_000_000;

/// Boot time at the start.
const BOOT_US: u64 = 3_600_000_000;

/// The clocks of a simulated machine. The wall clock can be made to jump; the boot clock never does.
pub(super) struct SimClock {
    since: Instant,
    jumped_us: AtomicI64,
}

impl SimClock {
    /// Starts it now; needs a tokio runtime whose time is paused.
    pub(super) fn start() -> Self {
        Self { since: Instant::now(), jumped_us: AtomicI64::new(0) }
    }

    /// Sets the wall clock alone, by so much before or after the true time.
    pub(super) fn jump(&self, to_us: i64) {
        self.jumped_us.store(to_us, Ordering::Relaxed);
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Clock for SimClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(
            START_US + self.jumped_us.load(Ordering::Relaxed) + i64::try_from(self.elapsed_us()).unwrap_or(i64::MAX),
        )
    }

    fn boot_us(&self) -> u64 {
        BOOT_US + self.elapsed_us()
    }
}
