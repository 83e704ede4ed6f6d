//! Labels as SQLite keeps them: a row each, to find runs by, and a text in the run's row, to show them.

use lodestep_core::Labels;
use rusqlite::{Connection, params};

use super::failure::Done;
use crate::store::RunRef;

/// name=value, a line each: neither holds a line end, and no name holds the sign.
pub(super) fn to_text(labels: &Labels) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n")
}

/// Reads [`to_text`].
pub(super) fn from_text(text: &str) -> Labels {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The labels by which a run is found.
pub(super) fn of_run(db: &Connection, run: &RunRef) -> Done<Labels> {
    let mut statement = db.prepare_cached("SELECT name, value FROM label WHERE run = ?")?;
    let rows = statement.query_map([run.number], |row| <(String, String)>::try_from(row))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Makes a run findable by its labels.
pub(super) fn insert(db: &Connection, run: &RunRef, labels: &Labels) -> Done<()> {
    for (name, value) in labels {
        db.prepare_cached("INSERT INTO label (namespace, name, value, run) VALUES (?, ?, ?, ?)")?.execute(params![
            run.key.namespace,
            name,
            value,
            run.number
        ])?;
    }
    Ok(())
}
