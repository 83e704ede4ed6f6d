//! What a run is given: `[inputs]` of the file, and values as they are typed on a command line.

use std::path::{Component, Path, PathBuf};

use lodestep_core::Error;
use lodestep_core::json::parse_strict;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::names::{instead, is_variable, shown};
use super::reader::Item;
use super::references::Allowed;
use super::table::Table;

/// One input that the agent takes.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: InputKind,
    /// What it is when nothing is given; a path as it is written in the file.
    pub default: Option<Value>,
    /// What it means, for people.
    pub description: Option<String>,
    /// A text has at least so many characters, blanks at its ends not counted.
    pub min_length: u64,
}

/// The type of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Any text.
    String,
    /// A file or folder, made absolute.
    Path,
    /// A whole number up to 2^53 either way.
    Integer,
    /// A number that a double holds exactly as written.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// The longest that a file can demand of a text.
const LONGEST_LEAST: u64 = 1_000;

const KINDS: [(&str, InputKind); 5] = [
    ("string", InputKind::String),
    ("path", InputKind::Path),
    ("integer", InputKind::Integer),
    ("number", InputKind::Number),
    ("boolean", InputKind::Boolean),
];

/// Reads `[inputs]`.
pub(super) fn specs(file: &Table<'_>) -> Vec<InputSpec> {
    let item = file.get("inputs");
    let table =
        item.and_then(|item| item.table("inputs", "[inputs] with a line for each: topic = { type = \"string\" }"));
    table.iter().flat_map(Table::entries).map(|(name, item)| spec(name, item)).collect()
}

fn spec(name: &str, item: &Item<'_>) -> InputSpec {
    if !is_variable(name) {
        let what = format!("`{}` is no name for an input", shown(name));
        item.fault(what, "use letters, digits and _, no digit first, 64 at most");
    }
    // An input that is at fault is still known, so that references to it are not faults as well.
    let mut spec =
        InputSpec { name: name.to_owned(), kind: InputKind::String, default: None, description: None, min_length: 0 };
    let Some(table) = item.table("input", "a table, such as { type = \"string\" }") else { return spec };
    let kind = table.need("type", "type = \"string\"").and_then(|item| item.one_of(&KINDS));
    spec.kind = kind.unwrap_or(InputKind::String);
    spec.description = table.get("description").and_then(|item| item.text());
    if let Some(item) = table.get("min_length") {
        if kind.is_some_and(|kind| kind != InputKind::String) {
            item.fault(format!("`{}`: only a text has a length", item.name), "take it out");
        }
        spec.min_length = item.whole(1..=LONGEST_LEAST).unwrap_or(0);
    }
    if let (Some(kind), Some(item)) = (kind, table.get("default")) {
        spec.default = default(kind, &item);
        if let Some(why) = spec.default.as_ref().and_then(|value| too_short(&spec, value)) {
            item.fault(format!("`{}`: {why}", item.name), "make it longer, or take `min_length` out");
        }
    }
    table.close();
    spec
}

/// What is wrong with a text that is shorter than it may be.
fn too_short(spec: &InputSpec, value: &Value) -> Option<String> {
    let text = value.as_str().filter(|_| spec.kind == InputKind::String)?;
    let least = spec.min_length;
    let noun = if least == 1 { "character" } else { "characters" };
    let is_short = (text.trim().chars().count() as u64) < least;
    is_short.then(|| format!("\"{}\" has fewer than {least} {noun}", shown(text)))
}

fn default(kind: InputKind, item: &Item<'_>) -> Option<Value> {
    let written = match (kind, item.value()) {
        (InputKind::String | InputKind::Path, DeValue::String(_)) => item.text_with(&Allowed::Nothing)?,
        (InputKind::Integer | InputKind::Number, DeValue::Integer(integer)) if integer.radix() == 10 => {
            integer.to_string()
        }
        (InputKind::Number, DeValue::Float(float)) => float.to_string(),
        (InputKind::Boolean, DeValue::Boolean(boolean)) => boolean.to_string(),
        _ => {
            item.wrong(expected(kind));
            return None;
        }
    };
    match read(kind, &written) {
        Ok(value) => Some(value),
        Err(why) => {
            item.fault(format!("`{}`: {why}", item.name), format!("write {}", expected(kind)));
            None
        }
    }
}

fn expected(kind: InputKind) -> &'static str {
    match kind {
        InputKind::String => "a text in quotes",
        InputKind::Path => "a path in quotes",
        InputKind::Integer => "a whole number, such as 3",
        InputKind::Number => "a number, such as 0.5",
        InputKind::Boolean => "true or false",
    }
}

/// Reads a typed text; a path stays as it is.
pub(super) fn read(kind: InputKind, text: &str) -> Result<Value, String> {
    let refused = |what: &str| Err(format!("\"{}\" is {what}", shown(text)));
    match kind {
        InputKind::String => Ok(Value::from(text)),
        InputKind::Path if text.is_empty() || text.contains('\0') => refused("no path"),
        InputKind::Path => Ok(Value::from(text)),
        InputKind::Boolean => text.parse::<bool>().map(Value::from).or_else(|_| refused("not true or false")),
        InputKind::Integer => match text.parse::<i64>() {
            Ok(number) if number.unsigned_abs() <= 1 << 53 => Ok(Value::from(number)),
            Ok(_) => refused("beyond 2^53 and can't be held exactly"),
            Err(_) => refused("no whole number"),
        },
        InputKind::Number => match parse_strict(text.strip_prefix('+').unwrap_or(text)) {
            Ok(Value::Number(number)) => Ok(Value::Number(number)),
            Err(why) if why.contains("exactly") => Err(why),
            _ => refused("no number"),
        },
    }
}

/// The inputs of a run: what was given, over the defaults.
pub(super) fn values(
    specs: &[InputSpec],
    given: &[(String, String)],
    cwd: &Path,
    folder: &Path,
) -> Result<Value, Error> {
    known_once(specs, given)?;
    let mut values = Map::new();
    for spec in specs {
        let text = given.iter().find(|(name, _)| *name == spec.name).map(|(_, text)| text.as_str());
        let value = match (text, &spec.default) {
            (Some(text), _) => {
                let value = read(spec.kind, text).map_err(|why| invalid(spec, &why))?;
                if let Some(why) = too_short(spec, &value) {
                    let what = format!("the input `{}`: {why}", spec.name);
                    return Err(Error::new("input.invalid", what, "give a longer text"));
                }
                at_home(spec, value, cwd)?
            }
            (None, Some(default)) => at_home(spec, default.clone(), folder)?,
            (None, None) => continue,
        };
        values.insert(spec.name.clone(), value);
    }
    let missing: Vec<&str> =
        specs.iter().map(|spec| spec.name.as_str()).filter(|name| !values.contains_key(*name)).collect();
    if missing.is_empty() {
        return Ok(Value::Object(values));
    }
    let noun = if missing.len() == 1 { "input is" } else { "inputs are" };
    let flags: Vec<String> = missing.iter().map(|name| format!("-i {name}=…")).collect();
    Err(Error::new(
        "input.missing",
        format!("needed {noun} missing: {}", missing.join(", ")),
        format!("add {}", flags.join(" ")),
    ))
}

/// Are the inputs of a run, which don't change, what these specs ask for?
pub(super) fn check(specs: &[InputSpec], given: &Value) -> Result<(), Error> {
    let Some(given) = given.as_object() else { return Ok(()) };
    let missing: Vec<&str> =
        specs.iter().map(|spec| spec.name.as_str()).filter(|name| !given.contains_key(*name)).collect();
    if !missing.is_empty() {
        let what = format!("the file has inputs that the run was not given: {}", missing.join(", "));
        let next = "a run's inputs don't change: leave them out of the file, or start another run with them";
        return Err(Error::new("upgrade.input_missing", what, next));
    }
    let unfit = specs.iter().find(|spec| given.get(&spec.name).is_some_and(|value| !is_of(spec.kind, value)));
    let Some(spec) = unfit else { return Ok(()) };
    let what = format!(
        "the input `{}` is {} for the run, and the file asks for {}",
        spec.name,
        given[&spec.name],
        expected(spec.kind)
    );
    Err(Error::new("upgrade.input_type", what, "a run's inputs don't change: give the input its old type in the file"))
}

fn is_of(kind: InputKind, value: &Value) -> bool {
    match kind {
        InputKind::String | InputKind::Path => value.is_string(),
        InputKind::Integer => value.is_i64() || value.is_u64(),
        InputKind::Number => value.is_number(),
        InputKind::Boolean => value.is_boolean(),
    }
}

fn known_once(specs: &[InputSpec], given: &[(String, String)]) -> Result<(), Error> {
    for (at, (name, _)) in given.iter().enumerate() {
        if !specs.iter().any(|spec| spec.name == *name) {
            let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            let what = format!("the agent has no input `{}`", shown(name));
            return Err(Error::new("input.unknown", what, instead(name, &known, "inputs")));
        }
        if given[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(Error::new("input.invalid", format!("the input `{name}` is given twice"), "give it once"));
        }
    }
    Ok(())
}

fn invalid(spec: &InputSpec, why: &str) -> Error {
    Error::new("input.invalid", format!("the input `{}`: {why}", spec.name), format!("give {}", expected(spec.kind)))
}

/// A path from where it was said; any other value as it is.
fn at_home(spec: &InputSpec, value: Value, home: &Path) -> Result<Value, Error> {
    let (InputKind::Path, Value::String(path)) = (spec.kind, &value) else { return Ok(value) };
    let path = absolute(&home.join(path));
    match path.to_str() {
        Some(path) => Ok(Value::from(path)),
        None => Err(invalid(spec, &format!("the path {} is not UTF-8", path.display()))),
    }
}

/// The true path of what exists; otherwise the path without `.` and `..`.
pub(super) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                // Above the root is the root.
                Component::ParentDir => {
                    plain.pop();
                }
                part => plain.push(part),
            }
        }
        plain
    })
}
