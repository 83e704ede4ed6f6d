//! What the Messages API refuses of a body's fields. Messages, tools and thinking have files of their own.

use serde_json::{Map, Value};

use super::{blocks, ensure, pairs, refuse, refuse_with, thinking, tools};
use crate::options::Options;
use crate::refusal::{Checked, Kind, Refusal};

/// The body parameters of "Create a Message". Those of a beta are not among them: they need a header that nobody sends.
const FIELDS: &[&str] = &[
    "cache_control",
    "container",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Judges a body. What is judged first is what a schema says of single fields, then what holds between them.
pub fn check(body: &Value, options: &Options) -> Checked {
    let Value::Object(fields) = body else {
        return Err(refuse(Kind::Value, "Input should be a valid dictionary"));
    };
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(refuse(Kind::UnknownField, format!("{unknown}: Extra inputs are not permitted")));
    }
    required(fields)?;
    model(fields, options)?;
    limits(fields)?;
    optional_types(fields)?;
    system(fields)?;
    let tools = tools::check(fields)?;
    let messages = blocks::check(&fields["messages"])?;
    pairs::check(messages)?;
    thinking::check(fields, messages, options)?;
    marks(body, tools)
}

fn required(fields: &Map<String, Value>) -> Checked {
    match ["max_tokens", "messages", "model"].into_iter().find(|name| !fields.contains_key(*name)) {
        Some(missing) => Err(refuse(Kind::MissingField, format!("{missing}: Field required"))),
        None => Ok(()),
    }
}

fn model(fields: &Map<String, Value>, options: &Options) -> Checked {
    let Some(name) = fields["model"].as_str() else {
        return Err(refuse(Kind::Value, "model: Input should be a valid string"));
    };
    ensure(!name.is_empty(), Kind::Value, || "model: String should have at least 1 character".into())?;
    if options.models.is_empty() || options.models.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(refuse_with(Kind::UnknownModel, 404, "not_found_error", format!("model: {name}")))
}

/// As the reference says of `max_tokens` and `temperature`. A limit of 0, which newer pages have for warming a cache, is
/// refused here: nobody who wants a reply asks for it.
fn limits(fields: &Map<String, Value>) -> Checked {
    let limit = fields["max_tokens"].as_i64();
    let limit = limit.ok_or_else(|| refuse(Kind::OutputLimit, "max_tokens: Input should be a valid integer"))?;
    ensure(limit >= 1, Kind::OutputLimit, || "max_tokens: Input should be greater than or equal to 1".into())?;
    match fields.get("temperature").filter(|value| !value.is_null()) {
        None => Ok(()),
        Some(temperature) => match temperature.as_f64() {
            None => Err(refuse(Kind::Temperature, "temperature: Input should be a valid number")),
            Some(degree) => {
                ensure((0.0..=1.0).contains(&degree), Kind::Temperature, || "temperature: range: 0..1".into())
            }
        },
    }
}

fn optional_types(fields: &Map<String, Value>) -> Checked {
    let must = |name: &str, is: fn(&Value) -> bool, what: &str| match fields.get(name) {
        Some(value) if !value.is_null() && !is(value) => {
            Err(refuse(Kind::Value, format!("{name}: Input should be {what}")))
        }
        _ => Ok(()),
    };
    must("stream", Value::is_boolean, "a valid boolean")?;
    must("stop_sequences", Value::is_array, "a valid list")?;
    must("metadata", Value::is_object, "a valid dictionary")?;
    must("top_p", Value::is_number, "a valid number")?;
    must("top_k", Value::is_u64, "a valid integer")
}

/// `system` is a text or a list of text blocks; the same holds for them as for those of a message.
fn system(fields: &Map<String, Value>) -> Checked {
    match fields.get("system") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => parts.iter().enumerate().try_for_each(|(at, part)| {
            let path = format!("system.{at}");
            ensure(part["type"] == "text", Kind::Block, || format!("{path}.type: Input should be 'text'"))?;
            blocks::text(&format!("{path}.text"), "system", part)
        }),
        Some(_) => Err(refuse(Kind::Value, "system: Input should be a valid list")),
    }
}

/// As "Prompt caching" says: up to four marks, of the type `ephemeral`, for five minutes or an hour.
fn marks(body: &Value, tools: &[Value]) -> Checked {
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut marked: Vec<Value> = tools.to_vec();
    marked.extend(listed(&body["system"]));
    for message in listed(&body["messages"]) {
        for block in listed(&message["content"]) {
            marked.extend(listed(&block["content"]));
            marked.push(block);
        }
    }
    marked.push(body.clone());
    let marks: Vec<&Value> = marked.iter().filter_map(|block| block.get("cache_control")).collect();
    let marks: Vec<&Value> = marks.into_iter().filter(|mark| !mark.is_null()).collect();
    for mark in &marks {
        mark_is_known(mark)?;
    }
    ensure(marks.len() <= 4, Kind::CacheMarks, || {
        format!("A maximum of 4 blocks with cache_control may be provided. Found {}.", marks.len())
    })
}

fn mark_is_known(mark: &Value) -> Result<(), Refusal> {
    ensure(mark["type"] == "ephemeral", Kind::Value, || "cache_control.type: Input should be 'ephemeral'".into())?;
    let ttl = mark.get("ttl").and_then(Value::as_str);
    ensure(matches!(ttl, None | Some("5m" | "1h")), Kind::Value, || {
        "cache_control.ttl: Input should be '5m' or '1h'".into()
    })
}
