//! `[test]`: how the agent is tested; nothing of it is pinned to a run.

use std::path::Path;

use toml::de::DeValue;

use super::inputs::{InputKind, InputSpec, read};
use super::names::{instead, shown};
use super::reader::Item;
use super::references::{Allowed, check};
use super::table::Table;

/// What stands for the folder of a trial.
const FOLDER: &str = "${test:folder}";

/// How the agent is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSection {
    /// Inputs by name, as if they were given on a command line; a value may hold `${test:folder}`.
    pub inputs: Vec<(String, String)>,
    /// Are requests approved, or denied?
    pub approve: bool,
    /// The answer to every question.
    pub answer: String,
    /// Prints a line for each applied effect, `TOOL KEY`; may hold `${test:folder}`.
    pub ledger: Option<Vec<String>>,
}

impl TestSection {
    /// The section with a trial's folder in its place.
    pub fn in_folder(&self, folder: &Path) -> Self {
        let fill = |text: &str| text.replace(FOLDER, &folder.to_string_lossy());
        let mut filled = self.clone();
        filled.inputs.iter_mut().for_each(|(_, value)| *value = fill(value));
        filled.ledger.iter_mut().flatten().for_each(|word| *word = fill(word));
        filled
    }
}

/// Reads `[test]`.
pub(super) fn test(file: &Table<'_>, specs: &[InputSpec]) -> Option<TestSection> {
    let table = file.get("test")?.table("test", "[test] with lines such as answers = \"approve\"")?;
    let inputs = table.get("inputs").map(|item| inputs(&item, specs)).unwrap_or_default();
    let approve = table.get("answers").and_then(|item| item.one_of(&[("approve", true), ("deny", false)]));
    let answer = table.get("answer").and_then(|item| item.text());
    let ledger = table.get("ledger").and_then(|item| ledger(&item));
    table.close();
    Some(TestSection {
        inputs,
        approve: approve.unwrap_or(true),
        answer: answer.unwrap_or_else(|| "yes".to_owned()),
        ledger,
    })
}

fn inputs(item: &Item<'_>, specs: &[InputSpec]) -> Vec<(String, String)> {
    let table = item.table("test inputs", "a table, such as { topic = \"Pin\" }");
    let given = table.iter().flat_map(Table::entries).filter_map(|(name, item)| {
        let Some(spec) = specs.iter().find(|spec| spec.name == *name) else {
            let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            item.fault(format!("the agent has no input `{}`", shown(name)), instead(name, &known, "inputs"));
            return None;
        };
        Some(((*name).to_owned(), value(item, spec)?))
    });
    given.collect()
}

fn value(item: &Item<'_>, spec: &InputSpec) -> Option<String> {
    let text = match item.value() {
        DeValue::String(_) => with_folder(item)?,
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(boolean) => boolean.to_string(),
        _ => {
            item.wrong("a value of the input's type");
            return None;
        }
    };
    let is_text = matches!(spec.kind, InputKind::String | InputKind::Path);
    if is_text && !matches!(item.value(), DeValue::String(_)) {
        item.wrong("a text in quotes");
        return None;
    }
    if let Err(why) = read(spec.kind, &text) {
        item.fault(format!("`{}`: {why}", item.name), format!("the input `{}` is of another type", spec.name));
        return None;
    }
    Some(text)
}

/// A text that may hold the folder and no other reference.
fn with_folder(item: &Item<'_>) -> Option<String> {
    let text = item.raw_text()?;
    let faults = check(text, &Allowed::Nothing);
    for fault in &faults {
        let mend = format!("here may stand {FOLDER}");
        item.faults.add(item.place_of(&fault.reference), fault.what.clone(), mend);
    }
    faults.is_empty().then(|| text.to_owned())
}

fn ledger(item: &Item<'_>) -> Option<Vec<String>> {
    item.argv(&Allowed::Nothing)
}
