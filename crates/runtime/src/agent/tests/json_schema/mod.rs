//! The JSON Schemas and the readers say the same: every question that a reader asks is in its schema with the same bounds
//! and words, every key of a schema is asked for, and neither takes what is not the other's.

mod files;
mod walk;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::asked::{Question, during};
use super::super::{AgentFile, AgentFileErrors, SCHEMA, Wiring, duration};
use super::Folder;
use files::{AGENTS, WIRINGS, world};
use walk::{Part, Schema, toml_of};

/// A schema with its reader, and files that together have every key.
struct Format {
    schema: Schema,
    validator: jsonschema::Validator,
    folder: Folder,
    files: Vec<String>,
    read: fn(&Folder, &str) -> Result<String, AgentFileErrors>,
}

/// What a file says, all defaults filled in.
fn read_agent(folder: &Folder, text: &str) -> Result<String, AgentFileErrors> {
    folder.load(text).map(|file| format!("{file:?}"))
}

fn read_wiring(folder: &Folder, text: &str) -> Result<String, AgentFileErrors> {
    let agent = AgentFile::load(&folder.path().join("wired.toml"))?;
    Wiring::load(&folder.write("lodestep.toml", text), Some(&agent)).map(|wiring| format!("{wiring:?}"))
}

impl Format {
    fn agent() -> Self {
        let mut files: Vec<String> = AGENTS.iter().map(|text| (*text).to_owned()).collect();
        files.extend(files::published());
        Self::new(SCHEMA, files, read_agent)
    }

    fn wiring() -> Self {
        Self::new(Wiring::SCHEMA, WIRINGS.iter().map(|text| (*text).to_owned()).collect(), read_wiring)
    }

    fn new(schema: &str, files: Vec<String>, read: fn(&Folder, &str) -> Result<String, AgentFileErrors>) -> Self {
        let schema: Value = serde_json::from_str(schema).unwrap();
        jsonschema::draft202012::meta::validate(&schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        Self { schema: Schema(schema), validator, folder: world(), files, read }
    }

    fn both() -> [Self; 2] {
        [Self::agent(), Self::wiring()]
    }

    fn read(&self, text: &str) -> Result<String, AgentFileErrors> {
        (self.read)(&self.folder, text)
    }

    /// The files as values.
    fn values(&self) -> Vec<Value> {
        self.files.iter().map(|text| toml::from_str(text).unwrap()).collect()
    }
}

#[test]
fn every_published_file_is_sound_to_both() {
    for format in Format::both() {
        for (text, value) in format.files.iter().zip(format.values()) {
            format.read(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            if let Err(error) = format.validator.validate(&value) {
                panic!("{}: {error}\n{text}", error.instance_path());
            }
            // So is what is written from its values, which altered files are made of.
            format.read(&toml_of(&value)).unwrap();
        }
    }
}

#[test]
fn every_question_of_the_reader_is_in_the_schema_and_every_key_of_the_schema_is_read() {
    for format in Format::both() {
        let mut read = BTreeSet::new();
        for (text, value) in format.files.iter().zip(format.values()) {
            let (_, asked) = during(|| format.read(text));
            // The wiring is judged by an agent file, which has a schema of its own.
            let begin = asked.iter().rposition(|(_, question)| *question == Question::Begin).unwrap();
            for (name, question) in &asked[begin + 1..] {
                let part = format.schema.named(name, &value);
                let part = part.unwrap_or_else(|| panic!("the schema has no `{name}`, which is asked for in\n{text}"));
                let Some(part) = part else {
                    // Below a schema of arguments anything may stand.
                    assert_ne!(*question, Question::Closed, "{name}");
                    continue;
                };
                if *question == Question::Key {
                    read.insert(part.pointer.clone());
                    read.extend(format.pointer_of_key(name, &value));
                } else {
                    assert_eq!(differs(&part, question), None, "{name} at {}", part.pointer);
                }
            }
        }
        let unread: Vec<_> = format.schema.keys().into_iter().filter(|key| !read.contains(key)).collect();
        assert!(unread.is_empty(), "nobody reads {unread:#?}");
    }
}

impl Format {
    /// The place of a key itself, where what is said of it stands elsewhere.
    fn pointer_of_key(&self, name: &str, file: &Value) -> Option<String> {
        let (table, key) = name.rsplit_once('.').unwrap_or(("", name));
        let mut table = if table.is_empty() { self.schema.root() } else { self.schema.named(table, file)?? };
        if let Some(items) = table.says.get("items") {
            table = Part { pointer: format!("{}/items", table.pointer), says: items.as_object()?.clone() };
        }
        Some(format!("{}/properties/{key}", table.pointer))
    }
}

/// How what the schema says of a value differs from what the reader asks.
fn differs(part: &Part, question: &Question) -> Option<String> {
    let says = |key: &str| part.says.get(key).cloned().unwrap_or_default();
    let expected = match question {
        Question::Begin | Question::Key => return None,
        Question::Text => {
            let (kind, words) = (says("type"), says("enum"));
            let is_text = kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string")));
            let is_open = kind.is_null() && words.is_null();
            let are_texts = words.as_array().is_some_and(|words| words.iter().all(Value::is_string));
            return (!(is_text || is_open || are_texts)).then(|| format!("a text is asked for, not {kind}"));
        }
        Question::Truth => ("type", json!("boolean"), says("type")),
        Question::Words(words) => ("enum", json!(words), says("enum")),
        Question::Whole(least, most) if says("type").is_array() => {
            ("bounds", json!([least, most]), json!([says("minimum"), says("maximum")]))
        }
        Question::Whole(least, most) => {
            let said = json!([says("type"), says("minimum"), says("maximum")]);
            ("bounds", json!(["integer", least, most]), said)
        }
        Question::Duration(least, most) => {
            let (least, most) = (duration::format(*least), duration::format(*most));
            ("bounds", json!([least, most]), json!([says("x-least"), says("x-most")]))
        }
        Question::List => ("type", json!("array"), says("type")),
        Question::Closed => {
            let says = says("items").as_object().cloned().unwrap_or(part.says.clone());
            ("further keys", json!(false), says.get("additionalProperties").cloned().unwrap_or_default())
        }
        // Each table of a list has the list's name.
        Question::Table => ("type", json!("object"), says("items").get("type").cloned().unwrap_or(says("type"))),
    };
    let (what, asked, said) = expected;
    (asked != said).then(|| format!("{what}: the reader asks {asked}, the schema says {said}"))
}

#[test]
fn every_key_is_described() {
    for format in Format::both() {
        for key in format.schema.keys() {
            let said = format.schema.0.pointer(&key).and_then(|part| part["description"].as_str());
            assert!(said.is_some_and(|said| said.ends_with(['.', '?'])), "{key}: {said:?}");
        }
    }
}

#[test]
fn a_default_that_is_written_out_changes_nothing() {
    for format in Format::both() {
        let mut tried = BTreeSet::new();
        for file in format.values() {
            let without = format.read(&toml_of(&file)).unwrap();
            format.schema.tables(&file, &mut |at, part, table| {
                for (key, inner) in part.says["properties"].as_object().unwrap() {
                    let Some(default) = inner.get("default").filter(|_| table.get(key).is_none()) else { continue };
                    let mut with = file.clone();
                    with.pointer_mut(at).unwrap()[key] = default.clone();
                    // Some belong to a class that the tool does not have.
                    if let Ok(read) = format.read(&toml_of(&with)) {
                        assert_eq!(read, without, "{at}/{key}");
                        tried.insert(format!("{}/properties/{key}", part.pointer));
                    }
                }
            });
        }
        let with_default = |key: &String| format.schema.0.pointer(key).unwrap().get("default").is_some();
        let untried: Vec<_> = format.schema.keys().into_iter().filter(with_default).collect();
        let untried: Vec<_> = untried.into_iter().filter(|key| !tried.contains(key)).collect();
        assert!(untried.is_empty(), "{untried:#?}");
    }
}

/// What an alteration of a file is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Alteration {
    UnknownKey,
    OtherType,
    Missing,
}

/// Every file that differs from a sound one in one value of a closed table.
fn altered(schema: &Schema, file: &Value) -> Vec<(String, Alteration, Value)> {
    let mut all = Vec::new();
    schema.tables(file, &mut |at, _, table| {
        let mut alter = |key: &str, alteration, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut other = file.clone();
            change(other.pointer_mut(at).unwrap().as_object_mut().unwrap());
            all.push((format!("{at}/{key}"), alteration, other));
        };
        alter("colour", Alteration::UnknownKey, &|table| {
            table.insert("colour".to_owned(), json!("red"));
        });
        for (key, value) in table.as_object().unwrap() {
            alter(key, Alteration::Missing, &|table| {
                table.remove(key);
            });
            let others =
                if value.is_string() { [json!(7), json!({ "colour": 7 })] } else { [json!("red"), json!([["red"]])] };
            for other in others {
                alter(key, Alteration::OtherType, &|table| {
                    table.insert(key.clone(), other.clone());
                });
            }
        }
    });
    all
}

#[test]
fn what_the_schema_refuses_the_reader_refuses_and_an_unknown_key_and_another_type_both_refuse() {
    for format in Format::both() {
        for file in format.values() {
            for (place, alteration, other) in altered(&format.schema, &file) {
                let (sound, read) = (format.validator.is_valid(&other), format.read(&toml_of(&other)));
                assert!(sound || read.is_err(), "the schema refuses {place} ({alteration:?}), and the reader does not");
                if alteration != Alteration::Missing {
                    assert!(
                        !sound || read.is_ok(),
                        "the reader refuses {place}, the schema does not: {read:?}\n{other:#}"
                    );
                }
            }
        }
    }
}
