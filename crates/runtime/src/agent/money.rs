//! Amounts of usd, read digit by digit: no double comes between the file and the quota.

use toml::de::DeValue;

use super::reader::Item;

/// Decimal places of a micro-usd.
const PLACES: usize = 6;

/// The most usd of one amount: a billion.
const MOST_USD: u64 = 1_000_000_000;

/// Reads an amount of usd as micro-usd.
pub(super) fn micro_usd(item: &Item<'_>) -> Option<u64> {
    let written = match item.value() {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => {
            item.wrong("an amount of usd, such as 2.50");
            return None;
        }
    };
    let read = micro(written);
    if read.is_none() {
        let mend = format!("write 0 to {MOST_USD} with at most {PLACES} decimals and no exponent, such as 2.50");
        item.fault(format!("`{}` can't be {written}", item.name), mend);
    }
    read
}

/// The millionths of an amount of usd, as an agent file has it: `3`, `2.50`. `None` for any other text, for more than
/// six decimals and for more than a billion.
pub fn micro(written: &str) -> Option<u64> {
    let written = written.strip_prefix('+').unwrap_or(written);
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > PLACES || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MOST_USD)?;
    let micros: u64 = format!("{fraction:0<PLACES$}").parse().ok()?;
    Some(whole * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::micro;

    #[test]
    fn amounts_are_exact() {
        for (written, expected) in [
            ("3", Some(3_000_000)),
            ("2.50", Some(2_500_000)),
            ("0.1", Some(100_000)),
            ("0.000001", Some(1)),
            ("1.1000000000", Some(1_100_000)),
            ("4.35", Some(4_350_000)),
            ("0.0000001", None),
            ("-1", None),
            ("1e3", None),
            ("1.5e3", None),
            ("inf", None),
            ("nan", None),
            ("1000000001", None),
        ] {
            assert_eq!(micro(written), expected, "{written}");
        }
    }
}
