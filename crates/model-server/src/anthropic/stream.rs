//! An answer as events, as "Streaming messages" shows them.
//!
//! `message_start` with an empty message and the prompt's usage; for each block its start, deltas and stop; `message_delta`
//! with why it stopped and the whole usage; `message_stop`. Pings and comments come between, as they may at any time.

use serde_json::{Value, json};

use super::thinking;
use super::write::{id, stop_reason, usage};
use crate::answer::{Answer, Oddity, deltas, escaped};
use crate::body::{Piece, Place};
use crate::options::Options;

/// All events of an answer.
pub fn events(answer: &Answer, options: &Options) -> Vec<Piece> {
    let mut stream = Stream { pieces: Vec::new(), blocks: 0, oddity: answer.oddity };
    stream.start(answer);
    if let Some(thinking) = &answer.reasoning {
        stream.thinking(thinking, &thinking::signature(thinking, options));
    }
    stream.odd_block();
    for text in &answer.texts {
        stream.text(text);
    }
    for call in &answer.calls {
        stream.call(call);
    }
    stream.end(answer);
    stream.pieces
}

/// One event: its name, and its data on one line.
pub fn event(place: Place, data: &str, name: &str) -> Piece {
    Piece::new(place, &format!("event: {name}\ndata: {data}\n\n"))
}

struct Stream {
    pieces: Vec<Piece>,
    blocks: usize,
    oddity: Oddity,
}

impl Stream {
    fn push(&mut self, place: Place, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        let json = data.to_string();
        // Every other event spells what is beyond ASCII as escapes: it is the same JSON.
        let json = if self.pieces.len() % 2 == 1 { escaped(&json) } else { json };
        self.pieces.push(event(place, &json, name));
    }

    fn start(&mut self, answer: &Answer) {
        let mut message = json!({
            "id": id(answer), "type": "message", "role": "assistant", "model": answer.model, "content": [],
            "stop_reason": null, "stop_sequence": null,
        });
        if let Some(tokens) = &answer.usage {
            message["usage"] = usage(tokens, 1);
        }
        self.push(Place::Start, &json!({"type": "message_start", "message": message}));
        self.push(Place::Between, &json!({"type": "ping"}));
        if self.oddity == Oddity::UnknownEvents {
            self.push(Place::Between, &json!({"type": "not_yet_known", "of": "event"}));
        }
    }

    /// A block: its start, its deltas, its stop.
    fn block(&mut self, place: Place, start: &Value, all: impl IntoIterator<Item = Value>) {
        let index = self.blocks;
        self.blocks += 1;
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        self.push(Place::Between, &start);
        for delta in all {
            self.push(place, &json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        self.push(Place::Between, &json!({"type": "content_block_stop", "index": index}));
        self.pieces.push(Piece::new(Place::Between, ": between two blocks\n\n"));
    }

    fn thinking(&mut self, thinking: &str, signature: &str) {
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        let thought = deltas(thinking).into_iter().map(|it| json!({"type": "thinking_delta", "thinking": it}));
        let signed = json!({"type": "signature_delta", "signature": signature});
        self.block(Place::Between, &start, thought.chain([signed]));
    }

    fn odd_block(&mut self) {
        if self.oddity == Oddity::UnknownEvents {
            let delta = json!({"type": "not_yet_known_delta", "of": "block"});
            self.block(Place::Between, &json!({"type": "not_yet_known"}), [delta]);
        }
    }

    fn text(&mut self, text: &str) {
        let all = deltas(text).into_iter().map(|it| json!({"type": "text_delta", "text": it}));
        self.block(Place::Text, &json!({"type": "text", "text": ""}), all);
    }

    /// A call: its input begins as an empty object and an empty piece of JSON, as the service sends it.
    fn call(&mut self, call: &lodestep_model::Call) {
        let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let pieces = [""].into_iter().chain(deltas(&call.arguments));
        let all = pieces.map(|it| json!({"type": "input_json_delta", "partial_json": it}));
        self.block(Place::Arguments, &start, all);
    }

    fn end(&mut self, answer: &Answer) {
        let delta = json!({"stop_reason": stop_reason(answer.stop), "stop_sequence": null});
        let mut event = json!({"type": "message_delta", "delta": delta});
        if let Some(tokens) = &answer.usage {
            event["usage"] = usage(tokens, tokens.output);
        }
        self.push(Place::Between, &event);
        self.push(Place::End, &json!({"type": "message_stop"}));
    }
}
