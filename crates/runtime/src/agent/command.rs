//! A tool of the file's own, a program or an HTTP request: what it does to the world, and how long what holds.
//!
//! How a program is started is read here, how a request is made in `http`.

use std::collections::BTreeMap;

use lodestep_core::definition::{ToolDefinition, ToolKind};
use lodestep_core::effect::Class;
use serde_json::Value;

use super::duration::{DAY_MS, LONGEST_MS};
use super::names::{instead, is_variable, shown};
use super::reader::Item;
use super::references::{Allowed, arguments_of, note};
use super::table::Table;
use super::tools::{ATTEMPTS, Ground, KEY_VALID_FOR_MS, TIMEOUT_MS};
use super::{http, schema};

/// What the runtime itself sets in a tool's environment begins with this.
const OWN_VARIABLES: &str = "LODESTEP_";

const CLASSES: [(&str, Class); 5] = [
    ("read", Class::Read),
    ("idempotent", Class::Idempotent),
    ("keyed", Class::Keyed),
    ("checkable", Class::Checkable),
    ("unsafe", Class::Unsafe),
];

/// What people write for a class, and what is meant. None is near enough to guess: a class too weak does harm.
const FOREIGN_CLASSES: [(&str, &str); 10] = [
    ("safe", "of a tool that changes nothing it is `read`"),
    ("readonly", "of a tool that changes nothing it is `read`"),
    ("pure", "of a tool that changes nothing it is `read`"),
    ("query", "of a tool that changes nothing it is `read`"),
    ("write", "of a write that may be repeated it is `idempotent`, of any other `unsafe`"),
    ("repeatable", "of a tool whose repeat leaves the same it is `idempotent`"),
    ("retryable", "of a tool whose repeat leaves the same it is `idempotent`"),
    ("transactional", "of a receiver that applies a key once it is `keyed`"),
    ("destructive", "it is `unsafe`"),
    ("dangerous", "it is `unsafe`"),
];

/// Reads a class by its word.
pub(super) fn class(item: &Item<'_>) -> Option<Class> {
    let folded = item.value().as_str().map(|word| word.to_lowercase().replace(['-', '_', ' '], ""));
    let foreign = FOREIGN_CLASSES.iter().find(|(word, _)| folded.as_deref() == Some(word));
    let Some((_, meant)) = foreign else { return item.one_of(&CLASSES) };
    let what = format!("`{}` can't be \"{}\"", item.name, shown(item.value().as_str().unwrap_or_default()));
    item.fault(what, format!("write one of {}; {meant}", CLASSES.map(|(word, _)| word).join(", ")));
    None
}

/// Every key of a tool's table.
const KEYS: [&str; 18] = [
    "command",
    "http",
    "sql",
    "description",
    "input",
    "class",
    "timeout",
    "deadline",
    "attempts",
    "key_valid_for",
    "settles_after",
    "lookup",
    "env",
    "same_by",
    "dedupe",
    "output",
    "root",
    "builtin",
];

/// Asks for every key of a tool, so that a table that doesn't say how it is performed is closed without noise.
pub(super) fn read_all(table: &Table<'_>) {
    for key in KEYS {
        table.get(key);
    }
}

/// Is this a program whose `command` is misspelt? Closing the table names it; the rest is read as any program's.
pub(super) fn is_misspelt(table: &Table<'_>) -> bool {
    table.has_misspelt("command", &KEYS)
}

/// Reads the table of a program or a request.
pub(super) fn tool(name: &str, table: &Table<'_>, ground: &Ground<'_>, secrets: &mut Vec<String>) -> ToolDefinition {
    let description = table.need("description", "description = \"Publish the finished report.\"");
    let description = description.and_then(|item| item.said(&Allowed::Nothing));
    let class = table.get("class").map_or(Some(Class::Unsafe), |item| class(&item));
    let input = table.need("input", "input = { type = \"object\", properties = { … } }");
    let schema = input.and_then(|item| schema::input(&item, class));
    let timeout_ms = time(table, "timeout", DAY_MS).unwrap_or(TIMEOUT_MS);
    let kind = match table.has("http") {
        true => http::kind(table, &http::About { class, schema: schema.as_ref(), ground }, secrets),
        false => program(table, class, ground, secrets),
    };
    ToolDefinition {
        name: name.to_owned(),
        group: name.to_owned(),
        description: description.unwrap_or_default(),
        same_by: same_by(table, class, schema.as_ref()),
        dedupe: dedupe(table, class, schema.as_ref()),
        input: schema.unwrap_or_default(),
        class: class.unwrap_or(Class::Unsafe),
        kind,
        timeout_ms,
        max_attempts: attempts(table),
        key_valid_for_ms: key_valid_for(table, class).unwrap_or(KEY_VALID_FOR_MS),
        settles_after_ms: time(table, "settles_after", LONGEST_MS).unwrap_or(timeout_ms),
        output: table.get("output").and_then(|item| schema::output(&item)),
        deadline_ms: time(table, "deadline", LONGEST_MS),
    }
}

fn program(table: &Table<'_>, class: Option<Class>, ground: &Ground<'_>, secrets: &mut Vec<String>) -> ToolKind {
    let inputs = Allowed::Inputs(ground.inputs);
    ToolKind::Command {
        argv: table.get("command").and_then(|item| item.argv(&inputs)).unwrap_or_default(),
        lookup: lookup(table, class, &inputs),
        env: table.get("env").map(|item| environment(&item, secrets)).unwrap_or_default(),
        folder: ground.folder.to_string_lossy().into_owned(),
    }
}

pub(super) fn time(table: &Table<'_>, key: &'static str, most_ms: u64) -> Option<u64> {
    table.get(key).and_then(|item| item.duration(1..=most_ms))
}

/// How often the runtime tries by itself.
pub(super) fn attempts(table: &Table<'_>) -> u32 {
    let attempts = table.get("attempts").and_then(|item| item.whole(1..=100));
    attempts.and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(ATTEMPTS)
}

/// A lookup belongs to a checkable tool, and to no other.
fn lookup(table: &Table<'_>, class: Option<Class>, inputs: &Allowed<'_>) -> Option<Vec<String>> {
    if class == Some(Class::Checkable) {
        let item = table.need("lookup", "lookup = [\"sh\", \"tool.sh\", \"--lookup\"]");
        return item.and_then(|item| item.argv(inputs));
    }
    let item = table.get("lookup")?;
    if let Some(class) = class {
        item.fault(
            format!("a tool of class {class} is never looked up"),
            "add `class = \"checkable\"`, or take it out",
        );
    }
    item.argv(inputs)
}

fn key_valid_for(table: &Table<'_>, class: Option<Class>) -> Option<u64> {
    let item = table.get("key_valid_for")?;
    if let Some(class) = class.filter(|class| *class != Class::Keyed) {
        item.fault(
            format!("a tool of class {class} is never sent again under its key"),
            "add `class = \"keyed\"`, or take it out",
        );
    }
    item.duration(1..=LONGEST_MS)
}

pub(super) fn same_by(table: &Table<'_>, class: Option<Class>, schema: Option<&Value>) -> Option<Vec<String>> {
    let item = table.get("same_by")?;
    if let Some(class) = class.filter(|class| class.is_repeatable()) {
        item.fault(
            format!("a tool of class {class} may repeat freely, so nothing makes two of its effects the same"),
            "take it out",
        );
    }
    let names = item.list("[\"invoice\"]")?;
    if names.is_empty() {
        item.fault(
            format!("`{}` names nothing: every two effects would be the same", item.name),
            "name a property of `input`, or take it out",
        );
    }
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let known: Option<Vec<&str>> = properties.map(|properties| properties.keys().map(String::as_str).collect());
    let mut same_by = Vec::new();
    for item in names {
        let Some(name) = item.text() else { continue };
        // Without a schema there is another fault already.
        if let Some(known) = known.as_ref().filter(|known| !known.contains(&name.as_str())) {
            item.fault(format!("`input` has no property `{}`", shown(&name)), instead(&name, known, "properties"));
        }
        if same_by.contains(&name) {
            item.fault(format!("`{}` is named twice", shown(&name)), "name it once");
        }
        same_by.push(name);
    }
    Some(same_by)
}

/// What makes an effect happen once for all runs. Each argument that it names is required, so that the key is always whole.
pub(super) fn dedupe(table: &Table<'_>, class: Option<Class>, schema: Option<&Value>) -> Option<String> {
    let item = table.get("dedupe")?;
    if let Some(class) = class.filter(|class| class.is_repeatable()) {
        item.fault(
            format!("a tool of class {class} may repeat freely, so nothing makes it happen once"),
            "take it out",
        );
    }
    let text = item.said(&Allowed::Arguments)?;
    let list = |key: &str| schema.and_then(|schema| schema.get(key));
    let properties = list("properties").and_then(Value::as_object);
    let required = list("required").and_then(Value::as_array);
    for name in arguments_of(&text) {
        let is_required = required.is_some_and(|required| required.iter().any(|it| it.as_str() == Some(&name)));
        let reference = format!("${{arg:{name}}}");
        match properties {
            Some(properties) if !properties.contains_key(&name) => {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let what = format!("`{}`: `input` has no property `{}`", shown(&reference), shown(&name));
                item.faults.add(item.place_of(&reference), what, instead(&name, &known, "properties"));
            }
            Some(_) if !is_required => {
                let what = format!("`{}` is not in `required`: without it there is no key", shown(&reference));
                item.faults.add(item.place_of(&reference), what, format!("add it: required = [\"{name}\"]"));
            }
            _ => {}
        }
    }
    Some(text)
}

pub(super) fn environment(item: &Item<'_>, secrets: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    let table = item.table("env", "a table, such as { TOKEN = \"${env:TOKEN}\" }");
    for (name, item) in table.iter().flat_map(Table::entries) {
        if !is_variable(name) {
            item.fault(
                format!("`{}` is no name for a variable", shown(name)),
                "use letters, digits and _, no digit first",
            );
        }
        if name.starts_with(OWN_VARIABLES) {
            item.fault(
                format!("`{}`: variables that begin with {OWN_VARIABLES} are the runtime's", shown(name)),
                "give it another name",
            );
        }
        let Some(text) = item.text_with(&Allowed::Environment) else { continue };
        note(secrets, &text);
        environment.insert((*name).to_owned(), text);
    }
    environment
}
