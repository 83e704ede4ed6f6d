//! The agent file's text, and where it stands.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::faults::AgentFileErrors;

/// A longer file is no agent file: 1 MiB.
const FILE_BYTES: u64 = 1 << 20;

/// An agent file as it was read.
pub(super) struct Source {
    pub path: PathBuf,
    pub folder: PathBuf,
    pub text: String,
}

impl Source {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, AgentFileErrors> {
        let unreadable = |why: String, next: &str| {
            AgentFileErrors::new("agent.unreadable", format!("{} {why}", path.display()), next)
        };
        let about = std::fs::metadata(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                let what = format!("there is no agent file {}", path.display());
                AgentFileErrors::new("agent.not_found", what, "name one, such as agent.toml")
            }
            _ => unreadable(format!("can't be read: {error}"), "check its permissions"),
        })?;
        if about.is_dir() {
            return Err(unreadable("is a folder".to_owned(), "name the file in it, such as agent.toml"));
        }
        if !about.is_file() {
            return Err(unreadable("is no plain file".to_owned(), "save it as one"));
        }
        if about.len() > FILE_BYTES {
            let why = format!("has {} bytes; an agent file has at most {FILE_BYTES}", about.len());
            return Err(unreadable(why, "is it the right file?"));
        }
        let bytes = std::fs::read(path)
            .map_err(|error| unreadable(format!("can't be read: {error}"), "check its permissions"))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
            unreadable(format!("is not UTF-8 in line {line}"), "save it as UTF-8")
        })?;
        let path = std::path::absolute(path).map_err(|error| unreadable(format!("has no place: {error}"), ""))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder = folder.canonicalize().map_err(|error| unreadable(format!("has no folder: {error}"), ""))?;
        if folder.to_str().is_none() {
            let next = "move it to a folder whose name can be stored";
            return Err(unreadable("is in a folder whose name is not UTF-8".to_owned(), next));
        }
        Ok(Self { path, folder, text })
    }

    /// That the file is of another kind, when nothing of an agent file could be parsed, or many lines are faulty, every third
    /// at least: each fault by itself would mend nothing.
    pub fn other_than_toml(&self, is_meant: bool, broken: &[toml::de::Error]) -> Option<AgentFileErrors> {
        let lines = self.text.lines().filter(|line| !line.trim().is_empty()).count();
        if is_meant && (broken.len() < 5 || broken.len() * 3 < lines) {
            return None;
        }
        let first = broken.iter().map(|error| error.span().map_or(0, |span| span.start)).min()?;
        let line = 1 + self.text.bytes().take(first).filter(|byte| *byte == b'\n').count();
        let what = format!("{} is no agent file: it is not TOML from line {line} on", self.path.display());
        let next = "name another file; an agent file begins with `format = 1`, and `lodestep init FOLDER` writes one";
        Some(AgentFileErrors::new("agent.invalid", what, next))
    }
}

/// What to do about a fault that the parser found.
pub(super) fn mend(message: &str) -> &'static str {
    if message.contains("duplicate") {
        "keep one of the two"
    } else if message.contains("string") {
        "texts stand in \"quotes\""
    } else {
        "see toml.io for the syntax"
    }
}
