//! Actions: gates, attempts, outcomes. Each function is one row of the state machine.

use super::Checked;
use crate::checkpoint::{
    Action, ActionState, CLOSED_REQUESTS, Checkpoint, ClosedRequest, Closing, How, Phase, Repeats, SeenElsewhere,
    Settled,
};
use crate::digest::Digest;
use crate::event::{
    ActionApproved, ActionDenied, ActionFinished, ActionProposed, ActionRefused, ActionWithdrawn, ApprovalLapsed,
    AttemptNotSent, AttemptStarted, AttemptUnknown, CheckStarted, DeadlinePassed, DeniedBy, DoubtResolved, ErrorKind,
    Evidence, Gate, LookupInconclusive, QuestionAnswered, QuotaGranted, RefusalKind, Resolution, SettledBy,
    SignalTaken, TimerFired, UnknownNext,
};
use crate::fold::state::log_error;
use crate::ids::Ordinal;
use crate::quota::Amounts;
use crate::value::{Stored, ValueRef};

const ONE_CALL: Amounts = Amounts { input_tokens: 0, output_tokens: 0, usd_micro: 0, model_calls: 0, tool_calls: 1 };

pub(super) fn proposed(checkpoint: &mut Checkpoint, seq: u64, event: &ActionProposed) -> Checked {
    let decision = place(checkpoint, event.ordinal)?;
    let state = match &event.gate {
        Gate::Open => ActionState::Ready { not_before: checkpoint.at },
        gate => ActionState::Gated { gate: gate.clone() },
    };
    let counted = event.counted && event.gate != Gate::Quota;
    if counted {
        checkpoint.quota.reserve(ONE_CALL);
    }
    let action = Action {
        ordinal: event.ordinal,
        decision,
        call_id: event.call_id.clone(),
        tool: event.tool.clone(),
        class: event.class,
        arguments: Stored::at(event.arguments, seq),
        tool_digest: event.tool_digest,
        same: event.same,
        key: event.key.clone(),
        state,
        attempts: 0,
        max_attempts: event.max_attempts,
        key_valid_for_ms: event.key_valid_for_ms,
        settles_after_ms: event.settles_after_ms,
        first_sent: None,
        proposed_at: checkpoint.at,
        approved_by: None,
        proposed_by: event.proposed_by.clone(),
        counted,
        maybe_sent: false,
        approved: None,
        dedupe: event.dedupe.clone(),
        elsewhere: event.elsewhere.as_ref().map(|found| SeenElsewhere {
            run: found.run.clone(),
            ordinal: found.ordinal,
            result: found.result.map(|result| Stored::at(result, seq)),
        }),
        deadline: event.deadline,
    };
    checkpoint.pending.insert(event.ordinal, action);
    Ok(())
}

pub(super) fn refused(checkpoint: &mut Checkpoint, seq: u64, event: &ActionRefused) -> Checked {
    let decision = place(checkpoint, event.ordinal)?;
    let settled = Settled {
        ordinal: event.ordinal,
        decision,
        tool: event.tool.clone(),
        class: crate::effect::Class::Read,
        arguments: Stored::at(event.arguments, seq),
        result: Stored::at(event.text, seq),
        how: How::Refused(event.kind),
        by: None,
        attempts: 0,
        key: None,
        same: None,
    };
    if matches!(event.kind, RefusalKind::UnknownTool | RefusalKind::InvalidArguments) {
        log_error(checkpoint, seq, ErrorKind::Reply, Some(event.ordinal), event.text);
    }
    keep(checkpoint, settled);
    Ok(())
}

pub(super) fn started(checkpoint: &mut Checkpoint, seq: u64, epoch: u64, event: &AttemptStarted) -> Checked {
    let now = checkpoint.at;
    if checkpoint.phase != Phase::Active {
        return Err("only an active run sends");
    }
    let has_key = checkpoint.has_dedupe_key(event.ordinal);
    let action = pending(checkpoint, event.ordinal)?;
    if !matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. }) {
        return Err("only a ready action is attempted");
    }
    if action.dedupe.is_some() && !has_key {
        return Err("its dedupe key is not taken");
    }
    if Some(event.attempt) != action.attempts.checked_add(1) {
        return Err("the attempt's number does not follow");
    }
    // Counted once an action, however often its attempts turn out not to have been sent.
    let first = action.attempts == 0;
    action.attempts = event.attempt;
    action.first_sent.get_or_insert(now);
    action.state = ActionState::Open { attempt: event.attempt, epoch, send_by: event.send_by };
    if let Some(same) = action.same.filter(|_| first) {
        checkpoint.effect_log.add_effect(event.ordinal, &same, seq);
    }
    Ok(())
}

/// An outcome settles an action whatever it waited for: the truth about what was sent is always taken.
pub(super) fn finished(checkpoint: &mut Checkpoint, seq: u64, event: &ActionFinished) -> Checked {
    let action = pending(checkpoint, event.ordinal)?;
    if let (ActionState::Gated { gate: Gate::Approval(request) }, SettledBy::SameEffect) = (&action.state, event.by) {
        let name = request.name;
        return reused(checkpoint, seq, name, event);
    }
    let fits = match (&action.state, event.by) {
        (ActionState::Gated { gate: Gate::Same(_) }, SettledBy::SameEffect) => true,
        (ActionState::Gated { gate: Gate::Siblings }, SettledBy::Core) => true,
        (ActionState::Gated { .. }, _) => false,
        (ActionState::Ready { .. } | ActionState::Held { .. }, SettledBy::OtherRun) => {
            action.dedupe.is_some() && !action.maybe_sent
        }
        (_, SettledBy::OtherRun) => false,
        (ActionState::Ready { .. }, SettledBy::SameEffect | SettledBy::Core) => action.attempts == 0,
        // What may have been sent is settled by what is known of it, by nothing else.
        (_, SettledBy::SameEffect | SettledBy::Core | SettledBy::Signal | SettledBy::Timer | SettledBy::Deadline) => {
            false
        }
        (ActionState::Ready { .. } | ActionState::Held { .. }, _) => {
            action.class.is_repeatable() || action.attempts > 0
        }
        (ActionState::Open { attempt, .. }, _) => event.attempt <= *attempt,
        (ActionState::LookUp { .. } | ActionState::Doubt { .. }, _) => true,
    };
    if !fits {
        return Err("no attempt of it can have this outcome");
    }
    action.attempts = action.attempts.max(event.attempt);
    let how = if event.ok { How::Done } else { How::Failed };
    let by_core = event.by == SettledBy::Core;
    settle(checkpoint, seq, event.ordinal, how, Some(event.by), event.result)?;
    if !event.ok && !by_core {
        log_error(checkpoint, seq, ErrorKind::Tool, Some(event.ordinal), event.result);
    }
    Ok(())
}

/// A person took the outcome of an equal effect of the lineage for this action's.
fn reused(checkpoint: &mut Checkpoint, seq: u64, name: Digest, event: &ActionFinished) -> Checked {
    let known = pending(checkpoint, event.ordinal)?.elsewhere.as_ref().and_then(|found| found.result);
    if !event.ok || known.map(|result| result.value()) != Some(event.result) {
        return Err("no equal effect with this outcome was shown for it");
    }
    close(checkpoint, name, event.ordinal, Closing::Reused, None, Digest::default());
    settle(checkpoint, seq, event.ordinal, How::Done, Some(event.by), event.result)
}

/// Settles an action of which nothing more will be known here: a fork does not take it along.
pub(super) fn leave(checkpoint: &mut Checkpoint, ordinal: Ordinal, how: How, text: Stored) {
    let Some(action) = checkpoint.pending.remove(&ordinal) else { return };
    keep(checkpoint, settled_as(action, how, None, text));
}

/// Every value of the state stands in this transition's row from now on.
pub(super) fn locate_all(checkpoint: &mut Checkpoint, seq: u64) {
    checkpoint.stored_mut().into_iter().for_each(|stored| stored.seq = seq);
}

/// The check takes the place of the core's own judgement.
pub(super) fn check_started(checkpoint: &mut Checkpoint, event: &CheckStarted) -> Checked {
    let now = checkpoint.at;
    let action = pending(checkpoint, event.ordinal)?;
    if !matches!(action.state, ActionState::Gated { gate: Gate::Siblings }) {
        return Err("it does not wait to be judged");
    }
    if !action.class.is_repeatable() {
        return Err("a check may be repeated, and this action may not");
    }
    action.state = ActionState::Ready { not_before: now };
    Ok(())
}

pub(super) fn not_sent(checkpoint: &mut Checkpoint, seq: u64, event: &AttemptNotSent) -> Checked {
    let now = checkpoint.at;
    let action = pending(checkpoint, event.ordinal)?;
    let fits = match action.state {
        ActionState::Open { attempt, .. } => attempt == event.attempt,
        // A repeatable action is performed without an intent.
        ActionState::Ready { .. } => action.class.is_repeatable(),
        _ => false,
    };
    if !fits {
        return Err("no such attempt is open");
    }
    action.attempts = action.attempts.max(event.attempt);
    let unsent = !action.maybe_sent;
    if unsent {
        // The key's validity counts from the first send, and there was none.
        action.first_sent = None;
    }
    action.state = ActionState::Ready { not_before: event.not_before };
    if unsent && forget_earlier(checkpoint, event.ordinal) {
        // What was waited for is the definition before; by this one it is judged at once.
        pending(checkpoint, event.ordinal)?.state = ActionState::Ready { not_before: now };
    }
    log_error(checkpoint, seq, ErrorKind::Tool, Some(event.ordinal), event.text);
    Ok(())
}

pub(super) fn unknown(checkpoint: &mut Checkpoint, seq: u64, event: &AttemptUnknown) -> Checked {
    let action = pending(checkpoint, event.ordinal)?;
    let fits = match action.state {
        ActionState::Open { attempt, .. } => attempt == event.attempt,
        ActionState::Ready { .. } => action.class.is_repeatable() || action.maybe_sent,
        _ => false,
    };
    if !fits {
        return Err("no such attempt is open");
    }
    action.attempts = action.attempts.max(event.attempt);
    action.maybe_sent = true;
    move_on(checkpoint, seq, event.ordinal, event.attempt, event.next, event.text)?;
    log_error(checkpoint, seq, ErrorKind::Doubt, Some(event.ordinal), event.text);
    Ok(())
}

pub(super) fn looked_up(checkpoint: &mut Checkpoint, seq: u64, event: &LookupInconclusive) -> Checked {
    let action = pending(checkpoint, event.ordinal)?;
    let ActionState::LookUp { attempt, .. } = action.state else {
        return Err("no lookup of it is due");
    };
    move_on(checkpoint, seq, event.ordinal, attempt, event.next, event.text)
}

fn move_on(
    checkpoint: &mut Checkpoint,
    seq: u64,
    ordinal: Ordinal,
    attempt: u32,
    next: UnknownNext,
    text: ValueRef,
) -> Checked {
    let since = checkpoint.at;
    let action = pending(checkpoint, ordinal)?;
    action.state = match next {
        UnknownNext::Again(not_before) => ActionState::Ready { not_before },
        UnknownNext::LookUp(not_before) => ActionState::LookUp { not_before, attempt },
        UnknownNext::Doubt => ActionState::Doubt { since, attempt, text: Stored::at(text, seq) },
    };
    Ok(())
}

pub(super) fn resolved(checkpoint: &mut Checkpoint, seq: u64, event: &DoubtResolved) -> Checked {
    let now = checkpoint.at;
    let over = checkpoint.is_over();
    let action = pending(checkpoint, event.ordinal)?;
    if !matches!(action.state, ActionState::Doubt { .. } | ActionState::LookUp { .. }) {
        return Err("the action is not in doubt");
    }
    match &event.resolution {
        Resolution::Happened(result) => settle(checkpoint, seq, event.ordinal, How::Done, None, *result),
        Resolution::Abandoned(text) => settle(checkpoint, seq, event.ordinal, How::Abandoned, None, *text),
        Resolution::DidNotHappen(text) => settle(checkpoint, seq, event.ordinal, How::Failed, None, *text),
        Resolution::SendAgain if over => Err("the run is over: nothing is sent any more"),
        Resolution::SendAgain => {
            // A person's word opens a new validity of the key and a new round of attempts, and lifts the deadline.
            action.first_sent = None;
            action.maybe_sent = false;
            action.deadline = None;
            action.max_attempts = action.max_attempts.saturating_add(action.attempts);
            action.state = ActionState::Ready { not_before: now };
            forget_earlier(checkpoint, event.ordinal);
            Ok(())
        }
    }
}

pub(super) fn approved(checkpoint: &mut Checkpoint, event: &ActionApproved) -> Checked {
    let now = checkpoint.at;
    let action = pending(checkpoint, event.ordinal)?;
    let ActionState::Gated { gate: Gate::Approval(request) } = action.state.clone() else {
        return Err("no approval of it is asked");
    };
    action.approved_by = Some(event.by.clone());
    action.approved = Some(request);
    action.state = ActionState::Ready { not_before: now };
    close(checkpoint, request.name, event.ordinal, Closing::Approved, Some(event.by.clone()), Digest::default());
    Ok(())
}

/// The approval did not lead to an intent in time: its request is open again, and has expired.
pub(super) fn lapsed(checkpoint: &mut Checkpoint, event: &ApprovalLapsed) -> Checked {
    let now = checkpoint.at;
    let action = pending(checkpoint, event.ordinal)?;
    let unsent = matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. }) && action.attempts == 0;
    let Some(request) = action.approved.filter(|_| unsent) else {
        return Err("no approval of it waits for its first intent");
    };
    if request.expires_at.is_none_or(|at| at > now) {
        return Err("its approval has not expired");
    }
    action.approved = None;
    action.approved_by = None;
    action.state = ActionState::Gated { gate: Gate::Approval(request) };
    Ok(())
}

/// The quota has room: it is held back, and what else stands before the first intent is known now.
pub(super) fn granted(checkpoint: &mut Checkpoint, event: &QuotaGranted) -> Checked {
    let now = checkpoint.at;
    let action = pending(checkpoint, event.ordinal)?;
    if action.state != (ActionState::Gated { gate: Gate::Quota }) {
        return Err("it does not wait for a quota");
    }
    action.counted = true;
    action.state = match &event.gate {
        Gate::Quota => return Err("a grant gives more than it asks for"),
        Gate::Open => ActionState::Ready { not_before: now },
        gate => ActionState::Gated { gate: gate.clone() },
    };
    checkpoint.quota.reserve(ONE_CALL);
    Ok(())
}

pub(super) fn signal_taken(checkpoint: &mut Checkpoint, event: &SignalTaken) -> Checked {
    let ActionState::Gated { gate: Gate::Signal(wait) } = pending(checkpoint, event.ordinal)?.state.clone() else {
        return Err("it waits for no signal");
    };
    let Some(place) = checkpoint.signals.iter().position(|signal| signal.name == wait.name) else {
        return Err("no signal of its name has come");
    };
    let Some(signal) = checkpoint.signals.remove(place) else {
        return Err("no signal of its name has come");
    };
    waited(checkpoint, event.ordinal, How::Done, SettledBy::Signal, signal.value)
}

pub(super) fn timer_fired(checkpoint: &mut Checkpoint, seq: u64, event: &TimerFired) -> Checked {
    let now = checkpoint.at;
    let (due, how) = match &pending(checkpoint, event.ordinal)?.state {
        ActionState::Gated { gate: Gate::Timer(until) } => (Some(*until), How::Done),
        ActionState::Gated { gate: Gate::Signal(wait) } => (wait.until, How::Failed),
        _ => return Err("it waits for no time"),
    };
    if due.is_none_or(|due| due > now) {
        return Err("its time has not come");
    }
    waited(checkpoint, event.ordinal, how, SettledBy::Timer, Stored::at(event.result, seq))
}

/// Nothing of it was sent, or what was sent is known to have done nothing; a repeatable action may have been begun.
pub(super) fn deadline_passed(checkpoint: &mut Checkpoint, seq: u64, event: &DeadlinePassed) -> Checked {
    let now = checkpoint.at;
    let action = pending(checkpoint, event.ordinal)?;
    if action.deadline.is_none_or(|deadline| deadline > now) {
        return Err("its deadline has not passed");
    }
    if !action.fails_at_its_deadline() {
        return Err("an attempt of it is under way, or may have done something");
    }
    if let ActionState::Gated { gate: Gate::Approval(request) } = &action.state {
        let name = request.name;
        close(checkpoint, name, event.ordinal, Closing::Deadline, None, Digest::default());
    }
    settle(checkpoint, seq, event.ordinal, How::Failed, Some(SettledBy::Deadline), event.text)?;
    log_error(checkpoint, seq, ErrorKind::Tool, Some(event.ordinal), event.text);
    Ok(())
}

/// A wait is over. With a wait between them, equal actions are no loop.
fn waited(checkpoint: &mut Checkpoint, ordinal: Ordinal, how: How, by: SettledBy, result: Stored) -> Checked {
    settle_with(checkpoint, ordinal, how, Some(by), result)?;
    checkpoint.repeats = Repeats::default();
    Ok(())
}

pub(super) fn denied(checkpoint: &mut Checkpoint, seq: u64, event: &ActionDenied) -> Checked {
    let action = pending(checkpoint, event.ordinal)?;
    let ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } = action.state.clone() else {
        return Err("no word on it is asked");
    };
    let (how, word) = match event.why {
        DeniedBy::Person => (Closing::Denied, event.text.digest),
        DeniedBy::Expiry => (Closing::Expired, event.text.digest),
        // The word of an edit is its arguments; the action that they belong to was proposed just before.
        DeniedBy::Edit => (Closing::Edited, newest_arguments(checkpoint)),
    };
    close(checkpoint, request.name, event.ordinal, how, event.by.clone(), word);
    settle(checkpoint, seq, event.ordinal, How::Denied(event.why), None, event.text)
}

pub(super) fn answered(checkpoint: &mut Checkpoint, seq: u64, event: &QuestionAnswered) -> Checked {
    let action = pending(checkpoint, event.ordinal)?;
    let ActionState::Gated { gate: Gate::Answer(request) } = action.state.clone() else {
        return Err("no question of it is open");
    };
    close(checkpoint, request.name, event.ordinal, Closing::Answered, Some(event.by.clone()), event.answer.digest);
    settle(checkpoint, seq, event.ordinal, How::Done, Some(SettledBy::Answer), event.answer)
}

pub(super) fn withdrawn(checkpoint: &mut Checkpoint, seq: u64, event: &ActionWithdrawn) -> Checked {
    let action = pending(checkpoint, event.ordinal)?;
    match action.state.clone() {
        ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => {
            close(checkpoint, request.name, event.ordinal, Closing::Withdrawn, None, Digest::default())
        }
        ActionState::Gated { .. } => {}
        ActionState::Held { .. } => {}
        ActionState::Ready { .. } if action.class.is_repeatable() || action.first_sent.is_none() => {}
        _ => return Err("an attempt may have been sent"),
    }
    settle(checkpoint, seq, event.ordinal, How::Withdrawn, None, event.text)
}

fn newest_arguments(checkpoint: &Checkpoint) -> Digest {
    let newest = checkpoint.pending.get(&Ordinal(checkpoint.last_ordinal));
    newest.map(|action| action.arguments.digest).unwrap_or_default()
}

/// Gives an action its place: the next ordinal, in the open decision.
fn place(checkpoint: &mut Checkpoint, ordinal: Ordinal) -> Result<u32, &'static str> {
    if Some(ordinal.0) != checkpoint.last_ordinal.checked_add(1) {
        return Err("the ordinal does not follow");
    }
    let Some(decision) = &mut checkpoint.decision else {
        return Err("no decision is open");
    };
    checkpoint.last_ordinal = ordinal.0;
    decision.actions.push(ordinal);
    decision.expected = decision.expected.max(decision.actions.len() as u32);
    Ok(decision.decision)
}

pub(super) fn pending(checkpoint: &mut Checkpoint, ordinal: Ordinal) -> Result<&mut Action, &'static str> {
    checkpoint.pending.get_mut(&ordinal).ok_or("no such action is pending")
}

/// Settles an action with a value of this transition, or with one that is another action's result.
fn settle(
    checkpoint: &mut Checkpoint,
    seq: u64,
    ordinal: Ordinal,
    how: How,
    by: Option<SettledBy>,
    result: ValueRef,
) -> Checked {
    let shown = checkpoint.pending.get(&ordinal).and_then(|action| action.elsewhere.as_ref()?.result);
    let shown = shown.filter(|stored| stored.digest == result.digest);
    let result = shown.unwrap_or_else(|| locate(checkpoint, result, seq));
    settle_with(checkpoint, ordinal, how, by, result)
}

/// Moves an action to the settled ones, and draws what follows from it: quota, evidence, the decision's end.
fn settle_with(
    checkpoint: &mut Checkpoint,
    ordinal: Ordinal,
    how: How,
    by: Option<SettledBy>,
    result: Stored,
) -> Checked {
    let Some(action) = checkpoint.pending.remove(&ordinal) else {
        return Err("no such action is pending");
    };
    forget_earlier(checkpoint, ordinal);
    if action.counted {
        let used = if action.attempts > 0 { ONE_CALL } else { Amounts::default() };
        checkpoint.quota.settle(ONE_CALL, used);
    }
    if how == How::Done {
        give_evidence(checkpoint, &action);
    }
    count_repeat(checkpoint, &action, result.digest);
    keep(checkpoint, settled_as(action, how, by, result));
    Ok(())
}

fn settled_as(action: Action, how: How, by: Option<SettledBy>, result: Stored) -> Settled {
    Settled {
        ordinal: action.ordinal,
        decision: action.decision,
        tool: action.tool,
        class: action.class,
        arguments: action.arguments,
        result,
        how,
        by,
        attempts: action.attempts,
        key: action.key,
        same: action.same,
    }
}

/// What is not sent goes by the run's own definition; what is settled by none. Did it go by an earlier one?
fn forget_earlier(checkpoint: &mut Checkpoint, ordinal: Ordinal) -> bool {
    let forgot = checkpoint.earlier.as_mut().is_some_and(|earlier| earlier.remove(&ordinal).is_some());
    checkpoint.earlier.take_if(|earlier| earlier.is_empty());
    forgot
}

/// A result that is another action's stands where that one's does.
fn locate(checkpoint: &Checkpoint, value: ValueRef, seq: u64) -> Stored {
    let known = checkpoint.recent.iter().rev().find(|settled| settled.result.digest == value.digest);
    known.map_or_else(|| Stored::at(value, seq), |settled| settled.result)
}

fn give_evidence(checkpoint: &mut Checkpoint, action: &Action) {
    let due = checkpoint
        .plan
        .iter_mut()
        .filter(|milestone| milestone.reached.is_none() && milestone.requires_action.as_deref() == Some(&action.tool));
    for milestone in due {
        milestone.reached = Some(Evidence::Action(action.ordinal));
    }
}

fn count_repeat(checkpoint: &mut Checkpoint, action: &Action, result: Digest) {
    let digest = Digest::over(
        "lodestep repeat 1",
        &[action.tool.as_bytes(), action.arguments.digest.as_bytes(), result.as_bytes()],
    );
    checkpoint.repeats.note(digest);
}

/// Keeps a settled action in full, moves the oldest into the counts, and closes the decision with its last action.
fn keep(checkpoint: &mut Checkpoint, settled: Settled) {
    checkpoint.recent.push_back(settled);
    let open: Vec<Ordinal> = checkpoint.decision.iter().flat_map(|decision| decision.actions.iter().copied()).collect();
    while checkpoint.recent.len() > checkpoint.limits.recent_actions as usize {
        // An open decision's actions are all needed for the next request.
        let oldest = checkpoint.recent.front().is_some_and(|settled| open.contains(&settled.ordinal));
        if oldest {
            break;
        }
        let Some(old) = checkpoint.recent.pop_front() else { break };
        // A model can make up any number of names; they share one row.
        let unknown = old.how == How::Refused(RefusalKind::UnknownTool);
        let row = if unknown { "(no such tool)".to_owned() } else { old.tool };
        let counts = checkpoint.older.entry(row).or_default();
        let count = if old.how == How::Done { &mut counts.done } else { &mut counts.not_done };
        *count = count.saturating_add(1);
    }
    close_decision(checkpoint);
}

/// A decision is over when all of its actions were proposed and none of them is pending.
fn close_decision(checkpoint: &mut Checkpoint) {
    let over = checkpoint.decision.as_ref().is_some_and(|decision| {
        decision.actions.len() as u32 >= decision.expected
            && !decision.actions.iter().any(|ordinal| checkpoint.pending.contains_key(ordinal))
    });
    if over {
        checkpoint.decision = None;
    }
}

pub(super) fn close(
    checkpoint: &mut Checkpoint,
    name: Digest,
    ordinal: Ordinal,
    how: Closing,
    by: Option<String>,
    word: Digest,
) {
    checkpoint.closed_requests.push_back(ClosedRequest { name, ordinal, how, by, word });
    while checkpoint.closed_requests.len() > CLOSED_REQUESTS {
        checkpoint.closed_requests.pop_front();
    }
}
