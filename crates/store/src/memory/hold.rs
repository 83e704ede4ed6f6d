//! Dispatch holds, and the runs that are parked under them.

use std::collections::BTreeSet;

use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::standing::Standing;
use lodestep_core::{Result, Timestamp};

use super::state::State;
use crate::refusals;
use crate::rows::why;
use crate::store::{Claim, DispatchHolds, Hold, Holding};

/// Every hold that ever was.
#[derive(Default)]
pub(super) struct Holds {
    /// In force, oldest first.
    open: Vec<DispatchHold>,
    newest: u64,
    ended: u64,
    /// Hold and run.
    parked: BTreeSet<(u64, i64)>,
}

impl State {
    /// The open holds under which a run is parked.
    pub(super) fn parked_under(&self, number: i64) -> Vec<u64> {
        self.holds.parked.iter().filter(|(_, run)| *run == number).map(|(hold, _)| *hold).collect()
    }

    pub(super) fn holds_version(&self) -> u64 {
        self.holds.newest + self.holds.ended
    }

    pub(super) fn newest_hold(&self) -> u64 {
        self.holds.newest
    }

    pub(super) fn dispatch_holds(&self) -> DispatchHolds {
        DispatchHolds { open: self.holds.open.clone(), newest: self.holds.newest }
    }

    pub(super) fn hold_dispatch(&mut self, target: &Target, by: &str, reason: &str, now: Timestamp) -> Holding {
        if let Some(existing) = self.holds.open.iter().find(|hold| hold.target == *target) {
            return Holding::Existing(existing.clone());
        }
        self.holds.newest += 1;
        let (by, reason) = (by.to_owned(), reason.to_owned());
        let hold = DispatchHold { number: self.holds.newest, target: target.clone(), by, reason, since: now };
        self.holds.open.push(hold.clone());
        Holding::New(hold)
    }

    pub(super) fn release_dispatch(&mut self, target: &Target, now: Timestamp) -> Option<DispatchHold> {
        let place = self.holds.open.iter().position(|hold| hold.target == *target)?;
        let ended = self.holds.open.remove(place);
        self.holds.ended += 1;
        let (freed, parked) =
            std::mem::take(&mut self.holds.parked).into_iter().partition(|(hold, _)| *hold == ended.number);
        self.holds.parked = parked;
        let freed: BTreeSet<(u64, i64)> = freed;
        let is_free = |number: i64| freed.contains(&(ended.number, number));
        for run in self.runs.iter_mut().filter(|run| is_free(run.row.run.number)) {
            if run.row.hold == Some(Hold::Parked) && run.row.holder.is_none() {
                run.row.due = Some(now);
            }
        }
        Some(ended)
    }

    pub(super) fn park(&mut self, claim: &Claim, standing: &Standing, holds: &[u64], now: Timestamp) -> Result<()> {
        let all_open = holds.iter().all(|number| self.holds.open.iter().any(|hold| hold.number == *number));
        let run = self.run_mut(&claim.run)?;
        if run.row.holder.is_none() || run.row.epoch != claim.epoch {
            return Err(refusals::lease_lost(&claim.run.key));
        }
        run.row.crashes = run.row.crashes.saturating_sub(1);
        run.row.status = standing.status;
        run.row.why = why(standing);
        run.row.hold = (!holds.is_empty()).then_some(Hold::Parked);
        run.let_go(if all_open { standing.due } else { Some(now) }, now);
        self.holds.parked.extend(holds.iter().map(|hold| (*hold, claim.run.number)));
        Ok(())
    }
}
