//! Where the values of `${env:X}` come from: the process's environment, or what an embedding program puts in its place.

use std::sync::Arc;

use lodestep_core::reference::{Piece, pieces};

type Read = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Gives the value of a variable, when an attempt is about to be sent.
#[derive(Clone)]
pub struct Environment(Read);

impl Default for Environment {
    /// The process's own. A variable that is not UTF-8 counts as not set.
    fn default() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }
}

impl Environment {
    /// Variables from a function: a vault, a table of a test.
    pub fn new(read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// A variable's value.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    /// A variable's value, or what the reference has in its place.
    ///
    /// # Errors
    ///
    /// Says which variable is not set.
    pub fn resolve(&self, name: &str, default: Option<&str>) -> Result<String, String> {
        let value = self.get(name).or_else(|| default.map(str::to_owned));
        value.ok_or_else(|| format!("the environment variable {name} is not set; set it and resume"))
    }

    /// Fills in a text that holds references to variables and no others.
    ///
    /// # Errors
    ///
    /// Says which variable is not set, or which reference can't stand here.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        for piece in pieces(text)? {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Environment(name, default) => filled.push_str(&self.resolve(name, default)?),
                Piece::Input(name) | Piece::Argument(name) => return Err(format!("`{name}` can't be filled in here")),
                Piece::Key => return Err("the key can't be filled in here".to_owned()),
            }
        }
        Ok(filled)
    }
}
