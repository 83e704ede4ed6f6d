//! Messages: judged in the sender's own transaction against the run and all that is unread, then stored if they count.

use std::path::Path;

use lodestep_core::rules::inbox::{Message, Verdict, judge};
use lodestep_core::{Draft, RunKey, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::failure::Done;
use super::load::load;
use super::row::{signed, unsigned};
use crate::refusals;
use crate::store::RunRef;

/// A message on its way.
pub(super) struct Letter {
    pub(super) run: RunKey,
    pub(super) id: String,
    pub(super) message: Message,
    /// Its bytes, no more than an inbox takes.
    pub(super) body: Vec<u8>,
}

impl Letter {
    pub(super) fn apply(&self, db: &Connection, now: Timestamp, path: &Path) -> Done<Verdict> {
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
        let draft = Draft::next(loaded.checkpoint()?, now, row.epoch, 0);
        let verdict = judge(draft, &loaded.unread, &self.message)?;
        if verdict == Verdict::Accepted {
            self.insert(db, row.run.number, row.inbox + 1, now)?;
        }
        Ok(verdict)
    }

    fn insert(&self, db: &Connection, run: i64, position: u64, now: Timestamp) -> Done<()> {
        db.prepare_cached("INSERT INTO message (run, position, id, body, sent_at) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![run, signed(position), self.id, self.body, now.as_micros()])?;
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

/// The messages after a position, oldest first.
pub(super) fn unread(db: &Connection, run: &RunRef, after: u64) -> Done<Vec<(u64, Message)>> {
    let mut statement =
        db.prepare_cached("SELECT position, body FROM message WHERE run = ? AND position > ? ORDER BY position")?;
    let rows = statement.query_map(params![run.number, signed(after)], |row| {
        let body = row.get_ref(1)?.as_blob()?;
        Ok((unsigned(row, 0)?, Message::from_bytes(body)))
    })?;
    let mut unread = Vec::new();
    for row in rows {
        let (position, message) = row?;
        unread.push((position, message?));
    }
    Ok(unread)
}
