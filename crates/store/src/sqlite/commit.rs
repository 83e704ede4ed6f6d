//! A transition's rows. The guard is the condition of the first statement: when it changes nothing, that one commit is
//! refused, and the others of its transaction stand.

use lodestep_core::rules::standing::Standing;
use lodestep_core::{Error, Timestamp, Transition};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::failure::Done;
use super::pack::{pack, pack_values};
use super::row::{signed, unsigned};
use super::snapshot::{self, Snapshot};
use crate::refusals;
use crate::rows::{Rows, why};
use crate::store::{Commit, Committed, RunRef};

/// The step of a run whose standing stays: names no column of an index.
pub(super) const LEAN: &str = "UPDATE head SET seq = :seq, digest = :digest, inbox_read = :read, updated_at = :at,
     left_by = NULL, crashes = CASE WHEN :outcome THEN 0 ELSE crashes END
 WHERE run = :run AND epoch = :epoch AND seq = :seq - 1 AND holder IS NOT NULL
     AND (NOT :intent OR cancel_at IS NULL OR cancel_at <= :read)
     AND status = :status AND why = :why
 RETURNING inbox";

/// A step after which the run stands elsewhere, or is let go.
const FULL: &str = "UPDATE head SET seq = :seq, digest = :digest, inbox_read = :read, updated_at = :at,
     left_by = NULL, status = :status, why = :why,
     crashes = CASE WHEN :outcome THEN 0 WHEN :release THEN max(crashes - 1, 0) ELSE crashes END,
     holder = CASE WHEN :release THEN NULL ELSE holder END,
     due_at = CASE WHEN NOT :release THEN due_at WHEN inbox > :read THEN :now ELSE :due END
 WHERE run = :run AND epoch = :epoch AND seq = :seq - 1 AND holder IS NOT NULL
     AND (NOT :intent OR cancel_at IS NULL OR cancel_at <= :read)
 RETURNING inbox";

/// A transition, encoded before the connection is taken.
pub(super) struct Prepared {
    pub(super) run: RunRef,
    epoch: u64,
    standing: Standing,
    why: String,
    release: bool,
    pub(super) rows: RowsOf,
}

/// What a transition adds to the tables beside the head.
pub(super) struct RowsOf {
    pub(super) transition: Transition,
    drawn: Rows,
    values: Vec<u8>,
    transcript: Option<Vec<u8>>,
    snapshot: Option<Snapshot>,
}

impl RowsOf {
    /// Encodes; the transition's values are all short enough for its row.
    pub(super) fn encode(transition: Transition, transcript: Option<&[u8]>, snapshot: bool) -> Self {
        Self {
            drawn: Rows::of(&transition),
            values: pack_values(&transition.values),
            transcript: transcript.map(pack),
            snapshot: snapshot.then(|| Snapshot::of(&transition.checkpoint)),
            transition,
        }
    }

    /// Inserts everything but the head.
    pub(super) fn insert(&self, db: &Connection, run: &RunRef) -> Done<()> {
        let seq = signed(self.transition.checkpoint.seq);
        db.prepare_cached("INSERT INTO journal (run, seq, envelope, vals, transcript) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![run.number, seq, self.transition.envelope, self.values, self.transcript])?;
        for effect in &self.drawn.effects {
            db.prepare_cached("INSERT OR IGNORE INTO effect (run, same, ordinal, seq) VALUES (?, ?, ?, ?)")?
                .execute(params![run.number, effect.same.as_bytes(), effect.ordinal.0, signed(effect.seq)])?;
        }
        self.insert_requests(db, run)?;
        for row in &self.drawn.artifacts {
            let content = &row.content;
            db.prepare_cached("INSERT INTO artifact (run, name, version, digest, len, seq) VALUES (?, ?, ?, ?, ?, ?)")?
                .execute(params![
                    run.number,
                    row.name,
                    row.version,
                    content.digest.as_bytes(),
                    signed(content.len),
                    seq
                ])?;
        }
        match &self.snapshot {
            Some(snapshot) => snapshot::insert(db, run.number, seq, snapshot),
            None => Ok(()),
        }
    }

    fn insert_requests(&self, db: &Connection, run: &RunRef) -> Done<()> {
        let namespace = &run.key.namespace;
        for (name, ordinal) in &self.drawn.opened {
            db.prepare_cached(
                "INSERT INTO request (namespace, name, run, ordinal, is_open) VALUES (?, ?, ?, ?, 1)
                 ON CONFLICT (namespace, name) DO UPDATE SET is_open = 1",
            )?
            .execute(params![namespace, name.as_bytes(), run.number, ordinal.0])?;
        }
        for name in &self.drawn.closed {
            db.prepare_cached("UPDATE request SET is_open = 0 WHERE namespace = ? AND name = ?")?
                .execute(params![namespace, name.as_bytes()])?;
        }
        Ok(())
    }
}

impl Prepared {
    pub(super) fn new(commit: Commit) -> Self {
        Self {
            run: commit.run,
            epoch: commit.epoch,
            why: why(&commit.standing),
            standing: commit.standing,
            release: commit.release,
            rows: RowsOf::encode(commit.transition, commit.transcript.as_deref(), commit.snapshot),
        }
    }

    /// Commits it in the open transaction, or refuses it before anything changed.
    pub(super) fn apply(&self, db: &Connection, now: Timestamp) -> Done<Committed> {
        let inbox = match self.step(db)? {
            Some(inbox) => inbox,
            None => match self.move_head(db, now)? {
                Some(inbox) => inbox,
                None => return Err(self.refusal(db)?.into()),
            },
        };
        self.rows.insert(db, &self.run)?;
        Ok(Committed { inbox })
    }

    /// The plain step, for a run that stands where it stood.
    fn step(&self, db: &Connection) -> rusqlite::Result<Option<u64>> {
        if self.release {
            return Ok(None);
        }
        let after = &self.rows.transition.checkpoint;
        db.prepare_cached(LEAN)?
            .query_row(
                named_params! {
                    ":run": self.run.number,
                    ":epoch": signed(self.epoch),
                    ":seq": signed(after.seq),
                    ":digest": after.head.as_bytes(),
                    ":read": signed(after.inbox),
                    ":at": after.at.as_micros(),
                    ":outcome": self.rows.drawn.has_outcome,
                    ":intent": self.rows.drawn.has_intent,
                    ":status": self.standing.status.to_number(),
                    ":why": self.why,
                },
                |row| unsigned(row, 0),
            )
            .optional()
    }

    fn move_head(&self, db: &Connection, now: Timestamp) -> rusqlite::Result<Option<u64>> {
        let after = &self.rows.transition.checkpoint;
        db.prepare_cached(FULL)?
            .query_row(
                named_params! {
                    ":run": self.run.number,
                    ":epoch": signed(self.epoch),
                    ":seq": signed(after.seq),
                    ":digest": after.head.as_bytes(),
                    ":read": signed(after.inbox),
                    ":at": after.at.as_micros(),
                    ":outcome": self.rows.drawn.has_outcome,
                    ":intent": self.rows.drawn.has_intent,
                    ":status": self.standing.status.to_number(),
                    ":why": self.why,
                    ":release": self.release,
                    ":due": self.standing.due.map(Timestamp::as_micros),
                    ":now": now.as_micros(),
                },
                |row| unsigned(row, 0),
            )
            .optional()
    }

    /// Why the guard held it back.
    fn refusal(&self, db: &Connection) -> Done<Error> {
        let after = &self.rows.transition.checkpoint;
        let holds = db
            .prepare_cached("SELECT 1 FROM head WHERE run = ? AND epoch = ? AND seq = ? - 1 AND holder IS NOT NULL")?
            .exists(params![self.run.number, signed(self.epoch), signed(after.seq)])?;
        let key = &self.run.key;
        Ok(if holds { refusals::cancel_unread(key) } else { refusals::lease_lost(key) })
    }
}
