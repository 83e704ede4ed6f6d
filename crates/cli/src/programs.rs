//! The programs that an agent starts: is each there on this machine, where its start would look for it?

use std::path::{Path, PathBuf};

use lodestep::core::Definition;
use lodestep::core::definition::ToolKind;

/// What helps.
pub const MEND: &str = "install it, put its folder into PATH, or make the file executable";

/// A program that is not there.
pub struct Missing {
    /// What starts it: `tool pay`, `the check of [done]`.
    pub by: String,
    /// Its name, as the file has it.
    pub program: String,
    /// Where it was looked for.
    pub place: String,
}

impl Missing {
    /// In words.
    pub fn in_words(&self) -> String {
        format!("{}: there is no program `{}` {}", self.by, self.program.escape_default(), self.place)
    }
}

/// The programs of an agent's tools, of their lookups and of its check that are not there. Nothing is started.
pub fn missing(definition: &Definition) -> Vec<Missing> {
    let mut missing = Vec::new();
    for tool in &definition.tools {
        let ToolKind::Command { argv, lookup, folder, env } = &tool.kind else { continue };
        let by = format!("tool {}", tool.name);
        let path = env.get("PATH").map(String::as_str);
        for program in [Some(argv), lookup.as_ref()].into_iter().flatten().filter_map(|argv| argv.first()) {
            missing.extend(not_there(&by, program, Path::new(folder), path));
        }
    }
    if let Some(check) = &definition.done.check {
        let program = check.argv.first().map(String::as_str).unwrap_or_default();
        missing.extend(not_there("the check of [done]", program, Path::new(&check.folder), None));
    }
    missing
}

/// The program, when it is not where its start would look for it. One that an input or a variable names is known when a run is.
fn not_there(by: &str, program: &str, folder: &Path, path: Option<&str>) -> Option<Missing> {
    let is_open = program.contains("${") || path.is_some_and(|path| path.contains("${"));
    let place = if program.contains('/') {
        format!("in {}", folder.display())
    } else if path.is_some() {
        "in the folders of the PATH that its env sets".to_owned()
    } else {
        "in the folders of PATH".to_owned()
    };
    let missing = || Missing { by: by.to_owned(), program: program.to_owned(), place };
    (!is_open && find(program, folder, path).is_none()).then(missing)
}

fn find(program: &str, folder: &Path, path: Option<&str>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(folder.join(program)).filter(is_program);
    }
    let folders = path.map_or_else(|| std::env::var_os("PATH").unwrap_or_default(), Into::into);
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(is_program)
}
