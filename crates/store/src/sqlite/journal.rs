//! The journal's rows: appended, read, and their transcripts emptied.

use std::path::Path;

use lodestep_core::Transition;
use rusqlite::{Connection, params};

use super::failure::{Done, corrupt};
use super::pack::{pack, pack_values, unpack, unpack_values};
use super::piece::{self, Column, Cut};
use super::row::{at_most, signed, unsigned};
use crate::garbage::{Amount, Mode};
use crate::store::{JournalRow, RunRef};

/// A row to be appended, packed and cut before the connection is taken.
pub(super) struct Entry {
    seq: i64,
    envelope: Vec<u8>,
    /// `None` for values that were erased.
    values: Option<Cut>,
    transcript: Option<Cut>,
}

impl Entry {
    /// The row of a transition whose values are all short enough for it.
    pub(super) fn of(transition: &Transition, transcript: Option<&[u8]>) -> Self {
        Self {
            seq: signed(transition.checkpoint.seq),
            envelope: transition.envelope.clone(),
            values: Some(Cut::of(pack_values(&transition.values))),
            transcript: transcript.map(pack).map(Cut::of),
        }
    }

    /// A row from another store, without its transcript.
    pub(super) fn from_elsewhere(row: &JournalRow) -> Self {
        Self {
            seq: signed(row.seq),
            envelope: row.envelope.clone(),
            values: row.values.as_deref().map(pack_values).map(Cut::of),
            transcript: None,
        }
    }

    /// The transition's number in its run.
    pub(super) fn seq(&self) -> i64 {
        self.seq
    }

    /// Appends it, with its pieces.
    pub(super) fn append(&self, db: &Connection, run: i64) -> Done<()> {
        let (values, transcript) = (self.values.as_ref(), self.transcript.as_ref());
        db.prepare_cached("INSERT INTO journal (run, seq, envelope, vals, transcript) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![run, self.seq, self.envelope, values.map(Cut::in_row), transcript.map(Cut::in_row)])?;
        let transition = db.last_insert_rowid();
        for (cut, column) in [(values, Column::Values), (transcript, Column::Transcript)] {
            cut.map_or(Ok(()), |cut| cut.insert_pieces(db, transition, column))?;
        }
        Ok(())
    }
}

/// Transitions from a number on.
pub(super) fn read(db: &Connection, run: &RunRef, from: u64, limit: usize, path: &Path) -> Done<Vec<JournalRow>> {
    let mut statement = db.prepare_cached(
        "SELECT seq, envelope, vals, transcript, n FROM journal WHERE run = ? AND seq >= ? ORDER BY seq LIMIT ?",
    )?;
    let mut rows = statement.query(params![run.number, signed(from), at_most(limit)])?;
    let mut journal = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = unsigned(row, 0)?;
        let damaged = |what: &'static str| {
            move |how: &str| corrupt(path, &format!("the {what} of transition {seq} of run {}: {how}", run.key.run))
        };
        let whole = |place: usize, column: Column| {
            let in_row = row.get_ref(place)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
            in_row.map(|in_row| piece::whole(db, row.get(4)?, column, in_row)).transpose()
        };
        let (values, transcript) = (whole(2, Column::Values)?, whole(3, Column::Transcript)?);
        journal.push(JournalRow {
            seq,
            envelope: row.get(1)?,
            values: values.map(|packed| unpack_values(&packed?)).transpose().map_err(damaged("values"))?,
            transcript: transcript.map(|packed| unpack(&packed?)).transpose().map_err(damaged("transcript"))?,
        });
    }
    Ok(journal)
}

/// Empties the transcripts, or counts them.
pub(super) fn forget_transcripts(db: &Connection, run: &RunRef, mode: Mode) -> Done<Amount> {
    let counted = "SELECT count(transcript), coalesce(sum(length(transcript)), 0) FROM journal WHERE run = ?";
    let mut amount = db
        .prepare_cached(counted)?
        .query_row([run.number], |row| Ok(Amount { count: unsigned(row, 0)?, bytes: unsigned(row, 1)? }))?;
    amount.bytes += piece::bytes_of_run(db, run.number, &[Column::Transcript])?;
    if mode == Mode::Apply {
        piece::remove_of_run(db, run.number, &[Column::Transcript])?;
        db.prepare_cached("UPDATE journal SET transcript = NULL WHERE run = ? AND transcript IS NOT NULL")?
            .execute([run.number])?;
    }
    Ok(amount)
}
