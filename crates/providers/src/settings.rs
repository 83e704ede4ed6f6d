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

/// The field in which a chat completion is told how long its reply may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputLimitField {
    /// The old name, which compatible servers know.
    MaxTokens,
    /// The new name, which OpenAI's newer models insist on.
    MaxCompletionTokens,
}

impl OutputLimitField {
    /// Both.
    pub const ALL: [Self; 2] = [Self::MaxTokens, Self::MaxCompletionTokens];

    /// The name of the field, in a request as in an agent file.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    /// The field of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
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
    /// Where chat completions are told how long a reply may be, if not in the field that is usual for the place.
    pub output_limit_field: Option<OutputLimitField>,
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

    /// Where a chat completion is told how long its reply may be; the other dialect has one field for it.
    pub(crate) fn output_limit_field(&self) -> Option<OutputLimitField> {
        match self.dialect {
            Dialect::Anthropic => None,
            Dialect::OpenAi => Some(self.output_limit_field.unwrap_or_else(|| usual_limit_field(&self.base_url))),
        }
    }

    /// Who gave a reply's blocks, and nobody else is given them.
    pub fn blocks_of(&self) -> String {
        format!("{} {}", self.dialect.name(), self.model)
    }
}

/// OpenAI's own newer models refuse `max_tokens`, and compatible servers know nothing else.
fn usual_limit_field(base_url: &str) -> OutputLimitField {
    if is_openai(base_url) { OutputLimitField::MaxCompletionTokens } else { OutputLimitField::MaxTokens }
}

/// Is this a place of OpenAI's own models?
pub(crate) fn is_openai(base_url: &str) -> bool {
    let host = base_url.split('/').nth(2).unwrap_or_default();
    ["openai.com", "openai.azure.com"].iter().any(|own| host == *own || host.ends_with(&format!(".{own}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openai_itself_is_told_the_limit_by_its_new_name_unless_the_field_is_said() {
        for (base_url, usual) in [
            ("https://api.openai.com/v1", "max_completion_tokens"),
            ("https://eu.api.openai.com/v1", "max_completion_tokens"),
            ("https://x.openai.azure.com/openai/v1", "max_completion_tokens"),
            ("http://localhost:11434/v1", "max_tokens"),
            ("https://notopenai.com/v1", "max_tokens"),
            ("https://openrouter.ai/api/v1", "max_tokens"),
        ] {
            let mut settings = Settings { base_url: base_url.to_owned(), ..crate::testing::settings(Dialect::OpenAi) };
            let field = |settings: &Settings| settings.output_limit_field().map(OutputLimitField::name);
            assert_eq!(field(&settings), Some(usual), "{base_url}");
            for said in OutputLimitField::ALL {
                settings.output_limit_field = Some(said);
                assert_eq!(field(&settings), Some(said.name()), "{base_url}");
            }
        }
    }
}
