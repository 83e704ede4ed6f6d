//! JSON that comes from a model: read strictly, written canonically (RFC 8785).
//!
//! Strict means: one value and nothing after it, no duplicate keys, no lone surrogates, no number that a
//! double can't hold, a bounded depth. Nothing is repaired: a fault is named and the text is refused.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Deeper arguments than this are refused; no real tool nests so deep, and each level costs stack.
const DEPTH: usize = 64;

/// Longer arguments than this are refused unread: 1 MiB; larger content belongs in an artifact.
pub const ARGUMENT_BYTES: usize = 1024 * 1024;

/// Reads JSON text strictly.
///
/// # Errors
///
/// What is wrong with the text, in words that a model can act on.
pub fn parse_strict(text: &str) -> Result<Value, String> {
    if text.len() > ARGUMENT_BYTES {
        return Err(format!("{} bytes; at most {ARGUMENT_BYTES} are taken", text.len()));
    }
    check_numbers(text)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }.deserialize(&mut deserializer).map_err(|error| match lone_surrogate(text) {
        Some(escape) => format!("not valid JSON: {escape} is half of a surrogate pair; write the whole character"),
        None => format!("not valid JSON: {error}"),
    })?;
    deserializer.end().map_err(|_| "not valid JSON: there is text after the value".to_owned())?;
    Ok(value)
}

/// The first number within a value that a double can't hold exactly: its canonical bytes would say another one.
pub fn inexact(value: &Value) -> Option<&serde_json::Number> {
    match value {
        Value::Number(number) => {
            let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            Some(number)
                .filter(|_| magnitude.is_some_and(|magnitude| (magnitude as f64) as u128 != u128::from(magnitude)))
        }
        Value::Array(values) => values.iter().find_map(inexact),
        Value::Object(values) => values.values().find_map(inexact),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// The canonical bytes of a value after RFC 8785: keys sorted, numbers in their shortest form, no white space.
///
/// 1, 1.0 and 1e0 are one number, and so are -0 and 0; a missing key and null differ.
pub fn canonical(value: &Value) -> Vec<u8> {
    // Writing a `Value` into a vector can't fail: its keys are strings and its numbers are finite.
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

/// The first escape that spells half of a surrogate pair without its other half.
fn lone_surrogate(text: &str) -> Option<&str> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6).filter(|escape| escape.starts_with("\\u"))?.get(2..)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        at += match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => return text.get(at..at + 6),
            Some(_) => 6,
            // The backslash and what it escapes; that may be longer than a byte only in text that is no JSON.
            None => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    None
}

/// A number literal that a double can't hold is refused by name: silently rounding an amount is a wrong effect.
fn check_numbers(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    let (mut at, mut in_string) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 2,
            b'"' => {
                in_string = !in_string;
                at += 1;
            }
            b'-' | b'0'..=b'9' if !in_string => {
                let literal_end = bytes[at..]
                    .iter()
                    .position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
                    .map_or(bytes.len(), |length| at + length);
                check_number(&text[at..literal_end])?;
                at = literal_end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

fn check_number(literal: &str) -> Result<(), String> {
    let refused = || {
        let shown: String = literal.chars().take(40).collect();
        format!("the number {shown} can't be held exactly; send it as a string")
    };
    // A malformed literal is the parser's to name.
    let Ok(double) = literal.parse::<f64>() else { return Ok(()) };
    if !double.is_finite() {
        return Err(refused());
    }
    let integral = !literal.contains(['.', 'e', 'E']);
    if integral && double.abs() > 9_007_199_254_740_992.0 {
        return Err(refused());
    }
    if decimal_digits(literal) == decimal_digits(&format!("{double:e}")) {
        return Ok(());
    }
    Err(refused())
}

/// A decimal literal as its significant digits and the power of ten of the first: equal exactly when the numbers are.
fn decimal_digits(literal: &str) -> (String, i64) {
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(i64::MAX / 2);
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits: String = [whole, fraction].concat();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits.trim_matches('0').to_owned();
    if significant.is_empty() {
        return (significant, 0);
    }
    (significant, exponent.saturating_add(whole.len() as i64 - leading as i64))
}

/// Builds a `Value`, refusing what `serde_json` would let pass in silence.
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        if self.depth >= DEPTH {
            return Err(E::custom(format!("nested deeper than {DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.deeper()?)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self.deeper()?)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} stands twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn same(a: &str, b: &str) -> bool {
        let read = |text| canonical(&parse_strict(text).expect(text));
        read(a) == read(b)
    }

    #[test]
    fn dat_04_what_is_the_same_call_and_what_is_not() {
        for (a, b) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            (r#"{"x":{"a":1,"b":[1,{"c":1,"d":2}]}}"#, r#"{"x":{"b":[1,{"d":2,"c":1}],"a":1}}"#),
            ("1", "1.0"),
            ("1", "1e0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("[1, 2]", " [1,2] "),
            ("100", "1E2"),
        ] {
            assert!(same(a, b), "{a} and {b}");
        }
        for (a, b) in [
            ("[1,2]", "[2,1]"),
            (r#""1""#, "1"),
            (r#"{"a":null}"#, "{}"),
            ("0.3", "0.30000000000000004"),
            (r#""a\u0000b""#, r#""a\\u0000b""#),
        ] {
            assert!(!same(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn tol_02_what_is_refused_and_how_it_is_named() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let long = format!("\"{}\"", "x".repeat(5 << 20));
        for (text, named) in [
            (r#"{"a":"#, "not valid JSON"),
            (r#"{"a":1,}"#, "not valid JSON"),
            (r#"{"a":1,"a":2}"#, "the key \"a\" stands twice"),
            ("sure: {}", "not valid JSON"),
            ("{} {}", "text after the value"),
            (r#""\ud83d""#, "\\ud83d is half of a surrogate pair"),
            (r#"{"\\a":"\ud83e\udd80 \udc00"}"#, "\\udc00 is half of a surrogate pair"),
            (r#""\ud83d\ud83d""#, "\\ud83d is half of a surrogate pair"),
            (r#""\\ud83d"#, "not valid JSON: EOF"),
            ("\"\\é", "not valid JSON: invalid escape"),
            ("9007199254740993", "9007199254740993 can't be held exactly"),
            ("1e400", "1e400 can't be held exactly"),
            ("0.12345678901234567890123", "can't be held exactly"),
            ("NaN", "not valid JSON"),
            (&deep, "nested deeper than 64"),
            (&long, "at most 1048576"),
            ("", "not valid JSON"),
        ] {
            let fault = parse_strict(text).expect_err(&text[..text.len().min(40)]);
            assert!(fault.contains(named), "{fault}");
        }
        for text in ["9007199254740992", "-9007199254740992", "0.1", "1.5e300", "0.000", "123456.789", "5e-324"] {
            assert!(parse_strict(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_number_that_a_double_cannot_hold_is_found_wherever_it_stands() {
        let most = 1_u64 << 53;
        let texts = [json!("9007199254740993"), json!(true)];
        for sound in
            [json!(most), json!(i64::MIN), json!(10_u64.pow(16)), json!(0.1), json!(1e300)].into_iter().chain(texts)
        {
            assert_eq!(inexact(&json!({ "a": [sound] })), None, "{sound}");
        }
        for odd in [json!(most + 1), json!(most + 3), json!(u64::MAX), json!(i64::MIN + 1)] {
            let number = odd.as_number().cloned();
            assert_eq!(inexact(&json!({ "a": [1, { "b": odd }] })), number.as_ref());
        }
    }
}
