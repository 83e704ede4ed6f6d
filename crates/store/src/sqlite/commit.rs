//! A transition's rows. The guard is the condition of the first statement: when it changes nothing, that one commit is
//! refused, and the others of its transaction stand.

use std::collections::BTreeSet;
use std::sync::Arc;

use lodestep_core::event::Event;
use lodestep_core::rules::standing::Status;
use lodestep_core::{Digest, Error, Result, RunKey, Timestamp, Transition};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::dedupe;
use super::failure::Done;
use super::journal::Entry;
use super::reserve::Room;
use super::row::{signed, unsigned};
use super::snapshot::{self, Snapshot};
use super::value::ValueFiles;
use crate::garbage::large_values;
use crate::refusals;
use crate::rows::{Head, Rows};
use crate::store::{Commit, Committed, RunRef};

/// The step of a run whose standing stays, whose inbox is read and whose kin is known: names no column of an index.
pub(super) const LEAN: &str = "UPDATE head SET seq = ?3, digest = ?4, inbox_read = ?5, updated_at = ?6, left_by = NULL,
     crashes = CASE WHEN ?7 THEN 0 ELSE crashes END
 WHERE run = ?1 AND epoch = ?2 AND seq = ?3 - 1 AND holder IS NOT NULL
     AND inbox = ?5 AND status = ?8 AND why = ?9 AND has_kin = ?12
     AND (NOT ?10 OR ?11 >= (SELECT coalesce(max(n), 0) FROM hold))";

/// Any other: what it needs besides is at the end, intent, release, due and now, and the hold that is known.
const FULL: &str = "UPDATE head SET seq = ?3, digest = ?4, inbox_read = ?5, updated_at = ?6, left_by = NULL,
     rewound = 0, undecodable = 0, parked = 0,
     crashes = CASE WHEN ?7 THEN 0 WHEN ?11 THEN max(crashes - 1, 0) ELSE crashes END,
     status = ?8, why = ?9, holder = CASE WHEN ?11 THEN NULL ELSE holder END,
     due_at = CASE WHEN NOT ?11 THEN due_at WHEN inbox > ?5 THEN ?13 ELSE ?12 END
 WHERE run = ?1 AND epoch = ?2 AND seq = ?3 - 1 AND holder IS NOT NULL
     AND (NOT ?10 OR cancel_at IS NULL OR cancel_at <= ?5)
     AND (NOT ?14 OR ?15 >= (SELECT coalesce(max(n), 0) FROM hold))";

/// A transition, encoded before the connection is taken: the state itself stays with the caller.
pub(super) struct Prepared {
    run: RunRef,
    epoch: i64,
    read: i64,
    at: Timestamp,
    digest: [u8; 32],
    status: Status,
    why: String,
    due: Option<Timestamp>,
    release: bool,
    known_hold: i64,
    known_kin: bool,
    /// Values that stand in files of their own, which have to be there.
    large: BTreeSet<Digest>,
    files: ValueFiles,
    rows: RowsOf,
}

/// What a transition adds to the tables beside the head.
pub(super) struct RowsOf {
    entry: Entry,
    drawn: Rows,
    snapshot: Option<Snapshot>,
}

impl RowsOf {
    /// Encodes; the transition's values are all short enough for its row.
    pub(super) fn encode(transition: &Transition, transcript: Option<&[u8]>, snapshot: bool) -> Self {
        Self {
            entry: Entry::of(transition, transcript),
            drawn: Rows::of(&transition.events, &transition.checkpoint),
            snapshot: snapshot.then(|| Snapshot::of(&transition.checkpoint)),
        }
    }

    /// Inserts everything but the head.
    pub(super) fn insert(&self, db: &Connection, run: &RunRef) -> Done<()> {
        let seq = self.entry.seq();
        self.entry.append(db, run.number)?;
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
        dedupe::change(db, run, &self.drawn.keys)?;
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

/// In the open transaction: from here to its end nobody else removes a file.
pub(super) fn files_are_there(files: &ValueFiles, large: &BTreeSet<Digest>, run: &RunKey) -> Done<()> {
    match large.iter().find(|digest| !files.is_there(digest)) {
        Some(missing) => Err(refusals::value_swept(missing, run).into()),
        None => Ok(()),
    }
}

impl SqliteStore {
    /// Each in a transaction with whatever else is written now; each stands or falls alone.
    pub(super) async fn commit_all(&self, batch: Vec<Commit>) -> Vec<Result<Committed>> {
        let run = if let [only] = &batch[..] { only.run.number } else { 0 };
        let releases = batch.iter().any(|commit| commit.release);
        let mut refused = Vec::new();
        let mut acts = Vec::with_capacity(batch.len());
        for (place, mut commit) in batch.into_iter().enumerate() {
            let room = room_for(&commit.transition.events);
            if let Err(error) = self.take_large_shared(&mut commit.transition, room).await {
                refused.push((place, error));
                continue;
            }
            // Boxed: it is handed on several times.
            let prepared = Box::new(Prepared::new(&commit, &self.values));
            let (clock, reserve) = (Arc::clone(&self.clock), self.reserve.clone());
            let act = move |db: &Connection| {
                if room == Room::Free {
                    reserve.refuse_if_spent()?;
                }
                prepared.apply(db, clock.wall())
            };
            acts.push((room, act));
        }
        let mut results = self.writer.write_all(run, acts).await;
        for (place, error) in refused {
            results.insert(place, Err(error));
        }
        if releases {
            self.changes.notify();
        }
        results
    }
}

/// An outcome with which nothing begins that needs more room may take the reserve.
fn room_for(events: &[Event]) -> Room {
    let begins = |event: &Event| {
        matches!(
            event,
            Event::AttemptStarted(_) | Event::CallReserved(_) | Event::CallAnswered(_) | Event::DecisionOpened(_)
        )
    };
    let is_outcome = |event: &Event| {
        matches!(
            event,
            Event::ActionFinished(_)
                | Event::AttemptNotSent(_)
                | Event::AttemptUnknown(_)
                | Event::LookupInconclusive(_)
                | Event::DoubtResolved(_)
        )
    };
    match events.iter().any(is_outcome) && !events.iter().any(begins) {
        true => Room::Reserve,
        false => Room::Free,
    }
}

impl Prepared {
    pub(super) fn new(commit: &Commit, files: &ValueFiles) -> Self {
        let head = Head::of(&commit.transition.checkpoint, &commit.standing);
        Self {
            run: commit.run.clone(),
            epoch: signed(commit.epoch),
            read: signed(head.inbox_read),
            at: head.updated_at,
            digest: *head.digest.as_bytes(),
            status: head.status,
            why: head.why,
            due: commit.standing.due,
            release: commit.release,
            known_hold: signed(commit.known_hold),
            known_kin: commit.known_kin,
            large: large_values(&commit.transition.events),
            files: files.clone(),
            rows: RowsOf::encode(&commit.transition, commit.transcript.as_deref(), commit.snapshot),
        }
    }

    /// Commits it in the open transaction, or refuses it before anything changed.
    pub(super) fn apply(&self, db: &Connection, now: Timestamp) -> Done<Committed> {
        if let Some(error) = dedupe::taken_by_another(db, &self.run, &self.rows.drawn.keys)? {
            return Err(error.into());
        }
        files_are_there(&self.files, &self.large, &self.run.key)?;
        if !self.release && self.step(db)? == 1 {
            self.rows.insert(db, &self.run)?;
            return Ok(Committed { inbox: self.read.unsigned_abs(), has_kin: self.known_kin });
        }
        if self.move_head(db, now)? == 0 {
            return Err(self.refusal(db)?.into());
        }
        self.rows.insert(db, &self.run)?;
        // RETURNING would make a temporary table for each commit.
        let committed = db
            .prepare_cached("SELECT inbox, has_kin FROM head WHERE run = ?")?
            .query_row([self.run.number], |row| Ok(Committed { inbox: unsigned(row, 0)?, has_kin: row.get(1)? }))?;
        Ok(committed)
    }

    /// The step of most commits.
    fn step(&self, db: &Connection) -> rusqlite::Result<usize> {
        db.prepare_cached(LEAN)?.execute(params![
            self.run.number,
            self.epoch,
            self.rows.entry.seq(),
            self.digest,
            self.read,
            self.at.as_micros(),
            self.rows.drawn.clears_crashes,
            self.status.to_number(),
            self.why,
            self.rows.drawn.yields_to_hold,
            self.known_hold,
            self.known_kin,
        ])
    }

    fn move_head(&self, db: &Connection, now: Timestamp) -> rusqlite::Result<usize> {
        let drawn = &self.rows.drawn;
        db.prepare_cached(FULL)?.execute(params![
            self.run.number,
            self.epoch,
            self.rows.entry.seq(),
            self.digest,
            self.read,
            self.at.as_micros(),
            drawn.clears_crashes,
            self.status.to_number(),
            self.why,
            drawn.yields_to_cancel,
            self.release,
            self.due.map(Timestamp::as_micros),
            now.as_micros(),
            drawn.yields_to_hold,
            self.known_hold,
        ])
    }

    /// Why the guard held it back.
    fn refusal(&self, db: &Connection) -> Done<Error> {
        let holds = db
            .prepare_cached("SELECT 1 FROM head WHERE run = ? AND epoch = ? AND seq = ? - 1 AND holder IS NOT NULL")?
            .exists(params![self.run.number, self.epoch, self.rows.entry.seq()])?;
        let key = &self.run.key;
        if !holds {
            return Ok(refusals::lease_lost(key));
        }
        let newer = "SELECT 1 FROM hold WHERE n > ?";
        let unknown = self.rows.drawn.yields_to_hold && db.prepare_cached(newer)?.exists([self.known_hold])?;
        Ok(if unknown { refusals::hold_unknown(key) } else { refusals::cancel_unread(key) })
    }
}
