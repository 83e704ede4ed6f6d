//! What comes next without waiting for anyone: expiries, ends of waits, grants, ends, intents.

use std::collections::BTreeSet;

use crate::checkpoint::{Action, ActionState, Checkpoint, How, Phase};
use crate::definition::{Decide, Definition, OnExpiry, StateAct, ToolKind};
use crate::draft::Draft;
use crate::effect::Class;
use crate::error::Result;
use crate::event::{
    ActionDenied, ActionFinished, ActionWithdrawn, ApprovalLapsed, AttemptStarted, AttemptUnknown, CheckStarted,
    DeniedBy, Ending, Event, FinishRefused, Gate, Request, RunEnded, RunStopped, SettledBy, StopReason, UnknownNext,
};
use crate::hold::Held;
use crate::ids::Ordinal;
use crate::policy;
use crate::quota::DEADLINE_PASSED;
use crate::rules::completion::missing;
use crate::rules::dedupe::{self, DedupeKeys};
use crate::rules::{deadline, room, wait};
use crate::time::Timestamp;
use crate::value::ValueRef;

/// What the worker can do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hands<'a> {
    /// How many more attempts it can have under way: an intent is committed only when it can be sent at once.
    pub free: u32,
    /// Nothing is sent after this time: the lease ends soon after.
    pub send_by: Timestamp,
    /// What is known of the dedupe keys that [`dedupe::wanted`] names.
    pub dedupe: &'a DedupeKeys,
    /// What it has under way. A repeatable action is sent without an intent, so that the state can't tell.
    pub busy: &'a BTreeSet<Ordinal>,
    /// What an operator has stopped: no intent for it.
    pub held: &'a Held,
}

/// Pushes what is owed: deadlines of actions, expired requests and approvals, ends of waits, grants of quota, effects that were done before,
/// a judged finish, the end of a cancel, a passed deadline, and the intents for which a hand is free.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn owed(draft: &mut Draft, definition: &Definition, hands: Hands<'_>) -> Result<()> {
    dedupe::close(draft)?;
    match draft.checkpoint().phase {
        Phase::Ended { .. } | Phase::Stopped { .. } => return Ok(()),
        Phase::Cancelling { .. } => {
            wind_up(draft, hands.busy)?;
            return dedupe::close(draft);
        }
        Phase::Active => {}
    }
    deadline::pass(draft, hands.busy)?;
    dedupe::close(draft)?;
    expire(draft)?;
    room::grant(draft, definition)?;
    withdraw_forbidden(draft, definition)?;
    wait::end_waits(draft)?;
    dedupe::meet(draft, hands.dedupe)?;
    follow_same(draft)?;
    take_check(draft, definition)?;
    judge_finish(draft, definition)?;
    stop_at_limits(draft)?;
    room::stop_without(draft)?;
    start_attempts(draft, hands)
}

/// Does the run need the model's next reply?
pub fn wants_model(checkpoint: &Checkpoint, now: Timestamp) -> bool {
    checkpoint.phase == Phase::Active
        && checkpoint.decision.is_none()
        && checkpoint.model.open.is_none()
        && checkpoint.model.not_before <= now
}

/// What can be dispatched in this epoch: repeatable actions that are ready, and attempts whose intent is committed.
/// The caller leaves out what it has under way, and with [`is_held`] what an operator has stopped.
pub fn dispatchable(checkpoint: &Checkpoint, epoch: u64, now: Timestamp) -> Vec<Ordinal> {
    let active = checkpoint.phase == Phase::Active;
    let due = |action: &&Action| match action.state {
        ActionState::Ready { not_before } => {
            active && action.class.is_repeatable() && not_before <= now && !deadline::is_past(action, now)
        }
        ActionState::Open { epoch: of, .. } => of == epoch,
        ActionState::LookUp { not_before, .. } => !checkpoint.is_over() && not_before <= now,
        ActionState::Gated { .. } | ActionState::Doubt { .. } | ActionState::Held { .. } => false,
    };
    checkpoint.pending.values().filter(due).map(|action| action.ordinal).collect()
}

/// Does a hold keep this action from being dispatched? Not a lookup, which sends nothing, nor what is committed already.
pub fn is_held(checkpoint: &Checkpoint, ordinal: Ordinal, held: &Held) -> bool {
    let ready = checkpoint.pending.get(&ordinal).filter(|action| matches!(action.state, ActionState::Ready { .. }));
    ready.is_some_and(|action| held.tool(&action.tool).is_some())
}

/// Expiry stops an answer and a first intent, and does what the request says either way.
fn expire(draft: &mut Draft) -> Result<()> {
    let now = draft.now();
    let lapsed = lapse(draft)?;
    let expired: Vec<(Ordinal, Request)> = draft
        .checkpoint()
        .pending
        .values()
        .filter_map(|action| match &action.state {
            ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) }
                if request.expires_at.is_some_and(|at| at <= now) =>
            {
                Some((action.ordinal, *request))
            }
            _ => None,
        })
        .collect();
    for (ordinal, request) in expired {
        let approved_by = lapsed.iter().find(|(of, _)| *of == ordinal).map(|(_, by)| by.as_str());
        let event = match request.on_expiry {
            OnExpiry::Deny => {
                let text = match approved_by {
                    None => "denied: nobody answered in time".to_owned(),
                    Some(by) => {
                        format!("denied: {by} approved it, but it could not be sent before the approval expired")
                    }
                };
                let text = draft.put(text);
                Event::ActionDenied(ActionDenied { ordinal, why: DeniedBy::Expiry, by: None, text })
            }
            OnExpiry::Pause => {
                let text = match approved_by {
                    None => format!("nobody answered the request of action {ordinal} in time; resume asks again"),
                    Some(by) => format!(
                        "{by} approved action {ordinal}, but the approval expired before it could be sent; resume asks again"
                    ),
                };
                let text = draft.put(text);
                Event::RunStopped(RunStopped { reason: StopReason::Operator, text })
            }
        };
        draft.push(event)?;
        if draft.checkpoint().phase != Phase::Active {
            return Ok(());
        }
    }
    Ok(())
}

/// Approvals that expired before the first intent, with who gave them: their requests are open again, as expired. A
/// repeatable action begins without an intent, so that its approval can't come too late.
fn lapse(draft: &mut Draft) -> Result<Vec<(Ordinal, String)>> {
    let now = draft.now();
    let unsent = |action: &&Action| {
        let waits = matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. });
        waits && action.attempts == 0 && !action.class.is_repeatable()
    };
    let expired = |action: &Action| action.approved.and_then(|request| request.expires_at).is_some_and(|at| at <= now);
    let lapsed: Vec<(Ordinal, String)> = draft
        .checkpoint()
        .pending
        .values()
        .filter(unsent)
        .filter(|action| expired(action))
        .map(|action| (action.ordinal, action.approved_by.clone().unwrap_or_default()))
        .collect();
    for (ordinal, _) in &lapsed {
        draft.push(Event::ApprovalLapsed(ApprovalLapsed { ordinal: *ordinal }))?;
    }
    Ok(lapsed)
}

/// An action that waits for an equal one takes its outcome.
fn follow_same(draft: &mut Draft) -> Result<()> {
    let waiting: Vec<(Ordinal, Ordinal)> = draft
        .checkpoint()
        .pending
        .values()
        .filter_map(|action| match action.state {
            ActionState::Gated { gate: Gate::Same(of) } => Some((action.ordinal, of)),
            _ => None,
        })
        .collect();
    for (ordinal, of) in waiting {
        if draft.checkpoint().pending.contains_key(&of) {
            continue;
        }
        let first = draft.checkpoint().settled(of).map(|settled| (settled.how, settled.result.value()));
        let (ok, result) = match first {
            Some((How::Done, result)) => (true, result),
            Some(_) => {
                (false, draft.put(format!("it is the same call as action {of}, which was not done; see its result")))
            }
            None => (true, draft.put(format!("it is the same call as action {of}, which is settled"))),
        };
        draft.push(Event::ActionFinished(ActionFinished {
            ordinal,
            attempt: 0,
            ok,
            result,
            by: SettledBy::SameEffect,
        }))?;
    }
    Ok(())
}

/// A finish is judged when its siblings are settled.
fn judge_finish(draft: &mut Draft, definition: &Definition) -> Result<()> {
    let checkpoint = draft.checkpoint();
    if checkpoint.phase != Phase::Active {
        return Ok(());
    }
    let gated = |action: &&Action| matches!(action.state, ActionState::Gated { gate: Gate::Siblings });
    let Some(ordinal) = checkpoint.pending.values().find(gated).map(|action| action.ordinal) else {
        return Ok(());
    };
    if checkpoint.pending.values().any(|action| !gated(&action)) {
        return Ok(());
    }
    let missing = missing(checkpoint, definition);
    if missing.is_empty() && definition.done.check.is_some() {
        return draft.push(Event::CheckStarted(CheckStarted { ordinal }));
    }
    if missing.is_empty() {
        let result = draft.put("the run is complete");
        finish_core(draft, ordinal, true, result)?;
        return end_if_settled(draft, definition, ordinal);
    }
    let missing = missing.join("\n- ");
    let result = draft.put(format!("not complete yet:\n- {missing}"));
    finish_core(draft, ordinal, false, result)?;
    let refused = draft.checkpoint().refused_finishes.saturating_add(1);
    let why = if refused >= draft.checkpoint().limits.refused_finishes {
        let times = if refused == 1 { "once".to_owned() } else { format!("{refused} times") };
        draft.put(format!("finish was refused {times}, as the run is not complete:\n- {missing}"))
    } else {
        result
    };
    refuse_finish(draft, ordinal, why)?;
    // A second finish of the same decision is judged too.
    judge_finish(draft, definition)
}

fn refuse_finish(draft: &mut Draft, ordinal: Ordinal, why: ValueRef) -> Result<()> {
    draft.push(Event::FinishRefused(FinishRefused { ordinal }))?;
    if draft.checkpoint().refused_finishes < draft.checkpoint().limits.refused_finishes {
        return Ok(());
    }
    draft.push(Event::RunStopped(RunStopped { reason: StopReason::Completion, text: why }))
}

/// What the check said of a finish, in the transition that brought it. Whoever stopped the run meanwhile has the word:
/// after a resume the model finishes anew.
fn take_check(draft: &mut Draft, definition: &Definition) -> Result<()> {
    let checkpoint = draft.checkpoint();
    let judged: Vec<(Ordinal, bool, ValueRef)> = draft
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::ActionFinished(finished) if finished.by == SettledBy::Answer => Some(finished),
            _ => None,
        })
        .filter(|finished| checkpoint.settled(finished.ordinal).is_some_and(|it| is_finish(definition, &it.tool)))
        .map(|finished| (finished.ordinal, finished.ok, finished.result))
        .collect();
    for (ordinal, holds, said) in judged {
        if draft.checkpoint().phase != Phase::Active {
            return Ok(());
        }
        match holds {
            true => end_if_settled(draft, definition, ordinal)?,
            false => refuse_finish(draft, ordinal, said)?,
        }
    }
    Ok(())
}

fn is_finish(definition: &Definition, tool: &str) -> bool {
    definition.tool(tool).is_some_and(|tool| matches!(tool.kind, ToolKind::State { act: StateAct::Finish }))
}

fn end_if_settled(draft: &mut Draft, definition: &Definition, ordinal: Ordinal) -> Result<()> {
    if !draft.checkpoint().pending.is_empty() {
        return judge_finish(draft, definition);
    }
    let text = draft.put(format!("action {ordinal} finished the run and its criteria hold"));
    draft.push(Event::RunEnded(RunEnded { ending: Ending::Completed, text }))
}

fn finish_core(draft: &mut Draft, ordinal: Ordinal, ok: bool, result: ValueRef) -> Result<()> {
    draft.push(Event::ActionFinished(ActionFinished { ordinal, attempt: 0, ok, result, by: SettledBy::Core }))
}

/// The deadline, and a run that does the same thing over and over.
fn stop_at_limits(draft: &mut Draft) -> Result<()> {
    let checkpoint = draft.checkpoint();
    if checkpoint.phase != Phase::Active {
        return Ok(());
    }
    let deadline = checkpoint.deadline();
    let (reason, text) = if deadline.is_some_and(|deadline| deadline <= draft.now()) {
        (StopReason::Quota, DEADLINE_PASSED.to_owned())
    } else if checkpoint.decision.is_none() && checkpoint.repeats.worst().times >= checkpoint.limits.loop_repeats {
        (StopReason::Loop, checkpoint.repeats.worst().to_string())
    } else {
        return Ok(());
    };
    let text = draft.put(text);
    draft.push(Event::RunStopped(RunStopped { reason, text }))
}

/// What may not be sent is taken back before anything follows from it, also while no hand is free.
fn withdraw_forbidden(draft: &mut Draft, definition: &Definition) -> Result<()> {
    if draft.checkpoint().phase != Phase::Active {
        return Ok(());
    }
    let ready = |action: &&Action| matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. });
    let checkpoint = draft.checkpoint();
    // What may have begun before an upgrade ends by the definition that it began with.
    let is_new = |action: &&Action| checkpoint.earlier_definition(action.ordinal).is_none();
    let forbidden: Vec<(Ordinal, String)> = checkpoint
        .pending
        .values()
        .filter(ready)
        .filter(is_new)
        .filter_map(|action| forbidden(definition, action).map(|why| (action.ordinal, why)))
        .collect();
    for (ordinal, why) in forbidden {
        let text = draft.put(why);
        draft.push(Event::ActionWithdrawn(ActionWithdrawn { ordinal, text }))?;
    }
    Ok(())
}

fn start_attempts(draft: &mut Draft, hands: Hands) -> Result<()> {
    forget_stale_keys(draft)?;
    if draft.checkpoint().phase != Phase::Active {
        return Ok(());
    }
    let now = draft.now();
    if hands.free == 0 {
        return Ok(());
    }
    let ready: Vec<Ordinal> = draft
        .checkpoint()
        .pending
        .values()
        .filter(|action| !action.class.is_repeatable())
        .filter(|action| match action.state {
            ActionState::Ready { not_before } => not_before <= now,
            ActionState::Held { .. } => true,
            _ => false,
        })
        .filter(|action| hands.held.tool(&action.tool).is_none())
        .map(|action| action.ordinal)
        .collect();
    let mut free = hands.free;
    for ordinal in ready {
        if free == 0 {
            break;
        }
        let Some(action) = draft.checkpoint().pending.get(&ordinal).cloned() else { continue };
        if !dedupe::take(draft, &action, hands.dedupe)? {
            continue;
        }
        free -= 1;
        let send_by = key_ends(&action).into_iter().chain(action.deadline).fold(hands.send_by, Timestamp::min);
        draft.push(Event::AttemptStarted(AttemptStarted {
            ordinal: action.ordinal,
            attempt: action.attempts.saturating_add(1),
            send_by,
        }))?;
    }
    Ok(())
}

/// When the receiver forgets the key of an effect that may have been sent under it.
fn key_ends(action: &Action) -> Option<Timestamp> {
    let first = action.first_sent.filter(|_| action.class == Class::Keyed && action.maybe_sent)?;
    Some(first.plus_ms(action.key_valid_for_ms))
}

/// A retry that waited longer than its key is valid is no retry any more: only a person can say what happened.
fn forget_stale_keys(draft: &mut Draft) -> Result<()> {
    if draft.checkpoint().phase != Phase::Active {
        return Ok(());
    }
    let now = draft.now();
    let stale: Vec<(Ordinal, u32)> = draft
        .checkpoint()
        .pending
        .values()
        .filter(|action| matches!(action.state, ActionState::Ready { .. }))
        .filter(|action| key_ends(action).is_some_and(|end| end <= now))
        .map(|action| (action.ordinal, action.attempts))
        .collect();
    let why = "its key is no longer valid: sent again it could happen twice";
    for (ordinal, attempt) in stale {
        into_doubt(draft, ordinal, attempt, why)?;
    }
    Ok(())
}

fn into_doubt(draft: &mut Draft, ordinal: Ordinal, attempt: u32, why: &str) -> Result<()> {
    let text = draft.put(why);
    draft.push(Event::AttemptUnknown(AttemptUnknown { ordinal, attempt, text, next: UnknownNext::Doubt }))
}

/// Policy is enforced here, at dispatch, whatever way the action came: a tool that must be asked for needs
/// an approval of exactly this action, and a tool that changed since needs a new one.
pub(super) fn forbidden(definition: &Definition, action: &Action) -> Option<String> {
    if action.first_sent.is_some() {
        // What may have been sent is settled, never judged again.
        return None;
    }
    let Some(tool) = definition.tool(&action.tool) else {
        return Some(format!("there is no tool `{}` any more", action.tool));
    };
    if definition.tool_digest(tool) != action.tool_digest {
        return Some(format!("the tool `{}` has changed since this was proposed", action.tool));
    }
    match policy::judge(definition, tool).decide {
        Decide::Allow => None,
        Decide::Ask if action.approved_by.is_some() || action.proposed_by.is_some() => None,
        Decide::Ask => Some("the policy asks for an approval, and there is none".to_owned()),
        Decide::Deny => Some("the policy denies it".to_owned()),
    }
}

/// After a cancel: what was not sent is withdrawn, what was sent is waited for, then the run ends. Nothing when no
/// cancel was read. `busy` are the actions that are under way.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn wind_up(draft: &mut Draft, busy: &BTreeSet<Ordinal>) -> Result<()> {
    if !matches!(draft.checkpoint().phase, Phase::Cancelling { .. }) {
        return Ok(());
    }
    let unsent: Vec<(Ordinal, &str)> = draft
        .checkpoint()
        .pending
        .values()
        .filter_map(|action| match action.state {
            ActionState::Ready { .. } if action.class.is_repeatable() => {
                // A worker before this one may have begun it: nothing more than this is known.
                (!busy.contains(&action.ordinal)).then_some((action.ordinal, "done"))
            }
            ActionState::Ready { .. } => action.first_sent.is_none().then_some((action.ordinal, "sent")),
            ActionState::Gated { .. } | ActionState::Held { .. } => Some((action.ordinal, "sent")),
            _ => None,
        })
        .collect();
    for (ordinal, what) in unsent {
        let text = draft.put(format!("withdrawn: the run was cancelled before it was {what}"));
        draft.push(Event::ActionWithdrawn(ActionWithdrawn { ordinal, text }))?;
    }
    resend_becomes_doubt(draft)?;
    let doubt = |action: &Action| matches!(action.state, ActionState::Doubt { .. });
    let checkpoint = draft.checkpoint();
    if checkpoint.model.open.is_some() || checkpoint.pending.values().any(|action| !doubt(action)) {
        return Ok(());
    }
    let text = match &checkpoint.phase {
        Phase::Cancelling { reason, .. } => reason.value(),
        _ => return Ok(()),
    };
    draft.push(Event::RunEnded(RunEnded { ending: Ending::Cancelled, text }))
}

/// An effect that waits to be sent again under its key may have happened; after a cancel only a person can say.
fn resend_becomes_doubt(draft: &mut Draft) -> Result<()> {
    let resends: Vec<(Ordinal, u32)> = draft
        .checkpoint()
        .pending
        .values()
        .filter(|action| matches!(action.state, ActionState::Ready { .. }) && !action.class.is_repeatable())
        .map(|action| (action.ordinal, action.attempts))
        .collect();
    for (ordinal, attempt) in resends {
        into_doubt(draft, ordinal, attempt, "the run was cancelled while it waited to be sent again under its key")?;
    }
    Ok(())
}
