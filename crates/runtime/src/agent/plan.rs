//! `[[milestone]]` and `[done]`: the fixed part of the plan, and when the run is complete.

use lodestep_core::definition::{Check, Decide, Definition, Done, MilestoneDefinition};
use lodestep_core::policy::judge;

use crate::tools::rooted::check_name;

use super::names::{instead, is_plain, shown};
use super::reader::Item;
use super::references::Allowed;
use super::table::Table;
use super::tools::Ground;

/// The tool that ends a run: it can't be the evidence of what has to come before it.
const FINISH: &str = "finish";

/// Reads every `[[milestone]]`; the definition has its tools, policy and limits already.
pub(super) fn milestones(file: &Table<'_>, definition: &Definition) -> Vec<MilestoneDefinition> {
    let item = file.get("milestone");
    let tables = item.as_ref().map(|item| item.tables("milestone")).unwrap_or_default();
    let most = definition.limits.milestones as usize;
    if let Some(item) = item.filter(|_| tables.len() > most) {
        item.fault(
            format!("{} milestones, and a plan has at most {most}", tables.len()),
            "raise `milestones` under [limits]",
        );
    }
    let mut milestones: Vec<MilestoneDefinition> = Vec::new();
    for table in &tables {
        let milestone = milestone(table, definition);
        if let Some(item) = table.get("id")
            && milestones.iter().any(|earlier| earlier.id == milestone.id && !milestone.id.is_empty())
        {
            item.fault(format!("there are two milestones `{}`", milestone.id), "give one another id");
        }
        milestones.push(milestone);
    }
    milestones
}

fn milestone(table: &Table<'_>, definition: &Definition) -> MilestoneDefinition {
    let id = table.need("id", "id = \"published\"").and_then(|item| id(&item));
    let title = table.need("title", "title = \"The report is published\"").and_then(|item| title(&item));
    let requires = table.get("requires").and_then(|item| {
        let table = item.table("requires", "a table: { action = \"publish\" }")?;
        let action = table.need("action", "action = \"publish\"").and_then(|item| action(&item, definition));
        table.close();
        action
    });
    table.close();
    MilestoneDefinition { id: id.unwrap_or_default(), title: title.unwrap_or_default(), requires_action: requires }
}

fn id(item: &Item<'_>) -> Option<String> {
    let id = item.text()?;
    if !is_plain(&id) {
        item.fault(format!("`{}` is no id for a milestone", shown(&id)), "use 1 to 64 of a-z 0-9 - _");
        return None;
    }
    Some(id)
}

/// A title is a line of the plan that the model sees.
fn title(item: &Item<'_>) -> Option<String> {
    let title = item.said(&Allowed::Nothing)?;
    if title.chars().any(char::is_control) {
        item.fault(format!("`{}` has more than one line", item.name), "write it in one");
        return None;
    }
    Some(title)
}

/// The tool must be there, be allowed, and be able to come before the end.
fn action(item: &Item<'_>, definition: &Definition) -> Option<String> {
    let name = item.text()?;
    let Some(tool) = definition.tool(&name) else {
        let known: Vec<&str> = definition.tools.iter().map(|tool| tool.name.as_str()).collect();
        item.fault(format!("there is no tool `{}`", shown(&name)), instead(&name, &known, "tools"));
        return None;
    };
    if name == FINISH {
        item.fault("`finish` ends the run, and waits for the milestones itself", "name the tool that does the work");
    } else if judge(definition, tool).decide == Decide::Deny {
        item.fault(
            format!("the policy denies `{name}`: the milestone could never be reached"),
            "change the one or the other",
        );
    }
    Some(name)
}

/// Reads `[done]`.
pub(super) fn done(file: &Table<'_>, milestones: &[MilestoneDefinition], ground: &Ground<'_>) -> Done {
    let item = file.get("done");
    let Some(table) = item.and_then(|item| item.table("done", "[done] with `milestones = \"all\"`")) else {
        return Done::default();
    };
    let all = table.get("milestones").filter(|item| item.one_of(&[("all", ())]).is_some());
    if let Some(item) = all.as_ref().filter(|_| milestones.is_empty()) {
        item.fault("there is no milestone that could be reached", "add a [[milestone]]");
    }
    let artifacts = table.get("artifacts").map(|item| artifacts(&item)).unwrap_or_default();
    let argv = table.get("check").and_then(|item| item.argv(&Allowed::Inputs(ground.inputs)));
    let check = argv.map(|argv| Check { argv, folder: ground.folder.to_string_lossy().into_owned() });
    table.close();
    Done { all_milestones: all.is_some(), artifacts, check }
}

fn artifacts(item: &Item<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in item.list("[\"report.md\"]").unwrap_or_default() {
        let Some(name) = item.text() else { continue };
        if let Err(fault) = check_name(&name) {
            let why = fault.to_string();
            let why = why.split_once("is refused: ").map_or(why.as_str(), |(_, why)| why);
            item.fault(format!("`{}` is no name for an artifact", shown(&name)), why);
        }
        if names.contains(&name) {
            item.fault(format!("`{}` is named twice", shown(&name)), "name it once");
        }
        names.push(name);
    }
    names
}
