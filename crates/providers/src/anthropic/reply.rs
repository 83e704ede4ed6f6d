//! A reply of the Messages API that came whole, and what both forms share.

use lodestep_model::{Blocks, Call, ModelError, Reply, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pieces::{Piece, Text, count, or_nothing};
use crate::settings::Settings;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    model: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    usage: Option<Tokens>,
}

/// The kind of a block, and of it what is read.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<Piece>,
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
}

/// Tokens as the API counts them: those of the cache are not in `input_tokens`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Tokens {
    #[serde(default, deserialize_with = "count")]
    pub input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub cache_creation_input_tokens: Option<u64>,
}

impl Tokens {
    /// Later numbers of a stream are totals and replace earlier ones.
    pub fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
    }

    /// `None` when a number is missing that a charge needs.
    pub fn usage(self) -> Option<Usage> {
        (self.input_tokens.is_some() && self.output_tokens.is_some()).then(|| self.so_far())
    }

    /// What has been said; zero for what has not.
    pub fn so_far(self) -> Usage {
        let said = Option::unwrap_or_default;
        let cache_read_tokens = said(self.cache_read_input_tokens);
        let cache_write_tokens = said(self.cache_creation_input_tokens);
        let all = said(self.input_tokens).saturating_add(cache_read_tokens).saturating_add(cache_write_tokens);
        Usage { input_tokens: all, output_tokens: said(self.output_tokens), cache_read_tokens, cache_write_tokens }
    }
}

/// Reads a whole reply.
///
/// # Errors
///
/// `Lost` for what is no reply: it may have been billed.
pub fn whole(body: &[u8], settings: &Settings) -> Result<Reply, ModelError> {
    let unreadable =
        |error: serde_json::Error| ModelError::lost(format!("the reply is not what Messages are: {error}"));
    let message: Message<'_> = serde_json::from_slice(body).map_err(unreadable)?;
    let Some(stop_reason) = &message.stop_reason else {
        let used = message.usage.unwrap_or_default().so_far();
        return Err(ModelError::lost("the reply does not say why it stopped").reporting(used));
    };
    let mut reply = Reply { stop: stop(stop_reason), model: message.model, ..Reply::default() };
    reply.usage = message.usage.and_then(Tokens::usage);
    let (mut signed, mut text) = (Vec::new(), Text::default());
    for raw in message.content {
        let block: Block<'_> = serde_json::from_str(raw.get()).map_err(unreadable)?;
        match block.kind.as_str() {
            "text" => text.push(&block.text.unwrap_or_default()),
            "tool_use" => reply.calls.push(Call {
                id: block.id.unwrap_or_default(),
                name: block.name.unwrap_or_default(),
                arguments: block.input.map_or("{}", RawValue::get).to_owned(),
            }),
            // What comes after a call is no longer before it.
            "thinking" | "redacted_thinking" if reply.calls.is_empty() => signed.push(raw.get().to_owned()),
            _ => {}
        }
    }
    text.put_into(&mut reply);
    reply.blocks = blocks(&signed, settings);
    Ok(reply)
}

/// Why it stopped. A reason that is not known ends a whole reply like any other.
pub(super) fn stop(reason: &str) -> StopReason {
    match reason {
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::OutputLimit,
        "refusal" => StopReason::Refused,
        _ => StopReason::End,
    }
}

pub(super) fn blocks(signed: &[String], settings: &Settings) -> Option<Blocks> {
    (!signed.is_empty()).then(|| Blocks { of: settings.blocks_of(), json: format!("[{}]", signed.join(",")) })
}

/// A block of a stream as it began, with the texts that came after.
pub(super) fn with_texts(mut block: Value, texts: &[(&str, String)]) -> String {
    if let Value::Object(fields) = &mut block {
        for (name, text) in texts {
            fields.insert((*name).to_owned(), text.clone().into());
        }
    }
    block.to_string()
}
