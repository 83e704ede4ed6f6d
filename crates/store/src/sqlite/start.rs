//! Starts: one transaction looks for the id, for unfinished runs of the same agent and inputs, and inserts.

use std::collections::BTreeSet;
use std::sync::Arc;

use lodestep_core::rules::standing::{Status, standing};
use lodestep_core::{Digest, Labels, RunKey, Timestamp};
use rusqlite::{Connection, params};

use super::commit::{RowsOf, files_are_there};
use super::failure::Done;
use super::remove::{next_number, refuse_removed};
use super::row::{find_run, from_end, run_columns, run_row, signed};
use super::value::ValueFiles;
use super::{kin, label};
use crate::garbage::large_values;
use crate::refusals;
use crate::rows::{Head, labels_of};
use crate::store::{RunRef, RunRow, StartRun, Started};

/// A start, encoded before the connection is taken.
pub(super) struct PreparedStart {
    start: StartRun,
    labels: Labels,
    large: BTreeSet<Digest>,
    files: ValueFiles,
    rows: RowsOf,
}

impl PreparedStart {
    /// Encodes; its transition's values are all short enough for its row.
    pub(super) fn new(start: StartRun, files: &ValueFiles) -> Self {
        let rows = RowsOf::encode(&start.transition, None, false);
        let large = large_values(&start.transition.events);
        Self { labels: labels_of(&start.transition), large, files: files.clone(), start, rows }
    }

    pub(super) fn apply(&self, db: &Connection, now: Timestamp) -> Done<Started> {
        let start = &self.start;
        if let Some(row) = find_run(db, &start.key)? {
            if row.agent == start.agent && row.inputs == start.inputs {
                return Ok(Started::Existing(row));
            }
            return Err(refusals::id_taken(start, &row.agent, &row.inputs).into());
        }
        if start.join_unfinished {
            let unfinished = unfinished(db, start)?;
            if !unfinished.is_empty() {
                return Ok(Started::Unfinished(unfinished));
            }
        }
        refuse_removed(db, &start.key)?;
        self.refuse_without_origin(db)?;
        files_are_there(&self.files, &self.large, &start.key)?;
        let run = self.insert_run(db)?;
        self.insert_head(db, &run, now)?;
        kin::mark(db, &run, start.transition.checkpoint.lineage.last().map(|root| &root.run))?;
        self.rows.insert(db, &run)?;
        Ok(Started::New(run))
    }

    /// A fork finds in its origin what was done before it.
    fn refuse_without_origin(&self, db: &Connection) -> Done<()> {
        let Some(origin) = self.start.transition.checkpoint.lineage.first() else { return Ok(()) };
        let key = RunKey { namespace: self.start.key.namespace.clone(), run: origin.run.clone() };
        match find_run(db, &key)? {
            Some(_) => Ok(()),
            None => Err(refusals::origin_gone(&self.start.key, &origin.run).into()),
        }
    }

    fn insert_run(&self, db: &Connection) -> Done<RunRef> {
        let start = &self.start;
        let (number, id) = (next_number(db)?, start.key.run.as_str());
        db.prepare_cached(
            "INSERT INTO run (number, namespace, id, id_from_end, agent, definition, inputs, started_at, labels, root)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            number,
            start.key.namespace,
            id,
            from_end(id),
            start.agent,
            start.definition.as_bytes(),
            start.inputs.as_bytes(),
            start.transition.checkpoint.started_at.as_micros(),
            label::to_text(&self.labels),
            start.transition.checkpoint.lineage.last().map(|root| root.run.as_str()),
        ])?;
        let run = RunRef { key: Arc::new(start.key.clone()), number };
        label::insert(db, &run, &self.labels)?;
        Ok(run)
    }

    fn insert_head(&self, db: &Connection, run: &RunRef, now: Timestamp) -> Done<()> {
        let first = &self.start.transition.checkpoint;
        let head = Head::of(first, &standing(first));
        db.prepare_cached(
            "INSERT INTO head (run, namespace, epoch, seq, digest, status, why, due_at, crashes, inbox, inbox_read,
                 updated_at)
             VALUES (?, ?, 0, ?, ?, ?, ?, ?, 0, 0, 0, ?)",
        )?
        .execute(params![
            run.number,
            run.key.namespace,
            signed(head.seq),
            head.digest.as_bytes(),
            head.status.to_number(),
            head.why,
            now.as_micros(),
            head.updated_at.as_micros(),
        ])?;
        Ok(())
    }
}

/// Unfinished runs of the same agent and inputs, newest first.
fn unfinished(db: &Connection, start: &StartRun) -> Done<Vec<RunRow>> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run JOIN head ON head.run = run.number
         WHERE run.inputs = ? AND run.namespace = ? AND run.agent = ? AND head.status < ? ORDER BY run.number DESC"
    ))?;
    // The statuses that end a run are the last ones.
    let first_terminal = Status::Completed.to_number();
    let wanted = params![start.inputs.as_bytes(), start.key.namespace, start.agent, first_terminal];
    let rows = statement.query_map(wanted, |row| Ok(run_row(row)))?;
    rows.map(|row| row?).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statuses_that_end_a_run_are_the_last_ones() {
        let numbers = Status::ALL.map(|status| (status.to_number() >= Status::Completed.to_number(), status));
        assert!(numbers.iter().all(|(is_last, status)| *is_last == status.is_terminal()));
    }
}
