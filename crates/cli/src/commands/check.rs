//! `run --check`: what a file and this place say of an agent, without starting anything.

use lodestep::agent::{AgentFile, Wiring};
use lodestep::secrets::{self, Environment, Unset};
use serde_json::json;

use crate::app::App;
use crate::args::RunArgs;
use crate::programs::{self, Missing};
use crate::wiring::given;

/// Says that a file is in order, and what of what it needs is not here. Another machine may have it: that is no fault.
pub fn check(app: &App, args: &RunArgs, file: &AgentFile, wiring: &Wiring, environment: &Environment) {
    let definition = &file.definition;
    let agent = &definition.name;
    let tools: Vec<&str> = definition.tools.iter().map(|tool| tool.name.as_str()).collect();
    let (given, wired) = given(app, wiring, agent);
    let text = format!("{}: ok. Agent {agent}, tools {}\n{given}", args.file.display(), tools.join(", "));
    let warnings: Vec<String> = programs::missing(definition).iter().map(Missing::in_words).collect();
    for warning in &warnings {
        lodestep::note!("warning: {warning}");
    }
    if !warnings.is_empty() {
        lodestep::note!("  {}; where the agent runs on another machine, it has to be there", programs::MEND);
    }
    let unset = secrets::unset(definition, environment);
    tell(&unset);
    let checked = json!({"ok": true, "agent": agent, "definition": definition.digest(), "tools": tools, "wiring": wired,
        "warnings": warnings, "unset": unset});
    app.say(&text, &checked);
}

fn tell(unset: &[Unset]) {
    for Unset { variable, by } in unset {
        lodestep::note!("note: the environment variable {variable} is not set here; {by} needs it");
    }
    if !unset.is_empty() {
        lodestep::note!(
            "  `lodestep run` starts nothing without them; a worker on another machine has to have them there"
        );
    }
}
