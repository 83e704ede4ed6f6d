//! What an upgrade means for a run: read off the events that it would bring.

use lodestep_core::checkpoint::{ActionState, Checkpoint};
use lodestep_core::event::Gate;
use lodestep_core::{Draft, Event, Ordinal, Timestamp, ValueRef};
use serde::Serialize;

/// What becomes of an action, or of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is asked anew, under another name.
    AskedAnew,
    /// It goes by its tool as it is now.
    GoesOn,
    /// It is taken back, and the model is told why.
    TakenBack,
    /// It may have begun: it ends by the definition before.
    EndsAsItBegan,
    /// It is in doubt, and stays so.
    StaysInDoubt,
    /// The run goes on that had stopped.
    Resumes,
    /// The run stays stopped.
    StaysStopped,
}

/// One thing that an upgrade means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The action; `None` when the run is meant.
    pub action: Option<Ordinal>,
    /// The action's tool.
    pub tool: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
    /// In words.
    pub text: String,
}

pub(super) fn of(events: &[Event], now: &Checkpoint, draft: &Draft) -> Vec<Meaning> {
    let mut all: Vec<Meaning> = events.iter().flat_map(|event| meant(event, now, draft)).collect();
    let doubtful = now.pending.values().filter(|action| matches!(action.state, ActionState::Doubt { .. }));
    let untold = |ordinal: Ordinal| !all.iter().any(|meaning| meaning.action == Some(ordinal));
    let doubts: Vec<Ordinal> =
        doubtful.map(|action| action.ordinal).filter(|ordinal| !events.is_empty() && untold(*ordinal)).collect();
    all.extend(doubts.into_iter().map(|ordinal| of_action(now, ordinal, Fate::StaysInDoubt, DOUBT.to_owned())));
    all.sort_by_key(|meaning| meaning.action);
    if !events.is_empty()
        && let lodestep_core::checkpoint::Phase::Stopped { reason, .. } = &draft.checkpoint().phase
    {
        let next = if reason.is_quarantine() { "release" } else { "resume" };
        let text = format!("it stays stopped: {}; `lodestep {next} RUN` lets it go on", reason.as_str());
        all.push(Meaning { action: None, tool: None, fate: Fate::StaysStopped, text });
    }
    all
}

const DOUBT: &str = "is in doubt and stays so, under the class and key that it was sent with";

fn meant(event: &Event, now: &Checkpoint, draft: &Draft) -> Vec<Meaning> {
    match event {
        Event::RunUpgraded(upgraded) => upgraded.kept.iter().map(|ordinal| kept(now, *ordinal)).collect(),
        Event::ActionRebound(rebound) => {
            let (fate, text) = match &rebound.gate {
                Gate::Approval(request) => {
                    let until = request.expires_at.map(|at: Timestamp| format!(", expires {at}")).unwrap_or_default();
                    (
                        Fate::AskedAnew,
                        format!("nothing was sent: it is asked anew as {}{until}", &request.name.to_hex()[..8]),
                    )
                }
                _ => (Fate::GoesOn, "nothing was sent: it goes by its tool as it is then".to_owned()),
            };
            vec![of_action(now, rebound.ordinal, fate, text)]
        }
        Event::ActionWithdrawn(withdrawn) => {
            let why = text_of(draft, &withdrawn.text);
            vec![of_action(
                now,
                withdrawn.ordinal,
                Fate::TakenBack,
                format!("is taken back, and the model is told: {why}"),
            )]
        }
        Event::RunResumed(_) => {
            let text = "the run had stopped for what an upgrade can mend, and goes on".to_owned();
            vec![Meaning { action: None, tool: None, fate: Fate::Resumes, text }]
        }
        _ => Vec::new(),
    }
}

fn kept(now: &Checkpoint, ordinal: Ordinal) -> Meaning {
    let doubt = now.pending.get(&ordinal).is_some_and(|action| matches!(action.state, ActionState::Doubt { .. }));
    if doubt {
        return of_action(now, ordinal, Fate::StaysInDoubt, DOUBT.to_owned());
    }
    let text = "may have begun: it ends by the definition before, under its stored class and key".to_owned();
    of_action(now, ordinal, Fate::EndsAsItBegan, text)
}

fn of_action(now: &Checkpoint, ordinal: Ordinal, fate: Fate, text: String) -> Meaning {
    let tool = now.pending.get(&ordinal).map(|action| action.tool.clone());
    Meaning { action: Some(ordinal), tool, fate, text }
}

fn text_of(draft: &Draft, value: &ValueRef) -> String {
    let bytes = draft.values().iter().find(|(digest, _)| *digest == value.digest).map(|(_, bytes)| bytes);
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
