//! A body that was checked, read for the mind, the window and the cache.

use std::collections::HashMap;
use std::sync::Arc;

use lodestep_model::{Blocks, Call, CallResult, Message, Request, ToolSpec};
use serde_json::{Value, json};

use super::thinking;
use crate::question::Question;
use crate::tokens::Prompt;

/// Reads a body. Whatever a check let through is read as something.
pub fn read(body: &Value) -> Question {
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let messages = messages(&body["messages"], &model);
    let turn = messages.iter().filter(|message| matches!(&***message, Message::Assistant { .. })).count() as u64;
    Question {
        request: Request {
            system: plain(&body["system"]),
            messages,
            tools: list(&body["tools"]).iter().map(tool).collect(),
            max_output_tokens: body["max_tokens"].as_u64().unwrap_or_default(),
            turn,
        },
        prompt: prompt(body, &model),
        model,
        streamed: body["stream"] == true,
        stream_usage: true,
        thinking: thinking::wanted(&body["thinking"]),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text of a content: itself, or all of its text blocks.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => list(blocks).iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

/// A content as blocks.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        blocks => list(blocks).to_vec(),
    }
}

fn tool(tool: &Value) -> ToolSpec {
    let text = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
    ToolSpec { name: text("name"), description: text("description"), input: tool["input_schema"].clone() }
}

fn messages(messages: &Value, model: &str) -> Vec<Arc<Message>> {
    let mut names = HashMap::new();
    let mut read = Vec::new();
    for message in list(messages) {
        let blocks = blocks(&message["content"]);
        if message["role"] == "assistant" {
            read.push(assistant(&blocks, model, &mut names));
        } else {
            read.extend(user(&blocks, &names));
        }
    }
    read.into_iter().map(Arc::new).collect()
}

fn assistant(blocks: &[Value], model: &str, names: &mut HashMap<String, String>) -> Message {
    let text = |block: &Value, field: &str| block[field].as_str().unwrap_or_default().to_owned();
    let calls: Vec<Call> = of_type(blocks, "tool_use")
        .map(|block| Call { id: text(block, "id"), name: text(block, "name"), arguments: block["input"].to_string() })
        .collect();
    names.extend(calls.iter().map(|call| (call.id.clone(), call.name.clone())));
    let is_thought = |block: &&Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let thoughts: Vec<&Value> = blocks.iter().filter(is_thought).collect();
    let given = (!thoughts.is_empty()).then(|| Blocks { of: model.into(), json: json!(thoughts).to_string() });
    Message::Assistant { text: plain(&json!(blocks)), calls, blocks: given }
}

/// A message of the user's: results first, and the text behind them as a message of its own.
fn user(blocks: &[Value], names: &HashMap<String, String>) -> Vec<Message> {
    let results: Vec<CallResult> = of_type(blocks, "tool_result").map(|block| result(block, names)).collect();
    let texts: Vec<&Value> = blocks.iter().filter(|block| block["type"] != "tool_result").collect();
    let results = (!results.is_empty()).then_some(Message::Results { results });
    let text = (!texts.is_empty()).then(|| Message::User { text: plain(&json!(texts)) });
    results.into_iter().chain(text).collect()
}

fn result(block: &Value, names: &HashMap<String, String>) -> CallResult {
    let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
    let name = names.get(&id).cloned().unwrap_or_default();
    CallResult { id, name, text: plain(&block["content"]), is_error: block["is_error"] == true }
}

fn of_type<'a>(blocks: &'a [Value], of: &'a str) -> impl Iterator<Item = &'a Value> {
    blocks.iter().filter(move |block| block["type"] == of)
}

/// As "Prompt caching" says: a prefix is of tools, system and messages, in this order.
fn prompt(body: &Value, model: &str) -> Prompt {
    let mut prompt = Prompt::default();
    let is_marked = |block: &Value| block.get("cache_control").is_some_and(|mark| !mark.is_null());
    prompt.push("model", &json!(model), false);
    for tool in list(&body["tools"]) {
        prompt.push("tools", tool, is_marked(tool));
    }
    for block in blocks(&body["system"]) {
        prompt.push("system", &block, is_marked(&block));
    }
    for message in list(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        for block in blocks(&message["content"]) {
            // A mark within a result counts as one of the result's.
            let marked = is_marked(&block) || list(&block["content"]).iter().any(is_marked);
            prompt.push(role, &block, marked);
        }
    }
    if is_marked(body) {
        prompt.mark_last();
    }
    prompt
}
