//! `schema`: the JSON Schemas of the files that people write, for editors.

use lodestep::agent::{SCHEMA, Wiring};
use lodestep::core::Result;
use serde_json::json;

use crate::app::App;

/// The files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Schema {
    /// The agent file.
    Agent,
    /// lodestep.toml beside a store.
    Wiring,
}

const ALL: [(Schema, &str, &str); 2] = [
    (Schema::Agent, "agent", "the agent file, such as agent.toml"),
    (Schema::Wiring, "wiring", "lodestep.toml beside a store"),
];

impl Schema {
    /// The JSON Schema, draft 2020-12.
    pub fn text(self) -> &'static str {
        match self {
            Self::Agent => SCHEMA,
            Self::Wiring => Wiring::SCHEMA,
        }
    }
}

/// Prints one, or lists all.
pub fn schema(app: &App, schema: Option<Schema>) -> Result<u8> {
    if let Some(schema) = schema {
        app.print(schema.text());
        return Ok(0);
    }
    let lines = ALL.map(|(_, name, of)| format!("{name:<8} {of}\n"));
    let all = ALL.map(|(_, name, of)| json!({"name": name, "of": of}));
    app.say(&lines.concat(), &json!({"schemas": all}));
    Ok(0)
}
