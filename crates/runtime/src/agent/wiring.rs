//! `lodestep.toml`: what belongs to a place and not to an agent. No definition's digest covers it, and no approval.
//!
//! It stands beside a store. It says where the values of `${env:X}` come from, what a path input is when nothing is
//! given, what the environment of an agent's program holds besides, and which command hears of what needs somebody.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lodestep_core::definition::{Notify, ToolKind};
use toml::de::DeTable;

use super::command::environment;
use super::duration::SECOND_MS;
use super::faults::{AgentFileErrors, Faults, MOST_FAULTS};
use super::inputs::{InputKind, absolute};
use super::names::{instead, is_variable, shown};
use super::reader::Item;
use super::references::Allowed;
use super::source::{Source, mend};
use super::table::Table;
use super::{AgentFile, notify};
use crate::secrets::{Environment, ModelWiring, Whence};

/// How long the command of a variable may take unless the file says, and at most.
const COMMAND_MS: (u64, u64) = (10 * SECOND_MS, 60 * SECOND_MS);

/// What one `lodestep.toml` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wiring {
    /// Where the values of variables come from; of every other the process's environment tells.
    pub env: BTreeMap<String, Whence>,
    /// What holds for the runs of one agent, by its name.
    pub agents: BTreeMap<String, AgentWiring>,
    /// The command that hears what needs somebody, in the place of the agents' own.
    pub notify: Option<Notify>,
}

/// What holds for the runs of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentWiring {
    /// Path inputs and their values, absolute.
    pub inputs: BTreeMap<String, String>,
    /// By the name of a program's table the variables that it gets besides; values may hold `${env:X}`.
    pub tools: BTreeMap<String, BTreeMap<String, String>>,
    /// Where its model is asked.
    pub model: Option<ModelWiring>,
}

impl Wiring {
    /// The JSON Schema, draft 2020-12, of the file.
    pub const SCHEMA: &str = include_str!("wiring.schema.json");

    /// Reads the file; what is said of `agent` is judged by what the agent has. Without a file nothing is wired.
    ///
    /// # Errors
    ///
    /// `wiring.invalid` with every fault, or why the file can't be read.
    pub fn load(path: &Path, agent: Option<&AgentFile>) -> Result<Self, AgentFileErrors> {
        if let Err(error) = path.symlink_metadata()
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Ok(Self::default());
        }
        let source = Source::read(path).map_err(|errors| errors.of_wiring())?;
        let (tree, broken) = DeTable::parse_recoverable(&source.text);
        let faults = Faults::new(path, &source.text);
        let file = Table::root("wiring", tree.get_ref(), &faults);
        let wiring = if broken.is_empty() { read(&file, &source.folder, agent) } else { Self::default() };
        drop(file);
        for error in broken.into_iter().take(MOST_FAULTS) {
            let at = error.span().map_or(0, |span| span.start);
            faults.add(at, format!("not TOML: {}", shown(error.message())), mend(error.message()));
        }
        let found = faults.into_sorted();
        if found.is_empty() { Ok(wiring) } else { Err(AgentFileErrors::listed("wiring.invalid", path, found)) }
    }

    /// What was given for an agent's inputs, with the values of this file for those path inputs that were not given.
    pub fn given(&self, agent: &str, given: &[(String, String)]) -> Vec<(String, String)> {
        let wired = self.agents.get(agent).into_iter().flat_map(|agent| &agent.inputs);
        let open = wired.filter(|(name, _)| !given.iter().any(|(other, _)| other == *name));
        given.iter().cloned().chain(open.map(|(name, path)| (name.clone(), path.clone()))).collect()
    }

    /// The environment of the tools of every agent here.
    pub fn environment(&self) -> Environment {
        let variables = self.agents.iter().flat_map(|(agent, wired)| {
            wired.tools.iter().map(|(tool, variables)| ((agent.clone(), tool.clone()), variables.clone()))
        });
        let models = self.agents.iter().filter_map(|(agent, wired)| Some((agent.clone(), wired.model.clone()?)));
        Environment::wired(self.env.clone(), variables.collect(), models.collect())
    }
}

fn read(file: &Table<'_>, folder: &Path, agent: Option<&AgentFile>) -> Wiring {
    let notify = file.get("notify").and_then(|item| notify::notify(&item, folder));
    let env = named(file, "env", "[env] with lines such as TOKEN = { file = \"token\" }");
    let env = env.iter().filter_map(|(name, item)| Some((name.clone(), variable(name, item, folder)?))).collect();
    let agents = named(file, "agents", "each agent as a table of its own: [agents.NAME]");
    let agents = agents.iter().filter_map(|(name, item)| {
        let about = agent.filter(|agent| agent.definition.name == *name);
        Some((name.clone(), of_agent(item, folder, about)?))
    });
    let agents = agents.collect();
    file.close();
    Wiring { env, agents, notify }
}

/// The entries of a table whose keys are names.
fn named<'a>(table: &Table<'a>, key: &'static str, expected: &str) -> Vec<(String, Item<'a>)> {
    let table = table.get(key).and_then(|item| item.table("names", expected));
    table.iter().flat_map(Table::entries).map(|(name, item)| ((*name).to_owned(), item.clone())).collect()
}

fn variable(name: &str, item: &Item<'_>, folder: &Path) -> Option<Whence> {
    if !is_variable(name) {
        let what = format!("`{}` is no name for a variable", shown(name));
        item.fault(what, "use letters, digits and _, no digit first");
    }
    let table =
        item.table("variable", "a table: { file = \"token\" } or { command = [\"pass\", \"show\", \"token\"] }")?;
    let (file, command) = (table.get("file"), table.get("command"));
    let timeout = table.get("timeout");
    if let (None, Some(item)) = (&command, &timeout) {
        item.fault(format!("`{}`: only a command takes its time", item.name), "take it out");
    }
    let whence = match (file, command) {
        (Some(_), Some(item)) => {
            item.fault(format!("[{}] has both `file` and `command`", table.name), "keep one of them");
            None
        }
        (Some(item), None) => item.said(&Allowed::Nothing).map(|path| Whence::File(absolute(&folder.join(path)))),
        (None, Some(item)) => {
            let timeout = timeout.and_then(|item| item.duration(1..=COMMAND_MS.1)).unwrap_or(COMMAND_MS.0);
            let argv = item.argv(&Allowed::Nothing);
            argv.map(|argv| Whence::Command { argv, folder: folder.to_owned(), timeout_ms: timeout })
        }
        (None, None) => {
            let what = format!("[{}] doesn't say where its value comes from", table.name);
            item.fault(what, "add `file = \"token\"` or `command = [\"pass\", \"show\", \"token\"]`");
            None
        }
    };
    table.close();
    whence
}

fn of_agent(item: &Item<'_>, folder: &Path, agent: Option<&AgentFile>) -> Option<AgentWiring> {
    let table = item.table("agent wiring", "a table: [agents.NAME] with `inputs`, `tools` and `model`")?;
    let inputs = named(&table, "inputs", "a table, such as { folder = \"/srv/documents\" }");
    let inputs = inputs.iter().filter_map(|(name, item)| Some((name.clone(), input(name, item, folder, agent)?)));
    let inputs = inputs.collect();
    let tools = named(&table, "tools", "each program as a table of its own: [agents.AGENT.tools.NAME]");
    let tools = tools.iter().filter_map(|(name, item)| Some((name.clone(), program(name, item, agent)?)));
    let tools = tools.collect();
    let model = table.get("model").and_then(|item| model(&item, agent));
    table.close();
    Some(AgentWiring { inputs, tools, model })
}

/// Where the model is asked: at a gateway of this place, or at another one's service.
fn model(item: &Item<'_>, agent: Option<&AgentFile>) -> Option<ModelWiring> {
    let table = item.table("model wiring", "a table, such as { base_url = \"https://gateway.example/v1\" }")?;
    let (base_url, api_key) = (table.get("base_url"), table.get("api_key"));
    let limit_field = table.get("output_limit_field");
    table.close();
    let dialect = agent.and_then(|agent| crate::model::service::dialect(&agent.definition.model.provider));
    let wired = ModelWiring {
        base_url: base_url.as_ref().and_then(|item| item.said(&Allowed::Environment)),
        api_key: api_key.as_ref().and_then(super::model::key),
        output_limit_field: limit_field.as_ref().and_then(|item| super::model::output_limit_field(item, dialect)),
    };
    if let Some(agent) = agent {
        let provider = &agent.definition.model.provider;
        match dialect {
            None => item.fault(format!("the provider `{provider}` is no service"), "take it out"),
            Some(dialect) => {
                if let (Some(item), Some(text)) = (&base_url, &wired.base_url) {
                    super::model::judge_url(item, dialect, text, wired.api_key.is_some());
                }
            }
        }
    }
    Some(wired)
}

/// A path of this place. Any other input is the work's and not the place's.
fn input(name: &str, item: &Item<'_>, folder: &Path, agent: Option<&AgentFile>) -> Option<String> {
    if let Some(agent) = agent {
        match agent.inputs.iter().find(|input| input.name == name) {
            None => {
                let known: Vec<&str> = agent.inputs.iter().map(|input| input.name.as_str()).collect();
                let what = format!("the agent {} has no input `{}`", agent.definition.name, shown(name));
                item.fault(what, instead(name, &known, "inputs"));
            }
            Some(input) if input.kind != InputKind::Path => {
                let what = format!("the input `{name}` of {} is no path", agent.definition.name);
                item.fault(what, format!("take it out, and give it to a run: -i {name}=…"));
            }
            Some(_) => {}
        }
    }
    let path: PathBuf = absolute(&folder.join(item.said(&Allowed::Nothing)?));
    Some(path.to_string_lossy().into_owned())
}

fn program(name: &str, item: &Item<'_>, agent: Option<&AgentFile>) -> Option<BTreeMap<String, String>> {
    if let Some(agent) = agent {
        let tools = &agent.definition.tools;
        let programs = tools.iter().filter(|tool| matches!(tool.kind, ToolKind::Command { .. }));
        let programs: Vec<&str> = programs.map(|tool| tool.group.as_str()).collect();
        if !programs.contains(&name) {
            let is = if tools.iter().any(|tool| tool.group == name) { "is no program" } else { "is not there" };
            let what = format!("the tool `{}` of {} {is}", shown(name), agent.definition.name);
            item.fault(what, instead(name, &programs, "programs"));
        }
    }
    let table = item.table("tool wiring", "a table, such as { env = { TOKEN = \"${env:TOKEN}\" } }")?;
    let variables = table.need("env", "env = { TOKEN = \"${env:TOKEN}\" }");
    let variables = variables.map(|item| environment(&item, &mut Vec::new()));
    table.close();
    variables
}
