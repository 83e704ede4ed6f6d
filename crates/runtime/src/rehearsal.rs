//! A rehearsal: a run in which reads are done, and of everything else it is only said what would be sent.
//!
//! What is not sent counts as done, so that the run goes on to what comes after it. It belongs into a store of its own
//! that nobody keeps: what its journal says of effects did not happen.

use std::sync::Arc;

use lodestep_core::Ordinal;
use lodestep_core::definition::{StateAct, ToolDefinition, ToolKind};
use lodestep_core::effect::Class;
use serde_json::Value;

/// The result of what was not sent.
pub(crate) const RESULT: &str = "(rehearsal: nothing was sent; go on as if it had been done)";

/// What would have been sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsent {
    /// The action.
    pub action: Ordinal,
    /// Its tool; `finish` where it is the definition's check that would have run.
    pub tool: String,
    /// What the tool does to the world.
    pub class: Class,
    /// The arguments as the tool would get them, with the texts of artifacts in their places.
    pub arguments: Value,
}

/// Hears of what would have been sent.
pub type Rehearsal = Arc<dyn Fn(Unsent) + Send + Sync>;

/// Is the tool passed over in a rehearsal? All are that could change anything beyond the run's own store.
pub(crate) fn passes_over(tool: &ToolDefinition) -> bool {
    match &tool.kind {
        ToolKind::State { act } => *act == StateAct::Finish,
        ToolKind::Builtin { builtin, .. } if builtin == "artifacts" => false,
        _ => tool.class != Class::Read,
    }
}
