//! Are the folders there that an agent's documents are read from? Asked before a run is started, when it can still be
//! mended by typing the command again. Whether they are readable, and still there later, is found out when they are read.

use std::path::Path;

use lodestep_core::definition::ToolKind;
use lodestep_core::reference::{Piece, pieces, with_inputs};
use lodestep_core::{Definition, Error};
use serde_json::Value;

/// Checks the root of each `documents` tool.
pub(super) fn check(definition: &Definition, inputs: &Value) -> Result<(), Error> {
    for tool in &definition.tools {
        if let ToolKind::Builtin { builtin, root: Some(root), .. } = &tool.kind
            && builtin == "documents"
        {
            let folder = with_inputs(root, inputs);
            if !Path::new(&folder).is_dir() {
                return Err(fault(&tool.group, root, &folder));
            }
        }
    }
    Ok(())
}

fn fault(table: &str, root: &str, folder: &str) -> Error {
    let is = if Path::new(folder).exists() { "no folder" } else { "not there" };
    let pieces = pieces(root).unwrap_or_default();
    let input = pieces.iter().find_map(|piece| match piece {
        Piece::Input(name) => Some(*name),
        _ => None,
    });
    match input {
        Some(name) => Error::new(
            "input.folder_missing",
            format!("the input `{name}`: {folder} is {is}, and [tools.{table}] reads its documents there"),
            format!("give a folder that exists: -i {name}=FOLDER"),
        ),
        None => Error::new(
            "agent.folder_missing",
            format!("{folder} is {is}, and [tools.{table}] reads its documents there"),
            "make the folder, or write another `root`",
        ),
    }
}
