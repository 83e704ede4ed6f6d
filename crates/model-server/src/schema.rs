//! JSON Schemas of tools, and how JSON's types are called.

use serde_json::Value;

/// True for a schema that says `"type": "object"`, whose properties, if it has any, are an object.
pub(crate) fn is_of_object(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("properties").is_none_or(Value::is_object)
}

/// What a value is called in a refusal, with its article.
pub(crate) fn called(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
