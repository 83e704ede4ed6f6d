//! A chat completion that comes as a stream (<https://platform.openai.com/docs/api-reference/chat-streaming>).

use lodestep_model::{Call, ModelError, Progress, Reply, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::reply::{Tokens, finished, or_none};
use crate::pieces::{Piece, Pieces, Text, or_nothing};
use crate::provider::{Assembly, MOST_CALLS, Part};
use crate::refusal;

/// The mark behind the last chunk.
const END: &str = "[DONE]";

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    model: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<Piece>,
    refusal: Option<Piece>,
    /// Two names for what the model says to itself.
    reasoning_content: Option<Piece>,
    reasoning: Option<Piece>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Piece>,
}

/// A call that is being put together.
struct OpenCall {
    index: Option<usize>,
    id: String,
    name: String,
    arguments: Pieces,
}

/// What has come until now.
#[derive(Default)]
pub struct Assembled {
    text: Text,
    refusal: Text,
    calls: Vec<OpenCall>,
    model: Option<String>,
    finish_reason: Option<String>,
    tokens: Option<Tokens>,
    /// Has anything of a reply come?
    has_begun: bool,
}

impl Assembled {
    /// Adds to the call that a delta is of, or begins it: one with another index, or with an id of its own, is another
    /// call. Servers leave out either, or give every call the same index.
    fn add(&mut self, delta: CallDelta, watch: &dyn Fn(Progress<'_>)) {
        let id = delta.id.unwrap_or_default();
        let (name, piece) = delta.function.map_or((None, None), |function| (function.name, function.arguments));
        let is_same = |open: &OpenCall| {
            let same_index = delta.index.is_none() || delta.index == open.index;
            same_index && (id.is_empty() || id == open.id)
        };
        let known = self.calls.iter().rposition(is_same);
        if known.is_none() && self.calls.len() >= MOST_CALLS {
            return;
        }
        let at = known.unwrap_or_else(|| {
            watch(Progress::Call(name.as_deref().unwrap_or_default()));
            self.calls.push(OpenCall { index: delta.index, id, name: String::new(), arguments: Pieces::default() });
            self.calls.len() - 1
        });
        let open = &mut self.calls[at];
        if let Some(name) = name.filter(|_| open.name.is_empty()) {
            open.name = name;
        }
        if let Some(piece) = piece {
            watch(Progress::Arguments(&piece.shown()));
            open.arguments.push(&piece);
        }
    }
}

impl Assembly for Assembled {
    fn take(&mut self, data: &str, watch: &(dyn Fn(Progress<'_>) + Send + Sync)) -> Result<Part, ModelError> {
        if data.trim() == END {
            return Ok(Part::Last);
        }
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| ModelError::lost(format!("a chunk of the stream can't be read: {error}")))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(refusal::in_stream(&error, self.has_begun));
        }
        self.model = chunk.model.filter(|model| !model.is_empty()).or(self.model.take());
        self.tokens = chunk.usage.or(self.tokens);
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(Part::One) };
        let delta = choice.delta;
        self.has_begun = true;
        if let Some(text) = &delta.content {
            self.text.push(text);
            watch(Progress::Text(&text.shown()));
        }
        if let Some(reasoning) = delta.reasoning_content.as_ref().or(delta.reasoning.as_ref()) {
            watch(Progress::Reasoning(&reasoning.shown()));
        }
        if let Some(refusal) = &delta.refusal {
            self.refusal.push(refusal);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.add(call, watch);
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        Ok(Part::One)
    }

    fn reply(&mut self) -> Result<Reply, ModelError> {
        let whole = |open: OpenCall| Call { id: open.id, name: open.name, arguments: or_none(open.arguments.json()) };
        let calls = std::mem::take(&mut self.calls).into_iter().map(whole);
        let reply = Reply { calls: calls.collect(), model: self.model.take(), ..Reply::default() };
        let texts = (std::mem::take(&mut self.text), std::mem::take(&mut self.refusal));
        finished(reply, self.finish_reason.as_deref(), texts, self.tokens)
    }

    fn used(&self) -> Usage {
        self.tokens.unwrap_or_default().so_far()
    }
}
