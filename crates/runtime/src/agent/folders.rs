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
            // A folder that the file itself names was looked for when the file was read.
            && let Some(input) = input_of(root)
        {
            let folder = with_inputs(root, inputs);
            if !Path::new(&folder).is_dir() {
                return Err(fault(&tool.group, &input, &folder));
            }
        }
    }
    Ok(())
}

fn input_of(root: &str) -> Option<String> {
    let pieces = pieces(root).ok()?;
    pieces.into_iter().find_map(|piece| if let Piece::Input(name) = piece { Some(name.to_owned()) } else { None })
}

fn fault(table: &str, input: &str, folder: &str) -> Error {
    let is = if Path::new(folder).exists() { "no folder" } else { "not there" };
    Error::new(
        "input.folder_missing",
        format!("the input `{input}`: {folder} is {is}, and [tools.{table}] reads its documents there"),
        format!("give a folder that exists: -i {input}=FOLDER"),
    )
}
