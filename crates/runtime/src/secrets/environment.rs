//! What the environment of tools holds: the values of `${env:X}`, and variables that a place adds to a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestep_core::Definition;
use lodestep_core::definition::{ToolDefinition, ToolKind};
use lodestep_core::reference::{Piece, pieces};

use super::whence::{Sources, Whence};

type Read = Arc<dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync>;

/// Variables by agent and program.
type Added = BTreeMap<(String, String), BTreeMap<String, String>>;

/// Gives the value of a variable, when an attempt is about to be sent.
#[derive(Clone)]
pub struct Environment {
    read: Read,
    added: Arc<Added>,
    models: Arc<BTreeMap<String, ModelWiring>>,
}

/// Where the model of an agent is asked at a place, in place of what its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelWiring {
    /// Where the service is; may hold `${env:X}`.
    pub base_url: Option<String>,
    /// The key, as references to variables.
    pub api_key: Option<String>,
    /// The field of a request that says how long the reply may be.
    pub output_limit_field: Option<String>,
}

impl Default for Environment {
    /// The process's own. A variable that is not UTF-8 counts as not set.
    fn default() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }
}

impl Environment {
    /// Variables from a function: a vault, a table of a test.
    pub fn new(read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(move |name| Ok(read(name))), added: Arc::default(), models: Arc::default() }
    }

    /// Variables from where they are said to come from, all others from the process's own; and by agent and program the
    /// variables that it gets besides, by agent where its model is asked.
    pub(crate) fn wired(whence: BTreeMap<String, Whence>, added: Added, models: BTreeMap<String, ModelWiring>) -> Self {
        let sources = Sources::new(whence);
        let own = Self::default();
        let read = move |name: &str| sources.read(name).unwrap_or_else(|| own.get(name));
        Self { read: Arc::new(read), added: Arc::new(added), models: Arc::new(models) }
    }

    /// A variable's value; `None` when it is not set.
    ///
    /// # Errors
    ///
    /// Says why where it is said to come from gives none. A default does not stand in for that.
    pub fn get(&self, name: &str) -> Result<Option<String>, String> {
        (self.read)(name)
    }

    /// A variable's value, or what the reference has in its place.
    ///
    /// # Errors
    ///
    /// Says which variable is not set, or why its value can't be had.
    pub fn resolve(&self, name: &str, default: Option<&str>) -> Result<String, String> {
        let value = self.get(name).map_err(|why| format!("the environment variable {name}: {why}"))?;
        let value = value.or_else(|| default.map(str::to_owned));
        value.ok_or_else(|| format!("the environment variable {name} is not set; set it and resume"))
    }

    /// The variables of a program: those of its own, and over them those that this place adds.
    pub(crate) fn of_program<'a>(
        &'a self,
        agent: &str,
        table: &str,
        own: &'a BTreeMap<String, String>,
    ) -> BTreeMap<&'a str, &'a str> {
        let added = self.added.get(&(agent.to_owned(), table.to_owned()));
        own.iter().chain(added.into_iter().flatten()).map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }

    /// Where an agent's model is asked here, if this place says so.
    pub(crate) fn model_of(&self, agent: &str) -> Option<&ModelWiring> {
        self.models.get(agent)
    }

    /// The references that a definition's model has its key from here.
    pub(crate) fn key_of<'a>(&'a self, definition: &'a Definition) -> Option<&'a str> {
        let wired = self.model_of(&definition.name);
        match wired.and_then(|wired| wired.api_key.as_deref()) {
            Some(key) => Some(key),
            // Another service is not given the key of the one that the file names.
            None if wired.is_some_and(|wired| wired.base_url.is_some()) => None,
            None => definition.model.api_key.as_deref(),
        }
    }

    /// Where a definition's model is asked from here; `None` is the provider's own place.
    pub(crate) fn base_url_of<'a>(&'a self, definition: &'a Definition) -> Option<&'a str> {
        let wired = self.model_of(&definition.name).and_then(|wired| wired.base_url.as_deref());
        wired.or(definition.model.base_url.as_deref())
    }

    /// The field that says how long a reply may be, if this place or the definition names it.
    pub(crate) fn output_limit_field_of<'a>(&'a self, definition: &'a Definition) -> Option<&'a str> {
        let wired = self.model_of(&definition.name).and_then(|wired| wired.output_limit_field.as_deref());
        wired.or(definition.model.output_limit_field.as_deref())
    }

    /// The name and the place of a definition's model here, which may hold references. What these hold is no secret.
    pub(crate) fn texts_of_model<'a>(&'a self, definition: &'a Definition) -> impl Iterator<Item = &'a str> {
        let is_service = crate::model::service::dialect(&definition.model.provider).is_some();
        let name = is_service.then_some(definition.model.name.as_str());
        name.into_iter().chain(self.base_url_of(definition))
    }

    /// The variables without a default that a text refers to and that are not set.
    pub(crate) fn unset_in(&self, text: &str) -> Vec<String> {
        let unset = |piece| match piece {
            Piece::Environment(name, None) if matches!(self.get(name), Ok(None)) => Some(name.to_owned()),
            _ => None,
        };
        pieces(text).ok().into_iter().flatten().filter_map(unset).collect()
    }

    /// Every text of a tool that may hold a reference to the environment, as it is used here.
    pub(crate) fn texts_of<'a>(&'a self, agent: &str, tool: &'a ToolDefinition) -> Vec<&'a str> {
        match &tool.kind {
            ToolKind::Command { env, .. } => self.of_program(agent, &tool.group, env).into_values().collect(),
            _ => tool.environment_texts(),
        }
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
