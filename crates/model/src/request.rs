//! What goes out to a model.
//!
//! A request is valid for every provider by construction: it starts with a user message, each message
//! with calls is followed at once by one result for each call in call order, and no text is empty.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One whole question to a model. Nothing of an earlier request is implied by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Instructions; the stable part, first so that prompt caches hit.
    pub system: String,
    /// The conversation, oldest first. Most of it is shared with the request before.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may call, in a stable order.
    pub tools: Arc<[ToolSpec]>,
    /// The most tokens that the reply may have.
    pub max_output_tokens: u64,
    /// How many replies its asker has had before: the same again when a reply was lost. For logs and scripts; a
    /// provider never sees it.
    pub turn: u64,
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Text for the model.
    User {
        /// The text; never empty.
        text: String,
    },
    /// What the model chose earlier.
    Assistant {
        /// Text beside the calls; may be empty when there are calls.
        text: String,
        /// The calls; the next message holds a result for each.
        calls: Vec<Call>,
        /// What the provider wants to have back before them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocks: Option<Blocks>,
    },
    /// The results of the calls in the message before, one each, in call order.
    Results {
        /// The results.
        results: Vec<CallResult>,
    },
}

/// A tool call as the model spelled it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id for the call; pairs a result with it and means nothing else.
    pub id: String,
    /// The tool's name, as given.
    pub name: String,
    /// The arguments' JSON text, as given. It may be invalid.
    pub arguments: String,
}

/// Parts of a reply that only its provider understands, such as signed reasoning. They go back to it byte for byte, or not
/// at all: a changed one is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// The provider and the model that gave them; nobody else takes them.
    pub of: String,
    /// A JSON array, as it came.
    pub json: String,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The id of the [`Call`] that this answers.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// What the model is told; never empty.
    pub text: String,
    /// True when the call failed or was refused.
    pub is_error: bool,
}

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of the arguments, an object.
    pub input: Value,
}
