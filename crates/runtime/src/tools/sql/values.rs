//! Between JSON and SQLite, exactly: arguments are bound as what they are, rows become JSON that says what stood there.
//!
//! JSON has no bytes. A blob, and a text that is not UTF-8, is shown as `{"hex": "00ff"}`; `unhex(:argument)` takes such
//! digits back.

use rusqlite::types::{Value as Bound, ValueRef};
use serde_json::{Map, Value, json};

/// What an argument is bound as. A list or an object is its JSON, which SQLite's JSON functions read; an argument that was
/// not given is NULL.
pub(super) fn bound(argument: Option<&Value>) -> Bound {
    match argument {
        None | Some(Value::Null) => Bound::Null,
        Some(Value::Bool(yes)) => Bound::Integer(i64::from(*yes)),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(whole) => Bound::Integer(whole),
            None => number.as_f64().map_or(Bound::Null, Bound::Real),
        },
        Some(Value::String(text)) => Bound::Text(text.clone()),
        Some(other) => Bound::Text(other.to_string()),
    }
}

/// A cell as JSON. A whole number is written with all of its digits.
pub(super) fn shown(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(whole) => whole.into(),
        // What JSON has no number for is only ever an infinity: SQLite keeps no NaN.
        ValueRef::Real(real) => {
            serde_json::Number::from_f64(real).map_or_else(|| json!(real.to_string()), Value::Number)
        }
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), Into::into),
        ValueRef::Blob(bytes) => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "hex": digits })
}

/// A row under the names of its columns.
pub(super) fn row(columns: &[String], row: &rusqlite::Row<'_>) -> rusqlite::Result<Value> {
    let mut named = Map::new();
    for (at, column) in columns.iter().enumerate() {
        named.insert(column.clone(), shown(row.get_ref(at)?));
    }
    Ok(Value::Object(named))
}

/// The name that two columns have, if two have one.
pub(super) fn named_twice(columns: &[String]) -> Option<&String> {
    columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)).map(|(_, name)| name)
}
