//! An answer as a whole completion.

use serde_json::{Value, json};

use crate::answer::{Answer, Oddity, Stop};
use crate::bill::Tokens;
use crate::tokens::count;

/// When every answer was made: no test should depend on it.
pub const CREATED: u64 = 1_750_000_000;
/// What a model says that refuses, where the mind has no words for it.
const REFUSAL: &str = "I'm sorry, but I can't help with that.";

/// The answer's JSON.
pub fn completion(answer: &Answer) -> Value {
    let mut choice = json!({
        "index": 0,
        "message": message(answer),
        "logprobs": null,
        "finish_reason": finish_reason(answer.stop),
    });
    if answer.oddity == Oddity::UnknownEvents {
        choice["not_yet_known"] = json!({"of": "choice"});
    }
    let mut completion = json!({
        "id": id(answer),
        "object": "chat.completion",
        "created": CREATED,
        "model": answer.model,
        "choices": [choice],
        "service_tier": "default",
        "system_fingerprint": "fp_test",
    });
    if let Some(tokens) = &answer.usage {
        completion["usage"] = usage(tokens, answer);
    }
    completion
}

fn message(answer: &Answer) -> Value {
    let mut message = json!({
        "role": "assistant", "content": content(answer), "refusal": refusal(answer), "annotations": [],
    });
    if let Some(reasoning) = &answer.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if !answer.calls.is_empty() {
        let call = |call: &lodestep_model::Call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
        message["tool_calls"] = answer.calls.iter().map(call).collect();
    }
    message
}

pub fn id(answer: &Answer) -> String {
    format!("chatcmpl-{:029}", answer.number)
}

/// The text; none where it only calls or refuses.
pub fn content(answer: &Answer) -> Option<String> {
    (!answer.texts.is_empty() && answer.stop != Stop::Refusal).then(|| answer.texts.concat())
}

/// As the reference says of `message.refusal`.
pub fn refusal(answer: &Answer) -> Option<String> {
    let words = || if answer.texts.is_empty() { REFUSAL.to_owned() } else { answer.texts.concat() };
    (answer.stop == Stop::Refusal).then(words)
}

pub fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Refusal => "stop",
        Stop::ToolCalls => "tool_calls",
        Stop::OutputLimit => "length",
        Stop::ContentFilter => "content_filter",
    }
}

/// As the reference says of `usage`: `prompt_tokens` are all of them, and the details say which the cache had.
pub fn usage(tokens: &Tokens, answer: &Answer) -> Value {
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.reasoning.as_deref().map_or(0, count), "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
