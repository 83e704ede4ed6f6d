//! Reading one run: as a whole, and its journal and tables.

use std::path::Path;

use lodestep_core::{Digest, Ordinal, RunKey, Stored};
use rusqlite::{Connection, Row, params};

use super::failure::{Done, corrupt};
use super::inbox::unread;
use super::pack::{unpack, unpack_values};
use super::row::{at_most, digest, signed, the_run, unsigned};
use super::snapshot;
use crate::garbage::{Amount, Mode};
use crate::loaded::Loaded;
use crate::store::{ArtifactRow, EffectRow, JournalRow, RunRef};

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

/// Transitions from a number on.
pub(super) fn journal(db: &Connection, run: &RunRef, from: u64, limit: usize, path: &Path) -> Done<Vec<JournalRow>> {
    let mut statement = db.prepare_cached(
        "SELECT seq, envelope, vals, transcript FROM journal WHERE run = ? AND seq >= ? ORDER BY seq LIMIT ?",
    )?;
    let mut rows = statement.query(params![run.number, signed(from), at_most(limit)])?;
    let mut journal = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = unsigned(row, 0)?;
        let damaged = |what: &'static str| {
            move |how: &str| corrupt(path, &format!("the {what} of transition {seq} of run {} {how}", run.key.run))
        };
        let values = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
        let transcript = row.get_ref(3)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
        journal.push(JournalRow {
            seq,
            envelope: row.get(1)?,
            values: values.map(unpack_values).transpose().map_err(damaged("values"))?,
            transcript: transcript.map(unpack).transpose().map_err(damaged("transcript"))?,
        });
    }
    Ok(journal)
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

/// Empties the transcripts, or counts them.
pub(super) fn forget_transcripts(db: &Connection, run: &RunRef, mode: Mode) -> Done<Amount> {
    let counted = "SELECT count(transcript), coalesce(sum(length(transcript)), 0) FROM journal WHERE run = ?";
    let amount = db
        .prepare_cached(counted)?
        .query_row([run.number], |row| Ok(Amount { count: unsigned(row, 0)?, bytes: unsigned(row, 1)? }))?;
    if mode == Mode::Apply {
        db.prepare_cached("UPDATE journal SET transcript = NULL WHERE run = ? AND transcript IS NOT NULL")?
            .execute([run.number])?;
    }
    Ok(amount)
}
