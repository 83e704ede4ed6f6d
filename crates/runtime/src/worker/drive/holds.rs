//! Dispatch holds as one run's worker knows them, and the parking of a run that only waits for their end.

use lodestep_core::hold::Held;
use lodestep_core::rules::owed::{self, is_held};
use lodestep_core::rules::standing::{Reason, Standing, standing_at};
use lodestep_core::{Checkpoint, Definition, Ordinal, Result, Timestamp};
use lodestep_store::Release;

use super::Drive;

/// What is known of the store's holds.
#[derive(Default)]
pub(super) struct Known {
    /// What they mean for this run.
    pub(super) held: Held,
    /// The newest one, as a commit names it.
    pub(super) newest: u64,
    /// The version that was read; `None` before the first look.
    version: Option<u64>,
}

impl Drive {
    /// Reads the holds anew if they have changed: otherwise it costs one look at a number.
    pub(super) async fn learn_holds(&mut self, definition: &Definition) -> Result<()> {
        let version = self.runtime.store.holds_version();
        if self.holds.version == Some(version) {
            return Ok(());
        }
        let all = self.runtime.store.dispatch_holds().await?;
        self.holds = Known { held: Held::of(&all.open, definition), newest: all.newest, version: Some(version) };
        Ok(())
    }

    /// The store knows a hold that this worker does not.
    pub(super) fn forget_holds(&mut self) {
        self.holds.version = None;
    }

    /// What can be dispatched now and is not held.
    pub(super) fn dispatchable(&self, checkpoint: &Checkpoint, now: Timestamp) -> Vec<Ordinal> {
        let mut all = owed::dispatchable(checkpoint, self.claim.epoch, now);
        all.retain(|ordinal| !is_held(checkpoint, *ordinal, &self.holds.held));
        all
    }

    /// Does the run need its model's next reply, and may the model be asked?
    pub(super) fn wants_model(&self, checkpoint: &Checkpoint, now: Timestamp) -> bool {
        owed::wants_model(checkpoint, now) && self.holds.held.model().is_none()
    }

    /// Where the run stands under what is known, its reminders of up to now being told.
    pub(super) fn stands(&self, checkpoint: &Checkpoint) -> Standing {
        standing_at(checkpoint, &self.holds.held, self.runtime.store.now())
    }

    /// The holds without which the run would go on.
    pub(super) fn waits_under(&self, checkpoint: &Checkpoint) -> Vec<u64> {
        let reasons = self.stands(checkpoint).reasons;
        let numbers = reasons.iter().filter_map(|reason| match reason {
            Reason::Hold { target, .. } => self.holds.held.number_of(target),
            _ => None,
        });
        numbers.collect()
    }

    /// Gives the claim back without a transition; a run that waits for the end of a hold is parked.
    pub(super) async fn give_back(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let (stands, holds) = (self.stands(checkpoint), self.waits_under(checkpoint));
        if holds.is_empty() && !self.was_parked {
            return self.runtime.store.release(&self.claim, stands.due, Release::Idle).await;
        }
        self.runtime.store.park(&self.claim, &stands, &holds).await
    }
}
