//! The files that the rules read, and what a rule says about them.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

use crate::workspace;

/// The working tree: path from the root, with `/`, to text. A file that is not UTF-8 is there, but empty.
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the working tree from the disk.
    pub fn read() -> Result<Tree> {
        let root = workspace::root();
        let mut files = BTreeMap::new();
        for path in workspace::files()? {
            let bytes = std::fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Tree { files })
    }

    /// A tree for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose name ends so.
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.iter().filter(move |(path, _)| path.ends_with(end))
    }

    /// Whether a file or a folder has this path; the root is the empty one.
    pub fn holds(&self, path: &str) -> bool {
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// One thing that breaks a rule.
#[derive(Debug)]
pub struct Finding {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    pub what: String,
    pub mend: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into(), mend: mend.into() }
    }

    /// For a document that a rule needs and that is not there.
    pub fn missing(path: &str, mend: &str) -> Finding {
        Finding::new(path, 1, "the file is missing", mend)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}; {}", self.path, self.line, self.what, self.mend)
    }
}

/// The line, counted from 1, that a byte offset lies in.
pub fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The first line, counted from 1, that the condition holds for; 1 if there is none.
pub fn line_where(text: &str, wanted: impl Fn(&str) -> bool) -> usize {
    text.lines().position(wanted).map_or(1, |index| index + 1)
}
