//! A tool's JSON Schema and arguments that are checked against it: `{"schema": …, "arguments": …}`.

use lodestep::tools::schema::Schemas;
use lodestep_core::definition::ToolDefinition;
use serde_json::Value;

use super::{answer, answer_of};
use crate::corpus::definition;

/// A schema that a definition holds, and arguments that a model sends.
pub(super) fn schema(input: &[u8]) -> u64 {
    let Ok(Value::Object(mut given)) = serde_json::from_slice(input) else { return answer("no object") };
    let mut definition = definition().clone();
    let Some(first) = definition.tools.first_mut() else { return 0 };
    let schema = given.remove("schema").unwrap_or_default();
    *first = ToolDefinition { input: schema.clone(), output: Some(schema), ..first.clone() };
    definition.tools.truncate(1);
    let (tool, arguments) = (&definition.tools[0], given.remove("arguments").unwrap_or_default());
    let schemas = Schemas::of(&definition);
    let _ = schemas.check_output(tool, arguments.to_string().as_bytes());
    answer_of(&schemas.check(tool, &arguments), |()| "fits".to_owned())
}
