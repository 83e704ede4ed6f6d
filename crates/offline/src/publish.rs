//! The publishing tools: every tool that is not the runtime's own, called once each with arguments from its schema.

use lodestep_model::ToolSpec;
use serde_json::{Map, Value, json};

use crate::view::View;

/// What may go into arguments.
pub(crate) struct Material<'a> {
    /// The report's artifact.
    pub(crate) artifact: &'a str,
    /// A title.
    pub(crate) title: &'a str,
    /// A line that says what was done.
    pub(crate) line: &'a str,
}

/// How the calls of a tool have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// One ended well.
    Ok,
    /// None did; this is what the last one came to.
    Not(String),
}

/// Strings that take the line even when they are not required.
const LINE_NAMES: &[&str] = &["text", "message"];

/// How the calls of `tool` have ended so far; `None` when there were none.
pub(crate) fn ended(view: &View, tool: &str) -> Option<Ended> {
    let listed = view.actions.iter().filter(|action| action.tool == tool).map(|action| {
        if action.outcome.starts_with("ok") { Ended::Ok } else { Ended::Not(first_line(&action.outcome)) }
    });
    let recent = view.recent.iter().flatten().filter(|outcome| outcome.tool == tool).map(|outcome| {
        if outcome.failed || outcome.text.starts_with("denied") {
            Ended::Not(first_line(&outcome.text))
        } else {
            Ended::Ok
        }
    });
    let all: Vec<_> = listed.chain(recent).collect();
    if all.contains(&Ended::Ok) { Some(Ended::Ok) } else { all.last().cloned() }
}

/// Whether a tool takes the report itself, and not only a word about it.
pub(crate) fn takes_report(tool: &ToolSpec) -> bool {
    let properties = tool.input.get("properties").and_then(Value::as_object);
    let is_artifact = |schema: &Value| schema.get("format").and_then(Value::as_str) == Some("artifact-name");
    properties.is_some_and(|properties| properties.values().any(is_artifact))
}

/// The first line of a text, at most 200 characters of it.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(200).collect()
}

/// Arguments for a publishing tool.
///
/// # Errors
///
/// Says what keeps the tool from being called: a required argument that nothing is known for, or that it
/// takes nothing of the report.
pub(crate) fn arguments(tool: &ToolSpec, material: &Material) -> Result<Value, String> {
    let none = Map::new();
    let properties = tool.input.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> =
        tool.input.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut arguments = Map::new();
    let mut takes_report = false;
    for (name, schema) in properties {
        let is_required = required.contains(&name.as_str());
        if let Some(value) = fill(name, schema, is_required, material) {
            takes_report = true;
            arguments.insert(name.clone(), value);
        } else if let Some(value) = fixed(schema).filter(|_| is_required) {
            arguments.insert(name.clone(), value);
        }
    }
    if let Some(name) = required.iter().find(|name| !arguments.contains_key(**name)) {
        return Err(format!("nothing is known for its argument `{}`", first_line(name)));
    }
    if takes_report { Ok(Value::Object(arguments)) } else { Err("it takes nothing of a report".to_owned()) }
}

/// A value of the report for an argument.
fn fill(name: &str, schema: &Value, is_required: bool, material: &Material) -> Option<Value> {
    let text = |key| schema.get(key).and_then(Value::as_str);
    let is_string = match schema.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    if !is_string {
        return None;
    }
    // What a pattern, a format or a choice allows is no free text.
    let is_free = ["pattern", "format", "enum", "const", "contentEncoding"].iter().all(|key| schema.get(key).is_none());
    let value = match (text("format"), name) {
        (Some("artifact-name"), _) => return Some(json!(material.artifact)),
        _ if !is_free || (is_required && schema.get("default").is_some()) => return None,
        (_, "title") => material.title,
        (_, name) if is_required || LINE_NAMES.contains(&name) => material.line,
        _ => return None,
    };
    let limit = |key| schema.get(key).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    let value: String = value.chars().take(limit("maxLength").unwrap_or(usize::MAX)).collect();
    (value.chars().count() >= limit("minLength").unwrap_or(0)).then(|| json!(value))
}

/// The only value that a schema leaves, or its default.
fn fixed(schema: &Value) -> Option<Value> {
    let only = schema
        .get("enum")
        .and_then(Value::as_array)
        .filter(|values| values.len() == 1)
        .and_then(|values| values.first());
    schema.get("const").or_else(|| schema.get("default")).or(only).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(input: Value) -> Result<Value, String> {
        let tool = ToolSpec { name: "publish".into(), description: String::new(), input };
        arguments(&tool, &Material { artifact: "report.md", title: "Tides", line: "It is out." })
    }

    #[test]
    fn arguments_follow_the_schema() {
        let body = json!({"type": "string", "format": "artifact-name"});
        let full = json!({"properties": {"title": {"type": "string", "maxLength": 3}, "body": body}, "required": ["title", "body"]});
        assert_eq!(filled(full), Ok(json!({"title": "Tid", "body": "report.md"})));
        let text = json!({"properties": {"text": {"type": ["string", "null"]}, "level": {"enum": ["info"]}}, "required": ["level"]});
        assert_eq!(filled(text), Ok(json!({"text": "It is out.", "level": "info"})));
        let other =
            json!({"properties": {"note": {"type": "string"}, "aside": {"type": "string"}}, "required": ["note"]});
        assert_eq!(filled(other), Ok(json!({"note": "It is out."})));
    }

    #[test]
    fn what_cannot_be_filled_is_not_called() {
        let unknown = [
            json!({"properties": {"to": {"type": "string", "format": "email"}}, "required": ["to"]}),
            json!({"properties": {"count": {"type": "integer"}, "text": {"type": "string"}}, "required": ["count"]}),
            json!({"properties": {"text": {"type": "string"}}, "required": ["absent"]}),
            json!({"properties": {"mode": {"type": "string", "enum": ["a", "b"]}}, "required": ["mode"]}),
            json!({"properties": {}}),
            json!(null),
            json!({"properties": 3, "required": {"a": 1}}),
        ];
        for input in unknown {
            assert!(filled(input.clone()).is_err(), "{input}");
        }
    }
}
