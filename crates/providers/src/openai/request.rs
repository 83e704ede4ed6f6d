//! A request as chat completions take it.
//!
//! Its rules, and how they are met: every call of a message of the model is answered by one `tool` message right behind it, in
//! order; a message without text has calls and says that it has none; arguments are JSON in a string.

use lodestep_model::{Call, Message, Request, ToolSpec};
use serde_json::{Value, json};

use crate::settings::{Settings, is_openai};

/// The body of a request. Instructions and tools come first and are the same in every request of a run: services that
/// keep prompts find them again without a mark.
pub fn body(request: &Request, settings: &Settings) -> Value {
    let mut body = settings.params.clone();
    body.insert("model".to_owned(), settings.model.clone().into());
    if let Some(field) = settings.output_limit_field() {
        body.insert(field.name().to_owned(), request.max_output_tokens.into());
    }
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
    let no_text = no_text(&settings.base_url);
    messages.extend(request.messages.iter().flat_map(|message| told(message, &no_text)));
    body.insert("messages".to_owned(), messages.into());
    Value::Object(body)
}

/// What stands for the text of a message that has calls alone: OpenAI's reference says `null`, which some servers for local
/// models refuse; they take an empty text, and some of them nothing less.
fn no_text(base_url: &str) -> Value {
    if is_openai(base_url) { Value::Null } else { "".into() }
}

fn tool(spec: &ToolSpec) -> Value {
    let function = json!({ "name": spec.name, "description": spec.description, "parameters": spec.input });
    json!({ "type": "function", "function": function })
}

fn told(message: &Message, no_text: &Value) -> Vec<Value> {
    match message {
        Message::User { text } => vec![json!({ "role": "user", "content": text })],
        Message::Assistant { text, calls, .. } => vec![assistant(text, calls, no_text)],
        Message::Results { results } => {
            let answer = |result: &lodestep_model::CallResult| json!({ "role": "tool", "tool_call_id": result.id, "content": result.text });
            results.iter().map(answer).collect()
        }
    }
}

fn assistant(text: &str, calls: &[Call], no_text: &Value) -> Value {
    let content = if text.trim().is_empty() { no_text.clone() } else { text.into() };
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
    fn a_message_of_calls_alone_has_null_for_openai_and_an_empty_text_for_who_refuses_null() {
        for (base_url, content) in [
            ("https://api.openai.com/v1", Value::Null),
            ("https://x.openai.azure.com/openai/v1", Value::Null),
            ("http://localhost:8000/v1", "".into()),
        ] {
            let calls = [Call { id: "call_1".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() }];
            assert_eq!(assistant(" ", &calls, &no_text(base_url))["content"], content, "{base_url}");
        }
    }
}
