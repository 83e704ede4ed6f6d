//! A request that was found well-formed, as it was read.

use lodestep_model::Request;

use crate::tokens::Prompt;

/// Whether a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Off,
    /// As it likes: here, as the server was started.
    May,
    /// Always.
    Must,
}

/// What is asked, and how the answer is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// For the mind. Its `turn` is the number of the assistant's messages: a provider is not told more.
    pub request: Request,
    /// The model that is asked for.
    pub model: String,
    /// Whether the answer is wanted as a stream.
    pub streamed: bool,
    /// Whether a stream is to end with what it used (OpenAI's `stream_options.include_usage`).
    pub stream_usage: bool,
    /// Whether the model thinks first, and shows it.
    pub thinking: Thinking,
    /// What the window and the cache see.
    pub prompt: Prompt,
}
