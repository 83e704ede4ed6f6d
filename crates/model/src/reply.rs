//! What comes back from a model.

use serde::{Deserialize, Serialize};

use crate::request::{Blocks, Call};

/// A whole reply. A broken or cut stream is never a `Reply`: it is a [`ModelError`](crate::ModelError).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; may be empty.
    pub text: String,
    /// The calls, in the order given.
    pub calls: Vec<Call>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What the provider reports as used; `None` where it reports nothing.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it: it need not be the name that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's name for the call, to ask its support about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What the provider wants to have back with these calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// The JSON string that the text came as, all its pieces joined, where it holds half of a surrogate pair: in the text that
    /// was replaced. It is evidence and nothing reads it; it may be cut, and empty where it can't be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ill_formed: Option<String>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted to say.
    #[default]
    End,
    /// It wants its calls answered.
    ToolCalls,
    /// The output limit cut it: nothing of the reply may be executed.
    OutputLimit,
    /// The provider or the model refused to answer.
    Refused,
}

/// Tokens of one call, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request, all of them: also those that a cache had or took.
    pub input_tokens: u64,
    /// Tokens of the reply, with those of its reasoning.
    pub output_tokens: u64,
    /// Of the request's tokens those that were read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Of the request's tokens those that the provider's cache took.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}
