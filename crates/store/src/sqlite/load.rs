//! Reading one run: as a whole, and its tables.

use std::path::Path;

use lodestep_core::{Digest, Ordinal, RunKey, Stored};
use rusqlite::{Connection, Row, params};

use super::failure::Done;
use super::inbox::unread;
use super::row::{digest, signed, the_run, unsigned};
use super::snapshot;
use crate::loaded::Loaded;
use crate::store::{ArtifactRow, EffectRow, RunRef};

/// A run, of the moment of the open transaction.
pub(super) fn load(db: &Connection, key: &RunKey, path: &Path) -> Done<Loaded> {
    let row = the_run(db, key)?;
    let number = row.run.number;
    let (from, snapshot) = match snapshot::newest(db, number, path)? {
        Some((seq, bytes)) => (seq, Some(bytes)),
        None => (0, None),
    };
    let tail = db
        .prepare_cached("SELECT envelope FROM journal WHERE run = ? AND seq > ? ORDER BY seq")?
        .query_map(params![number, signed(from)], |row| row.get(0))?
        .collect::<Result<Vec<Vec<u8>>, _>>()?;
    let read: i64 =
        db.prepare_cached("SELECT inbox_read FROM head WHERE run = ?")?.query_row([number], |row| row.get(0))?;
    let unread = if signed(row.inbox) > read { unread(db, &row.run, read.unsigned_abs())? } else { Vec::new() };
    Ok(Loaded { row, snapshot, tail, unread })
}

/// The effects of a run, or those of them with a sameness, oldest first.
pub(super) fn effects(db: &Connection, run: &RunRef, same: Option<&Digest>) -> Done<Vec<EffectRow>> {
    let read =
        |row: &Row<'_>| Ok(EffectRow { same: digest(row, 0)?, ordinal: Ordinal(row.get(1)?), seq: unsigned(row, 2)? });
    let rows = match same {
        Some(same) => db
            .prepare_cached("SELECT same, ordinal, seq FROM effect WHERE run = ? AND same = ? ORDER BY seq, ordinal")?
            .query_map(params![run.number, same.as_bytes()], read)?
            .collect::<Result<_, _>>()?,
        None => db
            .prepare_cached("SELECT same, ordinal, seq FROM effect WHERE run = ? ORDER BY seq, ordinal")?
            .query_map([run.number], read)?
            .collect::<Result<_, _>>()?,
    };
    Ok(rows)
}

/// Every version of every artifact, oldest first.
pub(super) fn artifacts(db: &Connection, run: &RunRef) -> Done<Vec<ArtifactRow>> {
    let mut statement =
        db.prepare_cached("SELECT name, version, digest, len, seq FROM artifact WHERE run = ? ORDER BY n")?;
    let rows = statement.query_map([run.number], |row| {
        let content = Stored { digest: digest(row, 2)?, len: unsigned(row, 3)?, seq: unsigned(row, 4)? };
        Ok(ArtifactRow { name: row.get(0)?, version: row.get(1)?, content })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
