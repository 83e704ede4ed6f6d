//! `[[policy]]`: rules in order, each checked against the tools that there are.

use lodestep_core::definition::{Decide, OnExpiry, Questions, Rule, ToolDefinition};
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
    if decide.is_some_and(|decide| decide != Decide::Ask) {
        for (key, what) in [("expires", "expires"), ("on_expiry", "expires"), ("remind", "is reminded of")] {
            if let Some(item) = table.get(key) {
                item.fault(
                    format!("`{}`: only a question to a person {what}", item.name),
                    "write decide = \"ask\", or take it out",
                );
            }
        }
    }
    let Questions { expires_ms, on_expiry, remind_ms } = times(table, "the rule");
    table.close();
    Rule {
        tools: patterns.flatten().unwrap_or_default(),
        classes: classes.unwrap_or_default(),
        decide: decide.unwrap_or(Decide::Ask),
        expires_ms,
        on_expiry,
        remind_ms,
    }
}

/// Reads `[questions]`: the same times for what the model asks.
pub(super) fn questions(file: &Table<'_>) -> Questions {
    let table = file.get("questions").and_then(|item| item.table("questions", "[questions] with `remind = \"1d\"`"));
    let questions = table.as_ref().map(|table| times(table, "the table"));
    table.iter().for_each(Table::close);
    questions.unwrap_or_default()
}

/// When a request expires and what that does, and how often people are reminded of it until then.
fn times(table: &Table<'_>, what: &str) -> Questions {
    let (expires, on_expiry, remind) = (table.get("expires"), table.get("on_expiry"), table.get("remind"));
    if let (None, Some(item)) = (&expires, &on_expiry) {
        item.fault(format!("{what} doesn't say when the question expires"), "add `expires = \"7d\"`");
    }
    let expires_ms = expires.as_ref().and_then(|item| item.duration(SECOND_MS..=LONGEST_MS));
    let remind_ms = remind.as_ref().and_then(|item| item.duration(SECOND_MS..=LONGEST_MS));
    if let (Some(expires_ms), Some(remind_ms), Some(item)) = (expires_ms, remind_ms, &remind)
        && remind_ms >= expires_ms
    {
        item.fault("the question expires before anybody is reminded of it", "remind earlier, or take it out");
    }
    let on_expiry = on_expiry.and_then(|item| item.one_of(&EXPIRIES)).unwrap_or_default();
    Questions { expires_ms, on_expiry, remind_ms }
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
