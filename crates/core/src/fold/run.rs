//! The run as a whole: start, stops, end.

use std::collections::{BTreeMap, VecDeque};

use super::Checked;
use crate::checkpoint::{ActionState, Checkpoint, Milestone, ModelState, Phase, Repeats, Tally};
use crate::definition::QuotaLimits;
use crate::draft::root_digest;
use crate::error::{Error, Result};
use crate::event::{CancelRequested, Gate, InboxRead, QuotaGiven, RunEnded, RunResumed, RunStarted, RunStopped};
use crate::ids::RunKey;
use crate::quota::Quotas;
use crate::time::Timestamp;
use crate::value::Stored;

/// The state that a start gives.
///
/// # Errors
///
/// `run.illegal_event` when two milestones share a name.
pub fn begin(started: &RunStarted, at: Timestamp) -> Result<Checkpoint> {
    let mut names: Vec<&str> = started.milestones.iter().map(|milestone| milestone.id.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::new(
            "run.illegal_event",
            format!("RunStarted has two milestones `{}`", twice[0].escape_default()),
            "give each milestone of the agent its own id",
        ));
    }
    let key = RunKey { namespace: started.namespace.clone(), run: started.run.clone() };
    let planned = started.milestones.iter().map(|milestone| Milestone {
        id: milestone.id.clone(),
        title: None,
        requires_action: milestone.requires_action.clone(),
        fixed: true,
        reached: None,
    });
    Ok(Checkpoint {
        namespace: started.namespace.clone(),
        run: started.run.clone(),
        agent: started.agent.clone(),
        definition: Stored::at(started.definition, 1),
        inputs: Stored::at(started.inputs, 1),
        limits: started.limits,
        started_at: at,
        seq: 0,
        head: root_digest(&key),
        at,
        phase: Phase::Active,
        plan: planned.collect(),
        notes: BTreeMap::new(),
        model: ModelState { estimate_permille: 1000, ..ModelState::default() },
        decision: None,
        last_ordinal: 0,
        pending: BTreeMap::new(),
        recent: VecDeque::new(),
        older: BTreeMap::new(),
        artifacts: BTreeMap::new(),
        artifact_log: Tally::default(),
        open_artifacts: Vec::new(),
        errors: VecDeque::new(),
        error_counts: BTreeMap::new(),
        quota: Quotas::new(started.quota),
        inbox: 0,
        effect_log: Tally::default(),
        refused_finishes: 0,
        closed_requests: VecDeque::new(),
        repeats: Repeats::default(),
        dedupe_keys: None,
        guidance: VecDeque::new(),
        signals: VecDeque::new(),
        lineage: Vec::new(),
        earlier: None,
    })
}

/// What a run may spend that has spent nothing.
pub(super) fn empty_quota(limits: QuotaLimits) -> Quotas {
    Quotas::new(limits)
}

/// What was given can't be spent here any more: the limits are lower by it.
pub(super) fn quota_given(checkpoint: &mut Checkpoint, event: &QuotaGiven) -> Checked {
    checkpoint.quota.limits = checkpoint.quota.limits.less(&event.amounts);
    Ok(())
}

pub(super) fn inbox_read(checkpoint: &mut Checkpoint, event: &InboxRead) -> Checked {
    if event.position <= checkpoint.inbox {
        return Err("the message was read before");
    }
    checkpoint.inbox = event.position;
    Ok(())
}

pub(super) fn stopped(checkpoint: &mut Checkpoint, seq: u64, event: &RunStopped) -> Checked {
    let stops = match checkpoint.phase {
        Phase::Active => true,
        // It waits for a person already, who may not know yet that it is not to go on as if nothing had happened.
        Phase::Stopped { .. } => event.reason.is_quarantine(),
        Phase::Cancelling { .. } | Phase::Ended { .. } => false,
    };
    if !stops {
        return Err("only an active run stops, and only a quarantine takes the place of another stop");
    }
    checkpoint.phase = Phase::Stopped { reason: event.reason, text: Stored::at(event.text, seq), since: checkpoint.at };
    Ok(())
}

/// A person lets the run go on: counters that stopped it start anew, requests that expired are asked again.
pub(super) fn resumed(checkpoint: &mut Checkpoint, _event: &RunResumed) -> Checked {
    if !matches!(checkpoint.phase, Phase::Stopped { .. }) {
        return Err("only a stopped run is resumed");
    }
    checkpoint.phase = Phase::Active;
    checkpoint.model.failed_in_row = 0;
    checkpoint.model.faulty_in_row = 0;
    checkpoint.model.too_long_in_row = 0;
    checkpoint.model.cut_in_row = None;
    checkpoint.model.lost_in_row = None;
    checkpoint.model.not_before = checkpoint.model.limited_until.unwrap_or(checkpoint.at).max(checkpoint.at);
    checkpoint.refused_finishes = 0;
    checkpoint.repeats = Repeats::default();
    let now = checkpoint.at;
    for action in checkpoint.pending.values_mut() {
        if let ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } = &mut action.state
            && request.expires_at.is_some_and(|expires_at| expires_at <= now)
        {
            request.expires_at = request.window_ms.map(|window_ms| now.plus_ms(window_ms));
            request.asked_at = now;
        }
    }
    Ok(())
}

pub(super) fn cancel_requested(checkpoint: &mut Checkpoint, seq: u64, event: &CancelRequested) -> Checked {
    if matches!(checkpoint.phase, Phase::Cancelling { .. }) {
        return Err("the run is being cancelled");
    }
    checkpoint.phase = Phase::Cancelling {
        by: event.by.clone(),
        reason: Stored::at(event.reason, seq),
        grace_until: event.grace_until,
    };
    Ok(())
}

pub(super) fn ended(checkpoint: &mut Checkpoint, seq: u64, event: &RunEnded) -> Checked {
    let unsettled = checkpoint.pending.values().any(|action| !matches!(action.state, ActionState::Doubt { .. }));
    if unsettled {
        return Err("an action is not settled");
    }
    if checkpoint.model.open.is_some() {
        return Err("a call of the model has no answer yet");
    }
    // A cancel's reason was stored with the cancel, most often in an earlier transition.
    let text = match &checkpoint.phase {
        Phase::Cancelling { reason, .. } if reason.value() == event.text => *reason,
        _ => Stored::at(event.text, seq),
    };
    checkpoint.phase = Phase::Ended { ending: event.ending, text, since: checkpoint.at };
    Ok(())
}
