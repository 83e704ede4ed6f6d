//! Claims and releases.

use std::sync::Arc;

use lodestep_core::rules::standing::{Standing, Status};
use lodestep_core::{RunKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::dedupe;
use super::failure::Done;
use super::row::{at_most, from_end, run_id, signed, unsigned};
use super::worker::{Workers, bury};
use crate::refusals;
use crate::rows::why;
use crate::store::{Claim, Release, RunRef, SUSPECT_CRASHES, Want, WorkerId};

/// What a claim came to.
pub(super) struct Claimed {
    pub(super) claims: Vec<Claim>,
    /// The dead workers whose runs it freed.
    pub(super) buried: Vec<String>,
}

/// Who claims what, and when.
#[derive(Clone)]
pub(super) struct Claiming {
    pub(super) workers: Arc<Workers>,
    pub(super) worker: WorkerId,
    pub(super) want: Want,
    pub(super) now: Timestamp,
    pub(super) boot_us: u64,
}

impl Claiming {
    /// Is there anything to claim, or to free? Asked on a reading connection: an idle claim writes nothing.
    pub(super) fn is_idle(&self, db: &Connection) -> Done<bool> {
        self.check_worker(db)?;
        let others = Workers::others(db, &self.worker.0)?;
        Ok(self.workers.dead(&others, self.boot_us).is_empty()
            && self.due(db, 1)?.is_empty()
            && !dedupe::is_any_to_wake(db, self.now)?)
    }

    /// Frees what the dead held, then claims, in the open transaction.
    pub(super) fn apply(&self, db: &Connection) -> Done<Claimed> {
        self.check_worker(db)?;
        let buried = bury(db, &self.workers, &self.worker, self.now, self.boot_us)?;
        dedupe::wake_waiting(db, self.now)?;
        let wanted = match self.want {
            Want::Due(most) | Want::Unsuspected(most) => most,
            Want::Run(_) => 1,
        };
        let due = self.due(db, wanted)?;
        let claims = due.into_iter().map(|due| self.take(db, due)).collect::<Done<Vec<_>>>()?;
        Ok(Claimed { claims, buried })
    }

    fn check_worker(&self, db: &Connection) -> Done<()> {
        match db.prepare_cached("SELECT 1 FROM worker WHERE id = ?")?.exists([&self.worker.0])? {
            true => Ok(()),
            false => Err(refusals::worker_lost(&self.worker).into()),
        }
    }

    fn due(&self, db: &Connection, most: usize) -> Done<Vec<Due>> {
        let now = self.now.as_micros();
        let mut due = Vec::new();
        match &self.want {
            Want::Due(limit) | Want::Unsuspected(limit) => {
                let most = most.min(*limit);
                due.extend(self.longest_due(db, "head.crashes < ?3", most)?);
                if matches!(self.want, Want::Due(_)) && most > 0 {
                    let suspect = self.longest_due(db, "head.crashes >= ?3", 1)?;
                    due.truncate(most - suspect.len());
                    due.extend(suspect);
                }
            }
            Want::Run(key) => {
                let mut statement = db.prepare_cached(
                    "SELECT run.number, run.namespace, run.id, head.epoch, head.crashes, head.left_by, head.rewound
                     FROM run JOIN head ON head.run = run.number
                     WHERE run.namespace = ? AND run.id_from_end = ? AND head.due_at <= ?",
                )?;
                let wanted = params![key.namespace, from_end(key.run.as_str()), now];
                if let Some(row) = statement.query_row(wanted, |row| Ok(Due::read(row))).optional()? {
                    due.push(row?);
                }
            }
        }
        Ok(due)
    }

    fn longest_due(&self, db: &Connection, which: &str, most: usize) -> Done<Vec<Due>> {
        let mut statement = db.prepare_cached(&format!(
            "SELECT run.number, run.namespace, run.id, head.epoch, head.crashes, head.left_by, head.rewound
             FROM head JOIN run ON run.number = head.run
             WHERE head.due_at <= ?1 AND {which} ORDER BY head.due_at, head.run LIMIT ?2"
        ))?;
        let wanted = params![self.now.as_micros(), at_most(most), SUSPECT_CRASHES];
        let rows = statement.query_map(wanted, |row| Ok(Due::read(row)))?;
        rows.map(|row| row?).collect()
    }

    fn take(&self, db: &Connection, due: Due) -> Done<Claim> {
        let epoch = due.epoch + 1;
        let taken = db
            .prepare_cached(
                "UPDATE head SET epoch = ?, crashes = crashes + 1, due_at = NULL, holder = ?
                 WHERE run = ? AND +due_at <= ?",
            )?
            .execute(params![signed(epoch), self.worker.0, due.run.number, self.now.as_micros()])?;
        if taken == 0 {
            return Err(refusals::not_due(&due.run.key).into());
        }
        let left_tools = due.left_by.map(|id| self.workers.tools_file(&id));
        Ok(Claim { run: due.run, epoch, crashes: due.crashes, rewound: due.rewound, left_tools })
    }
}

/// A run that may be claimed.
struct Due {
    run: RunRef,
    epoch: u64,
    crashes: u32,
    left_by: Option<String>,
    rewound: bool,
}

impl Due {
    fn read(row: &Row<'_>) -> Done<Self> {
        let key = RunKey { namespace: row.get(1)?, run: run_id(row, 2)? };
        let run = RunRef { key: Arc::new(key), number: row.get(0)? };
        Ok(Self { run, epoch: unsigned(row, 3)?, crashes: row.get(4)?, left_by: row.get(5)?, rewound: row.get(6)? })
    }
}

/// Gives a claim back.
pub(super) fn release(
    db: &Connection,
    claim: &Claim,
    due: Option<Timestamp>,
    how: Release,
    now: Timestamp,
) -> Done<()> {
    let changed = db
        .prepare_cached(
            "UPDATE head SET holder = NULL, due_at = CASE WHEN inbox > inbox_read AND ?3 THEN ?1 ELSE ?2 END,
                 crashes = CASE WHEN ?4 THEN crashes ELSE max(crashes - 1, 0) END
             WHERE run = ?5 AND epoch = ?6 AND holder IS NOT NULL",
        )?
        .execute(params![
            now.as_micros(),
            due.map(Timestamp::as_micros),
            how == Release::Idle,
            how == Release::Crashed,
            claim.run.number,
            signed(claim.epoch),
        ])?;
    if changed == 0 { Err(refusals::lease_lost(&claim.run.key).into()) } else { Ok(()) }
}

/// Keeps a run from every worker until it is released.
pub(super) fn hold(db: &Connection, claim: &Claim, why: &str) -> Done<()> {
    let changed = db
        .prepare_cached(
            "UPDATE head SET holder = NULL, due_at = NULL, crashes = max(crashes - 1, 0), status = ?, why = ?,
                 undecodable = 1
             WHERE run = ? AND epoch = ? AND holder IS NOT NULL",
        )?
        .execute(params![Status::Quarantined.to_number(), why, claim.run.number, signed(claim.epoch)])?;
    if changed == 0 { Err(refusals::lease_lost(&claim.run.key).into()) } else { Ok(()) }
}

/// Lets a run go on that was held because it could not be read.
pub(super) fn free(db: &Connection, run: i64, standing: &Standing, now: Timestamp) -> Done<()> {
    db.prepare_cached("UPDATE head SET undecodable = 0, status = ?, why = ?, due_at = ? WHERE run = ?")?
        .execute(params![standing.status.to_number(), why(standing), now.as_micros(), run])?;
    Ok(())
}

/// Prolongs a worker's leases.
pub(super) fn renew(db: &Connection, worker: &WorkerId, until_us: u64) -> Done<()> {
    let changed = db
        .prepare_cached("UPDATE worker SET lease_until_us = ? WHERE id = ?")?
        .execute(params![signed(until_us), worker.0])?;
    if changed == 0 { Err(refusals::worker_lost(worker).into()) } else { Ok(()) }
}

/// Ends a worker: what it holds is handed over.
pub(super) fn retire(db: &Connection, worker: &WorkerId, now: Timestamp) -> Done<()> {
    db.prepare_cached("UPDATE head SET holder = NULL, due_at = ?, crashes = max(crashes - 1, 0) WHERE holder = ?")?
        .execute(params![now.as_micros(), worker.0])?;
    db.prepare_cached("DELETE FROM worker WHERE id = ?")?.execute([&worker.0])?;
    Ok(())
}
