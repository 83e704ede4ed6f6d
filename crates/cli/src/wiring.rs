//! `lodestep.toml` beside the store: what belongs to a place and not to an agent. No definition's digest covers it.

use std::path::PathBuf;

use lodestep::agent::{AgentFile, Wiring};
use lodestep::core::{Error, Result};
use lodestep::store::STORE_FOLDER;
use serde_json::{Value, json};

use crate::app::App;

/// The file's name.
const FILE: &str = "lodestep.toml";

fn path(app: &App) -> PathBuf {
    app.store_path().with_file_name(FILE)
}

/// The file, where tools have to be kept from it by name: whoever can write it runs commands as the worker does. A folder
/// that is the store's own is closed to them whole.
pub fn keep_out(app: &App) -> Vec<PathBuf> {
    let path = path(app);
    let is_in_own_folder = path.parent().is_some_and(|folder| folder.ends_with(STORE_FOLDER));
    Some(path).filter(|path| !is_in_own_folder && path.is_file()).into_iter().collect()
}

/// What the file beside the store says; what it says of `agent` is judged by what that one has.
///
/// # Errors
///
/// `wiring.invalid` with every fault.
pub fn wiring(app: &App, agent: Option<&AgentFile>) -> Result<Wiring> {
    Wiring::load(&path(app), agent).map_err(Error::from)
}

/// What the file gives the runs of an agent, for `run --check`: as a line, and as JSON. Null when it gives nothing.
pub fn given(app: &App, wiring: &Wiring, agent: &str) -> (String, Value) {
    let own = wiring.agents.get(agent).cloned().unwrap_or_default();
    let inputs: Vec<&String> = own.inputs.keys().collect();
    let tools: Vec<&String> = own.tools.keys().collect();
    let env: Vec<&String> = wiring.env.keys().collect();
    let notify = wiring.notify.is_some();
    let path = path(app);
    let named = [("input", &inputs), ("variables of", &tools), ("the value of", &env)];
    let named = named.iter().flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}")));
    let named: Vec<String> = named.chain(notify.then(|| "whom to notify".to_owned())).collect();
    if named.is_empty() {
        return (String::new(), Value::Null);
    }
    let text = format!("{} gives: {}\n", path.display(), named.join(", "));
    (text, json!({"path": path, "inputs": inputs, "tools": tools, "env": env, "notify": notify}))
}
