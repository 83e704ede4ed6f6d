//! Blocks of JSON. One that shows what a command hears or prints has the keys of the real one; a script is run.

use serde_json::Value;

use super::markdown::Block;
use super::scenes::Scene;

/// Reads a block as what it is.
///
/// # Panics
///
/// When it is no JSON, or not what it claims to be.
pub fn check(block: &Block, scene: &Scene) {
    let value: Value = serde_json::from_str(&block.text).unwrap_or_else(|error| panic!("{}: {error}", block.place));
    if value.get("replies").is_some() {
        scene.world.write("agent.json", &block.text);
        scene.world.write("agent.toml", SCRIPTED);
        scene.world.write("documents/a.md", "A document.\n");
        scene.sh("lodestep run agent.toml").exits_at(&block.place, 0);
    }
    let heard = scene.world.read(".lodestep/heard");
    if let Some(heard) = heard.lines().next() {
        let heard: Value = serde_json::from_str(heard).expect("JSON");
        assert_eq!(shape(&value), shape(&heard), "{}: its keys are others", block.place);
    }
}

const SCRIPTED: &str = r#"
format = 1
[agent]
name = "scripted"
objective = "Follow the script."
instructions = "Follow it."
[model]
provider = "script"
name = "agent.json"
[tools.documents]
builtin = "documents"
root = "documents"
"#;

/// The keys of all objects in a value, in order, with the lists' first elements for all.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}{}", shape(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        Value::Array(list) => format!("[{}]", list.first().map(shape).unwrap_or_default()),
        _ => String::new(),
    }
}
