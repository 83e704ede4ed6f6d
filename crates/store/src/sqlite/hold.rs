//! Dispatch holds: their rows, the runs parked under them, and what a commit asks of them. A hold's row stays when it
//! ends, so that the numbers only grow: a commit compares one number.

use lodestep_core::Timestamp;
use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::standing::Standing;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::Done;
use super::row::{signed, time, unsigned};
use crate::refusals;
use crate::rows::why;
use crate::store::{Claim, DispatchHolds, Holding, RunRef};

const COLUMNS: &str = "SELECT n, target, said_by, reason, since FROM hold WHERE ended_at IS NULL";

/// A number that changes with every hold and every release.
pub(super) fn version(db: &Connection) -> rusqlite::Result<u64> {
    let mut statement = db.prepare_cached("SELECT coalesce(max(n), 0) + count(ended_at) FROM hold")?;
    statement.query_row([], |row| unsigned(row, 0))
}

/// Those in force, and the newest ever.
pub(super) fn all(db: &Connection) -> Done<DispatchHolds> {
    let newest = db.prepare_cached("SELECT coalesce(max(n), 0) FROM hold")?.query_row([], |row| unsigned(row, 0))?;
    let mut statement = db.prepare_cached(&format!("{COLUMNS} ORDER BY n"))?;
    let rows = statement.query_map([], |row| Ok(hold(row)))?;
    Ok(DispatchHolds { open: rows.map(|row| row?).collect::<Done<_>>()?, newest })
}

fn hold(row: &Row<'_>) -> Done<DispatchHold> {
    Ok(DispatchHold {
        number: unsigned(row, 0)?,
        target: target(row.get(1)?)?,
        by: row.get(2)?,
        reason: row.get(3)?,
        since: time(row, 4)?,
    })
}

fn target(text: String) -> Done<Target> {
    // Only what can be parsed was ever written.
    Ok(Target::parse(&text).map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, error.into()))?)
}

fn open(db: &Connection, target: &Target) -> Done<Option<DispatchHold>> {
    let mut statement = db.prepare_cached(&format!("{COLUMNS} AND target = ?"))?;
    statement.query_row([target.to_string()], |row| Ok(hold(row))).optional()?.transpose()
}

/// Begins a hold; the version after it.
pub(super) fn begin(db: &Connection, target: &Target, by: &str, reason: &str, now: Timestamp) -> Done<(Holding, u64)> {
    if let Some(existing) = open(db, target)? {
        return Ok((Holding::Existing(existing), version(db)?));
    }
    db.prepare_cached("INSERT INTO hold (target, said_by, reason, since) VALUES (?, ?, ?, ?)")?.execute(params![
        target.to_string(),
        by,
        reason,
        now.as_micros()
    ])?;
    let number = db.last_insert_rowid().unsigned_abs();
    let (target, by, reason) = (target.clone(), by.to_owned(), reason.to_owned());
    Ok((Holding::New(DispatchHold { number, target, by, reason, since: now }), version(db)?))
}

/// Ends a hold: what is parked under it is due; the version after it.
pub(super) fn end(db: &Connection, target: &Target, by: &str, now: Timestamp) -> Done<(Option<DispatchHold>, u64)> {
    let Some(ended) = open(db, target)? else { return Ok((None, version(db)?)) };
    let number = signed(ended.number);
    db.prepare_cached("UPDATE hold SET ended_at = ?, ended_by = ? WHERE n = ?")?.execute(params![
        now.as_micros(),
        by,
        number
    ])?;
    db.prepare_cached(
        "UPDATE head SET due_at = ? WHERE parked = 1 AND holder IS NULL
             AND run IN (SELECT run FROM parked WHERE hold = ?)",
    )?
    .execute(params![now.as_micros(), number])?;
    db.prepare_cached("DELETE FROM parked WHERE hold = ?")?.execute([number])?;
    Ok((Some(ended), version(db)?))
}

/// The open holds under which a run is parked.
pub(super) fn parked_under(db: &Connection, run: &RunRef) -> Done<Vec<u64>> {
    let mut statement = db.prepare_cached(
        "SELECT hold.n FROM parked JOIN hold ON hold.n = parked.hold WHERE parked.run = ? AND hold.ended_at IS NULL",
    )?;
    let rows = statement.query_map([run.number], |row| unsigned(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Gives a claim back under holds.
pub(super) fn park(db: &Connection, claim: &Claim, standing: &Standing, holds: &[u64], now: Timestamp) -> Done<()> {
    let mut all_open = true;
    for number in holds {
        all_open &=
            db.prepare_cached("SELECT 1 FROM hold WHERE n = ? AND ended_at IS NULL")?.exists([signed(*number)])?;
    }
    let due = if all_open { standing.due } else { Some(now) };
    let changed = db
        .prepare_cached(
            "UPDATE head SET holder = NULL, due_at = CASE WHEN inbox > inbox_read THEN ? ELSE ? END,
                 crashes = max(crashes - 1, 0), status = ?, why = ?, parked = ?
             WHERE run = ? AND epoch = ? AND holder IS NOT NULL",
        )?
        .execute(params![
            now.as_micros(),
            due.map(Timestamp::as_micros),
            standing.status.to_number(),
            why(standing),
            !holds.is_empty(),
            claim.run.number,
            signed(claim.epoch),
        ])?;
    if changed == 0 {
        return Err(refusals::lease_lost(&claim.run.key).into());
    }
    for number in holds {
        db.prepare_cached("INSERT OR IGNORE INTO parked (hold, run) VALUES (?, ?)")?
            .execute(params![signed(*number), claim.run.number])?;
    }
    Ok(())
}
