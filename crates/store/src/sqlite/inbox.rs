//! Messages: judged in the sender's own transaction against the run and all that is unread, then stored if they count.

use std::path::Path;

use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::{Digest, Error, Result, RunKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::Done;
use super::lease::free;
use super::load::load;
use super::row::{digest, signed, the_run, unsigned};
use crate::audit::Letter;
use crate::held::{self, Heard};
use crate::refusals;
use crate::store::{Hold, RunRef};

/// A message on its way.
pub(super) struct Outgoing {
    pub(super) run: RunKey,
    pub(super) id: String,
    pub(super) message: Message,
    /// Its bytes, no more than an inbox takes.
    pub(super) body: Vec<u8>,
}

impl Outgoing {
    pub(super) fn apply(&self, db: &Connection, now: Timestamp, path: &Path) -> Done<Verdict> {
        let row = the_run(db, &self.run)?;
        if row.hold == Some(Hold::Undecodable)
            && let Some(verdict) = self.heard(db, row.run.number, now, path)?
        {
            return Ok(verdict);
        }
        let loaded = load(db, &self.run, path)?;
        let row = &loaded.row;
        let earlier: Option<Vec<u8>> = db
            .prepare_cached("SELECT body FROM message WHERE run = ? AND id = ?")?
            .query_row(params![row.run.number, self.id], |row| row.get(0))
            .optional()?;
        if let Some(body) = earlier {
            return Ok(refusals::sent_before(&self.id, body == self.body));
        }
        refusals::check_room(&self.run, loaded.unread.len(), &self.message)?;
        let verdict = held::judged(&loaded, now, &self.message)?;
        if verdict == Verdict::Accepted {
            self.insert(db, row.run.number, row.inbox + 1, now)?;
        }
        Ok(verdict)
    }

    /// What it means to a run that could not be read; `None` when it is judged as any other from now on.
    fn heard(&self, db: &Connection, run: i64, now: Timestamp, path: &Path) -> Done<Option<Verdict>> {
        let read = load(db, &self.run, path).map_err(|failure| failure.explain(path));
        match held::heard(&self.run, read.and_then(|loaded| loaded.checkpoint()), &self.message) {
            Heard::Refused(error) => Ok(Some(Verdict::Refused(error))),
            Heard::Freed(standing) => {
                free(db, run, &standing, now)?;
                Ok((self.message.word == Word::Release).then_some(Verdict::Accepted))
            }
        }
    }

    /// Stores it at this place of the inbox.
    pub(super) fn insert(&self, db: &Connection, run: i64, position: u64, now: Timestamp) -> Done<()> {
        let seal = seal(position, &self.id, &self.body, now);
        db.prepare_cached("INSERT INTO message (run, position, id, body, sent_at, digest) VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![run, signed(position), self.id, self.body, now.as_micros(), seal.as_bytes()])?;
        // Two statements: a run that is held is not due, and no index changes.
        db.prepare_cached(
            "UPDATE head SET inbox = ?1, cancel_at = CASE WHEN ?2 THEN ?1 ELSE cancel_at END WHERE run = ?3",
        )?
        .execute(params![signed(position), self.message.holds_intents(), run])?;
        db.prepare_cached("UPDATE head SET due_at = min(coalesce(due_at, ?1), ?1) WHERE run = ?2 AND holder IS NULL")?
            .execute(params![now.as_micros(), run])?;
        Ok(())
    }
}

/// The digest over a message's row.
fn seal(position: u64, id: &str, body: &[u8], sent_at: Timestamp) -> Digest {
    let (position, sent_at) = (position.to_le_bytes(), sent_at.as_micros().to_le_bytes());
    Digest::over("lodestep message 1", &[&position, id.as_bytes(), body, &sent_at])
}

/// The messages after a position, oldest first.
pub(super) fn unread(db: &Connection, run: &RunRef, after: u64) -> Done<Vec<(u64, Message)>> {
    let mut unread = Vec::new();
    for letter in letters(db, run, after)? {
        unread.push((letter.position, letter.message?));
    }
    Ok(unread)
}

/// The messages after a position, oldest first, whether or not they can be read.
pub(super) fn letters(db: &Connection, run: &RunRef, after: u64) -> Done<Vec<Letter>> {
    let mut statement = db.prepare_cached(
        "SELECT position, id, body, sent_at, digest FROM message WHERE run = ? AND position > ? ORDER BY position",
    )?;
    let rows = statement.query_map(params![run.number, signed(after)], letter)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn letter(row: &Row<'_>) -> rusqlite::Result<Letter> {
    let (position, id): (u64, String) = (unsigned(row, 0)?, row.get(1)?);
    let body = row.get_ref(2)?.as_blob()?;
    let is_whole = seal(position, &id, body, super::row::time(row, 3)?) == digest(row, 4)?;
    let message = if is_whole { Message::from_bytes(body) } else { altered(position) };
    Ok(Letter { position, id, message })
}

/// A word that is not what was said is not acted on.
fn altered<T>(position: u64) -> Result<T> {
    Err(Error::new(
        "store.undecodable",
        format!("message {position} is not what was sent"),
        "`lodestep verify` lists what is damaged; put the store back from a copy",
    ))
}
