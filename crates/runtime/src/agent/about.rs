//! `[agent]`: what it is called, what it is to reach, and how it works.

use std::path::Path;

use super::inputs::{InputSpec, absolute};
use super::names::{is_plain, shown};
use super::reader::Item;
use super::references::{Allowed, check};
use super::table::Table;

/// Longer instructions would leave no window for the work: 1 MiB.
const INSTRUCTIONS_BYTES: u64 = 1 << 20;

/// What `[agent]` says.
#[derive(Default)]
pub(super) struct About {
    pub name: String,
    pub objective: String,
    pub instructions: String,
}

/// Reads `[agent]`.
pub(super) fn about(file: &Table<'_>, inputs: &[InputSpec], folder: &Path) -> About {
    let item = file.need("agent", "[agent]");
    let Some(table) = item.and_then(|item| item.table("agent", "[agent] with `name` and `objective`")) else {
        return About::default();
    };
    let name = table.need("name", "name = \"research-report\"").and_then(|item| name(&item));
    let objective = table.need("objective", "objective = \"Write a report on …\"");
    let objective = objective.and_then(|item| item.said(&Allowed::Inputs(inputs)));
    let instructions = instructions(&table, inputs, folder);
    table.close();
    About {
        name: name.unwrap_or_default(),
        objective: objective.unwrap_or_default(),
        instructions: instructions.unwrap_or_default(),
    }
}

fn name(item: &Item<'_>) -> Option<String> {
    let name = item.text()?;
    if !is_plain(&name) {
        item.fault(format!("`{}` is no name for an agent", shown(&name)), "use 1 to 64 of a-z 0-9 - _");
        return None;
    }
    Some(name)
}

fn instructions(table: &Table<'_>, inputs: &[InputSpec], folder: &Path) -> Option<String> {
    let (text, file) = (table.get("instructions"), table.get("instructions_file"));
    if let (Some(_), Some(item)) = (&text, &file) {
        item.fault("[agent] has both `instructions` and `instructions_file`", "keep one of them");
    }
    match (text, file) {
        (Some(item), _) => item.text_with(&Allowed::Inputs(inputs)),
        (None, Some(item)) => from_file(&item, inputs, folder),
        (None, None) => None,
    }
}

/// The file's text as it is now; a fault in it is named at its own line.
fn from_file(item: &Item<'_>, inputs: &[InputSpec], folder: &Path) -> Option<String> {
    let path = absolute(&folder.join(item.said(&Allowed::Nothing)?));
    let text = match read(&path) {
        Ok(text) => text,
        Err(why) => {
            item.fault(
                format!("`{}`: {} {why}", item.name, path.display()),
                "name a text file, relative to the agent file",
            );
            return None;
        }
    };
    for fault in check(&text, &Allowed::Inputs(inputs)) {
        item.faults.add_in(&path, &text, fault.at, fault.what, fault.mend);
    }
    Some(text)
}

fn read(path: &Path) -> Result<String, String> {
    let about = path.metadata().map_err(|_| "is not there".to_owned())?;
    if !about.is_file() {
        return Err("is no file".to_owned());
    }
    if about.len() > INSTRUCTIONS_BYTES {
        return Err(format!("has {} bytes; instructions have at most {INSTRUCTIONS_BYTES}", about.len()));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("can't be read: {error}"))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("is not UTF-8 after byte {}", error.utf8_error().valid_up_to()))?;
    if text.contains('\0') {
        return Err("holds a NUL character".to_owned());
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
