//! Arguments that name an artifact are pinned to its version and bytes when the action is proposed: what a person
//! approves is what is sent, whatever is saved under that name meanwhile.

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::definition::ToolDefinition;
use crate::digest::Digest;

/// The format that marks a string property as an artifact's name.
pub const ARTIFACT_FORMAT: &str = "artifact-name";

/// An argument that stands for an artifact's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The artifact's name.
    pub name: String,
    /// Its version when the action was proposed.
    pub version: u32,
    /// The digest of its bytes.
    pub digest: Digest,
}

/// Replaces the names by what they stand for now.
pub(super) fn pin(tool: &ToolDefinition, arguments: &mut Value, checkpoint: &Checkpoint) -> Result<(), String> {
    for property in artifact_properties(tool) {
        let Some(value) = arguments.get_mut(property) else { continue };
        let name = value.as_str().unwrap_or_default().to_owned();
        let Some(artifact) = checkpoint.artifacts.get(&name) else {
            let known: Vec<&String> = checkpoint.artifacts.keys().collect();
            return Err(format!("{property}: there is no artifact `{}`; there are {known:?}", name.escape_default()));
        };
        *value = json!({ "artifact": name, "version": artifact.version, "digest": artifact.content.digest.to_hex() });
    }
    Ok(())
}

/// The arguments of an action that stand for artifacts, with their properties' names.
pub fn pinned(tool: &ToolDefinition, arguments: &Value) -> Vec<(String, Pinned)> {
    let read = |property: &str| {
        let value = arguments.get(property)?;
        Some(Pinned {
            name: value.get("artifact")?.as_str()?.to_owned(),
            version: u32::try_from(value.get("version")?.as_u64()?).ok()?,
            digest: Digest::from_hex(value.get("digest")?.as_str()?)?,
        })
    };
    artifact_properties(tool).filter_map(|property| Some((property.to_owned(), read(property)?))).collect()
}

fn artifact_properties(tool: &ToolDefinition) -> impl Iterator<Item = &str> {
    let properties = tool.input.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("format").and_then(Value::as_str) == Some(ARTIFACT_FORMAT))
        .map(|(name, _)| name.as_str())
}
