//! The fold: events in, checkpoint out. It decides nothing, and it never panics on stored bytes.
//!
//! - `call`: the model's calls and decisions.
//! - `action`: gates, attempts, outcomes.
//! - `state`: notes, plan, artifacts, errors.
//! - `run`: start, stops, end.
//! - `word`: guidance, signals, top-ups.
//! - `fork`: a start with another run's state.
//! - `upgrade`: another definition, and actions that go by it.

mod action;
mod call;
mod dedupe;
pub mod fork;
mod run;
mod state;
mod upgrade;
mod word;

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Envelope, Event};
use crate::time::Timestamp;

pub use fork::begin_fork;
pub use run::begin;

/// Folds one stored transition into the state before it.
///
/// # Errors
///
/// `store.undecodable` or `store.newer_format` for the bytes, `run.illegal_event` when they don't follow on the state.
pub fn fold(checkpoint: &mut Checkpoint, bytes: &[u8]) -> Result<Envelope> {
    let envelope = Envelope::from_bytes(bytes)?;
    if Some(envelope.seq) != checkpoint.seq.checked_add(1) {
        return Err(illegal(checkpoint, "envelope", "its number does not follow"));
    }
    open_transition(checkpoint, envelope.at, envelope.active_us);
    for event in &envelope.events {
        apply(checkpoint, envelope.seq, envelope.epoch, event)?;
    }
    close_transition(checkpoint, envelope.seq, bytes);
    Ok(envelope)
}

/// Folds a run's first transition.
///
/// # Errors
///
/// As [`fold`].
pub fn fold_first(bytes: &[u8]) -> Result<(Checkpoint, Envelope)> {
    let envelope = Envelope::from_bytes(bytes)?;
    let (mut checkpoint, rest) = match envelope.events.split_first() {
        Some((Event::RunStarted(started), rest)) => (begin(started, envelope.at)?, rest),
        Some((Event::RunForked(forked), rest)) => (begin_fork(forked, envelope.at)?, rest),
        _ => {
            let what = "a journal begins with neither RunStarted nor RunForked";
            return Err(Error::new("run.illegal_event", what, "`lodestep verify` says more"));
        }
    };
    if envelope.seq != 1 {
        return Err(illegal(&checkpoint, "envelope", "a journal begins with transition 1"));
    }
    for event in rest {
        apply(&mut checkpoint, envelope.seq, envelope.epoch, event)?;
    }
    close_transition(&mut checkpoint, envelope.seq, bytes);
    Ok((checkpoint, envelope))
}

/// Folds those events of a stored transition that stand before the first one for which `ends` holds: what is left is the
/// state in which a rule pushed that one. The number and the chain's head stay those of the state before.
///
/// # Errors
///
/// `run.illegal_event` when the events don't follow on the state.
pub fn fold_up_to(checkpoint: &mut Checkpoint, envelope: &Envelope, ends: impl Fn(&Event) -> bool) -> Result<()> {
    for (place, event) in envelope.events.iter().enumerate() {
        if ends(event) {
            return Ok(());
        }
        // As a draft does: time moves with the first event that is pushed.
        if place == 0 {
            open_transition(checkpoint, envelope.at, envelope.active_us);
        }
        apply(checkpoint, envelope.seq, envelope.epoch, event)?;
    }
    Ok(())
}

/// Moves the journal's time and charges the work before a transition's events.
pub(crate) fn open_transition(checkpoint: &mut Checkpoint, at: Timestamp, active_us: u64) {
    checkpoint.at = checkpoint.at.max(at);
    checkpoint.quota.active_us = checkpoint.quota.active_us.saturating_add(active_us);
}

/// Moves the sequence number and the chain after a transition's events.
pub(crate) fn close_transition(checkpoint: &mut Checkpoint, seq: u64, envelope: &[u8]) {
    checkpoint.seq = seq;
    checkpoint.head = checkpoint.head.chain(envelope);
}

/// Folds one event. `seq` is the transition that it belongs to, `epoch` its writer's.
pub(crate) fn apply(checkpoint: &mut Checkpoint, seq: u64, epoch: u64, event: &Event) -> Result<()> {
    let name = event.name();
    let over = checkpoint.is_over();
    if over && !is_late_word(event) {
        return Err(illegal(checkpoint, name, "the run is over"));
    }
    let checked = match event {
        Event::RunStarted(_) | Event::RunForked(_) => Err("the run has begun"),
        Event::CallReserved(e) => call::reserved(checkpoint, seq, epoch, e),
        Event::CallAnswered(e) => call::answered(checkpoint, e),
        Event::CallFailed(e) => call::failed(checkpoint, seq, e),
        Event::CallLost(e) => call::lost(checkpoint, e),
        Event::DecisionOpened(e) => call::decided(checkpoint, seq, e),
        Event::ActionProposed(e) => action::proposed(checkpoint, seq, e),
        Event::ActionRefused(e) => action::refused(checkpoint, seq, e),
        Event::AttemptStarted(e) => action::started(checkpoint, seq, epoch, e),
        Event::ActionFinished(e) => action::finished(checkpoint, seq, e),
        Event::AttemptNotSent(e) => action::not_sent(checkpoint, seq, e),
        Event::AttemptUnknown(e) => action::unknown(checkpoint, seq, e),
        Event::LookupInconclusive(e) => action::looked_up(checkpoint, seq, e),
        Event::DoubtResolved(e) => action::resolved(checkpoint, seq, e),
        Event::ActionApproved(e) => action::approved(checkpoint, e),
        Event::ActionDenied(e) => action::denied(checkpoint, seq, e),
        Event::QuestionAnswered(e) => action::answered(checkpoint, seq, e),
        Event::ActionWithdrawn(e) => action::withdrawn(checkpoint, seq, e),
        Event::InboxRead(e) => run::inbox_read(checkpoint, e),
        Event::NoteTaken(e) => state::note_taken(checkpoint, seq, e),
        Event::MilestoneMarked(e) => state::milestone_marked(checkpoint, seq, e),
        Event::ArtifactSaved(e) => state::artifact_saved(checkpoint, seq, e),
        Event::ArtifactShown(e) => state::artifact_shown(checkpoint, e),
        Event::ErrorLogged(e) => {
            state::log_error(checkpoint, seq, e.kind, e.ordinal, e.text);
            Ok(())
        }
        Event::FinishRefused(_) => {
            checkpoint.refused_finishes = checkpoint.refused_finishes.saturating_add(1);
            Ok(())
        }
        Event::RunStopped(e) => run::stopped(checkpoint, seq, e),
        Event::RunResumed(e) => run::resumed(checkpoint, e),
        Event::CancelRequested(e) => run::cancel_requested(checkpoint, seq, e),
        Event::RunEnded(e) => run::ended(checkpoint, seq, e),
        Event::HandedOver(e) => call::handed_over(checkpoint, e),
        Event::CheckStarted(e) => action::check_started(checkpoint, e),
        Event::DedupeTaken(e) => dedupe::taken(checkpoint, e),
        Event::DedupeClosed(e) => dedupe::closed(checkpoint, e),
        Event::ActionHeld(e) => dedupe::held(checkpoint, e),
        Event::GuidanceGiven(e) => word::guidance_given(checkpoint, seq, e),
        Event::SignalArrived(e) => word::signal_arrived(checkpoint, seq, e),
        Event::SignalTaken(e) => action::signal_taken(checkpoint, e),
        Event::TimerFired(e) => action::timer_fired(checkpoint, seq, e),
        Event::QuotaRaised(e) => word::quota_raised(checkpoint, e),
        Event::QuotaGranted(e) => action::granted(checkpoint, e),
        Event::ApprovalLapsed(e) => action::lapsed(checkpoint, e),
        Event::QuotaGiven(e) => run::quota_given(checkpoint, e),
        Event::DeadlinePassed(e) => action::deadline_passed(checkpoint, seq, e),
        Event::RunUpgraded(e) => upgrade::upgraded(checkpoint, seq, e),
        Event::ActionRebound(e) => upgrade::rebound(checkpoint, e),
    };
    checked.map_err(|why| illegal(checkpoint, name, why))
}

/// After the end only the truth about what was sent is still taken, and what is left can be given to a fork.
fn is_late_word(event: &Event) -> bool {
    matches!(
        event,
        Event::InboxRead(_)
            | Event::DoubtResolved(_)
            | Event::ActionFinished(_)
            | Event::ErrorLogged(_)
            | Event::DedupeClosed(_)
            | Event::QuotaGiven(_)
    )
}

fn illegal(checkpoint: &Checkpoint, event: &str, why: &str) -> Error {
    Error::new(
        "run.illegal_event",
        format!("{event} can't follow transition {} of run {}: {why}", checkpoint.seq, checkpoint.run),
        "this is a fault in lodestep or in the store; `lodestep verify` tells which",
    )
}

/// What a part of the fold answers: an event that does not fit the state is named, never forced.
type Checked = std::result::Result<(), &'static str>;
