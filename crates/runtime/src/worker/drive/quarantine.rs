//! Runs that only a person lets go on: what is damaged is named at once, and nothing is sent.

use std::collections::BTreeSet;

use lodestep_core::checkpoint::{Action, ActionState, Phase};
use lodestep_core::event::{CallLost, Event, StopReason};
use lodestep_core::rules::quarantine::{REWOUND, quarantine};
use lodestep_core::rules::standing::standing;
use lodestep_core::rules::{inbox, owed, recover};
use lodestep_core::{Checkpoint, Draft, Error, Result};
use lodestep_store::Release;

use super::Drive;

/// A run that is held up by damage is looked at again after so long, when a word or a time may have made it due.
pub(super) const LOOK_AGAIN_MS: u64 = 60_000;

/// Is something of the run not what was stored?
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.code(), "store.corrupt" | "store.undecodable" | "store.value_damaged" | "store.value_missing")
}

/// Stops a run in place of what can't be decided without the damaged bytes. A call that was answered is given up: its
/// reservation is charged.
pub(super) fn give_up(draft: &mut Draft, call: Option<u64>, error: &Error) -> Result<()> {
    if let Some(call) = call {
        draft.push(Event::CallLost(CallLost { call, charged: None }))?;
    }
    quarantine(draft, StopReason::Undecodable, in_words(error))
}

fn in_words(error: &Error) -> String {
    format!("{}; {}", error.what(), error.next())
}

/// What a worker that is gone was doing, as far as the journal tells: what it left open, else what came next.
fn at_work(draft: &Draft) -> String {
    let state = draft.checkpoint();
    let left = draft.events().iter().find_map(|event| match event {
        Event::AttemptUnknown(unknown) => Some(unknown.ordinal),
        _ => None,
    });
    let lost_a_call = draft.events().iter().any(|event| matches!(event, Event::CallLost(_)));
    let is_next = |action: &&Action| match action.state {
        ActionState::Ready { .. } => !lost_a_call,
        ActionState::Open { .. } | ActionState::LookUp { .. } => true,
        _ => Some(action.ordinal) == left,
    };
    let left = left.and_then(|ordinal| state.pending.get(&ordinal));
    match left.or_else(|| state.pending.values().find(is_next)) {
        Some(action) => format!("it performed action {}, {}", action.ordinal, action.tool),
        None if lost_a_call || state.decision.is_none() => "its model was asked".to_owned(),
        None => format!("it was at step {}", state.seq),
    }
}

/// A run that crashed its workers so often, without an outcome between, is quarantined.
const CRASHES_TO_QUARANTINE: u32 = 5;

impl Drive {
    /// A run that crashes its workers is stopped before anything else is sent or asked. Whoever released it has the word:
    /// its crashes count anew.
    pub(super) fn stop_a_crasher(&mut self, draft: &mut Draft) -> Result<()> {
        if draft.events().iter().any(|event| matches!(event, Event::RunResumed(_))) {
            self.claim.crashes = 0;
        }
        if self.claim.crashes < CRASHES_TO_QUARANTINE || draft.checkpoint().phase != Phase::Active {
            return Ok(());
        }
        let text = format!(
            "its workers crashed {} times on it without an outcome, the last time while {}",
            self.claim.crashes,
            at_work(draft)
        );
        self.claim.crashes = 0;
        quarantine(draft, StopReason::Crashes, text)
    }

    /// The store was put back to an older copy: the run says so before it does anything else. One that is being
    /// cancelled or is over does nothing that could happen twice, and goes on.
    pub(super) fn is_rewound(&self, checkpoint: &Checkpoint) -> Option<String> {
        let could_send = matches!(checkpoint.phase, Phase::Active | Phase::Stopped { .. });
        (self.claim.rewound && could_send).then(|| REWOUND.to_owned())
    }

    /// The definition or the inputs are damaged. What needs neither is done: words are read, and a cancel is wound up.
    pub(super) async fn without_definition(mut self, checkpoint: Checkpoint, error: Error) -> Result<()> {
        let unread = self.unread(&checkpoint).await?;
        let mut draft = Draft::next(checkpoint, self.runtime.store.now(), self.claim.epoch, 0);
        recover::recover(&mut draft)?;
        for (position, message) in &unread {
            inbox::read(&mut draft, *position, message)?;
        }
        quarantine(&mut draft, StopReason::Undecodable, in_words(&error))?;
        owed::wind_up(&mut draft, &BTreeSet::new())?;
        if draft.is_empty() {
            let again = draft.now().plus_ms(LOOK_AGAIN_MS);
            let due = standing(draft.checkpoint()).due.map(|due| due.max(again));
            return self.runtime.store.release(&self.claim, due, Release::Idle).await;
        }
        self.commit(draft, &[], true).await.map(drop)
    }
}
