//! Dedupe keys: taken and let go of in the transaction of a transition, and waited for.

use std::sync::Arc;

use lodestep_core::{Error, Ordinal, RunKey, Stored, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::Done;
use super::row::{digest, run_id, signed, unsigned};
use crate::refusals;
use crate::rows::{KeyChange, KeyFate, KeyRow};
use crate::store::{KeyHolder, RunRef};

/// The runs that wait for a key that is free, or whose effect is known. One that stopped waits for a person first.
macro_rules! may_go_on {
    () => {
        "SELECT waiting.run FROM dedupe_wait AS waiting JOIN head ON head.run = waiting.run
         WHERE head.holder IS NULL AND NOT head.undecodable AND head.status IN (1, 3) AND NOT EXISTS (
             SELECT 1 FROM dedupe WHERE dedupe.namespace = waiting.namespace AND dedupe.key = waiting.key AND fate = 0)"
    };
}

/// Is there a run that waited for a key and can go on, and is not due yet?
pub(super) fn is_any_to_wake(db: &Connection, now: Timestamp) -> Done<bool> {
    let sql = concat!(may_go_on!(), " AND (head.due_at IS NULL OR head.due_at > ?) LIMIT 1");
    Ok(db.prepare_cached(sql)?.exists([now.as_micros()])?)
}

/// Makes them due.
pub(super) fn wake_waiting(db: &Connection, now: Timestamp) -> Done<()> {
    let sql =
        concat!("UPDATE head SET due_at = ?1 WHERE (due_at IS NULL OR due_at > ?1) AND run IN (", may_go_on!(), ")");
    db.prepare_cached(sql)?.execute([now.as_micros()])?;
    Ok(())
}

/// Why a transition can't have a key that it takes.
pub(super) fn taken_by_another(db: &Connection, run: &RunRef, changes: &[KeyChange]) -> Done<Option<Error>> {
    for change in changes {
        let KeyChange::Taken(wanted) = change else { continue };
        let holder = one(db, &run.key.namespace, &wanted.key)?;
        if let Some(holder) = holder.filter(|it| it.run.number != run.number || it.row.ordinal != wanted.ordinal) {
            return Ok(Some(refusals::key_taken(&run.key, &wanted.key, &holder.run.key, holder.row.ordinal)));
        }
    }
    Ok(None)
}

/// Writes what a transition does to keys.
pub(super) fn change(db: &Connection, run: &RunRef, changes: &[KeyChange]) -> Done<()> {
    for change in changes {
        match change {
            KeyChange::Taken(row) => {
                db.prepare_cached(
                    "INSERT INTO dedupe (namespace, key, run, ordinal, same, fate) VALUES (?, ?, ?, ?, ?, 0)",
                )?
                .execute(params![
                    run.key.namespace,
                    row.key,
                    run.number,
                    row.ordinal.0,
                    row.same.as_bytes()
                ])?;
            }
            KeyChange::Closed(ordinal, None) => {
                db.prepare_cached("DELETE FROM dedupe WHERE run = ? AND ordinal = ?")?
                    .execute(params![run.number, ordinal.0])?;
            }
            KeyChange::Closed(ordinal, Some(fate)) => {
                let (number, result) = columns(fate);
                db.prepare_cached(
                    "UPDATE dedupe SET fate = ?, result = ?, len = ?, seq = ? WHERE run = ? AND ordinal = ?",
                )?
                .execute(params![
                    number,
                    result.map(|result| *result.digest.as_bytes()),
                    result.map(|result| signed(result.len)),
                    result.map(|result| signed(result.seq)),
                    run.number,
                    ordinal.0,
                ])?;
            }
            KeyChange::Waits(ordinal, key) => {
                db.prepare_cached(
                    "INSERT OR REPLACE INTO dedupe_wait (run, ordinal, namespace, key) VALUES (?, ?, ?, ?)",
                )?
                .execute(params![run.number, ordinal.0, run.key.namespace, key])?;
            }
            KeyChange::GoesOn(ordinal) => {
                db.prepare_cached("DELETE FROM dedupe_wait WHERE run = ? AND ordinal = ?")?
                    .execute(params![run.number, ordinal.0])?;
            }
        }
    }
    Ok(())
}

fn columns(fate: &KeyFate) -> (u8, Option<&Stored>) {
    match fate {
        KeyFate::Open => (0, None),
        KeyFate::Done(result) => (1, Some(result)),
        KeyFate::Unknown => (2, None),
    }
}

/// Who has these keys.
pub(super) fn holders(db: &Connection, namespace: &str, keys: &[String]) -> Done<Vec<KeyHolder>> {
    let found = keys.iter().map(|key| one(db, namespace, key)).collect::<Done<Vec<_>>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn one(db: &Connection, namespace: &str, key: &str) -> Done<Option<KeyHolder>> {
    let mut statement = db.prepare_cached(
        "SELECT dedupe.key, dedupe.ordinal, dedupe.same, dedupe.fate, dedupe.result, dedupe.len, dedupe.seq,
             run.number, run.namespace, run.id
         FROM dedupe JOIN run ON run.number = dedupe.run WHERE dedupe.namespace = ? AND dedupe.key = ?",
    )?;
    let found = statement.query_row(params![namespace, key], |row| Ok(holder(row))).optional()?;
    found.transpose()
}

fn holder(row: &Row<'_>) -> Done<KeyHolder> {
    let key = RunKey { namespace: row.get(8)?, run: run_id(row, 9)? };
    Ok(KeyHolder { run: RunRef { key: Arc::new(key), number: row.get(7)? }, row: key_row(row)? })
}

fn key_row(row: &Row<'_>) -> Done<KeyRow> {
    let fate = match row.get(3)? {
        0 => KeyFate::Open,
        1 => KeyFate::Done(Stored { digest: digest(row, 4)?, len: unsigned(row, 5)?, seq: unsigned(row, 6)? }),
        _ => KeyFate::Unknown,
    };
    Ok(KeyRow { key: row.get(0)?, ordinal: Ordinal(row.get(1)?), same: digest(row, 2)?, fate })
}

/// The keys that a run's actions have.
pub(super) fn of_run(db: &Connection, run: &RunRef) -> Done<Vec<KeyRow>> {
    let mut statement = db.prepare_cached(
        "SELECT key, ordinal, same, fate, result, len, seq FROM dedupe WHERE run = ? ORDER BY ordinal",
    )?;
    let rows = statement.query_map([run.number], |row| Ok(key_row(row)))?;
    rows.map(|row| row?).collect()
}

/// The keys that a run's actions wait for.
pub(super) fn waits(db: &Connection, run: &RunRef) -> Done<Vec<(Ordinal, String)>> {
    let mut statement = db.prepare_cached("SELECT ordinal, key FROM dedupe_wait WHERE run = ? ORDER BY ordinal")?;
    let rows = statement.query_map([run.number], |row| Ok((Ordinal(row.get(0)?), row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
