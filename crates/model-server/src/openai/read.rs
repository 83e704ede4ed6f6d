//! A body that was checked, read for the mind, the window and the cache.

use std::collections::HashMap;
use std::sync::Arc;

use lodestep_model::{Call, CallResult, Message, Request, ToolSpec};
use serde_json::{Value, json};

use crate::question::{Question, Thinking};
use crate::tokens::Prompt;

/// What a reply may have where the request does not say.
const DEFAULT_OUTPUT_TOKENS: u64 = 16_384;

/// Reads a body. Whatever a check let through is read as something.
pub fn read(body: &Value) -> Question {
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let all = list(&body["messages"]);
    let is_system = |message: &&Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let system: Vec<String> = all.iter().filter(is_system).map(|message| plain(&message["content"])).collect();
    let messages = messages(all);
    let turn = messages.iter().filter(|message| matches!(&***message, Message::Assistant { .. })).count() as u64;
    let limit = body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64());
    Question {
        request: Request {
            system: system.join("\n"),
            messages,
            tools: list(&body["tools"]).iter().map(tool).collect(),
            max_output_tokens: limit.unwrap_or(DEFAULT_OUTPUT_TOKENS),
            turn,
        },
        prompt: prompt(body, &model),
        model,
        streamed: body["stream"] == true,
        stream_usage: body["stream_options"]["include_usage"] == true,
        thinking: Thinking::May,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => list(parts).iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tool(tool: &Value) -> ToolSpec {
    let function = &tool["function"];
    let input = function.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    ToolSpec { name: text(&function["name"]), description: text(&function["description"]), input }
}

/// The messages but those of the system. Results that follow each other are of one message.
fn messages(all: &[Value]) -> Vec<Arc<Message>> {
    let mut names = HashMap::new();
    let mut read: Vec<Message> = Vec::new();
    for message in all {
        match message["role"].as_str() {
            Some("assistant") => read.push(assistant(message, &mut names)),
            Some("user") => read.push(Message::User { text: plain(&message["content"]) }),
            Some("tool") => {
                let result = result(message, &names);
                match read.last_mut() {
                    Some(Message::Results { results }) => results.push(result),
                    _ => read.push(Message::Results { results: vec![result] }),
                }
            }
            _ => {}
        }
    }
    read.into_iter().map(Arc::new).collect()
}

fn assistant(message: &Value, names: &mut HashMap<String, String>) -> Message {
    let calls: Vec<Call> = list(&message["tool_calls"])
        .iter()
        .map(|call| Call {
            id: text(&call["id"]),
            name: text(&call["function"]["name"]),
            arguments: text(&call["function"]["arguments"]),
        })
        .collect();
    names.extend(calls.iter().map(|call| (call.id.clone(), call.name.clone())));
    Message::Assistant { text: plain(&message["content"]), calls, blocks: None }
}

/// The shape has no word for a result that is an error.
fn result(message: &Value, names: &HashMap<String, String>) -> CallResult {
    let id = text(&message["tool_call_id"]);
    let name = names.get(&id).cloned().unwrap_or_default();
    CallResult { id, name, text: plain(&message["content"]), is_error: false }
}

/// As the prompt caching guide says: tools count to the prefix, before the messages.
fn prompt(body: &Value, model: &str) -> Prompt {
    let mut prompt = Prompt::default();
    prompt.push("model", &json!(model), false);
    for tool in list(&body["tools"]) {
        prompt.push("tools", tool, false);
    }
    for message in list(&body["messages"]) {
        prompt.push("message", message, false);
    }
    prompt
}
