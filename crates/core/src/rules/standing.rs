//! Where a run stands: the status that people see, the closed list of reasons, and when a worker is due.

use serde::Serialize;

use crate::checkpoint::{Action, ActionState, Checkpoint, Phase};
use crate::digest::Digest;
use crate::event::{Ending, Gate, StopReason};
use crate::hold::{DispatchHold, Held, Target};
use crate::ids::{Ordinal, RunId};
use crate::rules::{remind, room, wait};
use crate::time::Timestamp;

/// A run's status. `Ready` becomes running in a listing when a live worker holds the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A worker can move it.
    Ready,
    /// It waits for a word, a time or a provider.
    Waiting,
    /// It stopped until a person acts.
    Stopped,
    /// Nobody knows whether an effect happened.
    InDoubt,
    /// It crashed its workers again and again, can't be read, or its store was put back: a person looks first.
    Quarantined,
    /// The criteria hold.
    Completed,
    /// It can't be reached.
    Failed,
    /// A person cancelled it.
    Cancelled,
}

impl Status {
    /// Every status, in the order of their numbers in a store.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Waiting,
        Self::Stopped,
        Self::InDoubt,
        Self::Quarantined,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
            Self::InDoubt => "in doubt",
            Self::Quarantined => "quarantined",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Its number in a store.
    pub fn to_number(self) -> u8 {
        self as u8
    }

    /// The status of a number in a store.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Is the run over?
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why a run is where it is; one of a closed list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// An approval is asked.
    Approval {
        /// The action.
        action: Ordinal,
        /// The request.
        request: Digest,
        /// Since when.
        since: Timestamp,
        /// Not longer than that: the request expires, or the action's deadline passes.
        until: Option<Timestamp>,
    },
    /// A person's answer is asked.
    Answer {
        /// The action.
        action: Ordinal,
        /// The request.
        request: Digest,
        /// Since when.
        since: Timestamp,
        /// Not longer than that.
        until: Option<Timestamp>,
    },
    /// A signal is waited for.
    Signal {
        /// The action.
        action: Ordinal,
        /// The signal's name.
        name: String,
        /// Since when.
        since: Timestamp,
        /// Not longer than that.
        until: Option<Timestamp>,
    },
    /// A time is waited for.
    Timer {
        /// The action.
        action: Ordinal,
        /// Since when.
        since: Timestamp,
        /// When it comes.
        until: Timestamp,
    },
    /// A retry or a lookup has its time.
    Retry {
        /// The action.
        action: Ordinal,
        /// When.
        at: Timestamp,
    },
    /// Another action has its dedupe key; it goes on when that one is settled.
    Held {
        /// The action.
        action: Ordinal,
        /// The run of the other action.
        run: RunId,
        /// The other action.
        by: Ordinal,
        /// Since when.
        since: Timestamp,
        /// When it is given up, if it is: its approval ends then, or its deadline passes.
        until: Option<Timestamp>,
    },
    /// The model's provider is tried again then.
    Provider {
        /// When.
        at: Timestamp,
    },
    /// Nobody knows whether this action's effect happened.
    Doubt {
        /// The action.
        action: Ordinal,
    },
    /// What comes next is held: an operator stopped what is sent to a tool, asked of a model or done by an agent.
    Hold {
        /// What is held, as tool:NAME, model:NAME or agent:NAME.
        target: Target,
        /// Who said so.
        by: String,
        /// Why.
        why: String,
        /// Since when.
        since: Timestamp,
    },
    /// It stopped.
    Stopped {
        /// Why.
        why: StopReason,
    },
    /// It is being cancelled.
    Cancelling,
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Its status.
    pub status: Status,
    /// Why, the strongest first; empty when it is ready or over.
    pub reasons: Vec<Reason>,
    /// When a worker has something to do for it; `None` when only a message can move it.
    pub due: Option<Timestamp>,
}

/// Where the run stands, as its journal alone gives it.
pub fn standing(checkpoint: &Checkpoint) -> Standing {
    standing_under(checkpoint, &Held::default())
}

/// Where the run stands under these holds, as its journal alone gives it.
pub fn standing_under(checkpoint: &Checkpoint, held: &Held) -> Standing {
    standing_at(checkpoint, held, checkpoint.at)
}

/// Where the run stands under these holds at a time at which its reminders are told: a worker is due for the next one.
pub fn standing_at(checkpoint: &Checkpoint, held: &Held, now: Timestamp) -> Standing {
    let mut stands = stands(checkpoint, held);
    stands.due = earliest(stands.due, remind::next(checkpoint, now));
    stands
}

fn stands(checkpoint: &Checkpoint, held: &Held) -> Standing {
    let doubts: Vec<Reason> = checkpoint
        .pending
        .values()
        .filter(|action| matches!(action.state, ActionState::Doubt { .. }))
        .map(|action| Reason::Doubt { action: action.ordinal })
        .collect();
    match &checkpoint.phase {
        Phase::Ended { ending, .. } => Standing {
            status: match ending {
                Ending::Completed => Status::Completed,
                Ending::Failed => Status::Failed,
                Ending::Cancelled => Status::Cancelled,
            },
            reasons: doubts,
            due: None,
        },
        Phase::Stopped { reason, .. } => {
            let mut reasons = doubts;
            let status = match (reasons.is_empty(), reason) {
                (false, _) => Status::InDoubt,
                (true, reason) if reason.is_quarantine() => Status::Quarantined,
                (true, _) => Status::Stopped,
            };
            reasons.push(Reason::Stopped { why: *reason });
            // What was under way when it stopped, and is not any more, is for a worker to close.
            let open = checkpoint.pending.values().any(|action| matches!(action.state, ActionState::Open { .. }));
            let open = open || checkpoint.model.open.is_some();
            Standing { status, reasons, due: open.then_some(checkpoint.at) }
        }
        Phase::Cancelling { .. } => cancelling(checkpoint, doubts),
        Phase::Active => active(checkpoint, doubts, held),
    }
}

/// A cancel is wound up at once; only a lookup that is not due yet is waited for.
fn cancelling(checkpoint: &Checkpoint, doubts: Vec<Reason>) -> Standing {
    let now = checkpoint.at;
    let unsettled = checkpoint.pending.values().filter(|action| !matches!(action.state, ActionState::Doubt { .. }));
    let mut waits: Vec<Option<Timestamp>> = unsettled
        .map(|action| match action.state {
            ActionState::LookUp { not_before, .. } if not_before > now => Some(not_before),
            _ => None,
        })
        .collect();
    if checkpoint.model.open.is_some() {
        waits.push(None);
    }
    let later: Option<Vec<Timestamp>> = waits.into_iter().collect();
    let due = later.and_then(|times| times.into_iter().min()).unwrap_or(now);
    let status = match (due <= now, doubts.is_empty()) {
        (true, _) => Status::Ready,
        (false, true) => Status::Waiting,
        (false, false) => Status::InDoubt,
    };
    Standing { status, reasons: doubts.into_iter().chain([Reason::Cancelling]).collect(), due: Some(due) }
}

fn active(checkpoint: &Checkpoint, doubts: Vec<Reason>, held: &Held) -> Standing {
    let now = checkpoint.at;
    let mut reasons = doubts;
    let mut due: Option<Timestamp> = None;
    if follows_at_once(checkpoint) {
        due = Some(now);
    }
    for action in checkpoint.pending.values() {
        let is_ready = matches!(action.state, ActionState::Ready { .. });
        due = earliest(due, action.ends_at());
        if let Some(hold) = held.tool(&action.tool).filter(|_| is_ready) {
            reasons.extend(Some(of_hold(hold)).filter(|reason| !reasons.contains(reason)));
        } else if let Some((reason, at)) = waits_for(action, now) {
            reasons.extend(reason);
            due = earliest(due, at);
        }
    }
    let asks_next = checkpoint.decision.is_none();
    if let Some(hold) = held.model().filter(|_| asks_next) {
        reasons.push(of_hold(hold));
    } else if asks_next {
        due = earliest(due, Some(checkpoint.model.not_before));
        if checkpoint.model.not_before > now {
            reasons.push(Reason::Provider { at: checkpoint.model.not_before });
        }
    }
    let at_once = due.is_some_and(|at| at <= now);
    let status = if at_once {
        Status::Ready
    } else if matches!(reasons.first(), Some(Reason::Doubt { .. })) {
        Status::InDoubt
    } else {
        Status::Waiting
    };
    if at_once {
        reasons.clear();
    }
    // A deadline moves a run that nothing else moves.
    if let Some(deadline_ms) = checkpoint.quota.limits.deadline_ms {
        due = earliest(due, Some(checkpoint.started_at.plus_ms(deadline_ms)));
    }
    Standing { status, reasons, due }
}

fn of_hold(hold: &DispatchHold) -> Reason {
    let DispatchHold { target, by, reason, since, .. } = hold.clone();
    Reason::Hold { target, by, why: reason, since }
}

/// Has an action that waits for others of its run nothing to wait for any more?
fn follows_at_once(checkpoint: &Checkpoint) -> bool {
    let finish = |action: &Action| matches!(action.state, ActionState::Gated { gate: Gate::Siblings });
    let settled = |action: &Action| match action.state {
        ActionState::Gated { gate: Gate::Same(of) } => !checkpoint.pending.contains_key(&of),
        _ => false,
    };
    let pending = &checkpoint.pending;
    pending.values().any(|action| settled(action) || wait::is_over(checkpoint, action))
        || (!pending.is_empty() && pending.values().all(finish))
        || room::is_due(checkpoint)
}

fn earliest(known: Option<Timestamp>, at: Option<Timestamp>) -> Option<Timestamp> {
    match (known, at) {
        (Some(known), Some(at)) => Some(known.min(at)),
        (known, at) => known.or(at),
    }
}

/// Why an action waits and when a worker is due for it.
fn waits_for(action: &Action, now: Timestamp) -> Option<(Option<Reason>, Option<Timestamp>)> {
    let ordinal = action.ordinal;
    Some(match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) } => {
            let (request, since, until) = (request.name, request.asked_at, action.asked_until());
            (Some(Reason::Approval { action: ordinal, request, since, until }), until)
        }
        ActionState::Gated { gate: Gate::Answer(request) } => {
            let (request, since, until) = (request.name, request.asked_at, action.asked_until());
            (Some(Reason::Answer { action: ordinal, request, since, until }), until)
        }
        ActionState::Gated { gate: Gate::Signal(wait) } => {
            let (name, since) = (wait.name.clone(), action.proposed_at);
            (Some(Reason::Signal { action: ordinal, name, since, until: wait.until }), wait.until)
        }
        ActionState::Gated { gate: Gate::Timer(until) } => {
            (Some(Reason::Timer { action: ordinal, since: action.proposed_at, until: *until }), Some(*until))
        }
        // These follow their siblings, which have reasons of their own, or a quota, for which the run stops.
        ActionState::Gated { .. } => return None,
        ActionState::Ready { not_before } | ActionState::LookUp { not_before, .. } => {
            ((*not_before > now).then_some(Reason::Retry { action: ordinal, at: *not_before }), Some(*not_before))
        }
        ActionState::Open { .. } => (None, Some(now)),
        ActionState::Held { run, action: by, since } => {
            let (run, by, since) = (run.clone(), *by, *since);
            let until = earliest(action.approved.and_then(|request| request.expires_at), action.ends_at());
            (Some(Reason::Held { action: ordinal, run, by, since, until }), until)
        }
        ActionState::Doubt { .. } => return None,
    })
}

/// How long to wait before the next attempt, in milliseconds: 0.5 s doubling to 60 s, plus up to half of
/// that. The jitter is drawn from what is retried, so that a refold gives the same and many runs spread out.
pub fn backoff_ms(run: &str, what: u64, attempt: u32) -> u64 {
    let base = 500_u64.saturating_mul(1 << attempt.saturating_sub(1).min(7)).min(60_000);
    base + jitter_ms(run, what, attempt, base / 2)
}

/// Up to so many milliseconds more, drawn from what is retried.
pub fn jitter_ms(run: &str, what: u64, attempt: u32, most: u64) -> u64 {
    let seed = Digest::over("lodestep jitter 1", &[run.as_bytes(), &what.to_le_bytes(), &attempt.to_le_bytes()]);
    let draw = u128::from(u16::from_le_bytes([seed.as_bytes()[0], seed.as_bytes()[1]]));
    u64::try_from(u128::from(most) * draw / u128::from(u16::MAX)).unwrap_or(most)
}
