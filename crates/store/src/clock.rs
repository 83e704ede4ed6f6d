//! Time, injected: the wall clock for durable timers, the boot clock for leases.

use std::sync::Mutex;

use lodestep_core::Timestamp;

/// Where a store and its workers take the time from.
pub trait Clock: Send + Sync {
    /// Wall time. It may jump.
    fn wall(&self) -> Timestamp;

    /// Microseconds since the machine booted, counting suspension; never jumps, the same in every process.
    fn boot_us(&self) -> u64;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn boot_us(&self) -> u64 {
        #[cfg(target_os = "linux")]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let id = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(id);
        let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
        seconds * 1_000_000 + nanos / 1_000
    }
}

/// A clock that stands still until it is set; for tests and simulations.
#[derive(Debug)]
pub struct SettableClock {
    now: Mutex<(Timestamp, u64)>,
}

impl SettableClock {
    /// A clock that shows this wall time and a boot time of one hour.
    pub fn at(wall: Timestamp) -> Self {
        Self { now: Mutex::new((wall, 3_600_000_000)) }
    }

    /// Moves both clocks forward, in milliseconds.
    pub fn advance_ms(&self, ms: u64) {
        let mut now = self.lock();
        now.0 = now.0.plus_ms(ms);
        now.1 += ms * 1_000;
    }

    /// Sets the wall clock alone: a jump.
    pub fn set_wall(&self, wall: Timestamp) {
        self.lock().0 = wall;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Timestamp, u64)> {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for SettableClock {
    fn wall(&self) -> Timestamp {
        self.lock().0
    }

    fn boot_us(&self) -> u64 {
        self.lock().1
    }
}
