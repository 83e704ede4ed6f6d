//! `[[policy]]`: rules in order, each checked against the tools that there are.

use lodestep_core::definition::{Decide, OnExpiry, Rule, ToolDefinition};
use lodestep_core::effect::Class;
use lodestep_core::policy::matches;

use super::command;
use super::duration::{LONGEST_MS, SECOND_MS};
use super::names::{instead, shown};
use super::reader::Item;
use super::references::Allowed;
use super::table::Table;

const DECISIONS: [(&str, Decide); 3] = [("allow", Decide::Allow), ("ask", Decide::Ask), ("deny", Decide::Deny)];
const EXPIRIES: [(&str, OnExpiry); 2] = [("deny", OnExpiry::Deny), ("pause", OnExpiry::Pause)];

/// Reads every `[[policy]]`; `tools` are the file's, `always` those of every run.
pub(super) fn rules(file: &Table<'_>, tools: &[ToolDefinition], always: &[ToolDefinition]) -> Vec<Rule> {
    let tables = file.get("policy").map(|item| item.tables("policy")).unwrap_or_default();
    tables.iter().map(|table| rule(table, tools, always)).collect()
}

fn rule(table: &Table<'_>, tools: &[ToolDefinition], always: &[ToolDefinition]) -> Rule {
    let patterns = table.get("tools").map(|item| patterns(&item, tools, always));
    let classes = classes(table);
    if let (Some(Some(patterns)), Some(classes)) = (&patterns, &classes) {
        let named = |tool: &ToolDefinition| patterns.iter().any(|pattern| fits(pattern, tool));
        if !tools.iter().any(|tool| named(tool) && classes.contains(&tool.class)) {
            table.faults.add(
                table.at,
                "no tool is both of these names and of these classes",
                "drop one of the two keys",
            );
        }
    }
    let decide = table.need("decide", "decide = \"ask\"").and_then(|item| item.one_of(&DECISIONS));
    let expires = table.get("expires");
    let on_expiry = table.get("on_expiry");
    for item in [&expires, &on_expiry].into_iter().flatten() {
        if decide.is_some_and(|decide| decide != Decide::Ask) {
            item.fault(
                format!("`{}`: only a question to a person expires", item.name),
                "write decide = \"ask\", or take it out",
            );
        }
    }
    if let (None, Some(item)) = (&expires, &on_expiry) {
        item.fault("the rule doesn't say when the question expires", "add `expires = \"7d\"`");
    }
    table.close();
    Rule {
        tools: patterns.flatten().unwrap_or_default(),
        classes: classes.unwrap_or_default(),
        decide: decide.unwrap_or(Decide::Ask),
        expires_ms: expires.and_then(|item| item.duration(SECOND_MS..=LONGEST_MS)),
        on_expiry: on_expiry.and_then(|item| item.one_of(&EXPIRIES)).unwrap_or_default(),
    }
}

fn fits(pattern: &str, tool: &ToolDefinition) -> bool {
    matches(pattern, &tool.name) || matches(pattern, &tool.group)
}

fn patterns(item: &Item<'_>, tools: &[ToolDefinition], always: &[ToolDefinition]) -> Option<Vec<String>> {
    let items = item.list("[\"publish\"]")?;
    if items.is_empty() {
        item.fault(format!("`{}` names no tool", item.name), "name one, or take the key out: the rule is for all then");
        return None;
    }
    let read: Vec<Option<String>> = items.iter().map(|item| pattern(item, tools, always)).collect();
    read.into_iter().collect()
}

fn pattern(item: &Item<'_>, tools: &[ToolDefinition], always: &[ToolDefinition]) -> Option<String> {
    let pattern = item.text_with(&Allowed::Nothing)?;
    if tools.iter().any(|tool| fits(&pattern, tool)) {
        return Some(pattern);
    }
    if always.iter().any(|tool| fits(&pattern, tool)) {
        let what = format!("`{}` works on the run's own state, which no rule decides on", shown(&pattern));
        item.fault(what, "take it out; rules are for the tools of the file");
        return None;
    }
    let mut known: Vec<&str> = Vec::new();
    for name in tools.iter().flat_map(|tool| [tool.group.as_str(), tool.name.as_str()]) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    item.fault(format!("no tool is called `{}`", shown(&pattern)), instead(&pattern, &known, "tools of the file"));
    None
}

/// `classes = […]`, or `class = "…"` for one; none when neither is there or one is at fault.
fn classes(table: &Table<'_>) -> Option<Vec<Class>> {
    let (many, one) = (table.get("classes"), table.get("class"));
    if let (Some(_), Some(item)) = (&many, &one) {
        item.fault("the rule has both `class` and `classes`", "keep `classes`");
    }
    let Some(item) = many else { return one.and_then(|item| command::class(&item)).map(|class| vec![class]) };
    let items = item.list("[\"unsafe\"]")?;
    if items.is_empty() {
        item.fault(
            format!("`{}` names no class", item.name),
            "name one, or take the key out: the rule is for all then",
        );
    }
    let read: Vec<Option<Class>> = items.iter().map(command::class).collect();
    read.into_iter().collect()
}
