//! A file's values beside the parts of the schema that speak of them, and files written from values.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A schema with its definitions.
pub struct Schema(pub Value);

/// A part of a schema: its place in it, and itself without references.
#[derive(Clone, Debug)]
pub struct Part {
    pub pointer: String,
    pub says: Map<String, Value>,
}

impl Schema {
    pub fn root(&self) -> Part {
        self.part("")
    }

    fn part(&self, pointer: &str) -> Part {
        let says = self.0.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
        Part { pointer: pointer.to_owned(), says }
    }

    /// A part with what it refers to: the referred part's place, and what this one says over it.
    fn followed(&self, pointer: &str) -> Part {
        let part = self.part(pointer);
        let Some(target) = part.says.get("$ref").and_then(Value::as_str) else { return part };
        let mut followed = self.followed(target.trim_start_matches('#'));
        followed.says.extend(part.says);
        followed.says.remove("$ref");
        followed
    }

    /// The alternative that is meant by a table: the one whose first needed key it has.
    fn meant(&self, part: &Part, value: &Value) -> Option<Part> {
        let Some(alternatives) = part.says.get("oneOf").and_then(Value::as_array) else { return Some(part.clone()) };
        if alternatives[0].get("$ref").is_none() {
            return Some(part.clone());
        }
        let parts = (0..alternatives.len()).map(|nth| self.followed(&format!("{}/oneOf/{nth}", part.pointer)));
        parts.into_iter().find(|part| {
            let needed = part.says["required"][0].as_str().unwrap();
            value.get(needed).is_some()
        })
    }

    /// What is said of a key of a table; `None` when the table has no such key, `Some(None)` when it is free.
    pub fn key(&self, part: &Part, key: &str) -> Option<Option<Part>> {
        if part.says.get("properties").and_then(|properties| properties.get(key)).is_some_and(Value::is_object)
            && (part.says.contains_key("additionalProperties"))
        {
            return Some(Some(self.followed(&format!("{}/properties/{key}", part.pointer))));
        }
        match part.says.get("additionalProperties") {
            None => Some(None),
            Some(Value::Object(_)) => Some(Some(self.followed(&format!("{}/additionalProperties", part.pointer)))),
            Some(_) => None,
        }
    }

    /// The part that speaks of a value by the name that people give it: `tools.mail.timeout`, `policy.tools[0]`.
    pub fn named(&self, name: &str, file: &Value) -> Option<Option<Part>> {
        let (mut part, mut value) = (self.root(), file);
        if name.is_empty() {
            return Some(Some(part));
        }
        for word in name.split('.') {
            let (key, nth) = match word.split_once('[') {
                Some((key, nth)) => (key, nth.trim_end_matches(']').parse::<usize>().ok()),
                None => (word, None),
            };
            // Of a list of tables the name has no number; all of them are of one kind.
            if part.says.get("type").and_then(Value::as_str) == Some("array") {
                part = self.followed(&format!("{}/items", part.pointer));
                let with = |value: &&Value| value.get(key).is_some();
                value = value.as_array().and_then(|all| all.iter().find(with)).unwrap_or(&Value::Null);
            }
            part = match self.key(&part, key)? {
                Some(part) => part,
                None => return Some(None),
            };
            value = value.get(key).unwrap_or(&Value::Null);
            part = self.meant(&part, value).unwrap_or(part);
            if let Some(nth) = nth {
                part = self.followed(&format!("{}/items", part.pointer));
                value = value.get(nth).unwrap_or(&Value::Null);
            }
        }
        Some(Some(part))
    }

    /// Calls `each` with every table of a file that the schema closes, by its JSON pointer in the file.
    pub fn tables(&self, file: &Value, each: &mut dyn FnMut(&str, &Part, &Value)) {
        self.tables_in("", &self.root(), file, each);
    }

    fn tables_in(&self, at: &str, part: &Part, value: &Value, each: &mut dyn FnMut(&str, &Part, &Value)) {
        let Some(part) = self.meant(part, value) else { return };
        match value {
            Value::Object(entries) => {
                if part.says.get("additionalProperties") == Some(&Value::Bool(false)) {
                    each(at, &part, value);
                }
                for (key, value) in entries {
                    if let Some(Some(inner)) = self.key(&part, key) {
                        self.tables_in(&format!("{at}/{key}"), &inner, value, each);
                    }
                }
            }
            Value::Array(items) => {
                let inner = self.followed(&format!("{}/items", part.pointer));
                for (nth, value) in items.iter().enumerate() {
                    self.tables_in(&format!("{at}/{nth}"), &inner, value, each);
                }
            }
            _ => {}
        }
    }

    /// The places of all keys that the schema describes, and does not merely forbid.
    pub fn keys(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        keys_in("", &self.0, &mut keys);
        keys
    }
}

/// Only where a table is closed are its keys all that it has.
fn keys_in(at: &str, value: &Value, keys: &mut BTreeSet<String>) {
    let Value::Object(says) = value else { return };
    if says.contains_key("additionalProperties") {
        for key in says.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            keys.insert(format!("{at}/properties/{key}"));
        }
    }
    for word in ["properties", "$defs"] {
        for (key, inner) in says.get(word).and_then(Value::as_object).into_iter().flatten() {
            keys_in(&format!("{at}/{word}/{key}"), inner, keys);
        }
    }
    for word in ["additionalProperties", "items"] {
        keys_in(&format!("{at}/{word}"), says.get(word).unwrap_or(&Value::Null), keys);
    }
}

/// A file that says what a value says, every table in a line.
pub fn toml_of(file: &Value) -> String {
    let entries = file.as_object().unwrap().iter();
    entries.map(|(key, value)| format!("{} = {}\n", Value::from(key.as_str()), inline(value))).collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries =
                entries.iter().map(|(key, value)| format!("{} = {}", Value::from(key.as_str()), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        // TOML has no null; a date is as much of another type as anything.
        Value::Null => "2026-11-30".to_owned(),
        plain => plain.to_string(),
    }
}
