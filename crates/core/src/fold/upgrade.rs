//! Upgrades: the run's pin moves. What it did, spent and was given stays; what may have begun ends as it began.

use super::Checked;
use super::action::{close, pending};
use crate::checkpoint::{ActionState, Checkpoint, Closing, How, Milestone, Phase};
use crate::digest::Digest;
use crate::event::{ActionRebound, Evidence, Gate, PlannedMilestone, RunUpgraded};
use crate::ids::Ordinal;
use crate::value::Stored;

pub(super) fn upgraded(checkpoint: &mut Checkpoint, seq: u64, event: &RunUpgraded) -> Checked {
    if !matches!(checkpoint.phase, Phase::Active | Phase::Stopped { .. }) {
        return Err("a run that is cancelled or over keeps its definition");
    }
    let before = checkpoint.definition;
    if before.digest == event.definition.digest {
        return Err("the run has this definition");
    }
    if event.kept.iter().any(|ordinal| !checkpoint.pending.contains_key(ordinal)) {
        return Err("only what is pending goes on by the definition before");
    }
    // It may be another service that is asked from now on.
    if checkpoint.model.limited_until.take().is_some() {
        checkpoint.model.not_before = checkpoint.at;
    }
    if !event.kept.is_empty() {
        let earlier = checkpoint.earlier.get_or_insert_default();
        // One that outlives a second upgrade began with the first definition all the same.
        event.kept.iter().for_each(|ordinal| {
            earlier.entry(*ordinal).or_insert(before);
        });
    }
    checkpoint.definition = Stored::at(event.definition, seq);
    checkpoint.limits = event.limits;
    checkpoint.quota.limits = event.quota;
    checkpoint.plan = planned(checkpoint, &event.milestones)?;
    Ok(())
}

/// The definition's milestones in its order, then the model's own. One that is reached stays reached, unless it was the
/// model's own and is the runtime's to check now.
fn planned(checkpoint: &Checkpoint, milestones: &[PlannedMilestone]) -> Result<Vec<Milestone>, &'static str> {
    let mut plan: Vec<Milestone> = Vec::new();
    for milestone in milestones {
        if plan.iter().any(|earlier| earlier.id == milestone.id) {
            return Err("two milestones share a name");
        }
        let known = checkpoint.plan.iter().find(|known| known.id == milestone.id);
        let counts = |known: &&Milestone| known.fixed || milestone.requires_action.is_none();
        let reached = known.filter(counts).and_then(|known| known.reached.clone());
        let done = || milestone.requires_action.as_deref().and_then(|tool| newest_done(checkpoint, tool));
        plan.push(Milestone {
            id: milestone.id.clone(),
            title: None,
            requires_action: milestone.requires_action.clone(),
            fixed: true,
            reached: reached.or_else(|| done().map(Evidence::Action)),
        });
    }
    let own = checkpoint.plan.iter().filter(|known| !known.fixed);
    let own: Vec<Milestone> = own.filter(|known| !plan.iter().any(|of| of.id == known.id)).cloned().collect();
    // Where the limit has become lower, the model's own give way.
    let room = (checkpoint.limits.milestones as usize).saturating_sub(plan.len());
    plan.extend(own.into_iter().take(room));
    Ok(plan)
}

/// The newest action of a tool that is known to be done.
fn newest_done(checkpoint: &Checkpoint, tool: &str) -> Option<Ordinal> {
    let done = checkpoint.recent.iter().rev().find(|settled| settled.tool == tool && settled.how == How::Done);
    done.map(|settled| settled.ordinal)
}

pub(super) fn rebound(checkpoint: &mut Checkpoint, event: &ActionRebound) -> Checked {
    let now = checkpoint.at;
    if checkpoint.has_dedupe_key(event.ordinal) {
        return Err("it has its dedupe key");
    }
    let action = pending(checkpoint, event.ordinal)?;
    let waits_for_room = action.state == (ActionState::Gated { gate: Gate::Quota });
    let unsent = match &action.state {
        ActionState::Gated { gate: Gate::Approval(_) | Gate::Quota } => true,
        // A repeatable action begins without an intent.
        ActionState::Ready { .. } | ActionState::Held { .. } => {
            !action.class.is_repeatable() && !action.maybe_sent && action.first_sent.is_none()
        }
        _ => false,
    };
    if !unsent {
        return Err("it may have begun, or waits for no tool");
    }
    if action.key.is_some() && action.key != event.key {
        return Err("a key is minted once");
    }
    if !event.class.is_repeatable() && (event.key.is_none() || event.same.is_none()) {
        return Err("an effect has a key and its sameness");
    }
    let asked = match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) } => Some(request.name),
        _ => action.approved.map(|request| request.name),
    };
    action.state = match &event.gate {
        Gate::Quota if waits_for_room => ActionState::Gated { gate: Gate::Quota },
        Gate::Open if !waits_for_room => ActionState::Ready { not_before: now },
        Gate::Approval(request) if !waits_for_room => ActionState::Gated { gate: Gate::Approval(*request) },
        _ => return Err("nothing else can stand before it"),
    };
    action.class = event.class;
    action.tool_digest = event.tool_digest;
    action.same = event.same;
    action.key = event.key.clone();
    action.dedupe = event.dedupe.clone();
    action.key_valid_for_ms = event.key_valid_for_ms;
    action.settles_after_ms = event.settles_after_ms;
    action.max_attempts = event.max_attempts;
    action.deadline = event.deadline;
    (action.approved, action.approved_by) = (None, None);
    if let Some(name) = asked {
        close(checkpoint, name, event.ordinal, Closing::Superseded, None, Digest::default());
    }
    Ok(())
}
