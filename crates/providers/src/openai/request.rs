//! A request as chat completions take it.
//!
//! Its rules, and how they are met: every call of a message of the model is answered by one `tool` message right behind it, in
//! order; a message without text has calls and `null`; arguments are JSON in a string.

use lodestep_model::{Call, Message, Request, ToolSpec};
use serde_json::{Value, json};

use crate::settings::Settings;

/// The body of a request. Instructions and tools come first and are the same in every request of a run: services that
/// keep prompts find them again without a mark.
pub fn body(request: &Request, settings: &Settings) -> Value {
    let mut body = settings.params.clone();
    body.insert("model".to_owned(), settings.model.clone().into());
    body.insert(limit_field(&settings.base_url).to_owned(), request.max_output_tokens.into());
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    messages.extend(request.messages.iter().flat_map(|message| told(message)));
    body.insert("messages".to_owned(), messages.into());
    Value::Object(body)
}

/// OpenAI's own newer models refuse `max_tokens`, and compatible servers know nothing else.
fn limit_field(base_url: &str) -> &'static str {
    let host = base_url.split('/').nth(2).unwrap_or_default();
    let is_own =
        ["openai.com", "openai.azure.com"].iter().any(|own| host == *own || host.ends_with(&format!(".{own}")));
    if is_own { "max_completion_tokens" } else { "max_tokens" }
}

fn tool(spec: &ToolSpec) -> Value {
    let function = json!({ "name": spec.name, "description": spec.description, "parameters": spec.input });
    json!({ "type": "function", "function": function })
}

fn told(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text } => vec![json!({ "role": "user", "content": text })],
        Message::Assistant { text, calls, .. } => vec![assistant(text, calls)],
        Message::Results { results } => {
            let answer = |result: &lodestep_model::CallResult| json!({ "role": "tool", "tool_call_id": result.id, "content": result.text });
            results.iter().map(answer).collect()
        }
    }
}

fn assistant(text: &str, calls: &[Call]) -> Value {
    let content = if text.trim().is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openai_itself_is_told_the_limit_by_its_new_name() {
        for (base_url, field) in [
            ("https://api.openai.com/v1", "max_completion_tokens"),
            ("https://eu.api.openai.com/v1", "max_completion_tokens"),
            ("https://x.openai.azure.com/openai/v1", "max_completion_tokens"),
            ("http://localhost:11434/v1", "max_tokens"),
            ("https://notopenai.com/v1", "max_tokens"),
            ("https://openrouter.ai/api/v1", "max_tokens"),
        ] {
            assert_eq!(limit_field(base_url), field, "{base_url}");
        }
    }
}
