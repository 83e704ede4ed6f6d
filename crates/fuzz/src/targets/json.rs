//! Strict JSON and its one spelling.

use lodestep_core::json::{canonical, parse_strict};
use serde_json::Value;

use super::{answer, answer_of};

/// A text as a model sends arguments. What is taken has one spelling, which is read back to the same value.
pub(super) fn json(input: &[u8]) -> u64 {
    let Ok(text) = std::str::from_utf8(input) else { return answer("not UTF-8") };
    let read = parse_strict(text);
    if let Ok(value) = &read {
        let written = canonical(value);
        let again: Value = serde_json::from_slice(&written).expect("canonical bytes are JSON");
        assert_eq!(canonical(&again), written, "a value has one spelling");
        let lax: Value = serde_json::from_str(text).expect("what is strict is JSON");
        assert_eq!(canonical(&lax), written, "a strict reader reads what others do");
    }
    answer_of(&read, |value| match value {
        Value::Object(map) => format!("object {}", map.is_empty()),
        Value::Array(list) => format!("array {}", list.is_empty()),
        other => format!("{:?}", std::mem::discriminant(other)),
    })
}
