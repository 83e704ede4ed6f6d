//! Arguments and results against a tool's JSON Schemas. Schemas are compiled once; nothing is fetched.

use std::collections::BTreeMap;

use jsonschema::Validator;
use lodestep_core::Definition;
use lodestep_core::definition::ToolDefinition;
use serde_json::Value;

/// The compiled schemas of a definition, by tool.
#[derive(Default)]
pub struct Schemas {
    inputs: BTreeMap<String, Validator>,
    outputs: BTreeMap<String, Validator>,
}

impl Schemas {
    /// Compiles the schemas of a definition. One that does not compile accepts nothing.
    pub fn of(definition: &Definition) -> Self {
        let inputs = definition.tools.iter().filter_map(|tool| Some((tool.name.clone(), compile(&tool.input).ok()?)));
        let outputs = definition.tools.iter().filter_map(|tool| {
            let schema = tool.output.as_ref()?;
            Some((tool.name.clone(), compile(schema).ok()?))
        });
        Self { inputs: inputs.collect(), outputs: outputs.collect() }
    }

    /// Checks arguments; names the place and the fault.
    ///
    /// # Errors
    ///
    /// What does not fit, at most three faults.
    pub fn check(&self, tool: &ToolDefinition, arguments: &Value) -> Result<(), String> {
        let Some(validator) = self.inputs.get(&tool.name) else {
            return Err(format!("the schema of `{}` can't be read", tool.name));
        };
        fits(validator, arguments)
    }

    /// Checks a result, where the tool has a schema of it: it has to be JSON then.
    ///
    /// # Errors
    ///
    /// What does not fit, at most three faults.
    pub fn check_output(&self, tool: &ToolDefinition, result: &[u8]) -> Result<(), String> {
        if tool.output.is_none() {
            return Ok(());
        }
        let Some(validator) = self.outputs.get(&tool.name) else {
            return Err(format!("the schema of the result of `{}` can't be read", tool.name));
        };
        let value = serde_json::from_slice(result).map_err(|error| format!("it is not JSON: {error}"))?;
        fits(validator, &value)
    }
}

/// Stored arguments as their schema knows them: an artifact by its name.
pub fn unpinned(arguments: &Value) -> Value {
    let Some(object) = arguments.as_object() else { return arguments.clone() };
    let name = |value: &Value| value.get("artifact").filter(|_| value.get("digest").is_some()).cloned();
    object.iter().map(|(key, value)| (key.clone(), name(value).unwrap_or_else(|| value.clone()))).collect()
}

fn fits(validator: &Validator, value: &Value) -> Result<(), String> {
    let faults: Vec<String> = validator.iter_errors(value).take(3).map(|error| shown(&error)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
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
