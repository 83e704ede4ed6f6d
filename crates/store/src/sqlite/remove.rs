//! Runs that ended long ago, removed with every row of theirs.
//!
//! A lineage goes in one transaction. The row numbers of what is left may be lower then than what the witness knows, so a
//! removal begins a timeline, as a store that was put back does: see `witness.rs`.

use std::collections::BTreeSet;

use lodestep_core::rules::standing::Status;
use lodestep_core::{Error, RunKey, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Done;
use super::label;
use super::piece::{self, Column};
use super::row::{from_end, run_id, unsigned};
use crate::garbage::{Kept, Mode, Removal, Removed};
use crate::refusals;
use crate::store::RunRef;

/// The tables whose rows name their run, each with an index that begins with it, or small.
const TABLES: [&str; 9] =
    ["journal", "snapshot", "message", "request", "effect", "artifact", "dedupe_wait", "parked", "head"];

/// Removes the runs of a lineage, or says what it would come to.
pub(super) fn remove(db: &Connection, runs: &[RunRef], mode: Mode, now: Timestamp) -> Done<Removal> {
    for run in runs {
        if let Some(kept) = kept(db, run, runs)? {
            return Ok(Removal::Kept(kept));
        }
    }
    let mut removed = Removed::default();
    for run in runs {
        weigh(db, run, &mut removed)?;
        if mode == Mode::Apply {
            delete(db, run, now)?;
        }
    }
    if mode == Mode::Apply && removed.runs > 0 {
        db.prepare_cached("UPDATE store SET timeline = timeline + 1")?.execute([])?;
    }
    Ok(Removal::Removed(removed))
}

/// Why this run has to stay.
fn kept(db: &Connection, run: &RunRef, runs: &[RunRef]) -> Done<Option<Kept>> {
    let mut statement = db.prepare_cached(
        "SELECT head.status, head.holder IS NOT NULL, head.inbox > head.inbox_read, coalesce(run.root, run.id)
         FROM run JOIN head ON head.run = run.number WHERE run.number = ? AND run.namespace = ? AND run.id = ?",
    )?;
    let (namespace, id) = (&run.key.namespace, &run.key.run);
    let found = statement
        .query_row(params![run.number, namespace, id.as_str()], |row| {
            Ok((row.get::<_, u8>(0)?, row.get::<_, bool>(1)?, row.get::<_, bool>(2)?, row.get::<_, String>(3)?))
        })
        .optional()?;
    let Some((status, is_held, is_unread, root)) = found else { return Err(refusals::not_found(&run.key).into()) };
    if is_held || Status::from_number(status).is_none_or(|status| !status.is_terminal()) {
        return Ok(Some(Kept::NotOver(id.clone())));
    }
    if is_unread {
        return Ok(Some(Kept::Unread(id.clone())));
    }
    let key = db
        .prepare_cached("SELECT key FROM dedupe WHERE run = ? ORDER BY ordinal LIMIT 1")?
        .query_row([run.number], |row| row.get(0))
        .optional()?;
    if let Some(key) = key {
        return Ok(Some(Kept::DedupeKey(id.clone(), key)));
    }
    let named: BTreeSet<i64> = runs.iter().map(|run| run.number).collect();
    let mut lineage = db.prepare_cached(
        "SELECT number, id FROM run WHERE namespace = ?1 AND id_from_end = ?2
         UNION SELECT number, id FROM run WHERE root = ?3 AND namespace = ?1 ORDER BY number",
    )?;
    let mut rows = lineage.query(params![namespace, from_end(&root), root])?;
    while let Some(row) = rows.next()? {
        if !named.contains(&row.get(0)?) {
            return Ok(Some(Kept::Relative(run_id(row, 1)?)));
        }
    }
    Ok(None)
}

fn weigh(db: &Connection, run: &RunRef, removed: &mut Removed) -> Done<()> {
    let mut statement = db.prepare_cached(
        "SELECT count(*), coalesce(sum(length(envelope) + coalesce(length(vals), 0) + coalesce(length(transcript), 0)), 0)
             + (SELECT coalesce(sum(length(bytes)), 0) FROM snapshot WHERE run = ?1)
             + (SELECT coalesce(sum(length(body)), 0) FROM message WHERE run = ?1)
         FROM journal WHERE run = ?1",
    )?;
    let (transitions, bytes) = statement.query_row([run.number], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    removed.runs += 1;
    removed.transitions += transitions;
    removed.bytes += bytes + piece::bytes_of_run(db, run.number, &Column::ALL)?;
    Ok(())
}

fn delete(db: &Connection, run: &RunRef, now: Timestamp) -> Done<()> {
    let labels: String =
        db.prepare_cached("SELECT labels FROM run WHERE number = ?")?.query_row([run.number], |row| row.get(0))?;
    for (name, value) in label::from_text(&labels) {
        db.prepare_cached("DELETE FROM label WHERE namespace = ? AND name = ? AND value = ? AND run = ?")?
            .execute(params![run.key.namespace, name, value, run.number])?;
    }
    piece::remove_of_run(db, run.number, &Column::ALL)?;
    for table in TABLES {
        db.prepare_cached(&format!("DELETE FROM {table} WHERE run = ?"))?.execute([run.number])?;
    }
    db.prepare_cached("DELETE FROM run WHERE number = ?")?.execute([run.number])?;
    db.prepare_cached("INSERT INTO removed_run (number, namespace, id, removed_at) VALUES (?, ?, ?, ?)")?
        .execute(params![run.number, run.key.namespace, run.key.run.as_str(), now.as_micros()])?;
    Ok(())
}

/// The refusal of a start under the id of a run that was removed.
pub(super) fn refuse_removed(db: &Connection, key: &RunKey) -> Done<()> {
    let removed_at: Option<i64> = db
        .prepare_cached("SELECT max(removed_at) FROM removed_run WHERE namespace = ? AND id = ?")?
        .query_row(params![key.namespace, key.run.as_str()], |row| row.get(0))?;
    let refused = |at: i64| -> Error { refusals::removed(key, Timestamp::from_micros(at)) };
    removed_at.map_or(Ok(()), |at| Err(refused(at).into()))
}

/// A number for a new run: no run ever had it.
pub(super) fn next_number(db: &Connection) -> Done<i64> {
    let highest = "SELECT max(coalesce((SELECT max(number) FROM run), 0),
         coalesce((SELECT max(number) FROM removed_run), 0))";
    Ok(db.prepare_cached(highest)?.query_row([], |row| row.get::<_, i64>(0))? + 1)
}
