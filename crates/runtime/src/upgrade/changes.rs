//! What differs between two definitions, in words that people decide by.

use std::fmt::Display;

use lodestep_core::definition::{Decide, MilestoneDefinition, ToolDefinition};
use lodestep_core::event::Evidence;
use lodestep_core::json::canonical;
use lodestep_core::quota::Quota;
use lodestep_core::{Checkpoint, Definition, policy};
use serde::Serialize;
use serde_json::Value;

use crate::inspect::diff::Change;

/// Every difference, in the order of an agent file. `before` is `None` where it can't be read: what the run may spend and
/// what it has reached is told all the same.
pub(super) fn of(before: Option<&Definition>, after: &Definition, now: &Checkpoint, then: &Checkpoint) -> Vec<Change> {
    let mut all = Vec::new();
    if let Some(before) = before {
        texts(&mut all, before, after);
        tools(&mut all, before, after);
        verdicts(&mut all, before, after);
    }
    quotas(&mut all, now, then);
    milestones(&mut all, before, after, now);
    if let Some(before) = before {
        fields(&mut all, "done", "", &before.done, &after.done);
        fields(&mut all, "limits", "", &before.limits, &after.limits);
    }
    all
}

fn change(all: &mut Vec<Change>, part: &'static str, of: impl Display, before: Option<String>, after: Option<String>) {
    if before != after {
        all.push(Change { part, of: of.to_string(), before, after });
    }
}

fn texts(all: &mut Vec<Change>, before: &Definition, after: &Definition) {
    change(all, "objective", "", Some(before.objective.clone()), Some(after.objective.clone()));
    change(all, "instructions", "", Some(before.instructions.clone()), Some(after.instructions.clone()));
    fields(all, "model", "", &before.model, &after.model);
}

/// The members of two structures that differ, each as JSON.
fn fields<T: Serialize>(all: &mut Vec<Change>, part: &'static str, prefix: &str, before: &T, after: &T) {
    let object = |it: &T| match serde_json::to_value(it) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let (before, after) = (object(before), object(after));
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let shown = |members: &serde_json::Map<String, Value>| members.get(name).map(shown);
        change(all, part, format!("{prefix}{name}"), shown(&before), shown(&after));
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => String::from_utf8_lossy(&canonical(other)).into_owned(),
    }
}

fn tools(all: &mut Vec<Change>, before: &Definition, after: &Definition) {
    for tool in &before.tools {
        match after.tool(&tool.name) {
            Some(now) if before.tool_digest(tool) != after.tool_digest(now) => changed(all, tool, now),
            Some(_) => {}
            None => change(all, "tools", &tool.name, Some(tool.class.to_string()), None),
        }
    }
    for tool in after.tools.iter().filter(|tool| before.tool(&tool.name).is_none()) {
        change(all, "tools", &tool.name, None, Some(tool.class.to_string()));
    }
}

/// A tool that is another one under the same name. A class is told with what it means for a recovery.
fn changed(all: &mut Vec<Change>, before: &ToolDefinition, after: &ToolDefinition) {
    let name = &before.name;
    if before.class != after.class {
        let strength = if after.class < before.class { "weaker" } else { "stronger" };
        let now = format!("{} ({strength})", after.class);
        change(all, "tools", format!("{name} class"), Some(before.class.to_string()), Some(now));
    }
    let (mut one, mut other) = (before.clone(), after.clone());
    // It was told.
    other.class = one.class;
    // What a program or a request consists of is told part by part.
    fields(all, "tools", &format!("{name} "), &one.kind, &other.kind);
    one.kind = other.kind.clone();
    fields(all, "tools", &format!("{name} "), &one, &other);
}

/// What the policy says of each tool that both have.
fn verdicts(all: &mut Vec<Change>, before: &Definition, after: &Definition) {
    let word = |definition: &Definition, tool: &ToolDefinition| {
        let verdict = policy::judge(definition, tool);
        match (verdict.decide, verdict.expires_ms) {
            (Decide::Allow, _) => "allow".to_owned(),
            (Decide::Deny, _) => "deny".to_owned(),
            (Decide::Ask, None) => "ask".to_owned(),
            (Decide::Ask, Some(ms)) => format!("ask, expires after {} s, then {:?}", ms / 1_000, verdict.on_expiry),
        }
        .to_lowercase()
    };
    for tool in &before.tools {
        if let Some(now) = after.tool(&tool.name) {
            change(all, "policy", &tool.name, Some(word(before, tool)), Some(word(after, now)));
        }
    }
}

/// What the run may spend: its own limits, with what was topped up or given away.
fn quotas(all: &mut Vec<Change>, now: &Checkpoint, then: &Checkpoint) {
    for quota in Quota::ALL {
        let limit = |state: &Checkpoint| quota.limit(&state.quota.limits).map(|limit| quota.shown(limit));
        let used = then.remaining().into_iter().find(|row| row.quota == quota);
        let used = used.map(|row| format!(", {} used", quota.shown(row.used))).unwrap_or_default();
        let before = limit(now);
        let after =
            limit(then).map(|limit| if before.as_ref() == Some(&limit) { limit } else { format!("{limit}{used}") });
        change(all, "quota", quota.as_str(), before, after);
    }
}

fn milestones(all: &mut Vec<Change>, before: Option<&Definition>, after: &Definition, now: &Checkpoint) {
    let known = |id: &str| before.iter().flat_map(|before| &before.milestones).find(|milestone| milestone.id == id);
    let word = |milestone: &MilestoneDefinition| match &milestone.requires_action {
        Some(tool) => format!("{} (requires {tool})", milestone.title),
        None => milestone.title.clone(),
    };
    let reached = |id: &str| {
        let evidence = now.plan.iter().find(|known| known.id == id).and_then(|known| known.reached.as_ref());
        match evidence {
            Some(Evidence::Action(ordinal)) => format!(", reached by action {ordinal}"),
            Some(_) => ", reached".to_owned(),
            None => String::new(),
        }
    };
    for milestone in now.plan.iter().filter(|milestone| milestone.fixed) {
        let id = &milestone.id;
        let before = known(id).map_or_else(|| id.clone(), word);
        let after = after.milestones.iter().find(|milestone| milestone.id == *id).map(word);
        match after {
            // Where the definition before can't be read, its titles are not known.
            Some(after) if known(id).is_some() => change(all, "milestones", id, Some(before), Some(after)),
            Some(_) => {}
            None => change(all, "milestones", id, Some(format!("{before}{}", reached(id))), None),
        }
    }
    let is_new = |milestone: &&MilestoneDefinition| !now.plan.iter().any(|it| it.fixed && it.id == milestone.id);
    for milestone in after.milestones.iter().filter(is_new) {
        change(all, "milestones", &milestone.id, None, Some(word(milestone)));
    }
}
