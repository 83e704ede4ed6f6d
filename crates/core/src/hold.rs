//! Holds: an operator stops what is sent to a tool, asked of a model or done by an agent, in every run, until it is
//! released. No run's journal holds them: they are the store's, and a worker knows them before it commits an intent.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::policy::matches;
use crate::time::Timestamp;

/// What is held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The tools of that name or group; `*` stands for any run of characters.
    Tool(String),
    /// The models of that name or provider.
    Model(String),
    /// Every tool and the model, in runs of that agent.
    Agent(String),
}

/// A hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchHold {
    /// Its number in the store: a later hold has a higher one.
    pub number: u64,
    /// What is held.
    pub target: Target,
    /// Who said so.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// What holds mean for one run's definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    tools: BTreeMap<String, DispatchHold>,
    model: Option<DispatchHold>,
}

impl Target {
    /// Reads `tool:NAME`, `model:NAME` or `agent:NAME`.
    ///
    /// # Errors
    ///
    /// `hold.target` names the text.
    pub fn parse(text: &str) -> Result<Self> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let name = Some(name.to_owned()).filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
        match (kind, name) {
            ("tool", Some(name)) => Ok(Self::Tool(name)),
            ("model", Some(name)) => Ok(Self::Model(name)),
            ("agent", Some(name)) => Ok(Self::Agent(name)),
            _ => {
                let what = format!("`{}` is nothing that can be held", text.escape_debug());
                Err(Error::new("hold.target", what, "write tool:NAME, model:NAME or agent:NAME"))
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "tool:{name}"),
            Self::Model(name) => write!(f, "model:{name}"),
            Self::Agent(name) => write!(f, "agent:{name}"),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Held {
    /// What these holds mean for a definition. Of several that hold the same, the first counts.
    pub fn of(holds: &[DispatchHold], definition: &Definition) -> Self {
        let mut held = Self::default();
        for hold in holds {
            let all = matches!(&hold.target, Target::Agent(name) if matches(name, &definition.name));
            let model = &definition.model;
            let asked =
                |name: &String| [&model.name, &model.provider].iter().any(|is| !is.is_empty() && matches(name, is));
            if all || matches!(&hold.target, Target::Model(name) if asked(name)) {
                held.model.get_or_insert_with(|| hold.clone());
            }
            for tool in &definition.tools {
                let is_named = |name: &String| matches(name, &tool.name) || matches(name, &tool.group);
                if all || matches!(&hold.target, Target::Tool(name) if is_named(name)) {
                    held.tools.entry(tool.name.clone()).or_insert_with(|| hold.clone());
                }
            }
        }
        held
    }

    /// What holds a tool.
    pub fn tool(&self, name: &str) -> Option<&DispatchHold> {
        self.tools.get(name)
    }

    /// The number of the hold on a target, if it holds something of this run.
    pub fn number_of(&self, target: &Target) -> Option<u64> {
        let mut all = self.tools.values().chain(&self.model);
        all.find(|hold| hold.target == *target).map(|hold| hold.number)
    }

    /// What holds the run's model.
    pub fn model(&self) -> Option<&DispatchHold> {
        self.model.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_shown() {
        for text in ["tool:pay", "model:claude-sonnet", "agent:research report", "tool:documents_*", "tool:a:b"] {
            assert_eq!(Target::parse(text).expect("sound").to_string(), text);
        }
        for text in ["", "pay", "tool:", "tools:pay", "run:7k2m", ":", "tool:a\nb"] {
            assert_eq!(Target::parse(text).expect_err("refused").code(), "hold.target", "{text}");
        }
    }
}
