//! Agent files: from TOML to the definition that a run is pinned to.
//!
//! Everything is checked before anything is started, and all faults come at once, each with file, line, column and mend.
//! What the definition holds is what a run keeps: instructions are read now, paths are absolute, defaults are filled in.
//! References to inputs and secrets stay references. Whether a program of a tool can be started is found out when it is.
//!
//! # Layout
//!
//! - `table`, `reader`, `faults`, `names`: a typed reader over the parsed file that collects faults with their places.
//! - `source`: the text and its folder. `references`, `duration`, `money`, `foreign`: what texts, times and amounts may be, and what keys of elsewhere mean.
//! - `about`, `inputs`, `model`, `tools`, `command`, `http`, `schema`, `policy`, `quota`, `plan`, `notify`, `test_section`: a table each.
//! - `wiring`: `lodestep.toml`, what belongs to a place and not to an agent.
//! - `state_tools`: the tools of every run. `folders`: are the folders of documents there? `fault_point`: does a run pass it?

mod about;
mod another_model;
#[cfg(test)]
mod asked;
mod command;
mod duration;
mod fault_point;
mod faults;
mod folders;
mod foreign;
mod http;
mod inputs;
mod model;
mod money;
mod names;
mod notify;
mod plan;
mod policy;
mod quota;
mod reader;
mod references;
mod schema;
mod source;
mod sql;
mod state_tools;
mod table;
mod test_section;
#[cfg(test)]
mod tests;
mod tools;
mod wiring;

use std::path::{Path, PathBuf};

use lodestep_core::definition::Done;
use lodestep_core::{Definition, Error};
use serde_json::Value;
use toml::de::DeTable;

pub use duration::parse as duration_ms;
pub use fault_point::check as check_fault_point;
pub use faults::{AgentFileErrors, Fault};
pub use inputs::{InputKind, InputSpec};
pub use money::micro as usd_micro;
pub use state_tools::state_tools;
pub use test_section::TestSection;
pub use wiring::{AgentWiring, Wiring};

use faults::Faults;
use reader::Item;
use source::Source;
use table::Table;

/// The format that this version reads.
pub const FORMAT: u64 = 1;

/// The JSON Schema, draft 2020-12, of agent files: what an editor completes and underlines. It refuses no file that
/// [`AgentFile::load`] takes; what only a look at the whole file or at the disk can tell, it takes.
pub const SCHEMA: &str = include_str!("agent.schema.json");

/// An agent file that was read and found sound.
///
/// ```
/// # fn main() -> Result<(), lodestep_core::Error> {
/// # let folder = std::env::temp_dir().join(format!("lodestep-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).expect("a temporary folder");
/// # let path = folder.join("agent.toml");
/// std::fs::write(&path, r#"
///     format = 1
///     [agent]
///     name = "greeter"
///     objective = "Greet ${input:whom}."
///     [inputs]
///     whom = { type = "string", default = "everyone" }
///     [model]
///     provider = "offline"
/// "#).expect("a file");
/// let file = lodestep::agent::AgentFile::load(&path)?;
/// assert_eq!(file.definition.name, "greeter");
/// let inputs = file.inputs(&[("whom".into(), "Ada".into())], &folder)?;
/// assert_eq!(inputs, serde_json::json!({ "whom": "Ada" }));
/// # std::fs::remove_dir_all(&folder).expect("removed");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its folder, absolute and without links: what relative paths in it start from.
    pub folder: PathBuf,
    /// What a run is pinned to: the file's tools in its order, then [`state_tools`].
    pub definition: Definition,
    /// What a run is given, in the order of the file.
    pub inputs: Vec<InputSpec>,
    /// How it is tested, if it says.
    pub test: Option<TestSection>,
    /// Variables that its tools need: those without a default. [`lacking`](crate::secrets::lacking) says which have no value here.
    pub secrets: Vec<String>,
}

impl AgentFile {
    /// Reads and checks an agent file and the instructions that it names. Nothing is started or written.
    ///
    /// # Errors
    ///
    /// `agent.not_found`, `agent.unreadable` (a folder, no permission, not UTF-8, over 1 MiB), `agent.newer_format`, or
    /// `agent.invalid` with every fault.
    pub fn load(path: &Path) -> Result<Self, AgentFileErrors> {
        let source = Source::read(path)?;
        let (tree, broken) = DeTable::parse_recoverable(&source.text);
        let faults = Faults::new(path, &source.text);
        let file = Table::root("file", tree.get_ref(), &faults);
        format(&file, path)?;
        // What could not be parsed is missing from the tree; faults of the rest would mislead.
        if broken.is_empty() {
            let read = Self::compile(&file, &source);
            drop(file);
            let found = faults.into_sorted();
            return if found.is_empty() { Ok(read) } else { Err(AgentFileErrors::invalid(path, found)) };
        }
        let is_meant = file.has("format") || file.has("agent");
        drop(file);
        if let Some(other) = source.other_than_toml(is_meant, &broken) {
            return Err(other);
        }
        let syntax = Faults::new(path, &source.text);
        for error in broken {
            let at = error.span().map_or(0, |span| span.start);
            syntax.add(at, format!("not TOML: {}", names::shown(error.message())), source::mend(error.message()));
        }
        Err(AgentFileErrors::invalid(path, syntax.into_sorted()))
    }

    /// Has this model in the place of the file's: `anthropic:NAME`, `openai:NAME`, `openai:NAME@BASE_URL`, `offline`.
    ///
    /// Of the file's stay the window, the limit of a reply and the numbers of tries.
    ///
    /// # Errors
    ///
    /// `usage.model`, with how it is written; `agent.price_missing` when the agent has a quota of usd.
    pub fn use_model(&mut self, word: &str) -> Result<(), Error> {
        another_model::put(&mut self.definition, word)
    }

    /// The inputs of a run: typed, defaults filled in, paths absolute (and without links, where they exist). A given
    /// relative path starts from `cwd`, a default one from the agent file's folder.
    ///
    /// # Errors
    ///
    /// `input.unknown` naming the nearest, `input.invalid` naming the value, `input.missing` naming all that are.
    pub fn inputs(&self, given: &[(String, String)], cwd: &Path) -> Result<Value, Error> {
        inputs::values(&self.inputs, given, cwd, &self.folder)
    }

    /// Checks that a run which was given these inputs, by this or an earlier file, can go on with this one.
    ///
    /// # Errors
    ///
    /// `upgrade.input_missing` naming those that the run was not given, `upgrade.input_type` naming the value.
    pub fn check_inputs(&self, given: &Value) -> Result<(), Error> {
        inputs::check(&self.inputs, given)
    }

    /// Checks that each folder is there which a `documents` tool reads with these inputs, as [`inputs`](Self::inputs)
    /// gave them. Nothing is read of it.
    ///
    /// # Errors
    ///
    /// `input.folder_missing` naming the input and its value.
    pub fn check_folders(&self, inputs: &Value) -> Result<(), Error> {
        folders::check(&self.definition, inputs)
    }

    /// Checks that a run of this agent can pass a fault point, as `--crash-at` names it.
    ///
    /// # Errors
    ///
    /// `usage.crash_at` naming the nearest tool, or the points that the tool passes.
    pub fn check_fault_point(&self, text: &str) -> Result<(), Error> {
        fault_point::check(&self.definition, text)
    }

    /// Reads every table. The result counts only if no fault was noted.
    fn compile(file: &Table<'_>, source: &Source) -> Self {
        let specs = inputs::specs(file);
        let about = about::about(file, &specs, &source.folder);
        let mut secrets = Vec::new();
        let model = model::model(file, &source.folder, &mut secrets);
        let always = state_tools();
        let ground = tools::Ground { folder: &source.folder, inputs: &specs };
        let mut tools = tools::tools(file, &ground, &always, &mut secrets);
        let policy = policy::rules(file, &tools, &always);
        tools.extend(always);
        let quota = quota::quota(file, model.price.is_some());
        let mut definition = Definition {
            name: about.name,
            objective: about.objective,
            instructions: about.instructions,
            model,
            tools,
            policy,
            questions: policy::questions(file),
            quota,
            milestones: Vec::new(),
            done: Done::default(),
            limits: quota::limits(file),
            notify: file.get("notify").and_then(|item| notify::notify(&item, &source.folder)),
            memo: Default::default(),
        };
        definition.milestones = plan::milestones(file, &definition);
        definition.done = plan::done(file, &definition.milestones, &ground);
        let test = test_section::test(file, &specs);
        file.close();
        let (path, folder) = (source.path.clone(), source.folder.clone());
        Self { path, folder, definition, inputs: specs, test, secrets }
    }
}

/// A newer format is refused by name before anything else is judged by the rules of this one.
fn format(file: &Table<'_>, path: &Path) -> Result<(), AgentFileErrors> {
    let Some(item) = file.need("format", "format = 1") else { return Ok(()) };
    let newer =
        |item: &Item<'_>| item.value().as_integer()?.as_str().parse().ok().filter(|format: &u64| *format > FORMAT);
    if let Some(newer) = newer(&item) {
        let what = format!("{} has format {newer}; this version reads {FORMAT}", path.display());
        return Err(AgentFileErrors::new("agent.newer_format", what, "use a newer version of lodestep"));
    }
    item.whole(FORMAT..=FORMAT);
    Ok(())
}
