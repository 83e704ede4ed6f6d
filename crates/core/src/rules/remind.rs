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
    open(checkpoint).filter_map(|(action, request, _)| newest(action, &request, now)).collect()
}

/// When the next reminder falls due, after this time.
pub fn next(checkpoint: &Checkpoint, now: Timestamp) -> Option<Timestamp> {
    let next = |(action, request, ends_at): (&Action, Request, Option<Timestamp>)| {
        let past = newest(action, &request, now).map_or(0, |reminder| reminder.number);
        let at = moment(&request, past.saturating_add(1))?;
        (at > now && ends_at.is_none_or(|end| at < end)).then_some(at)
    };
    open(checkpoint).filter_map(next).min()
}

/// Requests that are open, with the time at which they end by themselves.
fn open(checkpoint: &Checkpoint) -> impl Iterator<Item = (&Action, Request, Option<Timestamp>)> {
    let active = checkpoint.phase == Phase::Active;
    let asked = move |action: &Action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } if active => Some(*request),
        _ => None,
    };
    checkpoint.pending.values().filter_map(move |action| {
        let request = asked(action)?;
        let ends_at = request.expires_at.into_iter().chain(action.ends_at()).min();
        Some((action, request, ends_at))
    })
}

fn newest(action: &Action, request: &Request, now: Timestamp) -> Option<Reminder> {
    let interval_us = request.remind_ms?.saturating_mul(1_000).max(1);
    let waited_us = u64::try_from(now.as_micros().saturating_sub(request.asked_at.as_micros())).unwrap_or(0);
    let number = waited_us / interval_us;
    let due = moment(request, number)?;
    (number > 0).then_some(Reminder {
        action: action.ordinal,
        request: request.name,
        since: request.asked_at,
        number,
        due,
    })
}

fn moment(request: &Request, number: u64) -> Option<Timestamp> {
    Some(request.asked_at.plus_ms(request.remind_ms?.max(1).saturating_mul(number)))
}
