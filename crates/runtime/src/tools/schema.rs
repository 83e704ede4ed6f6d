//! Arguments against a tool's JSON Schema. Schemas are compiled once; nothing is fetched.

use std::collections::BTreeMap;

use jsonschema::Validator;
use lodestep_core::Definition;
use lodestep_core::definition::ToolDefinition;
use serde_json::Value;

/// The compiled schemas of a definition, by tool.
#[derive(Default)]
pub struct Schemas(BTreeMap<String, Validator>);

impl Schemas {
    /// Compiles the schemas of a definition. One that does not compile accepts nothing.
    pub fn of(definition: &Definition) -> Self {
        let compiled = definition.tools.iter().filter_map(|tool| Some((tool.name.clone(), compile(&tool.input).ok()?)));
        Self(compiled.collect())
    }

    /// Checks arguments; names the place and the fault.
    ///
    /// # Errors
    ///
    /// What does not fit, at most three faults.
    pub fn check(&self, tool: &ToolDefinition, arguments: &Value) -> Result<(), String> {
        let Some(validator) = self.0.get(&tool.name) else {
            return Err(format!("the schema of `{}` can't be read", tool.name));
        };
        let faults: Vec<String> = validator.iter_errors(arguments).take(3).map(|error| shown(&error)).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }
}

fn shown(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let text: String = error.to_string().chars().take(300).collect();
    if place.is_empty() { text } else { format!("{place}: {text}") }
}

/// Compiles one schema.
///
/// # Errors
///
/// Why it is no schema.
pub fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}
