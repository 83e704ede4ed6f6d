//! The other runs of a lineage, and their equal effects.

use std::sync::Arc;

use lodestep_core::{Digest, Ordinal, RunId, RunKey};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::Done;
use super::row::{from_end, run_columns, run_id, run_row, unsigned};
use crate::store::{EffectRow, RunRef, RunRow};

/// The root and every fork that goes back to it, but this run; oldest first.
pub(super) fn runs(db: &Connection, run: &RunRef, root: &RunId) -> Done<Vec<RunRow>> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run JOIN head ON head.run = run.number WHERE run.number = ?"
    ))?;
    let numbers = numbers(db, run, root)?;
    numbers.into_iter().map(|number| statement.query_row([number], |row| Ok(run_row(row)))?).collect()
}

/// Marks a run that has just been inserted, and the one that it goes back to. Other forks are marked from their start.
pub(super) fn mark(db: &Connection, run: &RunRef, root: Option<&RunId>) -> rusqlite::Result<()> {
    let (namespace, id) = (&run.key.namespace, run.key.run.as_str());
    match root {
        Some(root) => db
            .prepare_cached(
                "UPDATE head SET has_kin = 1
                 WHERE run = ?1 OR run = (SELECT number FROM run WHERE namespace = ?2 AND id_from_end = ?3)",
            )?
            .execute(params![run.number, namespace, from_end(root.as_str())]),
        None => db
            .prepare_cached(
                "UPDATE head SET has_kin = 1
                 WHERE run = ?1 AND EXISTS (SELECT 1 FROM run WHERE root = ?3 AND namespace = ?2)",
            )?
            .execute(params![run.number, namespace, id]),
    }
    .map(drop)
}

/// Their effects with this sameness. Every effect asks: for a run without kin it is one look into an index.
pub(super) fn effects(db: &Connection, run: &RunRef, root: &RunId, same: &Digest) -> Done<Vec<(RunRef, EffectRow)>> {
    let numbers = numbers(db, run, root)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare_cached(
        "SELECT run.number, run.id, effect.ordinal, effect.seq FROM effect JOIN run ON run.number = effect.run
         WHERE effect.run = ? AND effect.same = ? ORDER BY effect.seq, effect.ordinal",
    )?;
    let mut found = Vec::new();
    for number in numbers {
        let rows = statement.query_map(params![number, same.as_bytes()], |row| Ok(effect(row, run, same)))?;
        for row in rows {
            found.push(row??);
        }
    }
    Ok(found)
}

fn effect(row: &Row<'_>, run: &RunRef, same: &Digest) -> Done<(RunRef, EffectRow)> {
    let key = RunKey { namespace: run.key.namespace.clone(), run: run_id(row, 1)? };
    let effect = EffectRow { same: *same, ordinal: Ordinal(row.get(2)?), seq: unsigned(row, 3)? };
    Ok((RunRef { key: Arc::new(key), number: row.get(0)? }, effect))
}

fn numbers(db: &Connection, run: &RunRef, root: &RunId) -> Done<Vec<i64>> {
    let namespace = &run.key.namespace;
    let mut numbers = db
        .prepare_cached("SELECT number FROM run WHERE root = ? AND namespace = ? AND number != ? ORDER BY number")?
        .query_map(params![root.as_str(), namespace, run.number], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    if *root != run.key.run {
        let root: Option<i64> = db
            .prepare_cached("SELECT number FROM run WHERE namespace = ? AND id_from_end = ?")?
            .query_row(params![namespace, from_end(root.as_str())], |row| row.get(0))
            .optional()?;
        numbers.extend(root);
        numbers.sort_unstable();
    }
    Ok(numbers)
}
