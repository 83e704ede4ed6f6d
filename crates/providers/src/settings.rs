//! Which service is asked, for which model, and how long it may take.

use std::time::Duration;

use serde_json::{Map, Value};

/// How a service is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic Messages, `POST {base_url}/v1/messages`: <https://docs.anthropic.com/en/api/messages>.
    Anthropic,
    /// OpenAI chat completions, `POST {base_url}/chat/completions`: <https://platform.openai.com/docs/api-reference/chat>.
    OpenAi,
}

impl Dialect {
    /// The word for it in an agent file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The service that the dialect is named after.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }

    /// The variable in which that service's users keep their key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
        }
    }

    /// What a body says besides `params`, so that those can't say it too.
    pub fn own_fields(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["model", "max_tokens", "system", "messages", "tools", "stream"],
            Self::OpenAi => {
                &["model", "max_tokens", "max_completion_tokens", "messages", "tools", "stream", "stream_options", "n"]
            }
        }
    }
}

/// One model of one service.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How it is spoken to.
    pub dialect: Dialect,
    /// Where it is, as `http` or `https`, without a slash at its end. [`Dialect`] says what follows it.
    pub base_url: String,
    /// The model's name with that service.
    pub model: String,
    /// Fields of the body besides [`Dialect::own_fields`], sent as they are.
    pub params: Map<String, Value>,
    /// Is the reply asked for as a stream?
    pub stream: bool,
    /// How long it may take.
    pub patience: Patience,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the first byte of the request to the last one of the reply.
    pub whole: Duration,
    /// From one piece of a stream to the next; also from the request to the first.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), whole: Duration::from_secs(600), idle: Duration::from_secs(120) }
    }
}

impl Settings {
    /// Where a call goes.
    pub fn url(&self) -> String {
        match self.dialect {
            Dialect::Anthropic => format!("{}/v1/messages", self.base_url),
            Dialect::OpenAi => format!("{}/chat/completions", self.base_url),
        }
    }

    /// Who gave a reply's blocks, and nobody else is given them.
    pub fn blocks_of(&self) -> String {
        format!("{} {}", self.dialect.name(), self.model)
    }
}
