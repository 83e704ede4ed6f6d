//! An answer as chunks, as the reference's "Streaming" shows them.
//!
//! The first chunk has the role, the next ones deltas, the last of them why it stopped; then, if it is asked for, a chunk
//! with the usage and no choices; then `[DONE]`. Comments keep the connection open in between.

use serde_json::{Map, Value, json};

use super::write::{CREATED, content, finish_reason, id, refusal, usage};
use crate::answer::{Answer, Oddity, deltas, escaped};
use crate::body::{Piece, Place};

/// All chunks of an answer.
pub fn chunks(answer: &Answer) -> Vec<Piece> {
    let mut stream = Stream { pieces: Vec::new(), answer };
    stream.delta(Place::Start, json!({"role": "assistant", "content": content(answer).map(|_| ""), "refusal": null}));
    stream.pieces.push(Piece::new(Place::Between, ": keep-alive\n\n"));
    stream.unknown();
    stream.texts();
    for (index, call) in answer.calls.iter().enumerate() {
        stream.call(index, call);
    }
    stream.end();
    stream.pieces
}

/// One event without a name.
pub fn data(place: Place, data: &Value) -> Piece {
    Piece::new(place, &format!("data: {data}\n\n"))
}

struct Stream<'a> {
    pieces: Vec<Piece>,
    answer: &'a Answer,
}

impl Stream<'_> {
    fn push(&mut self, place: Place, choices: &Value, usage: Option<Value>) {
        let mut chunk = json!({
            "id": id(self.answer), "object": "chat.completion.chunk", "created": CREATED,
            "model": self.answer.model, "service_tier": "default", "system_fingerprint": "fp_test",
            "choices": choices,
        });
        if self.answer.stream_usage {
            // As the reference says: every chunk has the field, and it is null in all but the last.
            chunk["usage"] = usage.unwrap_or(Value::Null);
        }
        let json = chunk.to_string();
        let json = if self.pieces.len() % 2 == 1 { escaped(&json) } else { json };
        self.pieces.push(Piece::new(place, &format!("data: {json}\n\n")));
    }

    fn delta(&mut self, place: Place, delta: Value) {
        self.push(place, &json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), None);
    }

    fn texts(&mut self) {
        let answer = self.answer;
        for piece in deltas(answer.reasoning.as_deref().unwrap_or_default()) {
            self.delta(Place::Between, json!({"reasoning_content": piece}));
        }
        for piece in deltas(&content(answer).unwrap_or_default()) {
            self.delta(Place::Text, json!({"content": piece}));
        }
        for piece in deltas(&refusal(answer).unwrap_or_default()) {
            self.delta(Place::Text, json!({"refusal": piece}));
        }
    }

    /// A call: its first delta names it, the others bring its arguments.
    fn call(&mut self, index: usize, call: &lodestep_model::Call) {
        let function = json!({"name": call.name, "arguments": ""});
        self.call_delta(index, json!({"id": call.id, "type": "function", "function": function}));
        for piece in deltas(&call.arguments) {
            self.call_delta(index, json!({"function": {"arguments": piece}}));
        }
    }

    fn call_delta(&mut self, index: usize, delta: Value) {
        let mut fields = Map::new();
        if self.answer.oddity != Oddity::WithoutIndex {
            fields.insert("index".into(), index.into());
        }
        if let Value::Object(delta) = delta {
            fields.extend(delta);
        }
        self.delta(Place::Arguments, json!({"tool_calls": [fields]}));
    }

    fn unknown(&mut self) {
        if self.answer.oddity == Oddity::UnknownEvents {
            let event = "event: not_yet_known\ndata: {\"object\":\"not.yet.known\"}\n\n";
            self.pieces.push(Piece::new(Place::Between, event));
            self.delta(Place::Between, json!({"not_yet_known": {"of": "delta"}}));
        }
    }

    fn end(&mut self) {
        let last = json!([{
            "index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason(self.answer.stop),
        }]);
        self.push(Place::Between, &last, None);
        if let (true, Some(tokens)) = (self.answer.stream_usage, &self.answer.usage) {
            self.push(Place::Between, &json!([]), Some(usage(tokens, self.answer)));
        }
        self.pieces.push(Piece::new(Place::End, "data: [DONE]\n\n"));
    }
}
