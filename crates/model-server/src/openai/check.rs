//! What chat completions refuse of a body's fields. Messages and tools have files of their own.

use serde_json::{Map, Value};

use super::{ensure, messages, refuse, tools, wrong_type};
use crate::options::Options;
use crate::refusal::{Checked, Kind, Refusal};

/// The request body of "Create chat completion".
const FIELDS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Judges a body.
pub fn check(body: &Value, options: &Options) -> Checked {
    let Value::Object(fields) = body else {
        return Err(wrong_type(Kind::Value, "body", "an object", body));
    };
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        let message = format!("Unrecognized request argument supplied: {unknown}");
        return Err(refuse(Kind::UnknownField, "", None, message));
    }
    model(fields, options)?;
    output_limit(fields, options)?;
    temperature(fields)?;
    stream(fields)?;
    tools::check(fields)?;
    messages::check(fields.get("messages"), options)
}

fn given<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn model(fields: &Map<String, Value>, options: &Options) -> Checked {
    let Some(model) = given(fields, "model") else {
        return Err(refuse(Kind::MissingField, "", None, "you must provide a model parameter"));
    };
    let name = model.as_str().ok_or_else(|| wrong_type(Kind::Value, "model", "a string", model))?;
    ensure(options.models.is_empty() || options.models.iter().any(|known| known == name), || unknown_model(name))
}

/// A model that there is not.
pub fn unknown_model(name: &str) -> Refusal {
    let message = format!("The model `{name}` does not exist or you do not have access to it.");
    Refusal { status: 404, ..refuse(Kind::UnknownModel, "", Some("model_not_found"), message) }
}

/// As the reference says of `max_completion_tokens` and of `max_tokens`, which it replaces.
fn output_limit(fields: &Map<String, Value>, options: &Options) -> Checked {
    let limits = ["max_tokens", "max_completion_tokens"];
    let limits: Vec<(&str, &Value)> =
        limits.into_iter().filter_map(|name| Some((name, given(fields, name)?))).collect();
    ensure(!options.only_max_completion_tokens || given(fields, "max_tokens").is_none(), || {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        refuse(Kind::OutputLimit, "max_tokens", Some("unsupported_parameter"), message)
    })?;
    for (name, limit) in &limits {
        let tokens = limit.as_i64().ok_or_else(|| wrong_type(Kind::OutputLimit, name, "an integer", limit))?;
        ensure(tokens >= 1, || {
            let message = format!(
                "Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {tokens} instead."
            );
            refuse(Kind::OutputLimit, name, Some("integer_below_min_value"), message)
        })?;
    }
    ensure(limits.len() < 2, || {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        refuse(Kind::OutputLimit, "max_tokens", Some("invalid_parameter_combination"), message)
    })
}

fn temperature(fields: &Map<String, Value>) -> Checked {
    let Some(temperature) = given(fields, "temperature") else { return Ok(()) };
    let degree = temperature.as_f64();
    let degree = degree.ok_or_else(|| wrong_type(Kind::Temperature, "temperature", "a decimal", temperature))?;
    let bound = match degree {
        _ if degree < 0.0 => ("decimal_below_min_value", "below minimum value. Expected a value >= 0"),
        _ if degree > 2.0 => ("decimal_above_max_value", "above maximum value. Expected a value <= 2"),
        _ => return Ok(()),
    };
    let message = format!("Invalid 'temperature': decimal {}, but got {degree} instead.", bound.1);
    Err(refuse(Kind::Temperature, "temperature", Some(bound.0), message))
}

/// As the reference says of `stream_options`: only together with `stream`.
fn stream(fields: &Map<String, Value>) -> Checked {
    if let Some(stream) = given(fields, "stream") {
        ensure(stream.is_boolean(), || wrong_type(Kind::Value, "stream", "a boolean", stream))?;
    }
    let Some(stream_options) = given(fields, "stream_options") else { return Ok(()) };
    ensure(fields.get("stream") == Some(&Value::Bool(true)), || {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        refuse(Kind::Value, "stream_options", None, message)
    })?;
    let Value::Object(set) = stream_options else {
        return Err(wrong_type(Kind::Value, "stream_options", "an object", stream_options));
    };
    for (name, value) in set {
        let path = format!("stream_options.{name}");
        ensure(["include_usage", "include_obfuscation"].contains(&name.as_str()), || super::unknown_parameter(&path))?;
        ensure(value.is_boolean() || value.is_null(), || wrong_type(Kind::Value, &path, "a boolean", value))?;
    }
    Ok(())
}
