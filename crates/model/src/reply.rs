//! What comes back from a model.

use serde::{Deserialize, Serialize};

use crate::request::Call;

/// A whole reply. A broken or cut stream is never a `Reply`: it is a [`ModelError`](crate::ModelError).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; may be empty.
    pub text: String,
    /// The calls, in the order given.
    pub calls: Vec<Call>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What the provider reports as used; `None` where it reports nothing.
    pub usage: Option<Usage>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted to say.
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
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
}
