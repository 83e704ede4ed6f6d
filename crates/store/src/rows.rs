//! What a transition means for the tables beside the journal: drawn from its events, the same for every store.

use lodestep_core::checkpoint::{Action, ActionState, Checkpoint};
use lodestep_core::event::{DedupeEnd, Ending, Event, Gate, SettledBy};
use lodestep_core::rules::standing::{Reason, Standing, Status};
use lodestep_core::{Digest, Labels, Ordinal, Stored, Timestamp, Transition};

use crate::store::{ArtifactRow, EffectRow};

/// The rows that a transition adds or changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Effects with their first intent in it.
    pub effects: Vec<EffectRow>,
    /// Versions of artifacts.
    pub artifacts: Vec<ArtifactRow>,
    /// Requests that it opened.
    pub opened: Vec<(Digest, Ordinal)>,
    /// Requests that it closed.
    pub closed: Vec<Digest>,
    /// What happened to dedupe keys, in order.
    pub keys: Vec<KeyChange>,
    /// Does it hold an intent, or the run's own end? Then no cancel, pause or upgrade may be unread: an accepted one is
    /// never overtaken.
    pub yields_to_cancel: bool,
    /// Does it hold an intent, or a call's reservation? Then its worker has to know every hold.
    pub yields_to_hold: bool,
    /// Does it hold an outcome, or a person's word to go on? Then crashes are counted anew.
    pub clears_crashes: bool,
}

impl Rows {
    /// Draws the rows from a transition: its events, and the state after it.
    pub fn of(events: &[Event], after: &Checkpoint) -> Self {
        let mut rows = Self::default();
        for event in events {
            rows.add(event, after);
        }
        let closed = after.closed_requests.iter().rev().take(events.len());
        let settled_now = |ordinal: Ordinal| closes(events, ordinal);
        rows.closed.extend(closed.filter(|closed| settled_now(closed.ordinal)).map(|closed| closed.name));
        // One that was approved and lapsed in the same transition is open after it.
        rows.closed.retain(|name| !after.pending.values().any(|action| asks(action, name)));
        rows
    }

    fn add(&mut self, event: &Event, after: &Checkpoint) {
        match event {
            Event::ActionProposed(proposed) => {
                if let Gate::Approval(request) | Gate::Answer(request) = &proposed.gate {
                    self.opened.push((request.name, proposed.ordinal));
                }
            }
            Event::QuotaGranted(granted) => {
                if let Gate::Approval(request) | Gate::Answer(request) = &granted.gate {
                    self.opened.push((request.name, granted.ordinal));
                }
            }
            Event::ApprovalLapsed(lapsed) => {
                self.keys.push(KeyChange::GoesOn(lapsed.ordinal));
                let gate = after.pending.get(&lapsed.ordinal).map(|action| &action.state);
                if let Some(ActionState::Gated { gate: Gate::Approval(request) }) = gate {
                    self.opened.push((request.name, lapsed.ordinal));
                }
            }
            Event::AttemptStarted(started) => {
                self.yields_to_cancel = true;
                self.yields_to_hold = true;
                let action = after.pending.get(&started.ordinal);
                if let Some(same) = action.filter(|_| started.attempt == 1).and_then(|action| action.same) {
                    let seq = after.seq;
                    self.effects.push(EffectRow { same, ordinal: started.ordinal, seq });
                }
            }
            Event::CallReserved(_) => self.yields_to_hold = true,
            Event::RunForked(_) => self.artifacts.extend(after.artifacts.iter().map(|(name, artifact)| ArtifactRow {
                name: name.clone(),
                version: artifact.version,
                content: artifact.content,
            })),
            Event::ArtifactSaved(saved) => self.artifacts.push(ArtifactRow {
                name: saved.name.clone(),
                version: saved.version,
                content: Stored::at(saved.content, after.seq),
            }),
            Event::ActionFinished(finished) => {
                self.clears_crashes = true;
                if matches!(finished.by, SettledBy::OtherRun | SettledBy::LateReport) {
                    self.keys.push(KeyChange::GoesOn(finished.ordinal));
                }
            }
            Event::CallAnswered(_) | Event::RunResumed(_) => self.clears_crashes = true,
            Event::DedupeTaken(taken) => {
                self.keys.push(KeyChange::GoesOn(taken.ordinal));
                let (key, ordinal, same) = (taken.key.clone(), taken.ordinal, taken.same);
                self.keys.push(KeyChange::Taken(KeyRow { key, ordinal, same, fate: KeyFate::Open }));
            }
            Event::DedupeClosed(closed) => self.keys.push(KeyChange::Closed(
                closed.ordinal,
                match closed.end {
                    DedupeEnd::Free => None,
                    DedupeEnd::Done(result) => Some(KeyFate::Done(Stored::at(result, after.seq))),
                    DedupeEnd::Unknown => Some(KeyFate::Unknown),
                },
            )),
            Event::ActionHeld(held) => {
                if let Some(key) = after.pending.get(&held.ordinal).and_then(|action| action.dedupe.clone()) {
                    self.keys.push(KeyChange::Waits(held.ordinal, key));
                }
            }
            Event::ActionRebound(rebound) => {
                self.keys.push(KeyChange::GoesOn(rebound.ordinal));
                if let Gate::Approval(request) = &rebound.gate {
                    self.opened.push((request.name, rebound.ordinal));
                }
            }
            Event::ActionWithdrawn(event) => self.keys.push(KeyChange::GoesOn(event.ordinal)),
            Event::DeadlinePassed(event) => self.keys.push(KeyChange::GoesOn(event.ordinal)),
            Event::RunEnded(ended) if ended.ending != Ending::Cancelled => self.yields_to_cancel = true,
            _ => {}
        }
    }
}

/// Is this request of the action's open?
fn asks(action: &Action, name: &Digest) -> bool {
    match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => request.name == *name,
        _ => false,
    }
}

/// The labels that a run's first transition gives it.
pub fn labels_of(first: &Transition) -> Labels {
    labels_in(&first.events)
}

/// The same, from the first transition's events.
pub fn labels_in(events: &[Event]) -> Labels {
    match events.first() {
        Some(Event::RunStarted(started)) => started.labels.clone().unwrap_or_default(),
        Some(Event::RunForked(forked)) => forked.labels.clone().unwrap_or_default(),
        _ => Labels::new(),
    }
}

/// A dedupe key that an action of a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The key.
    pub key: String,
    /// The action.
    pub ordinal: Ordinal,
    /// What makes another run's effect the same.
    pub same: Digest,
    /// What is known of the effect.
    pub fate: KeyFate,
}

/// What is known of the effect that has a dedupe key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFate {
    /// Not yet anything.
    Open,
    /// It happened, with this result.
    Done(Stored),
    /// Nobody will ever know.
    Unknown,
}

/// What a transition does to dedupe keys, and to who waits for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// An action takes a key. The commit is refused when another has it.
    Taken(KeyRow),
    /// An action's key is free again, or is kept with what became of its effect.
    Closed(Ordinal, Option<KeyFate>),
    /// An action waits for a key that another has.
    Waits(Ordinal, String),
    /// An action waits no more.
    GoesOn(Ordinal),
}

/// What stands beside a run's journal after some of its transitions, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Effects with an intent.
    pub effects: Vec<EffectRow>,
    /// Every version of every artifact.
    pub artifacts: Vec<ArtifactRow>,
    /// Questions to people.
    pub requests: Vec<Asked>,
    /// Dedupe keys that its actions have.
    pub keys: Vec<KeyRow>,
    /// Actions that wait for a dedupe key of another's.
    pub waits: Vec<(Ordinal, String)>,
}

/// A request of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub name: Digest,
    /// The action.
    pub ordinal: Ordinal,
    /// Is it open?
    pub open: bool,
}

impl Tables {
    /// Adds and changes the rows of a transition.
    pub fn take_in(&mut self, rows: Rows) {
        self.effects.extend(rows.effects);
        self.artifacts.extend(rows.artifacts);
        for (name, ordinal) in rows.opened {
            match self.requests.iter_mut().find(|asked| asked.name == name) {
                Some(again) => again.open = true,
                None => self.requests.push(Asked { name, ordinal, open: true }),
            }
        }
        let closed = self.requests.iter_mut().filter(|asked| rows.closed.contains(&asked.name));
        closed.for_each(|asked| asked.open = false);
        rows.keys.into_iter().for_each(|change| self.change_key(change));
    }

    /// The changes that make the rows of its dedupe keys anew.
    pub fn key_changes(&self) -> Vec<KeyChange> {
        let taken = self.keys.iter().flat_map(|row| {
            let closed = KeyChange::Closed(row.ordinal, Some(row.fate));
            [KeyChange::Taken(row.clone()), closed]
        });
        let waits = self.waits.iter().map(|(ordinal, key)| KeyChange::Waits(*ordinal, key.clone()));
        taken.chain(waits).collect()
    }

    fn change_key(&mut self, change: KeyChange) {
        match change {
            KeyChange::Taken(row) => self.keys.push(row),
            KeyChange::Closed(ordinal, None) => self.keys.retain(|row| row.ordinal != ordinal),
            KeyChange::Closed(ordinal, Some(fate)) => {
                self.keys.iter_mut().filter(|row| row.ordinal == ordinal).for_each(|row| row.fate = fate);
            }
            KeyChange::Waits(ordinal, key) => {
                self.waits.retain(|(of, _)| *of != ordinal);
                self.waits.push((ordinal, key));
            }
            KeyChange::GoesOn(ordinal) => self.waits.retain(|(of, _)| *of != ordinal),
        }
    }
}

/// What a transition says in a run's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The transition.
    pub seq: u64,
    /// The head of the chain.
    pub digest: Digest,
    /// The status.
    pub status: Status,
    /// Why, in a few words.
    pub why: String,
    /// The position of the last message that was read.
    pub inbox_read: u64,
    /// The journal time.
    pub updated_at: Timestamp,
}

impl Head {
    /// Draws the head from the state after a transition and where the run stands in it.
    pub fn of(after: &Checkpoint, standing: &Standing) -> Self {
        Self {
            seq: after.seq,
            digest: after.head,
            status: standing.status,
            why: why(standing),
            inbox_read: after.inbox,
            updated_at: after.at,
        }
    }
}

/// Does one of these events close a request of that action?
fn closes(events: &[Event], ordinal: Ordinal) -> bool {
    events.iter().any(|event| match event {
        Event::ActionApproved(event) => event.ordinal == ordinal,
        Event::ActionDenied(event) => event.ordinal == ordinal,
        Event::QuestionAnswered(event) => event.ordinal == ordinal,
        Event::ActionWithdrawn(event) => event.ordinal == ordinal,
        Event::DeadlinePassed(event) => event.ordinal == ordinal,
        Event::ActionRebound(event) => event.ordinal == ordinal,
        // A person took an equal effect's outcome in the place of an approval.
        Event::ActionFinished(event) => event.by == SettledBy::SameEffect && event.ordinal == ordinal,
        _ => false,
    })
}

/// Why a run is where it is, in a few words for a listing.
pub fn why(standing: &Standing) -> String {
    let words: Vec<String> = standing.reasons.iter().take(3).map(reason_words).collect();
    let more = standing.reasons.len().saturating_sub(3);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("{}{more}", words.join(", "))
}

fn reason_words(reason: &Reason) -> String {
    match reason {
        Reason::Approval { request, since, until, .. } => asked("approval", request, *since, *until),
        Reason::Answer { request, since, until, .. } => asked("answer", request, *since, *until),
        Reason::Signal { name, since, until: None, .. } => format!("signal {name} since {since}"),
        Reason::Signal { name, since, until: Some(until), .. } => format!("signal {name} since {since}, until {until}"),
        Reason::Timer { since, until, .. } => format!("timer since {since}, until {until}"),
        Reason::Retry { action, at } => format!("retry of action {action} at {at}"),
        Reason::Held { run, by, .. } => format!("held by {run} {by}"),
        Reason::Provider { at } => format!("provider until {at}"),
        Reason::Doubt { action } => format!("action {action}"),
        Reason::Hold { target, by, why, since } => {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            format!("held: {target} by {by} since {since}{why}")
        }
        Reason::Stopped { why } => why.as_str().to_owned(),
        Reason::Cancelling => "cancelling".to_owned(),
    }
}

fn asked(what: &str, request: &Digest, since: Timestamp, until: Option<Timestamp>) -> String {
    let until = until.map(|until| format!(", until {until}")).unwrap_or_default();
    format!("{what} {} since {since}{until}", &request.to_hex()[..4])
}
