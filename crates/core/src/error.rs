//! Operating errors: what went wrong, for people and for programs.
//!
//! Domain outcomes (a tool failed, an approval was denied) are events, not errors. An [`Error`] is for a
//! call that could not be served. Its code is stable; its text names the value and the next step.

use std::fmt;

/// A call that could not be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: &'static str,
    what: String,
    next: String,
}

/// The result of a call that can fail to be served.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with a stable code such as `run.not_found`, what was wrong, and what to do next (may be empty).
    pub fn new(code: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { code, what: what.into(), next: next.into() }
    }

    /// The stable code: the same on the command line, over HTTP and in logs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What was wrong, naming the value.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What to do next; may be empty.
    pub fn next(&self) -> &str {
        &self.next
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.what, self.code)?;
        if !self.next.is_empty() {
            write!(f, "\n  {}", self.next)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
