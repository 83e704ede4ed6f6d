//! Points in time as data. The core reads no clock: a worker puts the time into each envelope.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::Serialize;

/// Microseconds since 1970-01-01T00:00:00Z, by the clock of whoever wrote it down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Timestamp(#[n(0)] i64);

impl Timestamp {
    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// So many milliseconds later; stops at the end of time.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1000)))
    }

    /// Milliseconds from `earlier` to here, rounded up; 0 when `earlier` is not earlier.
    pub fn ms_since(self, earlier: Self) -> u64 {
        let micros = self.0.saturating_sub(earlier.0).max(0);
        u64::try_from(micros).unwrap_or(0).div_ceil(1000)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, to the second. Civil date from days after Howard Hinnant's `civil_from_days`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000);
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_in_utc() {
        for (micros, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00Z"),
            (1_796_000_000_000_000, "2026-11-30T00:53:20Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), shown);
        }
    }
}
