//! An answer as a whole message.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::thinking;
use crate::answer::{Answer, Oddity, Stop};
use crate::bill::Tokens;
use crate::options::Options;

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_yet_known: Option<Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Thinking { thinking: &'a str, signature: String },
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Input },
    NotYetKnown { of: &'static str },
}

/// The arguments as they are, where they are JSON.
#[derive(Serialize)]
#[serde(transparent)]
struct Input(Box<RawValue>);

impl Input {
    /// The arguments' JSON as it is, or an empty object for what is none: a whole message has no place for it.
    fn new(arguments: &str) -> Option<Self> {
        let raw = RawValue::from_string(arguments.to_owned());
        raw.or_else(|_| RawValue::from_string("{}".to_owned())).ok().map(Self)
    }
}

/// The answer's JSON.
pub fn message(answer: &Answer, options: &Options) -> String {
    let thought = answer
        .reasoning
        .iter()
        .map(|thinking| Block::Thinking { thinking, signature: thinking::signature(thinking, options) });
    let odd = (answer.oddity == Oddity::UnknownEvents).then_some(Block::NotYetKnown { of: "block" });
    let texts = answer.texts.iter().map(|text| Block::Text { text });
    let calls = answer.calls.iter().filter_map(|call| {
        Some(Block::ToolUse { id: &call.id, name: &call.name, input: Input::new(&call.arguments)? })
    });
    let message = Message {
        id: id(answer),
        kind: "message",
        role: "assistant",
        model: &answer.model,
        content: thought.chain(odd).chain(texts).chain(calls).collect(),
        stop_reason: stop_reason(answer.stop),
        stop_sequence: None,
        usage: answer.usage.map(|tokens| usage(&tokens, tokens.output)),
        not_yet_known: (answer.oddity == Oddity::UnknownEvents).then(|| json!({"of": "field"})),
    };
    serde_json::to_string(&message).unwrap_or_default()
}

pub fn id(answer: &Answer) -> String {
    format!("msg_{:024}", answer.number)
}

pub fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::ToolCalls => "tool_use",
        Stop::OutputLimit => "max_tokens",
        Stop::Refusal | Stop::ContentFilter => "refusal",
    }
}

/// As the reference says of `usage`: `input_tokens` are those that neither came out of the cache nor went into it.
pub fn usage(tokens: &Tokens, output: u64) -> Value {
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cache_read + tokens.cache_write),
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    })
}
