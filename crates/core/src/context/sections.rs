//! The state as text: each section has a share of the room, and what does not fit is shortened by a fixed rule.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::checkpoint::{Checkpoint, How, Milestone, Settled};
use crate::context::budget::{one_line, shorten};
use crate::context::{SectionSize, estimate};
use crate::definition::Definition;
use crate::digest::DigestMap;
use crate::event::Evidence;
use crate::ids::Ordinal;
use crate::reference::with_inputs;
use crate::value::Stored;

/// Stands before a value that is no UTF-8.
const NO_TEXT: &str = "[not UTF-8: what is no text is shown as U+FFFD; the exact bytes are kept]";

/// What the sections are made from.
pub(super) struct View<'a> {
    pub checkpoint: &'a Checkpoint,
    pub definition: &'a Definition,
    pub inputs: &'a Value,
    /// The values that are wanted and were loaded, by digest: one that happens to be there besides changes nothing.
    pub values: DigestMap<&'a [u8]>,
    /// The open artifacts that are not too large to be shown.
    pub shown: Vec<&'a str>,
}

impl<'a> View<'a> {
    /// A value as text; ill-formed UTF-8 is replaced, what was not loaded is empty.
    pub fn text(&self, stored: &Stored) -> Cow<'a, str> {
        self.bytes(stored).map(String::from_utf8_lossy).unwrap_or_default()
    }

    /// A value as text that stands for itself: one that is no UTF-8 says so before what is shown of it.
    pub fn flagged(&self, stored: &Stored) -> Cow<'a, str> {
        match self.text(stored) {
            Cow::Owned(text) => format!("{NO_TEXT}\n{text}").into(),
            text => text,
        }
    }

    /// A value's bytes, if it is wanted and was loaded.
    pub fn bytes(&self, stored: &Stored) -> Option<&'a [u8]> {
        self.values.get(&stored.digest).copied()
    }
}

/// Shares of the room, in hundredths; recent actions get what these leave.
const OBJECTIVE: u64 = 15;
const PLAN: u64 = 8;
const NOTES: u64 = 25;
const COMPLETED: u64 = 8;
const ARTIFACTS: u64 = 20;
const ERRORS: u64 = 3;
const ANSWERS: u64 = 5;
const GUIDANCE: u64 = 8;

fn share(room: u64, hundredths: u64) -> u64 {
    room.saturating_mul(hundredths) / 100
}

/// What the sections after the recent actions may need.
pub(super) fn closing_room(view: &View<'_>, room: u64) -> u64 {
    let guidance = if view.checkpoint.guidance.is_empty() { 0 } else { GUIDANCE };
    share(room, COMPLETED + ARTIFACTS + ERRORS + ANSWERS + guidance + 2)
}

fn put(into: &mut String, sizes: &mut Vec<SectionSize>, title: &str, body: &str, room: u64) {
    if body.is_empty() {
        return;
    }
    let body = shorten(body.trim_end(), room);
    let _ = write!(into, "{}# {title}\n{body}\n", if into.is_empty() { "" } else { "\n" });
    sizes.push(SectionSize { section: title.to_lowercase(), tokens: estimate::tokens(body.len() as u64) });
}

/// The sections before the recent actions that don't depend on them.
pub(super) fn before(view: &View<'_>, room: u64, sizes: &mut Vec<SectionSize>) -> String {
    let mut text = String::new();
    let objective = with_inputs(&view.definition.objective, view.inputs);
    put(&mut text, sizes, "Objective", &objective, share(room, OBJECTIVE));
    put(&mut text, sizes, "Inputs", &inputs(view), share(room, OBJECTIVE));
    put(&mut text, sizes, "Done when", &criteria(view), share(room, PLAN));
    put(&mut text, sizes, "Plan", &plan(view), share(room, PLAN));
    put(&mut text, sizes, "Notes", &notes(view), share(room, NOTES));
    text
}

fn inputs(view: &View<'_>) -> String {
    let Some(inputs) = view.inputs.as_object() else {
        return String::new();
    };
    inputs.iter().fold(String::new(), |mut text, (name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(text, "- {name}: {}", one_line(&value, 2_000));
        text
    })
}

fn criteria(view: &View<'_>) -> String {
    let mut text = String::new();
    if view.definition.done.all_milestones {
        for milestone in &view.definition.milestones {
            let by = milestone.requires_action.as_ref().map(|tool| format!(" (by a finished {tool})"));
            let _ = writeln!(text, "- milestone {}: {}{}", milestone.id, milestone.title, by.unwrap_or_default());
        }
    }
    for name in &view.definition.done.artifacts {
        let _ = writeln!(text, "- artifact {name}");
    }
    if let Some(check) = &view.definition.done.check {
        let argv: Vec<String> = check.argv.iter().map(|word| with_inputs(word, view.inputs)).collect();
        let _ = writeln!(text, "- the check: {}", one_line(&argv.join(" "), 200));
    }
    text
}

fn plan(view: &View<'_>) -> String {
    view.checkpoint.plan.iter().fold(String::new(), |mut text, milestone| {
        let evidence = match &milestone.reached {
            None => String::new(),
            Some(Evidence::Action(ordinal)) => format!(" (action {ordinal})"),
            Some(Evidence::Artifact(name, version)) => format!(" (artifact {name}, version {version})"),
            Some(Evidence::Declared) => " (self-declared)".to_owned(),
        };
        let mark = if milestone.reached.is_some() { 'x' } else { ' ' };
        let _ = writeln!(text, "- [{mark}] {}: {}{evidence}", milestone.id, title(view, milestone));
        text
    })
}

fn title(view: &View<'_>, milestone: &Milestone) -> String {
    let fixed = view.definition.milestones.iter().find(|fixed| fixed.id == milestone.id);
    fixed.map_or_else(
        || milestone.title.as_ref().map(|title| one_line(&view.text(title), 200)).unwrap_or_default(),
        |fixed| fixed.title.clone(),
    )
}

fn notes(view: &View<'_>) -> String {
    view.checkpoint.notes.iter().fold(String::new(), |mut text, (key, note)| {
        let _ = writeln!(text, "## {key}\n{}", without_headings(&view.text(note)));
        text
    })
}

/// A stored text can't pose as a section of the state.
fn without_headings(text: &str) -> String {
    let shield = |line: &str| {
        let heading = line.starts_with("# ") || line.starts_with("## ");
        format!("{}{line}", if heading { " " } else { "" })
    };
    text.trim_end().split('\n').map(shield).collect::<Vec<_>>().join("\n")
}

/// Completed actions that are not shown in full: newer ones a line each, older ones as counts.
pub(super) fn completed(
    view: &View<'_>,
    room: u64,
    shown: &[Ordinal],
    into: &mut String,
    sizes: &mut Vec<SectionSize>,
) {
    let room = share(room, COMPLETED);
    let mut lines: Vec<String> = Vec::new();
    let mut left = room;
    let condensed = view.checkpoint.recent.iter().rev().filter(|settled| !shown.contains(&settled.ordinal));
    let mut beyond = 0_u64;
    for settled in condensed {
        let line = line_of(view, settled);
        match left.checked_sub(line.len() as u64 + 100) {
            Some(rest) => {
                left = rest;
                lines.push(line);
            }
            None => beyond += 1,
        }
    }
    let older: Vec<String> = view
        .checkpoint
        .older
        .iter()
        .map(|(tool, counts)| match counts.not_done {
            0 => format!("{tool} {} ok", counts.done),
            not_done => format!("{tool} {} ok, {not_done} not done", counts.done),
        })
        .collect();
    let each = view.checkpoint.older.values().map(|counts| counts.done.saturating_add(counts.not_done));
    let total = each.fold(0, u64::saturating_add);
    if total > 0 {
        lines.push(format!("- {} earlier: {}", total, one_line(&older.join(", "), 1_000)));
    }
    if beyond > 0 {
        lines.push(format!("- {beyond} more, not shown"));
    }
    lines.reverse();
    put(into, sizes, "Completed actions", &lines.join("\n"), room);
}

fn line_of(view: &View<'_>, settled: &Settled) -> String {
    let arguments = one_line(&view.text(&settled.arguments), 120);
    let outcome = match settled.how {
        How::Done => format!("ok, {} bytes", settled.result.len),
        How::Failed => format!("failed: {}", one_line(&view.text(&settled.result), 120)),
        How::Refused(_) => format!("refused: {}", one_line(&view.text(&settled.result), 120)),
        How::Denied(_) => one_line(&view.text(&settled.result), 120),
        How::Withdrawn => "withdrawn".to_owned(),
        How::Left => "under way in the run that this one was forked from; only that run knows".to_owned(),
        How::Abandoned => "given up, whether it happened is unknown".to_owned(),
    };
    format!("- #{} {} {arguments} -> {outcome}", settled.ordinal, one_line(&settled.tool, 64))
}

/// The sections after the recent actions.
pub(super) fn closing(view: &View<'_>, room: u64, shown: &[Ordinal], sizes: &mut Vec<SectionSize>) -> String {
    let mut text = String::new();
    put(&mut text, sizes, "Open artifacts", &artifacts(view, share(room, ARTIFACTS)), share(room, ARTIFACTS));
    put(&mut text, sizes, "Errors", &errors(view, shown), share(room, ERRORS));
    put(&mut text, sizes, "Loop", &loops(view), 1_000);
    put(&mut text, sizes, "Answers", &answers(view, shown), share(room, ANSWERS));
    put(&mut text, sizes, "Guidance", &guidance(view, share(room, GUIDANCE)), share(room, GUIDANCE));
    put(&mut text, sizes, "Remaining", &remaining(view), 1_000);
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn artifacts(view: &View<'_>, room: u64) -> String {
    let open: Vec<_> = view
        .checkpoint
        .open_artifacts
        .iter()
        .filter_map(|name| view.checkpoint.artifacts.get(name).map(|artifact| (name, artifact)))
        .collect();
    let each = room / (open.len().max(1) as u64);
    open.into_iter().fold(String::new(), |mut text, (name, artifact)| {
        let (version, bytes) = (artifact.version, artifact.content.len);
        let content = if view.shown.contains(&name.as_str()) {
            without_headings(&view.flagged(&artifact.content))
        } else {
            "(too large to show beside the rest; read it in parts, or close it)".to_owned()
        };
        let body = shorten(&content, each.saturating_sub(name.len() as u64 + 60));
        let _ = writeln!(text, "## {name} (version {version}, {bytes} bytes)\n{body}");
        text
    })
}

/// From half of what would stop the run on it is told that it goes round.
fn loops(view: &View<'_>) -> String {
    let (worst, limit) = (view.checkpoint.repeats.worst(), view.checkpoint.limits.loop_repeats);
    if worst.times < limit.div_ceil(2).max(2) {
        return String::new();
    }
    format!(
        "Note: {worst}. It will not come out differently: do something else. After {limit} times the run is stopped.\n"
    )
}

/// Errors that matter: those since the newest decision that are not an action's shown outcome.
fn errors(view: &View<'_>, shown: &[Ordinal]) -> String {
    let newest = view.checkpoint.recent.back().map_or(0, |settled| settled.arguments.seq);
    view.checkpoint
        .errors
        .iter()
        .filter(|error| error.text.seq >= newest)
        .filter(|error| error.ordinal.is_none_or(|ordinal| !shown.contains(&ordinal)))
        .fold(String::new(), |mut text, error| {
            let said = view.text(&error.text);
            let said =
                if said.trim().is_empty() { format!("({} bytes, not shown)", error.text.len).into() } else { said };
            let _ = writeln!(text, "- {}", one_line(&said, 300));
            text
        })
}

fn answers(view: &View<'_>, shown: &[Ordinal]) -> String {
    let asked =
        |settled: &&Settled| settled.tool == "ask" && settled.how == How::Done && !shown.contains(&settled.ordinal);
    view.checkpoint.recent.iter().filter(asked).fold(String::new(), |mut text, settled| {
        let arguments: Value = serde_json::from_str(&view.text(&settled.arguments)).unwrap_or(Value::Null);
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(text, "- {} -> {}", one_line(question, 300), one_line(&view.text(&settled.result), 600));
        text
    })
}

/// What people said since the newest decision. Each has a part of the room, so that no word crowds out another.
fn guidance(view: &View<'_>, room: u64) -> String {
    let all = &view.checkpoint.guidance;
    if all.is_empty() {
        return String::new();
    }
    let heading = "From people, shown until your next decision; put what has to last into a note.\n";
    let each = room.saturating_sub(heading.len() as u64) / all.len() as u64;
    all.iter().fold(heading.to_owned(), |mut text, guidance| {
        let said = without_headings(&view.text(&guidance.text));
        let by = one_line(&guidance.by, 64);
        let _ = writeln!(text, "- {by}: {}", shorten(&said, each.saturating_sub(by.len() as u64 + 5)));
        text
    })
}

fn remaining(view: &View<'_>) -> String {
    let rows = view.checkpoint.remaining();
    let low: Vec<&str> = rows.iter().filter(|row| row.is_low()).map(|row| row.quota.as_str()).collect();
    let mut text = rows.iter().fold(String::new(), |mut text, row| {
        let name = row.quota.as_str();
        let _ = writeln!(text, "- {name}: {} of {}", row.quota.shown(row.left), row.quota.shown(row.limit));
        text
    });
    if !low.is_empty() {
        let _ = writeln!(
            text,
            "Low: {}. At 0 the run stops until a person adds to it. Do what matters most first, and finish with what there is.",
            low.join(", ")
        );
    }
    text
}
