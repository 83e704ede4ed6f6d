//! Reminders of requests that stay open. They change nothing in a run's state, so that none of them is an event: which
//! one is due follows from when the request was asked and what time it is. Whoever reminds keeps what it has told.

use serde::Serialize;

use crate::checkpoint::{Action, ActionState, Checkpoint, Phase};
use crate::digest::Digest;
use crate::event::{Gate, Request};
use crate::ids::Ordinal;
use crate::time::Timestamp;

/// The newest reminder of an open request that has fallen due; the ones before it are past, told or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reminder {
    /// The action.
    pub action: Ordinal,
    /// The request.
    pub request: Digest,
    /// Since when it is asked.
    pub since: Timestamp,
    /// Which one of this asking, from 1: with `request` and `since` it names this due moment.
    pub number: u64,
    /// When it fell due.
    pub due: Timestamp,
}

/// The reminders that have fallen due, the newest one of each open request.
pub fn due(checkpoint: &Checkpoint, now: Timestamp) -> Vec<Reminder> {
    let open = open(checkpoint).filter(|(action, _)| action.asked_until().is_none_or(|until| now < until));
    open.filter_map(|(action, request)| newest(action, request, now)).collect()
}

/// When the next reminder falls due, after this time.
pub fn next(checkpoint: &Checkpoint, now: Timestamp) -> Option<Timestamp> {
    let next = |(action, request): (&Action, &Request)| {
        let past = newest(action, request, now).map_or(0, |reminder| reminder.number);
        let at = moment(request, past.saturating_add(1))?;
        (at > now && action.asked_until().is_none_or(|until| at < until)).then_some(at)
    };
    open(checkpoint).filter_map(next).min()
}

/// The requests that are open in an active run.
fn open(checkpoint: &Checkpoint) -> impl Iterator<Item = (&Action, &Request)> {
    let active = checkpoint.phase == Phase::Active;
    checkpoint.pending.values().filter_map(move |action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } if active => {
            Some((action, request))
        }
        _ => None,
    })
}

/// The newest that has fallen due by this time, counted from the asking.
fn newest(action: &Action, request: &Request, now: Timestamp) -> Option<Reminder> {
    let interval_us = request.remind_ms?.max(1).saturating_mul(1_000);
    let waited_us = u64::try_from(now.as_micros().saturating_sub(request.asked_at.as_micros())).unwrap_or(0);
    let number = waited_us / interval_us;
    let (request_name, since) = (request.name, request.asked_at);
    let due = moment(request, number)?;
    (number > 0).then_some(Reminder { action: action.ordinal, request: request_name, since, number, due })
}

fn moment(request: &Request, number: u64) -> Option<Timestamp> {
    Some(request.asked_at.plus_ms(request.remind_ms?.max(1).saturating_mul(number)))
}
