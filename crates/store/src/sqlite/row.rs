//! Columns and what they hold: a run's row, numbers, digests.

use std::sync::Arc;

use lodestep_core::rules::standing::Status;
use lodestep_core::{Digest, Error, RunId, RunKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::failure::Done;
use super::label;
use crate::refusals;
use crate::store::{Hold, RunRef, RunRow, WorkerId};

/// What [`run_row`] reads, from `run JOIN head`.
macro_rules! run_columns {
    () => {
        "run.number, run.namespace, run.id, run.agent, run.definition, run.inputs, run.started_at, \
         head.status, head.why, head.due_at, head.holder, head.seq, head.digest, head.epoch, head.crashes, \
         head.updated_at, head.inbox, head.rewound, head.undecodable, run.labels, head.parked"
    };
}
pub(super) use run_columns;

/// A run's row.
pub(super) fn run_row(row: &Row<'_>) -> Done<RunRow> {
    let key = RunKey { namespace: row.get(1)?, run: run_id(row, 2)? };
    let number: u8 = row.get(7)?;
    Ok(RunRow {
        run: RunRef { key: Arc::new(key), number: row.get(0)? },
        agent: row.get(3)?,
        definition: digest(row, 4)?,
        inputs: digest(row, 5)?,
        started_at: time(row, 6)?,
        status: Status::from_number(number).ok_or_else(|| unreadable(7, &format!("a status of number {number}")))?,
        why: row.get(8)?,
        due: row.get::<_, Option<i64>>(9)?.map(Timestamp::from_micros),
        holder: row.get::<_, Option<String>>(10)?.map(WorkerId),
        seq: unsigned(row, 11)?,
        head: digest(row, 12)?,
        epoch: unsigned(row, 13)?,
        crashes: row.get(14)?,
        updated_at: time(row, 15)?,
        inbox: unsigned(row, 16)?,
        hold: match (row.get(17)?, row.get(18)?, row.get(20)?) {
            (_, true, _) => Some(Hold::Undecodable),
            (true, false, _) => Some(Hold::Rewound),
            (false, false, true) => Some(Hold::Parked),
            (false, false, false) => None,
        },
        labels: label::from_text(&row.get::<_, String>(19)?),
    })
}

/// A run by its name.
pub(super) fn find_run(db: &Connection, key: &RunKey) -> Done<Option<RunRow>> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run JOIN head ON head.run = run.number WHERE run.namespace = :namespace AND run.id_from_end = :id"
    ))?;
    let id = from_end(key.run.as_str());
    let found = statement.query_row(named_params! {":namespace": key.namespace, ":id": id}, |row| Ok(run_row(row)));
    found.optional()?.transpose()
}

/// A run by its name, or `run.not_found`.
pub(super) fn the_run(db: &Connection, key: &RunKey) -> Done<RunRow> {
    find_run(db, key)?.ok_or_else(|| refusals::not_found(key).into())
}

/// An id backwards, as the index has it.
pub(super) fn from_end(id: &str) -> String {
    id.chars().rev().collect()
}

pub(super) fn run_id(row: &Row<'_>, column: usize) -> Done<RunId> {
    let text: String = row.get(column)?;
    RunId::parse(&text).map_err(|error| unreadable(column, error.what()).into())
}

pub(super) fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    row.get(column).map(Digest::from_bytes)
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_micros)
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// A number as SQLite holds it. None that a store counts comes near the bound.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit of rows.
pub(super) fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A column that does not hold what it should.
fn unreadable(column: usize, what: &str) -> rusqlite::Error {
    let error = Error::new("store.corrupt", what, "");
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Null, Box::new(error))
}
