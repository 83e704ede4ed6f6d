//! What chat completions refuse of tools.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::messages::{empty_array, name};
use super::{ensure, refuse, unknown_parameter, wrong_type};
use crate::refusal::{Checked, Kind};
use crate::schema;

/// As the reference says of `tools`.
const MOST: usize = 128;

/// Judges the tools and what only goes with them.
pub fn check(fields: &Map<String, Value>) -> Checked {
    let tools = match fields.get("tools") {
        None | Some(Value::Null) => return needs_tools(fields),
        Some(Value::Array(tools)) => tools,
        Some(other) => return Err(wrong_type(Kind::Value, "tools", "an array of objects", other)),
    };
    ensure(!tools.is_empty(), || empty_array(Kind::ToolCount, "tools"))?;
    ensure(tools.len() <= MOST, || {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MOST}, but got an array with length \
             {} instead.",
            tools.len()
        );
        refuse(Kind::ToolCount, "tools", Some("array_above_max_length"), message)
    })?;
    let mut known = HashSet::new();
    for (at, it) in tools.iter().enumerate() {
        tool(&format!("tools[{at}]"), it)?;
        let function = it["function"]["name"].as_str().unwrap_or_default();
        ensure(known.insert(function), || {
            let message = format!("Duplicate function name '{function}' in 'tools'. Function names must be unique.");
            refuse(Kind::ToolNameTwice, &format!("tools[{at}].function.name"), None, message)
        })?;
    }
    choice(fields.get("tool_choice"), &known)
}

fn needs_tools(fields: &Map<String, Value>) -> Checked {
    let alone = ["tool_choice", "parallel_tool_calls"]
        .into_iter()
        .find(|name| fields.get(*name).is_some_and(|it| !it.is_null()));
    match alone {
        None => Ok(()),
        Some(name) => {
            let message = format!("Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.");
            Err(refuse(Kind::Value, name, None, message))
        }
    }
}

fn tool(path: &str, tool: &Value) -> Checked {
    ensure(tool["type"] == "function", || {
        let message = format!("Invalid value: {}. Supported values are: 'function'.", tool["type"]);
        refuse(Kind::Value, &format!("{path}.type"), Some("invalid_value"), message)
    })?;
    let path = format!("{path}.function");
    let function = &tool["function"];
    for field in function.as_object().into_iter().flat_map(|fields| fields.keys()) {
        let is_known = ["name", "description", "parameters", "strict"].contains(&field.as_str());
        ensure(is_known, || unknown_parameter(&format!("{path}.{field}")))?;
    }
    name(&format!("{path}.name"), &function["name"])?;
    let description = function.get("description").unwrap_or(&Value::Null);
    ensure(description.is_null() || description.is_string(), || {
        wrong_type(Kind::Value, &format!("{path}.description"), "a string", description)
    })?;
    parameters(&format!("{path}.parameters"), function)
}

/// As the reference says of `function.parameters`: a JSON Schema of an object; left out, of one without fields.
fn parameters(path: &str, function: &Value) -> Checked {
    let Some(schema) = function.get("parameters") else { return Ok(()) };
    let refused = |what: String| {
        let name = function["name"].as_str().unwrap_or_default();
        let message = format!("Invalid schema for function '{name}': schema must {what}.");
        refuse(Kind::Schema, path, Some("invalid_function_parameters"), message)
    };
    ensure(schema::is_of_object(schema), || {
        refused(format!("be a JSON Schema of 'type: \"object\"', got 'type: {}'", schema["type"]))
    })?;
    let is_composed = ["oneOf", "anyOf", "allOf", "enum", "not"].iter().any(|word| schema.get(word).is_some());
    ensure(!is_composed, || {
        refused("have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".into())
    })
}

fn choice(choice: Option<&Value>, known: &HashSet<&str>) -> Checked {
    let is_good = match choice {
        None | Some(Value::Null) => true,
        Some(Value::String(word)) => ["none", "auto", "required"].contains(&word.as_str()),
        Some(tool) => known.contains(tool["function"]["name"].as_str().unwrap_or_default()),
    };
    ensure(is_good, || refuse(Kind::Value, "tool_choice", Some("invalid_value"), "Invalid value for 'tool_choice'."))
}
