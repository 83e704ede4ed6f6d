//! A request as the Messages API takes it.
//!
//! Its rules, and how they are met: the first message is the user's; each `tool_use` is answered by one `tool_result` at the
//! beginning of the next message, which also holds the user's text that follows; no text is empty. While `thinking` is on, a last message of
//! the model that has calls begins with the signed block that came with them. Where that is gone, its exchange is told in words.

use std::sync::Arc;

use lodestep_model::{Blocks, Call, CallResult, Message, Request, ToolSpec};
use serde_json::{Map, Value, json};

use crate::settings::Settings;

/// The body of a request.
///
/// One mark for the prompt cache stands behind tools and instructions, which are the same in every request of a run.
pub fn body(request: &Request, settings: &Settings) -> Value {
    let mut body = settings.params.clone();
    body.insert("model".to_owned(), settings.model.clone().into());
    body.insert("max_tokens".to_owned(), request.max_output_tokens.into());
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
    }
    let mark = json!({ "type": "ephemeral" });
    let has_system = !request.system.trim().is_empty();
    if has_system {
        body.insert("system".to_owned(), json!([{ "type": "text", "text": request.system, "cache_control": mark }]));
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if let Some(Value::Object(last)) = tools.last_mut().filter(|_| !has_system) {
        last.insert("cache_control".to_owned(), mark);
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    body.insert("messages".to_owned(), messages(&request.messages, settings).into());
    Value::Object(body)
}

fn tool(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "input_schema": spec.input })
}

/// The messages, with neighbours of one role made one.
fn messages(messages: &[Arc<Message>], settings: &Settings) -> Vec<Value> {
    let is_calls = |message: &Arc<Message>| matches!(**message, Message::Assistant { .. });
    let last = messages.iter().rposition(is_calls);
    let thinks = is_thinking(&settings.params);
    let mut told: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut calls_in_words: Option<&[Call]> = None;
    for (at, message) in messages.iter().enumerate() {
        let (role, content) = match &**message {
            Message::User { text } => ("user", vec![text_block(text)]),
            Message::Assistant { text, calls, blocks } => {
                let given = blocks.as_ref().filter(|_| Some(at) == last).and_then(|blocks| given(blocks, settings));
                if thinks && Some(at) == last && given.is_none() {
                    calls_in_words = Some(calls);
                    continue;
                }
                ("assistant", assistant(given.unwrap_or_default(), text, calls))
            }
            Message::Results { results } => match calls_in_words.take() {
                Some(calls) => ("user", vec![text_block(&in_words(calls, results))]),
                None => ("user", results.iter().map(result).collect()),
            },
        };
        match told.last_mut() {
            Some((before, blocks)) if *before == role => blocks.extend(content),
            _ => told.push((role, content)),
        }
    }
    told.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn is_thinking(params: &Map<String, Value>) -> bool {
    let kind = params.get("thinking").and_then(|thinking| thinking.get("type")).and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "disabled")
}

/// The blocks that came with the calls, if this model gave them.
fn given(blocks: &Blocks, settings: &Settings) -> Option<Vec<Value>> {
    if blocks.of != settings.blocks_of() {
        return None;
    }
    serde_json::from_str::<Vec<Value>>(&blocks.json).ok().filter(|blocks| !blocks.is_empty())
}

fn assistant(mut content: Vec<Value>, text: &str, calls: &[Call]) -> Vec<Value> {
    if !text.trim().is_empty() {
        content.push(text_block(text));
    }
    content.extend(calls.iter().map(|call| {
        let input = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input.unwrap_or_else(|| json!({})) })
    }));
    content
}

fn result(result: &CallResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.id, "content": result.text });
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn in_words(calls: &[Call], results: &[CallResult]) -> String {
    let told = calls.iter().zip(results).map(|(call, result)| {
        let came = if result.is_error { "failed" } else { "came to" };
        format!("Your call of {} with {} {came}:\n{}", call.name, call.arguments, result.text)
    });
    told.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Dialect;

    fn settings(params: Value) -> Settings {
        let Value::Object(params) = params else { panic!() };
        let (model, base_url) = ("m".to_owned(), String::new());
        Settings { base_url, model, params, stream: false, ..crate::testing::settings(Dialect::Anthropic) }
    }

    fn request(blocks: Option<Blocks>) -> Request {
        let call = |id: &str| Call { id: id.into(), name: "read".into(), arguments: r#"{"b":1,"a":2}"#.into() };
        let result = |id: &str, is_error| CallResult { id: id.into(), name: "read".into(), text: "x".into(), is_error };
        let messages = vec![
            Message::User { text: "Begin".into() },
            Message::Assistant { text: " ".into(), calls: vec![call("call_1")], blocks: None },
            Message::Results { results: vec![result("call_1", false)] },
            Message::Assistant { text: "Well".into(), calls: vec![call("call_2"), call("call_3")], blocks },
            Message::Results { results: vec![result("call_2", true), result("call_3", false)] },
            Message::User { text: "Go on".into() },
        ];
        let tools =
            vec![ToolSpec { name: "read".into(), description: "Reads".into(), input: json!({"type": "object"}) }];
        let messages = messages.into_iter().map(Arc::new).collect();
        Request { system: "Be.".into(), messages, tools: tools.into(), max_output_tokens: 9, turn: 3 }
    }

    #[test]
    fn calls_are_answered_at_once_and_roles_take_turns() {
        let body = body(&request(None), &settings(json!({"temperature": 0.2})));
        assert_eq!(body["temperature"], 0.2);
        assert_eq!(body["max_tokens"], 9);
        assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
        assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
        assert!(body["tools"][0].get("cache_control").is_none(), "one mark covers both");
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        let kinds = |at: usize| -> Vec<&str> {
            messages[at]["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect()
        };
        assert_eq!(kinds(1), ["tool_use"], "no empty text");
        assert_eq!(kinds(3), ["text", "tool_use", "tool_use"]);
        assert_eq!(kinds(4), ["tool_result", "tool_result", "text"]);
        assert_eq!(messages[4]["content"][0]["is_error"], true);
        assert_eq!(messages[1]["content"][0]["input"], json!({"a": 2, "b": 1}));
    }

    #[test]
    fn signed_blocks_go_back_unchanged_or_the_exchange_is_told_in_words() {
        let thinking = settings(json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}));
        let block = json!({"type": "thinking", "thinking": "é\n", "signature": "c2ln"});
        let blocks = |of: &str| Some(Blocks { of: of.into(), json: format!("[{block}]") });
        let whole = body(&request(blocks("anthropic m")), &thinking);
        assert_eq!(whole["messages"][3]["content"][0], block);
        for gone in [None, blocks("anthropic other")] {
            let told = body(&request(gone), &thinking);
            let messages = told["messages"].as_array().unwrap();
            assert_eq!(messages.len(), 3, "{told}");
            let last = messages[2]["content"].as_array().unwrap();
            assert_eq!(last.len(), 3, "the result before, the exchange in words, what is next");
            assert!(last[1]["text"].as_str().unwrap().contains("Your call of read with"), "{told}");
        }
    }
}
