//! Lengths of time: one number and one unit.

/// How one is written, as an example.
pub(super) const FORMS: &str = "a text such as \"500ms\", \"30s\", \"5m\", \"2h\" or \"7d\"";

/// A second in milliseconds.
pub(super) const SECOND_MS: u64 = 1_000;
/// A day in milliseconds.
pub(super) const DAY_MS: u64 = 86_400 * SECOND_MS;
/// The longest that an agent file can say: ten years. Sums of it with a time stay far from overflow.
pub(super) const LONGEST_MS: u64 = 3_650 * DAY_MS;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", SECOND_MS), ("m", 60 * SECOND_MS), ("h", 3_600 * SECOND_MS), ("d", DAY_MS)];

/// How to mend what is not one.
pub(super) fn mend() -> String {
    format!("write one whole number and one unit: {FORMS}")
}

/// The milliseconds of one whole number and one unit, as an agent file has them: `500ms`, `30s`, `5m`, `2h`, `7d`.
/// `None` for any other text.
pub fn parse(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*unit_ms)
}

/// The shortest exact form.
pub(super) fn format(ms: u64) -> String {
    let exact = UNITS.iter().rev().find(|(_, unit_ms)| ms > 0 && ms.is_multiple_of(*unit_ms));
    let (unit, unit_ms) = exact.copied().unwrap_or(UNITS[0]);
    format!("{}{unit}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_and_one_unit() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000)] {
            assert_eq!(parse(text), Some(ms), "{text}");
            assert_eq!(format(ms), text);
        }
        for text in
            ["", "5", "s", "1.5h", "1h30m", "-1s", "+1s", "5 m", " 5m", "5M", "5min", "99999999999999999999d", "９s"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
