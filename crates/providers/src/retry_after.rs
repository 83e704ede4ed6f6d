//! How long an answer asks to wait.

use std::time::SystemTime;

use reqwest::header::HeaderMap;

/// The wait in milliseconds that `retry-after-ms` or `Retry-After` asks for: seconds, also with a fraction, or an HTTP
/// date (RFC 9110, 10.2.3). A date that is past means now. What is neither, or is negative, says nothing.
pub fn wait_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|said| milliseconds(said, 1.0)) {
        return Some(wait);
    }
    let said = text("retry-after")?;
    if let Some(wait) = milliseconds(said, 1_000.0) {
        return Some(wait);
    }
    let at = httpdate::parse_http_date(said).ok()?;
    let wait = at.duration_since(now).unwrap_or_default();
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(LONGEST_MS as u64))
}

/// A longer wait is taken for this one: ten years, in milliseconds.
const LONGEST_MS: f64 = 3.2e11;

fn milliseconds(said: &str, unit: f64) -> Option<u64> {
    // Digits and one dot: `inf`, `1e9` and `+1` are numbers to Rust and not to HTTP.
    let is_plain = said.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let amount: f64 = said.parse().ok().filter(|_| is_plain)?;
    Some((amount * unit).ceil().min(LONGEST_MS) as u64)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn every_form_is_read_and_nonsense_says_nothing() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let date = |secs: u64| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs));
        let (future, past) = (date(1_800_000_171), date(1_799_999_000));
        for (name, said, wait) in [
            ("retry-after", "2", Some(2_000)),
            ("retry-after", "0", Some(0)),
            ("retry-after", "7200", Some(7_200_000)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after", "99999999999999999999", Some(320_000_000_000)),
            ("retry-after", future.as_str(), Some(171_000)),
            ("retry-after", past.as_str(), Some(0)),
            ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", Some(320_000_000_000)),
            ("retry-after", "-5", None),
            ("retry-after", "soon", None),
            ("retry-after", "inf", None),
            ("retry-after", "", None),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after-ms", "-1", None),
            ("other", "3", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, said.parse().expect(said));
            assert_eq!(wait_ms(&headers, now), wait, "{name}: {said}");
        }
        let mut both = HeaderMap::new();
        both.insert("retry-after", "9".parse().unwrap());
        both.insert("retry-after-ms", "8400".parse().unwrap());
        assert_eq!(wait_ms(&both, now), Some(8_400), "the finer one counts");
    }
}
