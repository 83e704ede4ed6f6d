//! An unfinished run moved to another definition: what that changes is drawn up first, and said when a person agrees.
//!
//! - `changes`: what differs between two definitions, in words.
//! - `meaning`: what that means for a run and its actions.

mod changes;
mod meaning;

use std::collections::BTreeSet;

use lodestep_core::checkpoint::Action;
use lodestep_core::definition::ToolDefinition;
use lodestep_core::effect::{dedupe_key, effect_key, sameness};
use lodestep_core::json::canonical;
use lodestep_core::reference::{Piece, pieces};
use lodestep_core::rules::decide::artifacts::{ARTIFACT_FORMAT, pinned};
use lodestep_core::rules::inbox::{self, Message, Verdict, Word};
use lodestep_core::rules::upgrade::{Binding, Upgrade};
use lodestep_core::{Checkpoint, Definition, Draft, Error, Event, Result, RunKey};
use serde_json::Value;

use crate::inspect::diff::Change;
use crate::inspect::{self, Opened};
use crate::runtime::Runtime;
use crate::tools::schema::{Schemas, unpinned};

pub use meaning::{Fate, Meaning};

/// An upgrade as it would be now. Nothing is said to the run yet.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The run.
    pub run: RunKey,
    /// True when the run has the definition already: there is nothing to do.
    pub already: bool,
    /// What differs between its definition and the other one.
    pub changes: Vec<Change>,
    /// What that means for the run.
    pub meaning: Vec<Meaning>,
    /// What is said to the run.
    pub word: Word,
}

impl Runtime {
    /// What moving a run to another definition would change. It says nothing to the run; [`Self::send`] with the plan's
    /// word does. The run refuses the word as `upgrade.stale` when it was moved meanwhile.
    ///
    /// # Errors
    ///
    /// `run.not_found`, `run.over`, `upgrade.other_agent`; `upgrade.input_missing` names the inputs that the definition
    /// refers to and the run was not given.
    pub async fn plan_upgrade(&self, run: &RunKey, to: &Definition) -> Result<Plan> {
        let opened = inspect::open(self.store(), run).await?;
        inputs_are_there(to, &opened)?;
        let now = &opened.ahead;
        let before = definition_ahead(&opened);
        let upgrade = Upgrade {
            from: now.definition.digest,
            definition: to.to_bytes(),
            quota: before.as_ref().map(|before| before.quota),
            bindings: bindings(now, &opened, to),
        };
        let word = Word::Upgrade(Box::new(upgrade));
        let message = Message { by: String::new(), word: word.clone() };
        let mut draft = Draft::next(now.clone(), self.store.now(), 0, 0);
        let already = match inbox::read(&mut draft, now.inbox.saturating_add(1), &message)? {
            Verdict::Refused(error) => return Err(error),
            Verdict::AlreadyGiven(_) => true,
            Verdict::Accepted => false,
        };
        let events: &[Event] = if already { &[] } else { draft.events() };
        Ok(Plan {
            run: run.clone(),
            already,
            changes: changes::of(before.as_ref(), to, now, draft.checkpoint()),
            meaning: meaning::of(events, now, &draft),
            word,
        })
    }
}

/// The definition that the run has once its inbox is read.
fn definition_ahead(opened: &Opened) -> Option<Definition> {
    let wanted = opened.ahead.definition.digest;
    if wanted == opened.checkpoint.definition.digest {
        return opened.definition.clone();
    }
    let said = opened.unread.iter().rev().find_map(|(_, message)| match &message.word {
        Word::Upgrade(upgrade) => Definition::from_bytes(&upgrade.definition).ok(),
        _ => None,
    });
    said.filter(|definition| definition.digest() == wanted)
}

/// What the arguments of unsettled actions mean to their tools in the other definition.
fn bindings(state: &Checkpoint, opened: &Opened, to: &Definition) -> Vec<Binding> {
    let schemas = Schemas::of(to);
    let run = state.key();
    let bound = |action: &Action| {
        let tool = to.tool(&action.tool)?;
        // What can't be read is taken back where its tool changed.
        let arguments = Some(opened.json(&action.arguments)).filter(Value::is_object)?;
        let dedupe = tool.dedupe.as_deref().map(|text| dedupe_key(text, &arguments)).transpose();
        let misfit = fits(&schemas, tool, &arguments).err().or_else(|| dedupe.clone().err());
        Some(Binding {
            ordinal: action.ordinal,
            arguments: action.arguments.digest,
            misfit,
            key: effect_key(&run, action.ordinal, &tool.name, &canonical(&arguments)),
            same: sameness(&tool.name, &arguments, tool.same_by.as_deref()),
            dedupe: dedupe.ok().flatten(),
        })
    };
    state.pending.values().filter_map(bound).collect()
}

/// Do arguments that are stored fit a tool? An artifact is an artifact for it, and what is none is none.
fn fits(schemas: &Schemas, tool: &ToolDefinition, arguments: &Value) -> std::result::Result<(), String> {
    schemas.check(tool, &unpinned(arguments))?;
    let properties = tool.input.get("properties").and_then(Value::as_object);
    let is_artifact = |(name, schema): (&String, &Value)| {
        (schema.get("format").and_then(Value::as_str) == Some(ARTIFACT_FORMAT)).then(|| name.clone())
    };
    let wanted: BTreeSet<String> = properties.into_iter().flatten().filter_map(is_artifact).collect();
    let given = pinned(tool, arguments);
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let is_pinned = value.get("artifact").is_some() && value.get("digest").is_some();
        let is_wanted = wanted.contains(name) && given.iter().any(|(property, _)| property == name);
        if is_pinned != is_wanted {
            return Err(format!("{name} {} an artifact for it", if is_pinned { "is not" } else { "is" }));
        }
    }
    Ok(())
}

/// Inputs don't change: what a definition refers to has to be among them.
fn inputs_are_there(to: &Definition, opened: &Opened) -> Result<()> {
    let Some(given) = opened.inputs.as_object() else { return Ok(()) };
    let missing: Vec<String> = inputs_of(to).into_iter().filter(|name| !given.contains_key(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = given.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let what = format!("the definition needs inputs that the run was not given: {}", missing.join(", "));
    let next = format!("a run's inputs don't change, and it has {known}; write the file without the others");
    Err(Error::new("upgrade.input_missing", what, next))
}

/// The inputs that a definition refers to, wherever a run fills them in.
fn inputs_of(definition: &Definition) -> BTreeSet<String> {
    let mut texts = vec![definition.objective.clone(), definition.instructions.clone()];
    texts.extend(definition.done.check.iter().flat_map(|check| check.argv.clone()));
    for tool in &definition.tools {
        collect(&serde_json::to_value(&tool.kind).unwrap_or(Value::Null), &mut texts);
    }
    let name = |piece| match piece {
        Piece::Input(name) => Some(str::to_owned(name)),
        _ => None,
    };
    texts.iter().flat_map(|text| pieces(text).unwrap_or_default().into_iter().filter_map(name)).collect()
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|value| collect(value, texts)),
        Value::Object(all) => all.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}
