//! Secrets: references in a definition, values only where an attempt is sent, and none in what is stored or printed.
//!
//! - [`environment`]: what the environment of tools holds. `whence`: files and commands that give values.
//! - [`scrub`]: values taken out of outputs before they are digested.
//! - `spellings`: the ways in which a value may be written there.
//! - `reply`: the same for a model's reply. `panics`: the same for what a panic prints.

pub mod environment;
mod panics;
mod reply;
pub mod scrub;
mod spellings;
mod whence;

use std::collections::BTreeSet;
use std::sync::Arc;

use lodestep_core::Definition;
use lodestep_core::reference::{Piece, pieces};
use serde::Serialize;

pub use environment::{Environment, ModelWiring};
pub use panics::scrub_panics;
pub(crate) use reply::scrub_reply;
pub use scrub::{Removed, Scrubber};
pub use whence::Whence;

/// A shorter value is not looked for: it would be found in innocent text, and it is no secret for long.
pub const LEAST_BYTES: usize = 8;

/// The variables that a definition refers to, and what they hold here and now.
#[derive(Default)]
pub(crate) struct Secrets {
    missing: BTreeSet<String>,
    /// Why there is no value, in words.
    unread: BTreeSet<String>,
    short: BTreeSet<String>,
    /// Names with the values that are looked for, also with those that they had before.
    values: BTreeSet<(String, String)>,
    /// Finds the values.
    pub scrubber: Scrubber,
}

impl Secrets {
    /// Those of a definition's tools, and the key of its model.
    pub fn of(definition: &Definition, environment: &Environment) -> Self {
        let mut secrets = Self::read(definition, environment);
        secrets.scrubber = secrets.scrubber_of_values();
        secrets
    }

    /// These, if nothing has changed; otherwise what is now, and what was: an old value may still be said.
    pub fn renewed(self: &Arc<Self>, definition: &Definition, environment: &Environment) -> Arc<Self> {
        let mut now = Self::read(definition, environment);
        if now.values.is_subset(&self.values) {
            return self.clone();
        }
        now.values.extend(self.values.iter().cloned());
        now.scrubber = now.scrubber_of_values();
        let now = Arc::new(now);
        panics::know(&now);
        now
    }

    fn read(definition: &Definition, environment: &Environment) -> Self {
        let mut secrets = Self::default();
        let texts = definition.tools.iter().flat_map(|tool| environment.texts_of(&definition.name, tool));
        let texts = texts.chain(environment.key_of(definition));
        for piece in texts.filter_map(|text| pieces(text).ok()).flatten() {
            let Piece::Environment(name, default) = piece else { continue };
            let value = match environment.get(name) {
                Ok(value) => value,
                Err(why) => {
                    secrets.unread.insert(format!("{name}: {why}"));
                    continue;
                }
            };
            match (value, default) {
                (None, None) => secrets.missing.extend([name.to_owned()]),
                // What the file itself holds is no secret.
                (None, Some(_)) => {}
                (Some(value), Some(default)) if value == default || value.len() < LEAST_BYTES => {}
                (Some(value), None) if value.len() < LEAST_BYTES => secrets.short.extend([name.to_owned()]),
                (Some(value), _) => secrets.values.extend([(name.to_owned(), value)]),
            }
        }
        let texts = environment.texts_of_model(definition);
        secrets.missing.extend(texts.flat_map(|text| environment.unset_in(text)));
        secrets
    }

    fn scrubber_of_values(&self) -> Scrubber {
        Scrubber::new(self.values.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Why a run can't go on here, in words: a variable is not set, or its value is too short to be looked for.
    pub fn unfit(&self) -> Option<String> {
        let listed = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut said = Vec::new();
        if !self.missing.is_empty() {
            said.push(format!("not set: {}", listed(&self.missing)));
        }
        if !self.unread.is_empty() {
            said.push(format!("not to be had: {}", listed(&self.unread)));
        }
        if !self.short.is_empty() {
            said.push(format!("shorter than {LEAST_BYTES} bytes: {}", listed(&self.short)));
        }
        (!said.is_empty()).then(|| format!("{}; set it where the worker runs, then resume", said.join("; ")))
    }
}

/// What is wrong with the variables that an agent's tools and model need, here and now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Those that are not set.
    pub missing: Vec<String>,
    /// Those whose values are too short to be kept out of what is stored.
    pub short: Vec<String>,
    /// Those whose source gives no value, each with the reason.
    pub unread: Vec<String>,
}

/// A variable that is not set here, and what needs it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unset {
    /// Its name.
    pub variable: String,
    /// `tool pay`, `the model`.
    pub by: String,
}

/// The variables without a default that are not set here, each with everything that needs it.
pub fn unset(definition: &Definition, environment: &Environment) -> Vec<Unset> {
    let of_model = environment.key_of(definition).into_iter().chain(environment.texts_of_model(definition));
    let of_tools = definition.tools.iter().flat_map(|tool| {
        let texts = environment.texts_of(&definition.name, tool).into_iter();
        texts.map(|text| (format!("tool {}", tool.name), text))
    });
    let needs = of_model.map(|text| ("the model".to_owned(), text)).chain(of_tools);
    let unset = needs.flat_map(|(by, text)| {
        environment.unset_in(text).into_iter().map(move |variable| Unset { variable, by: by.clone() })
    });
    unset.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Looks for the values of all variables that a definition's tools and model need.
pub fn lacking(definition: &Definition, environment: &Environment) -> Lacking {
    let Secrets { missing, unread, short, .. } = Secrets::read(definition, environment);
    let listed = |names: BTreeSet<String>| names.into_iter().collect();
    Lacking { missing: listed(missing), short: listed(short), unread: listed(unread) }
}

#[cfg(test)]
mod tests;
