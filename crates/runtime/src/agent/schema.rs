//! The JSON Schemas of a tool's arguments and result, written in TOML.
//!
//! What the file leaves open is closed: an object without a word on further properties gets
//! `additionalProperties: false`, or `unevaluatedProperties: false` where it is put together from others by `allOf`, `$ref`
//! and the like. A model that misspells an argument then learns it at once, instead of a program that never sees it.
//! A schema that wants more says `additionalProperties = true`.
//!
//! A property of type `artifact` takes an artifact's name; the program gets its text.

use lodestep_core::effect::Class;
use lodestep_core::rules::decide::REPEAT_REASON;
use lodestep_core::rules::decide::artifacts::ARTIFACT_FORMAT;
use serde_json::{Map, Number, Value, json};
use toml::de::DeValue;

use super::names::{instead, shown};
use super::reader::Item;

/// Keys that put a schema together from others: what they allow, `additionalProperties` does not know.
const COMPOSING: [&str; 8] = ["allOf", "anyOf", "oneOf", "if", "then", "else", "$ref", "dependentSchemas"];

/// What a property can be.
const TYPES: [&str; 8] = ["string", "number", "integer", "boolean", "object", "array", "null", "artifact"];

/// What is wrong with a part of a schema, and the mend.
type Wrong<'a> = (Item<'a>, String, String);

/// Reads `input` of a tool; nothing when it is at fault.
pub(super) fn input(item: &Item<'_>, class: Option<Class>) -> Option<Value> {
    item.table("schema", "a table: { type = \"object\", properties = { … } }")?;
    let Value::Object(mut schema) = json(item)? else { return None };
    let mut wrong = wrong_shape(item, &schema);
    if wrong.is_empty() {
        complete(&mut schema);
        wrong.extend(wrong_names(item, &schema, class));
    }
    let schema = Value::Object(schema);
    if wrong.is_empty() {
        wrong.extend(compile(item, &schema).err());
    }
    for (place, what, mend) in &wrong {
        place.fault(what, mend);
    }
    wrong.is_empty().then_some(schema)
}

/// Reads `output` of a tool; nothing when it is at fault. It is taken as it stands: a result may hold more than it names.
pub(super) fn output(item: &Item<'_>) -> Option<Value> {
    item.table("schema", "a table: { type = \"object\", properties = { … } }")?;
    let schema = json(item)?;
    let mut wrong = remote(item);
    if wrong.is_empty() {
        wrong.extend(compile(item, &schema).err());
    }
    for (place, what, mend) in &wrong {
        place.fault(what, mend);
    }
    wrong.is_empty().then_some(schema)
}

fn wrong_shape<'a>(item: &Item<'a>, schema: &Map<String, Value>) -> Vec<Wrong<'a>> {
    let mut wrong = Vec::new();
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        let what = format!("`{}` has to be the schema of an object", item.name);
        wrong.push((part(item, &["type"]), what, "write type = \"object\"".to_owned()));
    }
    if schema.get("properties").is_some_and(|properties| !properties.is_object()) {
        let mend = "write properties = { name = { type = \"string\" } }".to_owned();
        wrong.push((part(item, &["properties"]), format!("`{}.properties` is no table", item.name), mend));
    }
    wrong.extend(remote(item));
    wrong
}

fn remote<'a>(item: &Item<'a>) -> Vec<Wrong<'a>> {
    let wrong = |place: Item<'a>| {
        let what = format!("`{}` leads out of the schema, and nothing is fetched", place.name);
        (place, what, "put it under `$defs` and write \"#/$defs/NAME\"".to_owned())
    };
    remote_references(item).into_iter().map(wrong).collect()
}

fn wrong_names<'a>(item: &Item<'a>, schema: &Map<String, Value>, class: Option<Class>) -> Vec<Wrong<'a>> {
    let mut wrong = Vec::new();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return wrong };
    if class.is_some_and(|class| !class.is_repeatable()) && properties.contains_key(REPEAT_REASON) {
        let what = format!("`{REPEAT_REASON}` is an argument that the runtime adds to effects and takes out again");
        wrong.push((part(item, &["properties", REPEAT_REASON]), what, "give it another name".to_owned()));
    }
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    for (place, name) in unknown_required(item, schema, properties) {
        let what = format!("`required` names `{}`, which is not in `properties`", shown(&name));
        wrong.push((place, what, instead(&name, &known, "properties")));
    }
    wrong
}

/// Closes what was left open and spells out artifacts.
fn complete(schema: &mut Map<String, Value>) {
    let said = ["additionalProperties", "unevaluatedProperties"].iter().any(|key| schema.contains_key(*key));
    if !said {
        let composed = COMPOSING.iter().any(|key| schema.contains_key(*key));
        let key = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        schema.insert(key.to_owned(), Value::Bool(false));
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    for property in properties.as_object_mut().into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        if property.get("type").and_then(Value::as_str) == Some("artifact") {
            property.insert("type".to_owned(), "string".into());
            property.insert("format".to_owned(), ARTIFACT_FORMAT.into());
            property.entry("description").or_insert_with(|| "The name of an artifact; its text is sent.".into());
        }
    }
}

/// Names that are required but can't be given, as no further properties are allowed.
fn unknown_required<'a>(
    item: &Item<'a>,
    schema: &Map<String, Value>,
    properties: &Map<String, Value>,
) -> Vec<(Item<'a>, String)> {
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) || schema.contains_key("patternProperties") {
        return Vec::new();
    }
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str).enumerate();
    let unknown = names.filter(|(_, name)| !properties.contains_key(*name));
    unknown.map(|(nth, name)| (part(item, &["required", &nth.to_string()]), name.to_owned())).collect()
}

fn compile<'a>(item: &Item<'a>, schema: &Value) -> Result<(), Wrong<'a>> {
    let Err(error) = jsonschema::validator_for(schema) else { return Ok(()) };
    let path = error.instance_path().to_string();
    let place = part(item, &path.split('/').skip(1).collect::<Vec<_>>());
    if place.value().as_str() == Some("artifact") {
        let what = format!("`{}`: an artifact is an argument, not a part of one", place.name);
        return Err((place, what, "make it a property of `input` itself".to_owned()));
    }
    if let Some(word) = place.value().as_str().filter(|_| path.ends_with("/type")) {
        let what = format!("`{}` can't be \"{}\"", place.name, shown(word));
        return Err((place, what, instead(word, &TYPES, "types")));
    }
    let what = format!("`{}` is no JSON Schema: {}", place.name, shown_error(&error));
    Err((place, what, "see json-schema.org, draft 2020-12".to_owned()))
}

fn shown_error(error: &jsonschema::ValidationError<'_>) -> String {
    error.to_string().chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The part of a value that a path leads to, or the last that is there.
fn part<'a>(item: &Item<'a>, path: &[&str]) -> Item<'a> {
    let Some((key, rest)) = path.split_first() else { return item.clone() };
    let inner = match item.value() {
        DeValue::Table(_) => {
            let table = item.table("schema", "");
            table.and_then(|table| table.entries().iter().find(|(name, _)| name == key).map(|(_, item)| item.clone()))
        }
        DeValue::Array(_) => {
            let nth = key.parse::<usize>().ok();
            nth.and_then(|nth| item.list("")?.into_iter().nth(nth))
        }
        _ => None,
    };
    inner.map_or_else(|| item.clone(), |inner| part(&inner, rest))
}

/// Every `$ref` that does not stay within the schema.
fn remote_references<'a>(item: &Item<'a>) -> Vec<Item<'a>> {
    match item.value() {
        DeValue::Table(_) => {
            let table = item.table("schema", "");
            let entries = table.iter().flat_map(|table| table.entries().iter());
            let found = entries.flat_map(|(key, inner)| match inner.value().as_str() {
                Some(target) if is_reference(key) && !target.starts_with('#') => vec![inner.clone()],
                _ => remote_references(inner),
            });
            found.collect()
        }
        DeValue::Array(_) => item.list("").into_iter().flatten().flat_map(|inner| remote_references(&inner)).collect(),
        _ => Vec::new(),
    }
}

fn is_reference(key: &str) -> bool {
    matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// A value as JSON. What JSON can't hold exactly is refused by name.
pub(super) fn json(item: &Item<'_>) -> Option<Value> {
    match item.value() {
        DeValue::String(_) => item.text().map(Value::from),
        DeValue::Boolean(boolean) => Some(Value::from(*boolean)),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
            let number = number.filter(|number| number.unsigned_abs() <= 1 << 53);
            if number.is_none() {
                item.fault(format!("`{}`: {integer} can't be held exactly", item.name), "stay within 2^53");
            }
            number.map(Value::from)
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse::<f64>().ok().and_then(Number::from_f64);
            if number.is_none() {
                item.fault(format!("`{}`: {float} is no number of JSON", item.name), "write a finite number");
            }
            number.map(Value::Number)
        }
        DeValue::Datetime(_) => {
            item.wrong("the date in quotes; JSON has none");
            None
        }
        DeValue::Array(_) => {
            let items: Vec<Option<Value>> = item.list("")?.iter().map(json).collect();
            items.into_iter().collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        DeValue::Table(_) => {
            let table = item.table("schema", "")?;
            let entries: Vec<Option<(String, Value)>> =
                table.entries().iter().map(|(key, item)| Some(((*key).to_owned(), json(item)?))).collect();
            entries.into_iter().collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
    }
}
