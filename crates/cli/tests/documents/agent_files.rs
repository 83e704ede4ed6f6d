//! Blocks of TOML: a whole agent file, tables of one, or the wiring beside a store. Each is read by `--check`, or by the
//! first command that needs it, with the files and variables that it names.

use toml::{Table, Value};

use super::markdown::Block;
use super::scenes::Scene;

/// What a table of an agent file is put into.
const LEAST: &str =
    "format = 1\n[agent]\nname = \"a\"\nobjective = \"o\"\ninstructions = \"i\"\n[model]\nprovider = \"offline\"\n";

/// The tables of the wiring beside a store. An agent file has some of them, and others too.
const WIRING: [&str; 3] = ["notify", "env", "agents"];

/// Reads a block as what it is.
///
/// # Panics
///
/// When it is refused.
pub fn check(block: &Block, scene: &Scene) {
    let table: Table = block.text.parse().unwrap_or_else(|error| panic!("{}: {error}", block.place));
    if !table.is_empty() && table.keys().all(|key| WIRING.contains(&key.as_str())) {
        return check_wiring(block, scene);
    }
    let text = if table.contains_key("agent") {
        block.text.clone()
    } else {
        format!("{LEAST}{}{}", block.text, missing_tools(&table))
    };
    make_what_is_named(&Value::Table(table.clone()), scene);
    scene.world.write("read/agent.toml", &text);
    let inputs = inputs(&table);
    scene.world.write("read/given/customer.md", "A customer.\n");
    let line = format!("{} lodestep run read/agent.toml --check{inputs}", secrets(&block.text));
    scene.sh(&line).exits_at(&block.place, 0);
}

/// The wiring is read by a run. It stays for the block that shows what its command hears.
fn check_wiring(block: &Block, scene: &Scene) {
    scene.world.write(".lodestep/lodestep.toml", &block.text);
    scene.world.write(".lodestep/tell-the-team.sh", "cat >> heard\n");
    scene.sh("lodestep run agent.toml").exits_at(&block.place, 3);
}

/// A value for each variable that a text refers to.
fn secrets(text: &str) -> String {
    let names = text.split("${env:").skip(1).filter_map(|rest| rest.split([':', '}']).next());
    names.map(|name| format!("{name}=not-a-secret ")).collect()
}

/// Each input of a file, given.
fn inputs(table: &Table) -> String {
    let inputs = table.get("inputs").and_then(Value::as_table);
    let needed = inputs.into_iter().flatten().filter(|(_, input)| input.get("default").is_none());
    needed.map(|(name, _)| format!(" -i {name}=read/given")).collect()
}

/// The files that the reader of an agent file wants to see: instructions and databases.
fn make_what_is_named(value: &Value, scene: &Scene) {
    let Some(table) = value.as_table() else { return };
    for (key, value) in table {
        match (key.as_str(), value.as_str()) {
            ("instructions_file", Some(name)) => _ = scene.world.write(&format!("read/{name}"), "Work.\n"),
            ("database", Some(name)) => _ = scene.world.write(&format!("read/{name}"), ""),
            _ => make_what_is_named(value, scene),
        }
    }
}

/// A tool for each that a rule names and the block does not have.
fn missing_tools(table: &Table) -> String {
    let rules = table.get("policy").and_then(Value::as_array);
    let named = rules.into_iter().flatten().filter_map(|rule| rule.get("tools")?.as_array()).flatten();
    let named = named.filter_map(Value::as_str).filter(|name| table.get("tools").and_then(|t| t.get(name)).is_none());
    let tool = |name: &str| {
        let name = name.replace('*', "x");
        format!("[tools.{name}]\ndescription = \"d\"\ncommand = [\"true\"]\ninput = {{ type = \"object\" }}\n")
    };
    named.map(tool).collect()
}
