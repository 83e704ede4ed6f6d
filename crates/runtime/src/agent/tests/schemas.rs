//! What the schema of a program's arguments becomes.

use serde_json::{Value, json};

use super::{LEAST, sound};

fn input_of(schema: &str) -> Value {
    let file = sound(&format!(
        r#"{LEAST}[tools.x]
description = "d"
command = ["sh"]
input = {schema}"#
    ));
    file.definition.tool("x").unwrap().input.clone()
}

#[test]
fn what_is_left_open_is_closed() {
    for (schema, expected) in [
        (r#"{ type = "object" }"#, json!({"type": "object", "properties": {}, "additionalProperties": false})),
        (
            r#"{ type = "object", additionalProperties = true, required = ["any"] }"#,
            json!({"type": "object", "properties": {}, "additionalProperties": true, "required": ["any"]}),
        ),
        (
            r#"{ type = "object", allOf = [{ properties = { a = {} } }] }"#,
            json!({"type": "object", "properties": {}, "unevaluatedProperties": false, "allOf": [{"properties": {"a": {}}}]}),
        ),
    ] {
        assert_eq!(input_of(schema), expected, "{schema}");
    }
}

#[test]
fn an_artifact_is_a_string_with_a_format() {
    let schema = r#"{ type = "object", properties = { body = { type = "artifact" }, b = { type = "artifact", description = "The body." } } }"#;
    let properties = &input_of(schema)["properties"];
    let description = "The name of an artifact; its text is sent.";
    assert_eq!(properties["body"], json!({"type": "string", "format": "artifact-name", "description": description}));
    assert_eq!(properties["b"], json!({"type": "string", "format": "artifact-name", "description": "The body."}));
}

#[test]
fn numbers_booleans_and_lists_are_kept() {
    let schema = r#"{ type = "object", properties = { n = { type = "number", maximum = 0.5, minimum = -3, enum = [1, 2.5, true, 0x10] } } }"#;
    let expected = json!({"type": "number", "maximum": 0.5, "minimum": -3, "enum": [1, 2.5, true, 16]});
    assert_eq!(input_of(schema)["properties"]["n"], expected);
}

#[test]
fn the_order_of_keys_does_not_change_the_digest() {
    let digest = |input: &str| {
        let file = format!(
            r#"{LEAST}[tools.x]
description = "d"
command = ["sh"]
model = 1
input = {input}"#
        );
        let folder = super::Folder::new();
        let mut file = folder.load(file.replace("model = 1\n", "")).unwrap();
        // The folder is part of what is pinned, and differs here.
        for tool in &mut file.definition.tools {
            if let lodestep_core::definition::ToolKind::Command { folder, .. } = &mut tool.kind {
                folder.clear();
            }
        }
        file.definition.digest()
    };
    let one = digest(
        r#"{ type = "object", properties = { a = { type = "string" }, b = { type = "integer", minimum = 1 } } }"#,
    );
    let two = digest(
        r#"{ properties = { b = { minimum = 1, type = "integer" }, a = { type = "string" } }, type = "object" }"#,
    );
    let other = digest(
        r#"{ type = "object", properties = { a = { type = "string" }, b = { type = "integer", minimum = 2 } } }"#,
    );
    assert_eq!(one, two);
    assert_ne!(one, other);
}
