//! What chat completions refuse of messages, one by one and of what goes with what.

use std::collections::HashSet;

use serde_json::Value;

use super::{ensure, missing, refuse, unknown_parameter, wrong_type};
use crate::names;
use crate::options::Options;
use crate::refusal::{Checked, Kind};

/// As the service says of `tool_calls[].id`.
const LONGEST_ID: usize = 40;
/// As the reference says of a function's name.
const LONGEST_NAME: usize = 64;

/// Judges the list of messages.
pub fn check(messages: Option<&Value>, options: &Options) -> Checked {
    let messages = messages.ok_or_else(|| missing("messages"))?;
    let Value::Array(all) = messages else {
        return Err(wrong_type(Kind::Value, "messages", "an array of objects", messages));
    };
    ensure(!all.is_empty(), || empty_array(Kind::NoMessages, "messages"))?;
    for (at, message) in all.iter().enumerate() {
        let path = format!("messages[{at}]");
        role(&path, message, options)?;
        content(&path, message)?;
        calls(&path, message)?;
    }
    pairs(all)
}

pub fn empty_array(kind: Kind, path: &str) -> crate::refusal::Refusal {
    let message = format!(
        "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    );
    refuse(kind, path, Some("empty_array"), message)
}

/// As the reference says of each role's message. `reasoning_content` is not OpenAI's: services that think aloud in this
/// shape take it back, and only such a one does here.
fn role(path: &str, message: &Value, options: &Options) -> Checked {
    let Some(role) = message["role"].as_str() else { return Err(missing(&format!("{path}.role"))) };
    let known: &[&str] = match role {
        "system" | "developer" | "user" => &["role", "content", "name"],
        "assistant" => {
            &["role", "content", "name", "refusal", "tool_calls", "audio", "function_call", "reasoning_content"]
        }
        "tool" => &["role", "content", "tool_call_id"],
        _ => {
            let message = format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and \
                 'developer'."
            );
            return Err(refuse(Kind::Role, &format!("{path}.role"), Some("invalid_value"), message));
        }
    };
    for name in message.as_object().into_iter().flat_map(|fields| fields.keys()) {
        let thinks_aloud = options.reasoning.is_some() || name != "reasoning_content";
        ensure(known.contains(&name.as_str()) && thinks_aloud, || unknown_parameter(&format!("{path}.{name}")))?;
    }
    Ok(())
}

/// As the reference says of `content`: a text or a list of parts; only an assistant that calls tools may have none.
fn content(path: &str, message: &Value) -> Checked {
    let path = format!("{path}.content");
    let may_be_null = message["role"] == "assistant" && (has_calls(message) || message["refusal"].is_string());
    match message.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            ensure(!parts.is_empty(), || empty_array(Kind::EmptyContent, &path))?;
            parts.iter().enumerate().try_for_each(|(at, it)| part(&format!("{path}[{at}]"), message, it))
        }
        None | Some(Value::Null) if may_be_null => Ok(()),
        None => Err(missing(&path)),
        Some(Value::Null) => {
            let message = "Invalid value for 'content': expected a string, got null.";
            Err(refuse(Kind::EmptyContent, &path, None, message))
        }
        Some(other) => Err(wrong_type(Kind::Value, &path, "one of a string or array of objects", other)),
    }
}

fn part(path: &str, message: &Value, part: &Value) -> Checked {
    let is_user = message["role"] == "user";
    match part["type"].as_str() {
        Some("text") => ensure(part["text"].is_string(), || missing(&format!("{path}.text"))),
        Some("refusal") if message["role"] == "assistant" => Ok(()),
        Some("image_url" | "input_audio" | "file") if is_user => Ok(()),
        Some(other) => {
            let message = format!("Invalid value: '{other}'. Supported values are: 'text'.");
            Err(refuse(Kind::Block, path, Some("invalid_value"), message))
        }
        None => Err(missing(&format!("{path}.type"))),
    }
}

fn has_calls(message: &Value) -> bool {
    message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())
}

fn calls(path: &str, message: &Value) -> Checked {
    let path = format!("{path}.tool_calls");
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(calls)) => calls,
        Some(other) => return Err(wrong_type(Kind::Value, &path, "an array of objects", other)),
    };
    ensure(!calls.is_empty(), || empty_array(Kind::Value, &path))?;
    let mut ids = HashSet::new();
    for (at, it) in calls.iter().enumerate() {
        let path = format!("{path}[{at}]");
        call(&path, it)?;
        ensure(ids.insert(it["id"].as_str()), || {
            let message = format!("Duplicate value for 'tool_call_id' of {} in message.", it["id"]);
            refuse(Kind::CallIdTwice, &format!("{path}.id"), None, message)
        })?;
    }
    Ok(())
}

fn call(path: &str, call: &Value) -> Checked {
    let Some(id) = call["id"].as_str() else { return Err(missing(&format!("{path}.id"))) };
    ensure(id.chars().count() <= LONGEST_ID, || too_long(Kind::CallId, &format!("{path}.id"), id, LONGEST_ID))?;
    ensure(!id.is_empty(), || {
        let message = format!("Invalid '{path}.id': empty string. Expected a string with minimum length 1.");
        refuse(Kind::CallId, &format!("{path}.id"), Some("empty_string"), message)
    })?;
    ensure(call["type"] == "function", || {
        let message = format!("Invalid value: {}. Supported values are: 'function'.", call["type"]);
        refuse(Kind::Value, &format!("{path}.type"), Some("invalid_value"), message)
    })?;
    name(&format!("{path}.function.name"), &call["function"]["name"])?;
    let path = format!("{path}.function.arguments");
    match call["function"].get("arguments") {
        None => Err(missing(&path)),
        Some(Value::String(_)) => Ok(()),
        Some(other) => Err(wrong_type(Kind::Arguments, &path, "a string", other)),
    }
}

/// A function's name, of a tool or of a call.
pub fn name(path: &str, name: &Value) -> Checked {
    let Some(text) = name.as_str() else { return Err(missing(path)) };
    ensure(text.chars().count() <= LONGEST_NAME, || too_long(Kind::ToolName, path, text, LONGEST_NAME))?;
    ensure(names::fits(text, LONGEST_NAME), || {
        let message = format!(
            "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$'."
        );
        refuse(Kind::ToolName, path, Some("invalid_value"), message)
    })
}

fn too_long(kind: Kind, path: &str, text: &str, longest: usize) -> crate::refusal::Refusal {
    let message = format!(
        "Invalid '{path}': string too long. Expected a string with maximum length {longest}, but got a string with length \
         {} instead.",
        text.chars().count()
    );
    refuse(kind, path, Some("string_above_max_length"), message)
}

/// As the function calling guide says: the messages right behind an assistant's with calls are of the role `tool` and
/// answer each of its calls.
fn pairs(messages: &[Value]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    let mut asked = 0;
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            answer(at, message, &mut open, &known)?;
            continue;
        }
        all_answered(asked, &open)?;
        asked = at;
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        open = calls.iter().filter_map(|call| call["id"].as_str()).collect();
        known = open.iter().copied().collect();
    }
    all_answered(asked, &open)
}

fn answer<'a>(at: usize, message: &'a Value, open: &mut Vec<&'a str>, known: &HashSet<&'a str>) -> Checked {
    let path = format!("messages.[{at}].tool_call_id");
    let Some(id) = message["tool_call_id"].as_str() else {
        let message = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.";
        return Err(refuse(Kind::MissingField, &path, None, message));
    };
    ensure(!known.is_empty(), || {
        let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                       'tool_calls'.";
        refuse(Kind::ResultOrphan, &format!("messages.[{at}].role"), None, message)
    })?;
    ensure(known.contains(id), || {
        let message =
            format!("Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message.");
        refuse(Kind::ResultOrphan, &path, None, message)
    })?;
    let before = open.len();
    open.retain(|known| *known != id);
    ensure(open.len() < before, || {
        let message = format!("Invalid parameter: Duplicate value for 'tool_call_id' of '{id}'.");
        refuse(Kind::ResultTwice, &path, None, message)
    })
}

fn all_answered(asked: usize, open: &[&str]) -> Checked {
    ensure(open.is_empty(), || {
        let message = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        );
        refuse(Kind::ResultMissing, &format!("messages.[{asked}].role"), None, message)
    })
}
