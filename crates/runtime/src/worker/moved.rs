//! Files that a definition names and that are gone here: a run that would need them stops before anything of it is tried
//! in vain.
//!
//! Known are the folders that programs run in, and programs that are named by a path. A word among a program's arguments
//! may be a file or none; the program says so itself.

use std::path::Path;

use lodestep_core::Definition;
use lodestep_core::definition::ToolKind;

/// What is gone, in words; `None` when all of it is there.
pub(super) fn gone(definition: &Definition) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    for tool in &definition.tools {
        let ToolKind::Command { argv, lookup, folder, .. } = &tool.kind else { continue };
        let folder = Path::new(folder);
        if !folder.is_dir() {
            said.push(format!("the folder {} of the tool {}", folder.display(), tool.name));
            continue;
        }
        for program in [argv.first(), lookup.as_ref().and_then(|argv| argv.first())].into_iter().flatten() {
            let path = folder.join(program);
            // A name without a slash is looked for in PATH; an input's value may be anything.
            if program.contains('/') && !program.contains("${") && !path.exists() {
                said.push(format!("the program {} of the tool {}", path.display(), tool.name));
            }
        }
    }
    said.dedup();
    (!said.is_empty()).then(|| format!("gone: {}; put it back where the worker runs, then resume", said.join(", ")))
}
