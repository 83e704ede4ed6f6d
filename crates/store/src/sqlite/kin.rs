//! The other runs of a lineage, and their equal effects.

use lodestep_core::{Digest, Ordinal, RunId};
use rusqlite::{Connection, named_params, params};

use super::failure::Done;
use super::row::{from_end, run_columns, run_row, unsigned};
use crate::store::{EffectRow, RunRef, RunRow};

/// The root and every fork that goes back to it, but this run; oldest first.
pub(super) fn runs(db: &Connection, run: &RunRef, root: &RunId) -> Done<Vec<RunRow>> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run JOIN head ON head.run = run.number
         WHERE run.number != :run AND run.number IN (
             SELECT number FROM run WHERE namespace = :namespace AND id_from_end = :from_end
             UNION SELECT number FROM run WHERE root = :root AND namespace = :namespace)
         ORDER BY run.number"
    ))?;
    let wanted = named_params! {
        ":run": run.number, ":namespace": run.key.namespace, ":root": root.as_str(), ":from_end": from_end(root.as_str()),
    };
    let rows = statement.query_map(wanted, |row| Ok(run_row(row)))?;
    rows.map(|row| row?).collect()
}

/// Their effects with this sameness.
pub(super) fn effects(db: &Connection, run: &RunRef, root: &RunId, same: &Digest) -> Done<Vec<(RunRef, EffectRow)>> {
    let mut statement =
        db.prepare_cached("SELECT ordinal, seq FROM effect WHERE run = ? AND same = ? ORDER BY seq, ordinal")?;
    let mut found = Vec::new();
    for kin in runs(db, run, root)? {
        let rows = statement.query_map(params![kin.run.number, same.as_bytes()], |row| {
            Ok(EffectRow { same: *same, ordinal: Ordinal(row.get(0)?), seq: unsigned(row, 1)? })
        })?;
        for row in rows {
            found.push((kin.run.clone(), row?));
        }
    }
    Ok(found)
}
