//! What is shown while a run goes on: a line for each thing that happened, on stderr.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestep::core::checkpoint::Checkpoint;
use lodestep::core::event::{Ending, ErrorKind, Gate, SettledBy};
use lodestep::core::quota::Quota;
use lodestep::core::rules::standing::standing;
use lodestep::core::{Digest, Event, Ordinal, RunKey};
use lodestep::observe::Observer;
use lodestep::rehearsal::Unsent;
use lodestep::store::rows;
use serde_json::{Value, json};

use crate::live::Live;
use crate::text::{columns, compact, line};

/// What happened is not cut to fewer columns than these for the sake of where the run stands.
const LEAST_COLUMNS: usize = 30;

/// From so many milliseconds on it is said until when nothing will happen.
pub const LONG_WAIT_MS: u64 = 30_000;

/// Prints progress.
pub struct Progress {
    pace: Option<Duration>,
    several: bool,
    /// Lines of JSON on stdout in the place of prose on stderr.
    as_json: bool,
    /// Of a dry run what was not sent so far.
    unsent: Arc<Mutex<Vec<Unsent>>>,
    names: Mutex<BTreeMap<(RunKey, Ordinal), String>>,
    /// Tools whose last attempt, in whatever run, was not sent: that was told.
    failing: Mutex<BTreeSet<String>>,
    live: Live,
}

impl Progress {
    /// Progress of one run, or of several that are told apart; each step waits for `pace`.
    pub fn new(pace: Option<Duration>, several: bool) -> Self {
        Self {
            pace,
            several,
            as_json: false,
            unsent: Arc::default(),
            names: Mutex::default(),
            failing: Mutex::default(),
            live: Live::default(),
        }
    }

    /// Progress of several runs for programs: what is told of a transition is a line of JSON on stdout, as `watch` has it.
    pub fn for_programs() -> Self {
        Self { as_json: true, ..Self::new(None, true) }
    }

    /// Progress of a dry run: what is in the list when its action is done was not sent.
    pub fn of_dry_run(pace: Option<Duration>, unsent: Arc<Mutex<Vec<Unsent>>>) -> Self {
        Self { unsent, ..Self::new(pace, false) }
    }

    /// Names an action that was proposed before this process came, as its own lines would.
    pub fn know(&self, run: &RunKey, ordinal: Ordinal, tool: &str, arguments: &[u8]) {
        self.names().insert((run.clone(), ordinal), format!("{tool}{}", summary(arguments)));
    }

    /// An action as it is told of: its tool and arguments, or at least its tool.
    fn name(&self, run: &RunKey, ordinal: Ordinal, after: &Checkpoint) -> String {
        if let Some(name) = self.names().get(&(run.clone(), ordinal)) {
            return name.clone();
        }
        let settled = after.recent.iter().rev().find(|settled| settled.ordinal == ordinal);
        let pending = after.pending.get(&ordinal).map(|action| &action.tool);
        let tool = settled.map(|settled| &settled.tool).or(pending);
        tool.map_or_else(|| format!("action {ordinal}"), |tool| format!("{} (action {ordinal})", line(tool, 64)))
    }

    /// A tool that can't be reached is told of once, until something of it succeeds: its attempts may go on for hours.
    fn fails_first(&self, ordinal: Ordinal, after: &Checkpoint) -> bool {
        let tool = after.pending.get(&ordinal).map(|action| action.tool.clone());
        tool.is_some_and(|tool| self.failing().insert(tool))
    }

    fn was_sent(&self, ordinal: Ordinal) -> bool {
        let unsent = self.unsent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        !unsent.iter().any(|unsent| unsent.action == ordinal)
    }

    fn failing(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.failing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn names(&self) -> std::sync::MutexGuard<'_, BTreeMap<(RunKey, Ordinal), String>> {
        self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What of a transition is worth telling.
    pub fn told(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) -> Vec<String> {
        events.iter().filter_map(|event| self.describe(run, event, values, after)).collect()
    }

    /// What an event is worth telling.
    fn describe(&self, run: &RunKey, event: &Event, values: &[Vec<u8>], after: &Checkpoint) -> Option<String> {
        let text = |digest: &Digest| {
            let bytes = values.iter().find(|bytes| Digest::of(bytes) == *digest)?;
            Some(line(&String::from_utf8_lossy(bytes), 100))
        };
        match event {
            Event::ActionProposed(event) => {
                let arguments = values.iter().find(|bytes| Digest::of(bytes) == event.arguments.digest);
                let name = format!("{}{}", event.tool, arguments.map(|bytes| summary(bytes)).unwrap_or_default());
                let shown = event.class.is_repeatable() || event.tool == "ask";
                self.names().insert((run.clone(), event.ordinal), name.clone());
                match &event.gate {
                    Gate::Timer(until) => return Some(format!("waits until {until}")),
                    Gate::Signal(wait) => return Some(format!("waits for signal {}", wait.name)),
                    _ => {}
                }
                (!shown).then(|| format!("proposes {name}"))
            }
            Event::ActionFinished(event) => {
                let name = self.name(run, event.ordinal, after);
                self.names().remove(&(run.clone(), event.ordinal));
                let tool = after.recent.iter().rev().find(|settled| settled.ordinal == event.ordinal);
                if let Some(settled) = tool.filter(|_| event.ok) {
                    self.failing().remove(&settled.tool);
                }
                let how = match (event.ok, event.by) {
                    (true, _) if !self.was_sent(event.ordinal) => " (dry run: not sent)",
                    (true, SettledBy::Lookup) => " (found by its lookup)",
                    (true, SettledBy::SameEffect) => " (done before; not repeated)",
                    (true, SettledBy::OtherRun) => " (done by another run; not repeated)",
                    (true, SettledBy::LateReport) => " (reported late)",
                    (true, _) => "",
                    (false, _) => " failed",
                };
                let why = if event.ok { None } else { text(&event.result.digest) };
                Some(format!("{name}{how}{}", why.map(|why| format!(": {why}")).unwrap_or_default()))
            }
            Event::ActionRefused(event) => {
                Some(format!("{} refused: {}", event.tool, text(&event.text.digest).unwrap_or_default()))
            }
            Event::AttemptNotSent(event) if self.fails_first(event.ordinal, after) => Some(format!(
                "{} was not sent and is tried again: {}",
                self.name(run, event.ordinal, after),
                text(&event.text.digest).unwrap_or_default()
            )),
            Event::AttemptUnknown(event) => Some(format!(
                "outcome of {} unknown: {}",
                self.name(run, event.ordinal, after),
                text(&event.text.digest).unwrap_or_default()
            )),
            Event::CallLost(_) => Some("a reply was lost; it is asked again and charged".to_owned()),
            Event::CallFailed(event) => {
                let said = text(&event.text.digest).unwrap_or_default();
                let is_long = event.not_before.ms_since(after.at) > LONG_WAIT_MS;
                // The time first: the end of a row may not be seen.
                let until = if is_long { format!("asked again at {}: ", event.not_before) } else { String::new() };
                Some(format!("model: {until}{}", line(&said, 100)))
            }
            Event::ErrorLogged(event) if event.kind == ErrorKind::Reply => {
                // Each is a sentence by itself.
                Some(text(&event.text.digest).unwrap_or_default())
            }
            Event::ActionApproved(event) => {
                Some(format!("{} approved by {}", self.name(run, event.ordinal, after), event.by))
            }
            Event::ActionDenied(event) => {
                Some(format!("{}: {}", self.name(run, event.ordinal, after), text(&event.text.digest)?))
            }
            Event::SignalTaken(event) => Some(format!("{}: the signal came", self.name(run, event.ordinal, after))),
            Event::TimerFired(event) => {
                Some(format!("{}: {}", self.name(run, event.ordinal, after), text(&event.result.digest)?))
            }
            Event::DeadlinePassed(event) => {
                Some(format!("{} failed: {}", self.name(run, event.ordinal, after), text(&event.text.digest)?))
            }
            Event::GuidanceGiven(event) => Some(format!("told by {}: {}", event.by, text(&event.text.digest)?)),
            Event::QuotaRaised(event) => {
                let amount = event.quota.shown(event.amount);
                Some(format!("{} added {amount} to {}", event.by, event.quota.as_str()))
            }
            Event::RunUpgraded(event) => Some(format!("moved to another definition by {}", event.by)),
            Event::ActionRebound(event) => {
                Some(format!("{} goes by its tool as it is now", self.name(run, event.ordinal, after)))
            }
            Event::RunStopped(event) => Some(format!("stopped: {}", text(&event.text.digest).unwrap_or_default())),
            Event::CancelRequested(event) => Some(format!("cancelled by {}", event.by)),
            Event::HandedOver(_) => Some("handed over".to_owned()),
            Event::RunEnded(event) => Some(match event.ending {
                Ending::Completed => format!("completed after {} decisions", after.model.decisions),
                Ending::Failed => "failed".to_owned(),
                Ending::Cancelled => "cancelled".to_owned(),
            }),
            _ => None,
        }
    }
}

impl Observer for Progress {
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) {
        let told = self.told(run, events, values, after);
        self.live.clear();
        if self.as_json {
            if !told.is_empty() {
                crate::app::print_out(&format!("{}\n", as_json(run, events, &told, after)));
            }
            return;
        }
        let tail = state(after);
        for what in &told {
            let id = run.run.as_str();
            let who = if self.several { format!("{}  ", &id[id.len().saturating_sub(6)..]) } else { String::new() };
            lodestep::note!(
                "{}",
                fitted(&format!("{who}step {:<4} ", after.seq), what, &tail, columns(std::io::stderr()))
            );
        }
        if let Some(pace) = self.pace.filter(|_| !told.is_empty()) {
            std::thread::sleep(pace);
        }
    }

    /// Of several runs no single one has the row.
    fn streamed(&self, _run: &RunKey, piece: lodestep::model::Progress<'_>) {
        if !self.several && !self.as_json {
            self.live.take(piece);
        }
    }
}

/// A transition as a line of JSON: where it left the run, and what is told of it, or else the names of its events.
pub fn as_json(run: &RunKey, events: &[Event], told: &[String], after: &Checkpoint) -> Value {
    let names: Vec<&str> = events.iter().map(Event::name).collect();
    let what = if told.is_empty() { names.join(", ") } else { told.join("; ") };
    let stands = standing(after);
    json!({"run": run.run, "agent": after.agent, "step": after.seq, "at": after.at.to_string(), "status": stands.status,
        "why": rows::why(&stands), "events": names, "what": what})
}

/// A line of progress: what happened, and where the run stands. On a terminal it has one row: what happened is cut, and where
/// little would be left of it, it stands alone.
fn fitted(head: &str, what: &str, tail: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return format!("{head}{:<60} {tail}", line(what, 110)) };
    let room = columns.saturating_sub(head.chars().count());
    let beside = room.saturating_sub(tail.chars().count() + 1);
    if beside < LEAST_COLUMNS {
        return format!("{head}{}", line(what, room.max(1)));
    }
    let width = beside.min(60);
    format!("{head}{:<width$} {tail}", line(what, beside.min(110)))
}

fn state(after: &Checkpoint) -> String {
    let reached = after.plan.iter().filter(|milestone| milestone.reached.is_some()).count();
    let plan =
        if after.plan.is_empty() { String::new() } else { format!("milestones {reached}/{}  ", after.plan.len()) };
    let used = &after.quota.used;
    let money = match after.quota.limits.usd_micro {
        // Exact: rounded, less than the limit could look like all of it, and all of it like less.
        Some(limit) => format!("  ${} of ${}", Quota::Usd.shown(used.usd_micro), Quota::Usd.shown(limit)),
        None => String::new(),
    };
    format!("{plan}{} tok{money}", compact(used.total_tokens()))
}

/// The arguments in a few words: for a range of lines as `name:from-to`, else the short values.
fn summary(arguments: &[u8]) -> String {
    let Ok(Value::Object(arguments)) = serde_json::from_slice::<Value>(arguments) else {
        return String::new();
    };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let number = |name: &str| arguments.get(name).and_then(Value::as_f64).map(|number| number as u64);
    if let Some(name) = text("name").or(text("key")).or(text("milestone")).or(text("question")) {
        let range = match (number("from"), number("lines")) {
            (Some(from), Some(lines)) => format!(":{from}-{}", from + lines.saturating_sub(1)),
            (Some(from), None) => format!(":{from}-"),
            _ => String::new(),
        };
        return format!(" {}{range}", line(name, 60));
    }
    let short: Vec<String> = arguments
        .iter()
        .map(|(name, value)| match value {
            Value::Object(pinned) if pinned.contains_key("artifact") => {
                format!("{name}={}", pinned["artifact"].as_str().unwrap_or_default())
            }
            other => format!("{name}={}", line(&other.to_string(), 40)),
        })
        .take(3)
        .collect();
    if short.is_empty() { String::new() } else { format!(" {}", short.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn a_line_fits_the_terminal() {
        let (head, what, tail) = (
            "step 14   ",
            "documents_read 2349-pin.md:60-110 and much more of it".repeat(3),
            "milestones 1/2  31k tok",
        );
        for columns in [10, 40, 64, 80, 100, 200] {
            let shown = fitted(head, &what, tail, Some(columns)).chars().count();
            assert!(shown <= columns.max(head.len() + 1), "{columns}: {shown}");
        }
        assert!(fitted(head, &what, tail, Some(80)).ends_with(tail), "where the run stands is shown at 80 columns");
        assert!(!fitted(head, &what, tail, Some(50)).contains(tail), "and not at the cost of what happened");
        assert_eq!(fitted(head, "short", tail, None), format!("{head}{:<60} {tail}", "short"), "as elsewhere");
    }
}
