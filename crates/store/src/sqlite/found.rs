//! What can still be read of a damaged file: each run by its own row, past the rows that can't be.

use std::path::Path;
use std::sync::Arc;

use lodestep_core::RunKey;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _};

use super::failure::{Done, corrupt};
use super::inbox::letters;
use super::row::{run_columns, run_id, run_row};
use crate::audit::{Found, Letter};
use crate::refusals;
use crate::store::{RunRef, RunRow};

/// Where the highest number of a run may be read: each goes down the last pages of a tree of its own.
const NEWEST: [&str; 4] = [
    "SELECT max(number) FROM run",
    "SELECT max(run) FROM head",
    "SELECT max(run) FROM journal INDEXED BY journal_by_run",
    "SELECT max(run) FROM snapshot INDEXED BY snapshot_by_run",
];

/// Every run whose row can be read.
pub(super) fn found(db: &Connection, path: &Path) -> Done<Found> {
    let mut newest: Option<i64> = None;
    for query in NEWEST {
        let said = passable(db.query_row(query, [], |row| row.get::<_, Option<i64>>(0)))?;
        // An empty table says 0; a damaged one nothing.
        newest = newest.max(said.map(Option::unwrap_or_default));
    }
    let Some(newest) = newest else { return Err(corrupt(path, "its runs can't be counted").into()) };
    let mut found = Found::default();
    let mut statement = db.prepare("SELECT namespace, id FROM run WHERE number = ?")?;
    for number in 1..=newest {
        let read = statement
            .query_row([number], |row| Ok(run_id(row, 1).and_then(|run| Ok(RunKey { namespace: row.get(0)?, run }))));
        match passable(read.optional())? {
            Some(Some(Ok(key))) => found.runs.push(RunRef { key: Arc::new(key), number }),
            // A number that no run has.
            Some(None) => {}
            _ => found.lost.push(format!("run number {number}: its row can't be read")),
        }
    }
    Ok(found)
}

/// `None` for what is damaged; other failures stay what they are.
fn passable<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.sqlite_error_code() {
            // A column that does not hold what the schema says has no code.
            None | Some(ErrorCode::DatabaseCorrupt) => Ok(None),
            Some(_) => Err(error),
        },
    }
}

/// A run's row and its messages, of the moment of the open transaction.
pub(super) fn carried(db: &Connection, run: &RunRef) -> Done<(RunRow, Vec<Letter>)> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run JOIN head ON head.run = run.number WHERE run.number = ?"
    ))?;
    let mut rows = statement.query([run.number])?;
    let Some(row) = rows.next()? else { return Err(refusals::not_found(&run.key).into()) };
    Ok((run_row(row)?, letters(db, run, 0)?))
}
