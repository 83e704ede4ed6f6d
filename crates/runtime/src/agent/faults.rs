//! What is wrong with an agent file: each fault with its place and its mend, and all of them at once.
//!
//! Reading goes on after a fault with some stand-in, so that one look at the list mends the file. A stand-in never gets
//! out: a file with a fault gives no definition.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use lodestep_core::Error;

/// So many faults are told. A file with more is another kind of file, and each fault's place is looked for from the start.
pub(super) const MOST_FAULTS: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file: the agent file, or the instructions that it names.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, naming the value.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.what)?;
        if self.mend.is_empty() { Ok(()) } else { write!(f, "\n    {}", self.mend) }
    }
}

/// Why there is no agent. Turns into an [`Error`] of the same code and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFileErrors {
    error: Error,
    faults: Vec<Fault>,
}

impl AgentFileErrors {
    pub(super) fn new(code: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { error: Error::new(code, what, next), faults: Vec::new() }
    }

    /// `agent.invalid`, with every fault in the order of the file.
    pub(super) fn invalid(path: &Path, faults: Vec<Fault>) -> Self {
        Self::listed("agent.invalid", path, faults)
    }

    /// Every fault of a file, in its order.
    pub(super) fn listed(code: &'static str, path: &Path, faults: Vec<Fault>) -> Self {
        let count = match faults.len() {
            1 => "a fault".to_owned(),
            many @ MOST_FAULTS.. => format!("at least {many} faults"),
            some => format!("{some} faults"),
        };
        let list: String = faults.iter().map(|fault| format!("\n  {fault}")).collect();
        let what = format!("{} has {count}; nothing was started{list}", path.display());
        Self { error: Error::new(code, what, ""), faults }
    }

    /// Why the file of a place can't be read.
    pub(super) fn of_wiring(self) -> Self {
        Self::new("wiring.invalid", self.error.what(), self.error.next())
    }

    /// The stable code: `agent.not_found`, `agent.unreadable`, `agent.newer_format`, `agent.invalid` or
    /// `wiring.invalid`.
    pub fn code(&self) -> &'static str {
        self.error.code()
    }

    /// The faults of an `agent.invalid` or `wiring.invalid`, in the order of the file; empty for the other codes.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for AgentFileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for AgentFileErrors {}

impl From<AgentFileErrors> for Error {
    fn from(errors: AgentFileErrors) -> Self {
        errors.error
    }
}

/// Collects faults while a file is read.
pub(super) struct Faults<'a> {
    file: &'a Path,
    text: &'a str,
    found: RefCell<Vec<Fault>>,
}

impl<'a> Faults<'a> {
    pub fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text, found: RefCell::default() }
    }

    /// The file's text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Adds a fault at a byte of the file.
    pub fn add(&self, at: usize, what: impl Into<String>, mend: impl Into<String>) {
        self.add_in(self.file, self.text, at, what, mend);
    }

    /// Adds a fault at a byte of another file.
    pub fn add_in(&self, file: &Path, text: &str, at: usize, what: impl Into<String>, mend: impl Into<String>) {
        if self.found.borrow().len() >= MOST_FAULTS {
            return;
        }
        let (line, column) = place(text, at);
        self.found.borrow_mut().push(Fault {
            file: file.to_owned(),
            line,
            column,
            what: what.into(),
            mend: mend.into(),
        });
    }

    /// Every fault: the agent file's own first, each file's in the order of its lines.
    pub fn into_sorted(self) -> Vec<Fault> {
        let mut faults = self.found.into_inner();
        let own = |fault: &Fault| fault.file != self.file;
        faults.sort_by(|a, b| (own(a), &a.file, a.line, a.column).cmp(&(own(b), &b.file, b.line, b.column)));
        faults.dedup();
        faults
    }
}

/// Line and column of a byte, both from 1; the column counts characters.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].chars().filter(|c| *c != '\u{feff}').count() + 1;
    (before.matches('\n').count() + 1, column)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{AgentFileErrors, Faults, MOST_FAULTS, place};

    #[test]
    fn no_more_faults_are_told_than_anyone_reads() {
        let (path, text) = (Path::new("agent.toml"), "k\n".repeat(200));
        let faults = Faults::new(path, &text);
        (0..200).for_each(|nth| faults.add(nth * 2, "wrong", ""));
        let errors = AgentFileErrors::invalid(path, faults.into_sorted());
        assert_eq!(errors.faults().len(), MOST_FAULTS);
        assert!(errors.to_string().starts_with("agent.toml has at least 100 faults;"), "{errors}");
    }

    #[test]
    fn places_count_characters_from_one() {
        let text = "\u{feff}a\nüö x\r\nz";
        for (find, expected) in [("a", (1, 1)), ("x", (2, 4)), ("z", (3, 1))] {
            assert_eq!(place(text, text.find(find).unwrap()), expected, "{find}");
        }
        assert_eq!(place("", 7), (1, 1));
    }
}
