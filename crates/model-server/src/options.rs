//! What a server is started with.

use std::sync::Arc;

use lodestep_model::Model;

/// How a server behaves towards everybody, until it is stopped.
#[derive(Clone)]
pub struct Options {
    /// Who answers.
    pub mind: Arc<dyn Model>,
    /// The one key that it takes, in both shapes.
    pub key: String,
    /// The models that it knows. When it is empty any name will do.
    pub models: Vec<String>,
    /// The most tokens that a prompt may have, by [`count_tokens`](crate::count_tokens) and the framing of each block.
    pub window_tokens: u64,
    /// What it thinks before each reply: a signed `thinking` block where a request to the Anthropic shape lets it think,
    /// and `reasoning_content` in the OpenAI shape, as services that are compatible with it have. `None`: it does not
    /// think, unless a request of the Anthropic shape has a budget for it: then something is always thought.
    pub reasoning: Option<String>,
    /// Tokens that it counts of every prompt besides, as a service with instructions of its own.
    pub hidden_tokens: u64,
    /// Does the OpenAI shape refuse `max_tokens`, as OpenAI's newer models do?
    pub only_max_completion_tokens: bool,
}

impl Options {
    /// A server with the key `test-key`, for any model, with a window of 200,000 tokens, that does not think.
    pub fn new(mind: impl Model + 'static) -> Self {
        Self::of(Arc::new(mind))
    }

    /// As [`new`](Self::new), for a mind that somebody else has too.
    pub fn of(mind: Arc<dyn Model>) -> Self {
        Self {
            mind,
            key: "test-key".into(),
            models: Vec::new(),
            window_tokens: 200_000,
            reasoning: None,
            hidden_tokens: 0,
            only_max_completion_tokens: false,
        }
    }
}
