//! Tools: how each kind of action is performed, and what the worker saw of it.
//!
//! - [`documents`]: list, read and search below a root.
//! - [`artifacts`]: save and search what the run made.
//! - [`file`]: write files below a root.
//! - [`command`]: programs, under a holder.
//! - [`http`]: HTTP requests.
//! - [`function`]: functions of the embedding program.
//! - [`sql`]: statements of a SQLite database.
//! - [`schema`]: arguments against a tool's schema.
//! - [`rooted`]: roots that names can't leave.

pub mod artifacts;
pub mod builtin;
pub mod command;
pub mod documents;
pub mod function;
pub mod http;
pub mod rooted;
pub mod schema;
pub mod sql;

use lodestep_core::effect::Seen;
use lodestep_core::rules::settle::NewArtifact;

pub use function::{Functions, ToolCall, ToolError};
pub use lodestep_core::rules::settle::LookedUp;

/// What a worker saw of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// What was seen.
    pub seen: Seen,
    /// The result, or what was said about the failure.
    pub text: Vec<u8>,
    /// The artifact that it made.
    pub artifact: Option<NewArtifact>,
    /// How long the receiver asked to be left alone, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// How many bytes were said, when only the first of them were taken.
    pub cut_from_bytes: Option<u64>,
}

impl Sight {
    /// Something was seen, and this was said.
    pub fn new(seen: Seen, text: impl Into<Vec<u8>>) -> Self {
        Self { seen, text: text.into(), artifact: None, retry_after_ms: None, cut_from_bytes: None }
    }
}

/// A result of up to so many bytes is shown as it stands; of a longer one a preview is, and the whole is an artifact.
pub const RESULT_BYTES: usize = 32 * 1024;

/// The bytes of a preview.
pub const PREVIEW_BYTES: usize = 8 * 1024;
