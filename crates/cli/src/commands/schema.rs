//! `schema`: the JSON Schemas of the files that people write, for editors, and of what commands print, for programs.

use lodestep::agent::{SCHEMA, Wiring};
use lodestep::core::Result;
use serde_json::{Value, json};

use crate::app::App;
use crate::outputs;

/// What has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Schema {
    /// The agent file.
    Agent,
    /// lodestep.toml beside a store.
    Wiring,
    /// What `ls --json` prints.
    Ls,
    /// What `todo --json` prints.
    Todo,
    /// What `show --json` prints.
    Show,
    /// What `effects --json` prints.
    Effects,
    /// What `run --json` prints at its end.
    Run,
    /// A line of `watch --json` or `worker --json`.
    Lines,
}

const ALL: [(Schema, &str, &str); 8] = [
    (Schema::Agent, "agent", "the agent file, such as agent.toml"),
    (Schema::Wiring, "wiring", "lodestep.toml beside a store"),
    (Schema::Ls, "ls", "what ls --json prints"),
    (Schema::Todo, "todo", "what todo --json prints"),
    (Schema::Show, "show", "what show --json prints"),
    (Schema::Effects, "effects", "what effects --json prints"),
    (Schema::Run, "run", "what run --json prints, and resume, cancel and pause"),
    (Schema::Lines, "lines", "a line of watch --json, or of worker --json"),
];

impl Schema {
    /// The JSON Schema, draft 2020-12.
    pub fn text(self) -> String {
        let printed = |schema: Value| format!("{schema:#}\n");
        match self {
            Self::Agent => SCHEMA.to_owned(),
            Self::Wiring => Wiring::SCHEMA.to_owned(),
            Self::Ls => printed(outputs::ls()),
            Self::Todo => printed(outputs::todo()),
            Self::Show => printed(outputs::show()),
            Self::Effects => printed(outputs::effects()),
            Self::Run => printed(outputs::run()),
            Self::Lines => printed(outputs::lines()),
        }
    }
}

/// Prints one, or lists all.
pub fn schema(app: &App, schema: Option<Schema>) -> Result<u8> {
    if let Some(schema) = schema {
        app.print(&schema.text());
        return Ok(0);
    }
    let lines = ALL.map(|(_, name, of)| format!("{name:<8} {of}\n"));
    let all = ALL.map(|(_, name, of)| json!({"name": name, "of": of}));
    app.say(&lines.concat(), &json!({"schemas": all}));
    Ok(0)
}
