//! `[tools.NAME]`: the built-in ones, programs, requests and statements, in the order of the file.

use std::path::Path;

use lodestep_core::definition::{ToolDefinition, ToolKind};
use lodestep_core::effect::Class;
use lodestep_core::reference::{Piece, pieces};
use serde_json::{Value, json};

use super::duration::{DAY_MS, SECOND_MS};
use super::inputs::{InputKind, InputSpec, absolute};
use super::names::{is_tool_name, shown};
use super::reader::Item;
use super::references::Allowed;
use super::state_tools::ARTIFACTS;
use super::table::Table;
use super::{command, sql};

/// How long an attempt may take unless the file says.
pub(super) const TIMEOUT_MS: u64 = 60 * SECOND_MS;
/// How often the runtime tries unless the file says.
pub(super) const ATTEMPTS: u32 = 4;
/// How long a receiver keeps a key unless the file says.
pub(super) const KEY_VALID_FOR_MS: u64 = DAY_MS;

/// What the reading of a tool needs of the rest of the file.
pub(super) struct Ground<'a> {
    /// The agent file's folder: what relative paths start from.
    pub folder: &'a Path,
    /// The inputs that may be referred to.
    pub inputs: &'a [InputSpec],
}

/// Reads `[tools]`; the variables that the tools need are added to `secrets`.
pub(super) fn tools(
    file: &Table<'_>,
    ground: &Ground<'_>,
    always: &[ToolDefinition],
    secrets: &mut Vec<String>,
) -> Vec<ToolDefinition> {
    let item = file.get("tools");
    let table = item.and_then(|item| item.table("tools", "each tool as a table of its own: [tools.NAME]"));
    let mut tools: Vec<ToolDefinition> = Vec::new();
    for (name, item) in table.iter().flat_map(Table::entries) {
        if !is_tool_name(name) {
            let what = format!("`{}` is no name for a tool", shown(name));
            item.fault(what, "use a letter, then letters, digits, _ and -, 64 at most");
        }
        if *name == ARTIFACTS {
            item.fault(format!("`{ARTIFACTS}` is the group of the run's own artifact tools"), "give it another name");
        }
        for tool in tool(name, item, ground, secrets) {
            if let Some(fault) = collision(&tool, &tools, always) {
                item.fault(fault, "give one of them another name");
            } else {
                tools.push(tool);
            }
        }
    }
    tools
}

fn collision(tool: &ToolDefinition, earlier: &[ToolDefinition], always: &[ToolDefinition]) -> Option<String> {
    let name = &tool.name;
    if always.iter().any(|other| other.name == *name) {
        return Some(format!("every run has a tool `{name}` of its own"));
    }
    let other = earlier.iter().find(|other| other.name == *name)?;
    Some(format!("[tools.{}] and [tools.{}] both make a tool `{name}`", other.group, tool.group))
}

fn tool(name: &str, item: &Item<'_>, ground: &Ground<'_>, secrets: &mut Vec<String>) -> Vec<ToolDefinition> {
    let Some(table) = item.table("tool", "a table: [tools.NAME] with `builtin`, `command`, `http` or `sql`") else {
        return Vec::new();
    };
    let ways: Vec<&str> = ["builtin", "command", "http", "sql"].into_iter().filter(|way| table.has(way)).collect();
    let tools = match ways.as_slice() {
        ["builtin"] => table.get("builtin").map(|item| builtin_tools(name, &item, &table, ground)).unwrap_or_default(),
        ["sql"] => table.get("sql").map(|item| sql::tool(name, &item, &table, ground)).into_iter().collect(),
        [_] => vec![command::tool(name, &table, ground, secrets)],
        [one, other, ..] => {
            let what = format!("[{}] has both `{one}` and `{other}`", table.name);
            let place = table.entries().iter().find(|(key, _)| key == one).map_or(item, |(_, item)| item);
            place.fault(what, "keep one of them");
            return Vec::new();
        }
        [] if command::is_misspelt(&table) => vec![command::tool(name, &table, ground, secrets)],
        [] => {
            let mend = "add `builtin = \"documents\"`, `builtin = \"file\"`, `command = [\"sh\", \"tool.sh\"]`, \
                        `http = { method = \"POST\", url = \"https://…\" }` or \
                        `sql = { database = \"shop.db\", statement = \"…\" }`";
            item.fault(format!("[{}] doesn't say how it is performed", table.name), mend);
            command::read_all(&table);
            Vec::new()
        }
    };
    table.close();
    tools
}

/// A tool that is part of the runtime, with what a file leaves out for one of its own.
pub(super) fn built_in(
    name: &str,
    group: &str,
    description: &str,
    input: Value,
    class: Class,
    kind: ToolKind,
) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        group: group.to_owned(),
        description: description.to_owned(),
        input,
        class,
        kind,
        timeout_ms: TIMEOUT_MS,
        max_attempts: ATTEMPTS,
        key_valid_for_ms: KEY_VALID_FOR_MS,
        settles_after_ms: TIMEOUT_MS,
        same_by: None,
        dedupe: None,
        output: None,
        deadline_ms: None,
    }
}

fn builtin_tools(name: &str, item: &Item<'_>, table: &Table<'_>, ground: &Ground<'_>) -> Vec<ToolDefinition> {
    let which = item.one_of(&[("documents", "documents"), ("file", "file")]);
    let root = table.need("root", "root = \"docs\"").and_then(|item| root(&item, ground, which == Some("documents")));
    let root = root.unwrap_or_default();
    let made = |function: &str, description: &str, class: Class, input: Value| {
        let kind = ToolKind::Builtin {
            builtin: which.unwrap_or_default().to_owned(),
            function: function.to_owned(),
            root: Some(root.clone()),
        };
        built_in(&format!("{name}_{function}"), name, description, input, class, kind)
    };
    let tools = match which {
        Some("documents") => documents(made),
        Some("file") => vec![made(
            "write",
            "Writes a file, whole: one that is there under this name is replaced.",
            Class::Idempotent,
            json!({"type": "object", "additionalProperties": false, "required": ["name", "text"], "properties": {
                "name": {"type": "string", "minLength": 1, "description": "Its path, relative to the folder, with /."},
                "text": {"type": "string", "description": "All of its text."},
            }}),
        )],
        _ => Vec::new(),
    };
    for tool in tools.iter().filter(|tool| tool.name.len() > 64) {
        item.fault(
            format!("its tool `{}` has a name of over 64 characters", shown(&tool.name)),
            "shorten the table's name",
        );
    }
    tools
}

fn documents(made: impl Fn(&str, &str, Class, Value) -> ToolDefinition) -> Vec<ToolDefinition> {
    let name = json!({"type": "string", "minLength": 1, "description": "The document's name, as the listing has it."});
    let list = json!({"type": "object", "additionalProperties": false, "properties": {
        "after": {"type": "string", "description": "Go on after this name."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "description": "How many names; 100 unless given."},
    }});
    let read = json!({"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
        "name": name,
        "from": {"type": "integer", "minimum": 1, "description": "The first line, from 1; 1 unless given."},
        "lines": {"type": "integer", "minimum": 1, "maximum": 400, "description": "How many lines; 200 unless given."},
    }});
    let search = json!({"type": "object", "additionalProperties": false, "required": ["query"], "properties": {
        "query": {"type": "string", "minLength": 1, "description": "Words to look for."},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines; 10 unless given."},
    }});
    vec![
        made("list", "Lists the documents by name, with their lines and bytes.", Class::Read, list),
        made("read", "Reads numbered lines of a document.", Class::Read, read),
        made("search", "Finds the lines of all documents that fit a query, best first.", Class::Read, search),
    ]
}

/// The root as an absolute path; a path input may begin it, any input may be a part of it.
pub(super) fn root(item: &Item<'_>, ground: &Ground<'_>, has_to_exist: bool) -> Option<String> {
    let text = item.said(&Allowed::Inputs(ground.inputs))?;
    let pieces = pieces(&text).ok()?;
    let refers = pieces.iter().any(|piece| matches!(piece, Piece::Input(_)));
    if let Some(Piece::Input(name)) = pieces.first() {
        let is_path = ground.inputs.iter().any(|input| input.name == *name && input.kind == InputKind::Path);
        if !is_path {
            let what = format!("`{}` begins with the input `{name}`, which is no path", item.name);
            item.fault(what, format!("declare it: {name} = {{ type = \"path\" }}"));
        }
        return Some(text);
    }
    // The folder's own name may hold what looks like a reference.
    let folder = ground.folder.to_string_lossy().replace("${", "$${");
    if refers {
        return Some(if Path::new(&text).is_absolute() { text } else { format!("{folder}/{text}") });
    }
    let literal: String = pieces.iter().map(|piece| if let Piece::Text(text) = piece { *text } else { "" }).collect();
    let path = absolute(&ground.folder.join(&literal));
    if has_to_exist && !path.is_dir() {
        let what = format!("`{}`: there is no folder `{}`", item.name, shown(&literal));
        item.fault(what, format!("it is looked for at {}", path.display()));
    }
    Some(path.to_string_lossy().replace("${", "$${"))
}
