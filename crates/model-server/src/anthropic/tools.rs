//! What the Messages API refuses of tools.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{ensure, refuse};
use crate::names;
use crate::refusal::{Checked, Kind, Refusal};
use crate::schema;

/// As the reference says of `tools[].name`.
const LONGEST_NAME: usize = 128;

/// Judges the tools and the choice among them, and gives the tools.
pub fn check(fields: &Map<String, Value>) -> Result<&[Value], Refusal> {
    let tools = match fields.get("tools") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(refuse(Kind::Value, "tools: Input should be a valid list")),
    };
    let mut known = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        tool_is_good(&format!("tools.{at}.custom"), tool)?;
        ensure(known.insert(tool["name"].as_str()), Kind::ToolNameTwice, || {
            "tools: Tool names must be unique.".into()
        })?;
    }
    choice(fields, &known)?;
    Ok(tools)
}

fn tool_is_good(path: &str, tool: &Value) -> Checked {
    let known = ["type", "name", "description", "input_schema", "cache_control", "strict", "eager_input_streaming"];
    let names = tool.as_object().into_iter().flat_map(|fields| fields.keys());
    if let Some(unknown) = names.into_iter().find(|name| !known.contains(&name.as_str())) {
        return Err(refuse(Kind::UnknownField, format!("{path}.{unknown}: Extra inputs are not permitted")));
    }
    let name = tool["name"].as_str();
    let name = name.ok_or_else(|| refuse(Kind::MissingField, format!("{path}.name: Field required")))?;
    ensure(name.chars().count() <= LONGEST_NAME, Kind::ToolName, || {
        format!("{path}.name: String should have at most {LONGEST_NAME} characters")
    })?;
    ensure(names::fits(name, LONGEST_NAME), Kind::ToolName, || {
        format!("{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    })?;
    let description = tool.get("description").unwrap_or(&Value::Null);
    ensure(description.is_null() || description.is_string(), Kind::Value, || {
        format!("{path}.description: Input should be a valid string")
    })?;
    input_schema(&format!("{path}.input_schema"), tool.get("input_schema"))
}

/// A JSON Schema of an object. One that is put together at its top is refused, in these words.
fn input_schema(path: &str, schema: Option<&Value>) -> Checked {
    let schema = schema.ok_or_else(|| refuse(Kind::Schema, format!("{path}: Field required")))?;
    ensure(schema.is_object(), Kind::Schema, || format!("{path}: Input should be a valid dictionary"))?;
    ensure(schema.get("type").is_some(), Kind::Schema, || format!("{path}.type: Field required"))?;
    ensure(schema::is_of_object(schema), Kind::Schema, || format!("{path}.type: Input should be 'object'"))?;
    let is_composed = ["oneOf", "allOf", "anyOf"].iter().any(|word| schema.get(word).is_some());
    ensure(!is_composed, Kind::Schema, || {
        format!("{path}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    })
}

/// As the reference says of `tool_choice`: `auto`, `any`, `none`, or a `tool` that is offered.
fn choice(fields: &Map<String, Value>, known: &HashSet<Option<&str>>) -> Checked {
    let Some(choice) = fields.get("tool_choice").filter(|value| !value.is_null()) else { return Ok(()) };
    match choice["type"].as_str() {
        Some("none") => Ok(()),
        Some("auto" | "any") => ensure(!known.is_empty(), Kind::Value, || {
            "tool_choice: tool_choice may only be specified while providing tools.".into()
        }),
        Some("tool") => ensure(known.contains(&choice["name"].as_str()), Kind::Value, || {
            let name = choice["name"].as_str().unwrap_or_default();
            format!("tool_choice.name: Tool '{name}' not found in provided tools")
        }),
        _ => Err(refuse(Kind::Value, "tool_choice: Input tag does not match any of the expected tags")),
    }
}
