//! A model that says what a file tells it to: for tests, and to see what an agent file does with a given reply.
//!
//! The file is JSON: `{"replies": [{"text": "…", "calls": [{"name": "…", "arguments": {…}}]}]}`. The arguments
//! are sent as they are written; `raw` in their place is a text that is sent, valid or not. Half of a surrogate pair in a `text` becomes U+FFFD, as with any provider. `stop` is `end`, `tool_calls`, `output_limit` or `refused`; `usage` is
//! `{"input_tokens": n, "output_tokens": n}`; `error` in place of all of it is `not_sent`, `lost`, `busy`, `too_long` or `rejected`.
//! The n-th reply of the file answers the n-th turn of a run, so that a reply that was lost is said again.

use std::path::Path;

use lodestep_core::{Error, Result};
use lodestep_model::{Call, Model, ModelError, ModelFuture, Reply, Request, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

/// See the module's page.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptModel {
    replies: Vec<ScriptedReply>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScriptedReply {
    #[serde(deserialize_with = "lodestep_model::text::deserialize")]
    text: String,
    calls: Vec<ScriptedCall>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    error: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    raw: Option<String>,
}

impl ScriptModel {
    /// Reads a script.
    ///
    /// # Errors
    ///
    /// `model.script` names the file and what is wrong with it.
    pub fn load(path: &Path) -> Result<Self> {
        let fault = |why: String| {
            Error::new("model.script", format!("{}: {why}", path.display()), "see docs/agent-file.md, `script`")
        };
        let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        Self::parse(&text).map_err(fault)
    }

    /// Reads a script from its text.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn reply(&self, turn: u64) -> std::result::Result<Reply, ModelError> {
        let scripted = usize::try_from(turn).ok().and_then(|turn| self.replies.get(turn));
        let Some(scripted) = scripted else {
            return Err(ModelError::Rejected(format!(
                "the script has {} replies, and this is turn {}",
                self.replies.len(),
                turn + 1
            )));
        };
        if let Some(error) = &scripted.error {
            return Err(error_of(error));
        }
        let calls = scripted.calls.iter().enumerate().map(|(at, call)| Call {
            id: format!("script-{}", at + 1),
            name: call.name.clone(),
            arguments: match (&call.raw, &call.arguments) {
                (Some(raw), _) => raw.clone(),
                (None, Some(arguments)) => arguments.get().to_owned(),
                (None, None) => "{}".to_owned(),
            },
        });
        let calls: Vec<Call> = calls.collect();
        let stop = if calls.is_empty() { StopReason::End } else { StopReason::ToolCalls };
        Ok(Reply {
            text: scripted.text.clone(),
            calls,
            stop: scripted.stop.unwrap_or(stop),
            usage: scripted.usage,
            ..Reply::default()
        })
    }
}

fn error_of(name: &str) -> ModelError {
    let said = format!("the script says `{name}`");
    match name {
        "not_sent" => ModelError::NotSent(said),
        "busy" => ModelError::Busy { message: said, retry_after_ms: None },
        "too_long" => ModelError::TooLong(said),
        "rejected" => ModelError::Rejected(said),
        _ => ModelError::lost(said),
    }
}

impl Model for ScriptModel {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(std::future::ready(self.reply(request.turn)))
    }
}
