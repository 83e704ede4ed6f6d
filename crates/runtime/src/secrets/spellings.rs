//! The ways in which a value is spelled in outputs: as it is, as JSON, percent-encoded, in hex, in base64.
//!
//! In base64 a value looks different at each of three alignments, and its first and last characters depend on what
//! stands beside it: a spelling holds the characters that depend on the value alone. Other ways to write a value (compressed,
//! encrypted, reversed, twice encoded, with line breaks) are not known here.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// RFC 3986's unreserved characters stay.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What JavaScript's encodeURIComponent leaves.
const COMPONENT: &AsciiSet = &STRICT.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// What has to be encoded in a path or a query.
const LOOSE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// Every spelling of a value, each once.
pub(super) fn of(value: &str) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::from([value.as_bytes().to_vec()]);
    all.extend(json(value).into_iter().map(String::into_bytes));
    all.extend(percent(value).into_iter().map(String::into_bytes));
    let hex = hex(value.as_bytes(), "");
    all.extend([hex.to_uppercase().into_bytes(), hex.into_bytes()]);
    all.extend(base64(value.as_bytes()).into_iter().map(String::into_bytes));
    all
}

/// As JSON writers write it: plain, with `\/`, with everything beyond ASCII escaped, with everything escaped.
fn json(value: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(value).to_string();
    let plain = quoted[1..quoted.len() - 1].to_owned();
    let units = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
    let ascii: String = plain.chars().map(|c| if c.is_ascii() { c.to_string() } else { units(c) }).collect();
    let escaped: String = value.chars().map(units).collect();
    let slashed = |text: &str| text.replace('/', "\\/");
    vec![slashed(&plain), plain, slashed(&ascii), upper_escapes(&ascii), ascii, upper_escapes(&escaped), escaped]
}

/// `\u00fc` as `\u00FC`.
fn upper_escapes(text: &str) -> String {
    upper_after(text, "\\u", 4)
}

/// The characters behind each mark in upper case.
fn upper_after(text: &str, mark: &str, count: usize) -> String {
    let mut parts = text.split(mark);
    let mut upper = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let split = count.min(part.len());
        let (head, tail) = part.split_at_checked(split).unwrap_or((part, ""));
        upper += mark;
        upper += &head.to_uppercase();
        upper += tail;
    }
    upper
}

fn percent(value: &str) -> Vec<String> {
    let all = hex(value.as_bytes(), "%");
    let mut spelled = vec![all.to_uppercase(), all];
    for set in [STRICT, COMPONENT, LOOSE] {
        let upper = utf8_percent_encode(value, set).to_string();
        let lower = lower_escapes(&upper);
        spelled.extend([upper.replace("%20", "+"), lower.replace("%20", "+"), upper, lower]);
    }
    spelled
}

/// `%2F` as `%2f`.
fn lower_escapes(text: &str) -> String {
    let mut lower = String::with_capacity(text.len());
    let mut escaped = 0;
    for c in text.chars() {
        lower.push(if escaped > 0 { c.to_ascii_lowercase() } else { c });
        escaped = if c == '%' { 2 } else { u32::saturating_sub(escaped, 1) };
    }
    lower
}

fn hex(bytes: &[u8], before: &str) -> String {
    bytes.iter().map(|byte| format!("{before}{byte:02x}")).collect()
}

fn base64(bytes: &[u8]) -> Vec<String> {
    let mut spelled = Vec::new();
    for (shift, dependent) in [(0, 0), (1, 2), (2, 3)] {
        let shifted: Vec<u8> = std::iter::repeat_n(0, shift).chain(bytes.iter().copied()).collect();
        let whole = shifted.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            spelled.push(engine.encode(&shifted)[dependent..whole].to_owned());
        }
    }
    spelled
}
