//! Workers, claims, releases.

use lodestep_core::rules::standing::Status;
use lodestep_core::{Result, Timestamp};

use super::state::{State, Worker};
use crate::refusals;
use crate::store::{Claim, Hold, LEASE_US, Release, RunRow, SUSPECT_CRASHES, Want, WorkerId};

impl State {
    pub(super) fn enlist(&mut self, boot_us: u64) -> WorkerId {
        self.workers_ever += 1;
        let worker = WorkerId(format!("w{:06}", self.workers_ever));
        self.workers.insert(worker.clone(), Worker { alive: true, lease_until_us: boot_us + LEASE_US });
        worker
    }

    pub(super) fn renew(&mut self, worker: &WorkerId, boot_us: u64) -> Result<u64> {
        let known = self.workers.get_mut(worker).ok_or_else(|| refusals::worker_lost(worker))?;
        known.lease_until_us = boot_us + LEASE_US;
        Ok(known.lease_until_us)
    }

    pub(super) fn retire(&mut self, worker: &WorkerId, now: Timestamp) {
        self.workers.remove(worker);
        for run in self.runs.iter_mut().filter(|run| run.row.holder.as_ref() == Some(worker)) {
            run.row.crashes = run.row.crashes.saturating_sub(1);
            run.let_go(Some(now), now);
        }
    }

    pub(super) fn claim(&mut self, worker: &WorkerId, want: &Want, now: Timestamp, boot_us: u64) -> Result<Vec<Claim>> {
        if !self.workers.contains_key(worker) {
            return Err(refusals::worker_lost(worker));
        }
        self.bury(worker, now, boot_us);
        self.wake_waiting(now);
        let due = |row: &RunRow| row.due.is_some_and(|due| due <= now);
        let mut places: Vec<usize> = (0..self.runs.len()).filter(|place| due(&self.runs[*place].row)).collect();
        match want {
            Want::Due(limit) | Want::Unsuspected(limit) => {
                places.sort_by_key(|place| (self.runs[*place].row.due, *place));
                let mut suspects = usize::from(matches!(want, Want::Due(_)));
                places.retain(|place| {
                    let is_suspect = self.runs[*place].row.crashes >= SUSPECT_CRASHES;
                    let is_wanted = !is_suspect || suspects > 0;
                    suspects -= usize::from(is_suspect && is_wanted);
                    is_wanted
                });
                places.truncate(*limit);
            }
            Want::Run(key) => places.retain(|place| *self.runs[*place].row.run.key == *key),
        }
        Ok(places.into_iter().map(|place| self.take(place, worker)).collect())
    }

    fn take(&mut self, place: usize, worker: &WorkerId) -> Claim {
        let row = &mut self.runs[place].row;
        let crashes = row.crashes;
        row.epoch += 1;
        row.crashes += 1;
        row.due = None;
        row.holder = Some(worker.clone());
        Claim {
            run: row.run.clone(),
            epoch: row.epoch,
            crashes,
            rewound: row.hold == Some(Hold::Rewound),
            left_tools: None,
        }
    }

    /// Frees what the dead held, and what those held whose lease ran out.
    fn bury(&mut self, claimer: &WorkerId, now: Timestamp, boot_us: u64) {
        let is_dead =
            |id: &WorkerId, worker: &Worker| id != claimer && (!worker.alive || worker.lease_until_us <= boot_us);
        let dead: Vec<WorkerId> =
            self.workers.iter().filter(|(id, worker)| is_dead(id, worker)).map(|(id, _)| id.clone()).collect();
        for id in dead {
            self.workers.remove(&id);
            for run in self.runs.iter_mut().filter(|run| run.row.holder.as_ref() == Some(&id)) {
                run.let_go(Some(now), now);
            }
        }
    }

    pub(super) fn release(
        &mut self,
        claim: &Claim,
        due: Option<Timestamp>,
        how: Release,
        now: Timestamp,
    ) -> Result<()> {
        let run = self.run_mut(&claim.run)?;
        if run.row.holder.is_none() || run.row.epoch != claim.epoch {
            return Err(refusals::lease_lost(&claim.run.key));
        }
        if how != Release::Crashed {
            run.row.crashes = run.row.crashes.saturating_sub(1);
        }
        run.let_go(due, now);
        if how != Release::Idle {
            run.row.due = due;
        }
        Ok(())
    }

    /// Keeps the run from every worker until it is released.
    pub(super) fn hold(&mut self, claim: &Claim, why: &str) -> Result<()> {
        let run = self.run_mut(&claim.run)?;
        let row = &mut run.row;
        if row.holder.is_none() || row.epoch != claim.epoch {
            return Err(refusals::lease_lost(&claim.run.key));
        }
        row.crashes = row.crashes.saturating_sub(1);
        (row.holder, row.due) = (None, None);
        (row.status, row.why, row.hold) = (Status::Quarantined, why.to_owned(), Some(Hold::Undecodable));
        Ok(())
    }
}
