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

impl Timestamp {
    /// Reads RFC 3339: `2026-12-01T09:00:00Z`, with or without a fraction, or with an offset in place of the `Z`.
    ///
    /// `None` for anything else, a leap second and a date that no calendar has included.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| -> Option<i64> {
            let digits = text.get(from..to)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let sign = |at: usize, allowed: &str| text.get(at..at + 1).is_some_and(|sign| allowed.contains(sign));
        let separated =
            [4, 7].iter().all(|at| sign(*at, "-")) && sign(10, "Tt ") && [13, 16].iter().all(|at| sign(*at, ":"));
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if !separated || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let rest = text.get(19..)?;
        let fraction = rest.strip_prefix('.').map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_digit).count());
        let (micros, zone) = match fraction {
            0 => (0, rest),
            length => {
                let digits: String = rest[1..=length].chars().chain("000000".chars()).take(6).collect();
                (digits.parse::<i64>().ok()?, &rest[1 + length..])
            }
        };
        let days = days_from_civil(year, month, day)?;
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
        Some(Self(seconds * 1_000_000 + micros))
    }
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let two = |digits: &str| {
        (digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse::<i64>().ok())?
    };
    let (hours, minutes) = (two(hours).filter(|hours| *hours < 24)?, two(minutes).filter(|minutes| *minutes < 60)?);
    match zone.as_bytes()[0] {
        b'+' => Some(hours * 3_600 + minutes * 60),
        b'-' => Some(-(hours * 3_600 + minutes * 60)),
        _ => None,
    }
}

/// Days since 1970-01-01 after Howard Hinnant's `days_from_civil`; `None` when the month has no such day.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let shifted = year - i64::from(month <= 2);
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
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
    fn read_as_it_is_shown() {
        for micros in [0, -1, 951_782_400_000_000, 1_796_000_000_000_000, 4_102_444_799_000_000, -2_208_988_800_000_000]
        {
            let shown = Timestamp::from_micros(micros).to_string();
            assert_eq!(Timestamp::parse(&shown).map(|read| read.to_string()), Some(shown));
        }
        for (text, micros) in [
            ("1970-01-01T00:00:00.5Z", 500_000),
            ("1970-01-01T00:00:00.1234567Z", 123_456),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T22:30:00-01:30", 0),
        ] {
            assert_eq!(Timestamp::parse(text), Some(Timestamp::from_micros(micros)), "{text}");
        }
        for text in [
            "",
            "tomorrow",
            "2026-12-01",
            "2026-12-01T09:00:00",
            "2026-13-01T09:00:00Z",
            "2026-02-29T09:00:00Z",
            "2026-12-01T24:00:00Z",
            "2026-12-01T09:00:60Z",
            "2026-12-01T09:00:00.Z",
            "2026-12-01T09:00:00+1:00",
            "2026-12-01T09:00:00 Z",
            "+026-12-01T09:00:00Z",
            "2026-12-01T09:00:00é",
            "２026-12-01T09:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

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
