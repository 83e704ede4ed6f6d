//! What the Messages API refuses of messages and their content blocks, one by one.

use serde_json::Value;

use super::{ensure, refuse};
use crate::names;
use crate::refusal::{Checked, Kind, Refusal};

/// Judges the list of messages and gives it.
///
/// As the reference says of `messages`: roles are `user` and `assistant`, content is a text or a list of blocks. That no
/// message is empty but the last of the assistant, that the first is the user's, that no text is empty or white, and that
/// what the assistant is to go on with ends in no white space, is what the service says when it refuses.
pub fn check(messages: &Value) -> Result<&[Value], Refusal> {
    let Value::Array(messages) = messages else {
        return Err(refuse(Kind::Value, "messages: Input should be a valid list"));
    };
    ensure(!messages.is_empty(), Kind::NoMessages, || "messages: at least one message is required".into())?;
    for (at, message) in messages.iter().enumerate() {
        role(at, message)?;
        content(at, message, at + 1 == messages.len())?;
    }
    ensure(messages[0]["role"] == "user", Kind::FirstMessage, || {
        "messages: first message must use the \"user\" role".into()
    })?;
    end(&messages[messages.len() - 1])?;
    Ok(messages)
}

fn role(at: usize, message: &Value) -> Checked {
    if let Some(fields) = message.as_object()
        && let Some(unknown) = fields.keys().find(|name| !["role", "content"].contains(&name.as_str()))
    {
        let message = format!("messages.{at}.{unknown}: Extra inputs are not permitted");
        return Err(refuse(Kind::UnknownField, message));
    }
    match message["role"].as_str() {
        Some("user" | "assistant") => Ok(()),
        Some("system") => Err(refuse(
            Kind::Role,
            "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \
             \"system\" as an input message role.",
        )),
        Some(_) => Err(refuse(Kind::Role, format!("messages.{at}.role: Input should be 'user' or 'assistant'"))),
        None => Err(refuse(Kind::MissingField, format!("messages.{at}.role: Field required"))),
    }
}

fn content(at: usize, message: &Value, is_last: bool) -> Checked {
    let role = message["role"].as_str().unwrap_or_default();
    let may_be_empty = is_last && role == "assistant";
    let not_empty = |is_empty: bool| {
        ensure(!is_empty || may_be_empty, Kind::EmptyContent, || {
            format!(
                "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
            )
        })
    };
    match &message["content"] {
        Value::String(text) => {
            not_empty(text.is_empty())?;
            ensure(text.is_empty() || !text.trim().is_empty(), Kind::EmptyText, || {
                "messages: text content blocks must contain non-whitespace text".into()
            })
        }
        Value::Array(blocks) => {
            not_empty(blocks.is_empty())?;
            let path = |nth: usize| format!("messages.{at}.content.{nth}");
            blocks.iter().enumerate().try_for_each(|(nth, it)| block(&path(nth), role, it))
        }
        Value::Null => Err(refuse(Kind::MissingField, format!("messages.{at}.content: Field required"))),
        _ => Err(refuse(Kind::Value, format!("messages.{at}.content: Input should be a valid list"))),
    }
}

fn block(path: &str, role: &str, block: &Value) -> Checked {
    let belongs = |to: &str, kind: &str| {
        ensure(role == to, Kind::Block, || format!("{path}: `{kind}` blocks can only be in `{to}` messages"))
    };
    match block["type"].as_str() {
        Some("text") => text(&format!("{path}.text"), "messages", block),
        Some("tool_use") => belongs("assistant", "tool_use").and_then(|()| tool_use(path, block)),
        Some("tool_result") => belongs("user", "tool_result").and_then(|()| tool_result(path, block)),
        Some(kind @ "thinking") => {
            belongs("assistant", kind)?;
            fields(&format!("{path}.{kind}"), block, &["type", "thinking", "signature"])
        }
        Some(kind @ "redacted_thinking") => {
            belongs("assistant", kind)?;
            fields(&format!("{path}.{kind}"), block, &["type", "data"])
        }
        Some(kind @ ("image" | "document" | "search_result")) => belongs("user", kind),
        Some(kind) => Err(refuse(
            Kind::Block,
            format!(
                "{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'document', \
                 'image', 'redacted_thinking', 'search_result', 'text', 'thinking', 'tool_result', 'tool_use'"
            ),
        )),
        None => Err(refuse(Kind::MissingField, format!("{path}.type: Field required"))),
    }
}

/// All of these fields are there and are texts, and no others. That a thinking block takes no cache mark follows.
fn fields(path: &str, block: &Value, known: &[&str]) -> Checked {
    for name in known {
        ensure(block[*name].is_string(), Kind::MissingField, || format!("{path}.{name}: Field required"))?;
    }
    extra(path, block, known)
}

fn extra(path: &str, block: &Value, known: &[&str]) -> Checked {
    let names = block.as_object().into_iter().flat_map(|fields| fields.keys());
    match names.into_iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let kind = if unknown == "cache_control" { Kind::CacheMarkPlace } else { Kind::UnknownField };
            Err(refuse(kind, format!("{path}.{unknown}: Extra inputs are not permitted")))
        }
    }
}

/// A text block: `of` is the field of the body that it is in.
pub fn text(path: &str, of: &str, block: &Value) -> Checked {
    let Some(text) = block["text"].as_str() else {
        return Err(refuse(Kind::MissingField, format!("{path}.text: Field required")));
    };
    extra(path, block, &["type", "text", "cache_control", "citations"])?;
    if text.is_empty() && block.get("cache_control").is_some_and(|mark| !mark.is_null()) {
        let message = format!("{path}: cache_control cannot be set for empty text blocks");
        return Err(refuse(Kind::CacheMarkPlace, message));
    }
    ensure(!text.is_empty(), Kind::EmptyText, || format!("{of}: text content blocks must be non-empty"))?;
    ensure(!text.trim().is_empty(), Kind::EmptyText, || {
        format!("{of}: text content blocks must contain non-whitespace text")
    })
}

fn id(path: &str, block: &Value, name: &str) -> Checked {
    let Some(id) = block[name].as_str() else {
        return Err(refuse(Kind::MissingField, format!("{path}.{name}: Field required")));
    };
    ensure(!id.is_empty() && names::is_plain(id), Kind::CallId, || {
        format!("{path}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'")
    })
}

/// As the reference says of `tool_use` in a request: `id`, `name` (at most 200 characters there), and `input`, an object.
fn tool_use(path: &str, block: &Value) -> Checked {
    let path = format!("{path}.tool_use");
    extra(&path, block, &["type", "id", "name", "input", "cache_control", "caller"])?;
    id(&path, block, "id")?;
    let name = block["name"].as_str();
    let name = name.ok_or_else(|| refuse(Kind::MissingField, format!("{path}.name: Field required")))?;
    ensure((1..=200).contains(&name.chars().count()), Kind::ToolName, || {
        format!("{path}.name: String should have at least 1 and at most 200 characters")
    })?;
    ensure(block["input"].is_object(), Kind::Arguments, || format!("{path}.input: Input should be a valid dictionary"))
}

/// As the reference says of `tool_result`: its content may be left out, be a text, or a list of blocks.
fn tool_result(path: &str, block: &Value) -> Checked {
    let path = format!("{path}.tool_result");
    extra(&path, block, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    id(&path, block, "tool_use_id")?;
    ensure(block.get("is_error").is_none_or(Value::is_boolean), Kind::Value, || {
        format!("{path}.is_error: Input should be a valid boolean")
    })?;
    match &block["content"] {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
            let path = format!("{path}.content.{at}");
            match part["type"].as_str() {
                Some("text") => text(&format!("{path}.text"), "messages", part),
                Some("image" | "document" | "search_result") => Ok(()),
                _ => Err(refuse(Kind::Block, format!("{path}: Input tag does not match any of the expected tags"))),
            }
        }),
        _ => Err(refuse(Kind::Value, format!("{path}.content: Input should be a valid list"))),
    }
}

fn end(last: &Value) -> Checked {
    if last["role"] != "assistant" {
        return Ok(());
    }
    let text = match &last["content"] {
        Value::Array(blocks) => blocks.last().map_or(&Value::Null, |block| &block["text"]),
        content => content,
    };
    let text = text.as_str().unwrap_or_default();
    ensure(text.trim_end() == text, Kind::TrailingSpace, || {
        "messages: final assistant content cannot end with trailing whitespace".into()
    })
}
