//! What changed between two states, in words: of one run at two steps, or of two runs.

use lodestep_core::Stored;
use lodestep_core::checkpoint::{Action, ActionState, Checkpoint, How, Milestone, Settled};
use lodestep_core::event::{Evidence, Gate};
use serde::Serialize;

use crate::inspect::Opened;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The part of the state: `status`, `definition`, `inputs`, `plan`, `notes`, `actions`, `artifacts`, `quotas`,
    /// `errors`.
    pub part: &'static str,
    /// What in it: a milestone, a note's key, an action's number, a quota.
    pub of: String,
    /// How it was; `None` when it was not there.
    pub before: Option<String>,
    /// How it is; `None` when it is gone.
    pub after: Option<String>,
}

/// Longer texts are shown up to here: 200 characters.
const SHOWN: usize = 200;

/// Every difference, in the order of the parts of a state.
pub fn diff(before: &Opened, after: &Opened) -> Vec<Change> {
    let mut all = Vec::new();
    let status = |opened: &Opened| {
        let why = lodestep_store::rows::why(&opened.standing);
        let status = opened.standing.status.as_str();
        if why.is_empty() { status.to_owned() } else { format!("{status}: {why}") }
    };
    all.extend(change("status", "", Some(status(before)), Some(status(after))));
    let pinned = |stored: &Stored| Some(stored.digest.to_hex());
    all.extend(change("definition", "", pinned(&before.checkpoint.definition), pinned(&after.checkpoint.definition)));
    all.extend(change("inputs", "", Some(before.inputs.to_string()), Some(after.inputs.to_string())));
    rows(&mut all, "plan", before, after, plan);
    rows(&mut all, "notes", before, after, notes);
    rows(&mut all, "actions", before, after, actions);
    rows(&mut all, "artifacts", before, after, artifacts);
    rows(&mut all, "quotas", before, after, quotas);
    rows(&mut all, "guidance", before, after, guidance);
    rows(&mut all, "signals", before, after, signals);
    rows(&mut all, "errors", before, after, errors);
    all
}

fn change(part: &'static str, of: &str, before: Option<String>, after: Option<String>) -> Option<Change> {
    (before != after).then(|| Change { part, of: of.to_owned(), before, after })
}

/// Rows of a part: what is compared, by name.
type Rows = Vec<(String, String)>;

fn rows(all: &mut Vec<Change>, part: &'static str, before: &Opened, after: &Opened, of: fn(&Opened) -> Rows) {
    let (before, after) = (of(before), of(after));
    let find = |rows: &Rows, name: &str| rows.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
    for (name, text) in &before {
        all.extend(change(part, name, Some(text.clone()), find(&after, name)));
    }
    for (name, text) in after.iter().filter(|(name, _)| find(&before, name).is_none()) {
        all.extend(change(part, name, None, Some(text.clone())));
    }
}

fn plan(opened: &Opened) -> Rows {
    let word = |milestone: &Milestone| match &milestone.reached {
        None => "open".to_owned(),
        Some(Evidence::Action(ordinal)) => format!("reached by action {ordinal}"),
        Some(Evidence::Artifact(name, version)) => format!("reached by {name}, version {version}"),
        Some(Evidence::Declared) => "reached, self-declared".to_owned(),
    };
    opened.checkpoint.plan.iter().map(|milestone| (milestone.id.clone(), word(milestone))).collect()
}

fn notes(opened: &Opened) -> Rows {
    opened.checkpoint.notes.iter().map(|(key, note)| (key.clone(), shown(&opened.text(note)))).collect()
}

fn actions(opened: &Opened) -> Rows {
    let checkpoint = &opened.checkpoint;
    let older = checkpoint
        .older
        .iter()
        .map(|(tool, counts)| (format!("earlier {tool}"), format!("{} done, {} not", counts.done, counts.not_done)));
    let settled = checkpoint.recent.iter().map(|settled| named(settled.ordinal.0, &settled.tool, how(settled)));
    let pending = checkpoint.pending.values().map(|action| named(action.ordinal.0, &action.tool, waits(action)));
    older.chain(settled).chain(pending).collect()
}

fn named(ordinal: u32, tool: &str, state: &str) -> (String, String) {
    (ordinal.to_string(), format!("{tool} {state}"))
}

fn how(settled: &Settled) -> &'static str {
    match settled.how {
        How::Done => "done",
        How::Failed => "failed",
        How::Refused(_) => "refused",
        How::Denied(_) => "denied",
        How::Withdrawn => "withdrawn",
        How::Abandoned => "given up",
        How::Left => "left to the origin",
    }
}

fn waits(action: &Action) -> &'static str {
    match action.state {
        ActionState::Gated { gate: Gate::Signal(_) } => "waits for a signal",
        ActionState::Gated { gate: Gate::Timer(_) } => "waits for a time",
        ActionState::Gated { gate: Gate::Quota } => "waits for room in a quota",
        ActionState::Gated { .. } => "waits for a word",

        ActionState::Ready { .. } => "is about to be done",
        ActionState::Open { .. } => "is under way",
        ActionState::LookUp { .. } => "is looked up",
        ActionState::Held { .. } => "waits for a dedupe key",
        ActionState::Doubt { .. } => "is in doubt",
    }
}

fn artifacts(opened: &Opened) -> Rows {
    let checkpoint: &Checkpoint = &opened.checkpoint;
    let open = |name: &String| if checkpoint.open_artifacts.contains(name) { ", open" } else { "" };
    let word = |(name, artifact): (&String, &lodestep_core::checkpoint::Artifact)| {
        let text = format!("version {}, {} bytes{}", artifact.version, artifact.content.len, open(name));
        (name.clone(), text)
    };
    checkpoint.artifacts.iter().map(word).collect()
}

/// What people said that no decision has seen, by who said it and when it was read.
fn guidance(opened: &Opened) -> Rows {
    let told = opened.checkpoint.guidance.iter();
    told.map(|told| (format!("{} at {}", told.by, told.at), shown(&opened.text(&told.text)))).collect()
}

/// Signals that no wait has taken, by their name and when they were read.
fn signals(opened: &Opened) -> Rows {
    let signals = opened.checkpoint.signals.iter();
    signals.map(|signal| (format!("{} at {}", signal.name, signal.at), shown(&opened.text(&signal.value)))).collect()
}

fn quotas(opened: &Opened) -> Rows {
    let quota = &opened.checkpoint.quota;
    let used = &quota.used;
    let spent = [
        ("model calls used", used.model_calls),
        ("tool calls used", used.tool_calls),
        ("input tokens used", used.input_tokens),
        ("output tokens used", used.output_tokens),
        ("micro-usd used", used.usd_micro),
    ];
    let spent = spent.into_iter().map(|(name, number)| (name.to_owned(), number.to_string()));
    // Of the deadline the limit is compared: what is left of it differs between any two states.
    let left = quota.remaining(0).into_iter().map(|row| {
        let (left, limit) = (row.quota.shown(row.left), row.quota.shown(row.limit));
        (row.quota.as_str().to_owned(), format!("{left} of {limit} left"))
    });
    spent.chain(left).collect()
}

fn errors(opened: &Opened) -> Rows {
    let counts = opened.checkpoint.error_counts.iter();
    counts.map(|(kind, count)| (format!("{kind:?}").to_lowercase(), count.to_string())).collect()
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}
