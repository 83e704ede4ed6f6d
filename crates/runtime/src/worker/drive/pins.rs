//! What a run is pinned to, and an upgrade that moves it to another definition while it is under way.
//!
//! An upgrade is read in a transition of its own, before anything is judged by the definition that it replaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use lodestep_core::checkpoint::Phase;
use lodestep_core::event::{CallLost, Event, RunStopped, StopReason};
use lodestep_core::rules::inbox::{self, Message, Word};
use lodestep_core::rules::standing::standing;
use lodestep_core::rules::{dedupe, owed, recover};
use lodestep_core::{Checkpoint, Draft, Error, Ordinal, Result};
use lodestep_store::Release;

use super::Drive;
use super::quarantine::{LOOK_AGAIN_MS, is_damage};
use crate::secrets::Secrets;
use crate::worker::done::Done;
use crate::worker::pinned::Pinned;

/// Why this program on this machine can't go on with a run.
pub(super) enum Unfit {
    /// For its definition.
    Definition(Error),
    /// For secrets that its definition refers to, in words.
    Secrets(String),
}

/// Is one of these an upgrade?
pub(super) fn is_among(unread: &[(u64, Message)]) -> bool {
    unread.iter().any(|(_, message)| matches!(message.word, Word::Upgrade(_)))
}

impl Drive {
    /// What the run is pinned to, with what some of its actions go by that may have begun before an upgrade.
    pub(super) async fn pin(&mut self, checkpoint: &Checkpoint) -> std::result::Result<Arc<Pinned>, Unfit> {
        let (runtime, run) = (&self.runtime, &self.claim.run);
        let pinned = Pinned::of(runtime, run, checkpoint).await.map_err(Unfit::Definition)?;
        let mut earlier = BTreeMap::new();
        for (ordinal, definition) in checkpoint.earlier.iter().flatten() {
            let known = Pinned::earlier(runtime, run, *definition, &pinned).await.map_err(Unfit::Definition)?;
            earlier.insert(*ordinal, known);
        }
        self.earlier = earlier;
        let unfit = Secrets::of(&pinned.definition, &self.runtime.environment).unfit();
        if let Some(unfit) = unfit.filter(|_| checkpoint.phase == Phase::Active) {
            return Err(Unfit::Secrets(unfit));
        }
        self.renewed_secrets(&pinned);
        Ok(pinned)
    }

    /// What an action goes by: the run's own definition, or the one that it began with.
    pub(super) fn pinned_for(&self, checkpoint: &Checkpoint, run: &Arc<Pinned>, ordinal: Ordinal) -> Arc<Pinned> {
        let earlier = checkpoint.earlier_definition(ordinal).and_then(|_| self.earlier.get(&ordinal));
        earlier.unwrap_or(run).clone()
    }

    /// The words from outside alone: an upgrade is among them, and what follows is judged by another definition.
    pub(super) fn words(&mut self, checkpoint: Checkpoint, unread: &[(u64, Message)]) -> Result<Draft> {
        let worked = self.runtime.clock.boot_us().saturating_sub(self.worked_until_us);
        let mut draft = Draft::next(checkpoint, self.runtime.store.now(), self.claim.epoch, worked);
        recover::recover(&mut draft)?;
        for (position, message) in unread {
            inbox::read(&mut draft, *position, message)?;
        }
        self.stop_a_crasher(&mut draft)?;
        // What became of a dedupe key is told in the transition that settled its action.
        dedupe::close(&mut draft)?;
        Ok(draft)
    }

    /// The same, and what actions came to. A reply of the model is for the definition that it was asked under, and is given up.
    pub(super) fn words_and_outcomes(
        &mut self,
        checkpoint: Checkpoint,
        unread: &[(u64, Message)],
        seen: &[Done],
    ) -> Result<Draft> {
        let mut draft = self.words(checkpoint, unread)?;
        for done in seen {
            done.note_removed(&mut draft)?;
            done.settle(&mut draft)?;
        }
        dedupe::close(&mut draft)?;
        Ok(draft)
    }

    /// Lets what is under way end, and keeps what came of it; a call of the model is given up. For a run that can't go on
    /// with the definition that it was moved to.
    pub(super) async fn end_under_way(&mut self, checkpoint: Checkpoint, mut seen: Vec<Done>) -> Result<Checkpoint> {
        if let Some((_, handle)) = self.asking.take() {
            handle.abort();
        }
        while let Some(done) = self.tasks.next().await {
            seen.extend(self.came_back(done));
        }
        let mut draft = self.words_and_outcomes(checkpoint, &[], &seen)?;
        if let Some(open) = draft.checkpoint().model.open {
            draft.push(Event::CallLost(CallLost { call: open.call, charged: None }))?;
        }
        if draft.is_empty() {
            return Ok(draft.into_checkpoint());
        }
        self.commit(draft, &[], false).await
    }

    /// Stops the run, saying what to mend, and gives it back. What needs no definition is done: words are read, so that
    /// none keeps it due, and a cancel is wound up.
    pub(super) async fn stop_unfit(mut self, checkpoint: Checkpoint, unfit: Unfit) -> Result<()> {
        let (reason, text) = match unfit {
            Unfit::Secrets(unfit) => (StopReason::Secret, unfit),
            Unfit::Definition(error) if is_damage(&error) => return self.without_definition(checkpoint, error).await,
            Unfit::Definition(error) => {
                let reason = match error.code() {
                    "model.script" => StopReason::Secret,
                    "model.unknown" | "run.definition_unreadable" => StopReason::Version,
                    _ => return Err(error),
                };
                (reason, format!("{}; {}", error.what(), error.next()))
            }
        };
        let unread = self.unread(&checkpoint).await?;
        let mut draft = self.words(checkpoint, &unread)?;
        if draft.checkpoint().phase == Phase::Active {
            let text = draft.put(text);
            draft.push(Event::RunStopped(RunStopped { reason, text }))?;
        }
        owed::wind_up(&mut draft, &BTreeSet::new())?;
        if draft.is_empty() {
            let again = draft.now().plus_ms(LOOK_AGAIN_MS);
            let due = standing(draft.checkpoint()).due.map(|due| due.max(again));
            return self.runtime.store.release(&self.claim, due, Release::Idle).await;
        }
        self.commit(draft, &[], true).await.map(drop)
    }
}
