//! A fork's beginning: the origin's state, made the state of a run of its own.
//!
//! What is done stays done. What is not settled is not taken along: requests, keys and attempts belong to the run that
//! made them. Quotas, the inbox, the effects' tally and the counters against misbehaviour start anew.

use super::action::{leave, locate_all};
use super::run::empty_quota;
use crate::checkpoint::{Action, ActionState, Checkpoint, How, ModelState, Phase, Repeats, Tally};
use crate::draft::root_digest;
use crate::error::{Error, Result};
use crate::event::RunForked;
use crate::ids::Ordinal;
use crate::time::Timestamp;
use crate::value::Stored;

/// The most forks of forks: a state names each of its origins.
pub const FORK_DEPTH: usize = 64;

/// The state that a fork begins with.
///
/// # Errors
///
/// `run.illegal_event` when the event contradicts itself.
pub fn begin_fork(forked: &RunForked, at: Timestamp) -> Result<Checkpoint> {
    let origin = &forked.origin;
    let fits = |state: &Checkpoint| (&state.run, state.seq, state.head) == (&origin.run, origin.seq, origin.head);
    if !fits(&forked.state) || forked.run == origin.run || forked.state.lineage.len() >= FORK_DEPTH {
        let what = format!("RunForked of {} names an origin that its state is not of", forked.run);
        return Err(Error::new("run.illegal_event", what, "this is a fault in lodestep"));
    }
    let mut state = stripped(&forked.state);
    locate_all(&mut state, 1);
    state.run = forked.run.clone();
    state.inputs = Stored::at(forked.inputs, 1);
    state.lineage.insert(0, origin.clone());
    (state.started_at, state.at) = (at, at);
    state.seq = 0;
    state.head = root_digest(&state.key());
    state.quota = empty_quota(forked.quota);
    state.model.not_before = at;
    state.artifact_log = Tally::default();
    for (name, artifact) in &state.artifacts {
        let digest = artifact.content.digest;
        state.artifact_log.add(&[name.as_bytes(), &artifact.version.to_le_bytes(), digest.as_bytes()]);
    }
    let pending: Vec<(Ordinal, bool)> =
        state.pending.values().map(|action| (action.ordinal, may_have_been_sent(action))).collect();
    for (ordinal, sent) in pending {
        let (how, text) = if sent { (How::Left, forked.left) } else { (How::Withdrawn, forked.withdrawn) };
        leave(&mut state, ordinal, how, Stored::at(text, 1));
    }
    state.decision = None;
    state.repeats = Repeats::default();
    Ok(state)
}

/// The values of a state that a fork of it needs, where they stand in the origin.
pub fn inherited(state: &Checkpoint) -> Vec<Stored> {
    let mut stored = stripped(state).stored();
    stored.sort_unstable();
    stored.dedup_by_key(|stored| stored.digest);
    stored
}

/// May an attempt of it have been sent by the origin?
pub fn may_have_been_sent(action: &Action) -> bool {
    match action.state {
        ActionState::Gated { .. } => false,
        ActionState::Ready { .. } | ActionState::Held { .. } => {
            !action.class.is_repeatable() && action.first_sent.is_some()
        }
        ActionState::Open { .. } | ActionState::LookUp { .. } | ActionState::Doubt { .. } => {
            !action.class.is_repeatable()
        }
    }
}

/// A state without what a fork of it does not take along.
fn stripped(state: &Checkpoint) -> Checkpoint {
    let mut state = state.clone();
    state.phase = Phase::Active;
    state.inbox = 0;
    state.effect_log = Tally::default();
    // A key stays with the action that took it, in the run that it is of.
    state.dedupe_keys = None;
    state.earlier = None;
    state.closed_requests.clear();
    state.guidance.clear();
    state.signals.clear();
    state.refused_finishes = 0;
    state.model = ModelState {
        open: None,
        failed_in_row: 0,
        faulty_in_row: 0,
        too_long_in_row: 0,
        cut_in_row: None,
        lost_in_row: None,
        last_manifest: None,
        ..state.model
    };
    for action in state.pending.values_mut() {
        // The call of a tool that it counts for is the origin's.
        action.counted = false;
        if let ActionState::Doubt { .. } = action.state {
            // What was seen of it is the origin's too; a time is as good as any.
            action.state = ActionState::LookUp { not_before: state.at, attempt: action.attempts };
        }
        action.elsewhere = None;
    }
    state
}
