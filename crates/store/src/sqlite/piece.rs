//! Packed columns that are too long for their row: cut into pieces in a table of their own.
//!
//! SQLite splits no row of less than a page between two pages. Of rows of 2.2 KB one stands alone in its page of 4 KiB, and
//! the rest of that page stays empty. So a packed column of more than [`LONGEST_WHOLE`] bytes is cut: its row keeps a mark,
//! the number of pieces and what is left over, and pieces of one length fill their pages to the last bytes. Short columns,
//! those of nearly every step, know nothing of this.
//!
//! A piece's number follows from its transition's row number, the column and its place. So no row has to name its pieces,
//! each piece names its transition, and new ones always stand at the table's end.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::{Connection, params};

use super::failure::Done;
use super::pack::IN_PIECES;
use super::row::unsigned;

/// So many bytes stand in their row as they are: three such rows share a page.
const LONGEST_WHOLE: usize = 1_000;

/// The bytes of a piece: eight fill a page of 4 KiB. Of its 4,096 bytes 8 are its head, and a row takes 13 beside its
/// bytes: 2 for its place, 2 for its length, up to 5 for its number, 4 for its columns.
const PIECE: usize = 498;

/// The most pieces of a column, so that no commit inserts more. What is longer, about 32 KB, stays in its row: SQLite
/// gives such a row pages of its own, of which the last one alone is not full.
const MOST_PIECES: usize = 64;

/// The numbers of a transition's pieces, those of its values before those of its transcript.
const OF_A_TRANSITION: i64 = 2 * MOST_PIECES as i64;

/// A column of the journal that may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Values,
    Transcript,
}

impl Column {
    pub(super) const ALL: [Self; 2] = [Self::Values, Self::Transcript];

    /// The numbers that its pieces may have, for the transition whose row has this number.
    fn numbers(self, transition: i64) -> Range<i64> {
        let first = match self {
            Self::Values => 0,
            Self::Transcript => MOST_PIECES as i64,
        };
        // A damaged number has no pieces.
        let first = transition.saturating_mul(OF_A_TRANSITION).saturating_add(first);
        first..first.saturating_add(MOST_PIECES as i64)
    }
}

/// A packed column as it is stored.
#[derive(Debug)]
pub(super) struct Cut {
    /// Pieces, one after the other.
    pieces: Vec<u8>,
    in_row: Vec<u8>,
}

impl Cut {
    /// Cuts it where that fills pages.
    pub(super) fn of(mut packed: Vec<u8>) -> Self {
        let count = packed.len() / PIECE;
        let count = match u8::try_from(count) {
            Ok(small) if packed.len() > LONGEST_WHOLE && count <= MOST_PIECES => small,
            _ => return Self { pieces: Vec::new(), in_row: packed },
        };
        let mut in_row = vec![IN_PIECES, count];
        in_row.extend(packed.drain(usize::from(count) * PIECE..));
        Self { pieces: packed, in_row }
    }

    /// What stands in the row.
    pub(super) fn in_row(&self) -> &[u8] {
        &self.in_row
    }

    /// Inserts the pieces of a column of the transition whose row was just inserted.
    pub(super) fn insert_pieces(&self, db: &Connection, transition: i64, column: Column) -> Done<()> {
        for (number, piece) in column.numbers(transition).zip(self.pieces.chunks(PIECE)) {
            db.prepare_cached("INSERT INTO piece (n, bytes) VALUES (?, ?)")?.execute(params![number, piece])?;
        }
        Ok(())
    }
}

/// The whole packed column, given what stands in its row; or what is wrong with its pieces.
pub(super) fn whole<'a>(
    db: &Connection,
    transition: i64,
    column: Column,
    in_row: &'a [u8],
) -> Done<Result<Cow<'a, [u8]>, &'static str>> {
    let (count, rest) = match in_row {
        [IN_PIECES, count, rest @ ..] => (usize::from(*count), rest),
        _ => return Ok(Ok(Cow::Borrowed(in_row))),
    };
    let numbers = column.numbers(transition);
    let mut statement = db.prepare_cached("SELECT n, bytes FROM piece WHERE n >= ? AND n < ? ORDER BY n")?;
    let mut rows = statement.query(params![numbers.start, numbers.end])?;
    let mut packed = Vec::with_capacity(count * PIECE + rest.len());
    let mut next = numbers.start;
    while let Some(row) = rows.next()? {
        let piece = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        if row.get::<_, i64>(0)? != next {
            return Ok(Err("a piece of it is missing"));
        }
        packed.extend_from_slice(piece);
        next += 1;
    }
    if packed.len() != count * PIECE {
        return Ok(Err("its pieces have more or fewer bytes than its row says"));
    }
    packed.extend_from_slice(rest);
    Ok(Ok(Cow::Owned(packed)))
}

/// The bytes of a run's pieces.
pub(super) fn bytes_of_run(db: &Connection, run: i64, columns: &[Column]) -> Done<u64> {
    let mut bytes = 0;
    for column in columns {
        let of_column = column.numbers(0);
        bytes += db
            .prepare_cached(
                "SELECT coalesce(sum(length(piece.bytes)), 0) FROM journal CROSS JOIN piece
                 ON piece.n >= journal.n * ?2 + ?3 AND piece.n < journal.n * ?2 + ?4 WHERE journal.run = ?1",
            )?
            .query_row(params![run, OF_A_TRANSITION, of_column.start, of_column.end], |row| unsigned(row, 0))?;
    }
    Ok(bytes)
}

/// Removes a run's pieces, before anything of its rows in the journal goes.
pub(super) fn remove_of_run(db: &Connection, run: i64, columns: &[Column]) -> Done<()> {
    for column in columns {
        let of_column = column.numbers(0);
        db.prepare_cached(
            "DELETE FROM piece WHERE n IN (SELECT piece.n FROM journal CROSS JOIN piece
             ON piece.n >= journal.n * ?2 + ?3 AND piece.n < journal.n * ?2 + ?4 WHERE journal.run = ?1)",
        )?
        .execute(params![run, OF_A_TRANSITION, of_column.start, of_column.end])?;
    }
    Ok(())
}

/// Pieces that no row in the journal calls its own, in words.
pub(super) fn strays(db: &Connection) -> Done<Vec<String>> {
    let mut statement = db.prepare(
        "SELECT min(piece.n), count(*), journal.run, journal.seq
         FROM piece LEFT JOIN journal ON journal.n = piece.n / ?1
         WHERE substr(iif(piece.n % ?1 < ?2, journal.vals, journal.transcript), 1, 1) IS NOT ?3 GROUP BY piece.n / ?2",
    )?;
    let wanted = params![OF_A_TRANSITION, MOST_PIECES as i64, [IN_PIECES]];
    let words = statement.query_map(wanted, |row| {
        let (first, count): (i64, i64) = (row.get(0)?, row.get(1)?);
        let owner: Option<i64> = row.get(2)?;
        let whose = match owner {
            Some(run) => {
                format!("name transition {} of run number {run}, which has no use for them", unsigned(row, 3)?)
            }
            None => "belong to no transition".to_owned(),
        };
        Ok(format!("table piece, from number {first} on: {count} {whose}"))
    })?;
    Ok(words.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests;
