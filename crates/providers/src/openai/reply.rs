//! A chat completion that came whole, and what both forms share.

use lodestep_model::{Call, ModelError, Reply, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pieces::{Piece, Text, count, or_nothing};
use crate::provider::MOST_CALLS;
use crate::refusal;

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    model: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Box<RawValue>>,
    refusal: Option<Piece>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ContentPart {
    text: Option<Piece>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

/// Tokens as the API counts them: those of its cache are among `prompt_tokens`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Tokens {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

impl Tokens {
    /// `None` when a number is missing that a charge needs.
    pub fn usage(self) -> Option<Usage> {
        (self.prompt_tokens.is_some() && self.completion_tokens.is_some()).then(|| self.so_far())
    }

    /// What has been said; zero for what has not.
    pub fn so_far(self) -> Usage {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or_default(),
            output_tokens: self.completion_tokens.unwrap_or_default(),
            cache_read_tokens: cached.or(self.prompt_cache_hit_tokens).unwrap_or_default(),
            cache_write_tokens: 0,
        }
    }
}

/// Reads a whole reply.
///
/// # Errors
///
/// `Lost` for what is no reply: it may have been billed.
pub fn whole(body: &[u8]) -> Result<Reply, ModelError> {
    let completion: Completion = serde_json::from_slice(body)
        .map_err(|error| ModelError::lost(format!("the reply is not what chat completions are: {error}")))?;
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        return Err(refusal::in_stream(&error, !completion.choices.is_empty()));
    }
    let Some(choice) = completion.choices.into_iter().next() else {
        return Err(ModelError::lost("the reply has no choice"));
    };
    let text = choice.message.content.map(|raw| text(&raw)).unwrap_or_default();
    let mut refusal = Text::default();
    refusal.push(&choice.message.refusal.unwrap_or_default());
    let calls = choice.message.tool_calls.unwrap_or_default().into_iter().take(MOST_CALLS).map(|call| Call {
        id: call.id.unwrap_or_default(),
        name: call.function.name.unwrap_or_default(),
        arguments: call.function.arguments.map_or_else(|| "{}".to_owned(), |raw| arguments(&raw)),
    });
    let reply = Reply { calls: calls.collect(), model: completion.model, ..Reply::default() };
    finished(reply, choice.finish_reason.as_deref(), (text, refusal), completion.usage)
}

/// The reply with its text, or the refusal in its place, why it stopped and what it used.
///
/// # Errors
///
/// `Lost` when nothing says why it stopped: then it may not be whole.
pub(super) fn finished(
    mut reply: Reply,
    finish_reason: Option<&str>,
    (text, refusal): (Text, Text),
    tokens: Option<Tokens>,
) -> Result<Reply, ModelError> {
    let Some(reason) = finish_reason else {
        let used = tokens.unwrap_or_default().so_far();
        return Err(ModelError::lost("the reply does not say why it stopped").reporting(used));
    };
    reply.stop = match reason {
        "length" => StopReason::OutputLimit,
        "content_filter" => StopReason::Refused,
        _ if !refusal.is_empty() => StopReason::Refused,
        // Servers disagree on what to say of a reply with calls.
        _ if !reply.calls.is_empty() => StopReason::ToolCalls,
        _ => StopReason::End,
    };
    if text.is_empty() { refusal } else { text }.put_into(&mut reply);
    reply.usage = tokens.and_then(Tokens::usage);
    Ok(reply)
}

/// Content is text, or parts of which some are text.
fn text(raw: &RawValue) -> Text {
    let mut text = Text::default();
    if let Ok(piece) = serde_json::from_str::<Piece>(raw.get()) {
        text.push(&piece);
        return text;
    }
    let parts: Vec<ContentPart> = serde_json::from_str(raw.get()).unwrap_or_default();
    parts.iter().filter_map(|part| part.text.as_ref()).for_each(|piece| text.push(piece));
    text
}

/// Arguments are JSON in a string; some servers give the JSON itself.
fn arguments(raw: &RawValue) -> String {
    or_none(match serde_json::from_str::<Piece>(raw.get()) {
        Ok(piece) => piece.json(),
        Err(_) => raw.get().to_owned(),
    })
}

/// A call without arguments has an empty text for them.
pub(super) fn or_none(arguments: String) -> String {
    if arguments.trim().is_empty() { "{}".to_owned() } else { arguments }
}
