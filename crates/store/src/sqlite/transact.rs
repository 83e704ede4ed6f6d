//! One transaction for many pieces of work, each of which stands or falls alone.
//!
//! Work that is refused has changed nothing and lets the others be. When the database itself fails, all of it is rolled
//! back and each piece is tried in a transaction of its own: a damaged page or a value too large for the disk stops
//! only whoever needs it. An outcome that finds no room on the disk gets the reserve.

use std::path::{Path, PathBuf};

use lodestep_core::Error;
use rusqlite::Connection;

use super::failure::{explain, is_full, is_locked, unavailable};
use super::newest::Newest;
use super::reserve::{Reserve, Room};

/// A piece of work.
pub(super) trait Work: Send {
    /// Does it in the open transaction and keeps the outcome. It may be done again after a rollback.
    ///
    /// # Errors
    ///
    /// Only the database's own; a refusal is an outcome.
    fn run(&mut self, db: &Connection) -> rusqlite::Result<()>;

    /// Replaces the outcome.
    fn fail(&mut self, error: Error);

    /// What it may take when the disk is full.
    fn room(&self) -> Room;
}

/// What stands beside the database.
pub(super) struct Side {
    /// The database itself.
    pub(super) path: PathBuf,
    /// None in a store that is only read.
    pub(super) newest: Option<Newest>,
    pub(super) reserve: Option<Reserve>,
}

impl Side {
    /// Frees the reserve, when that may give this work the room that it did not find.
    fn makes_room(&self, error: &rusqlite::Error, works: &[&mut dyn Work]) -> bool {
        is_full(error)
            && works.iter().any(|work| work.room() == Room::Reserve)
            && self.reserve.as_ref().is_some_and(Reserve::spend)
    }
}

/// Another process is writing, and nothing was begun.
#[derive(Debug)]
pub(super) struct Locked;

impl Locked {
    pub(super) fn explain(&self, path: &Path) -> Error {
        unavailable(
            format!("another process keeps {} locked", path.display()),
            "let it finish or end it, then try again",
        )
    }
}

/// Does all of it in one transaction. Afterwards each piece has its outcome, and the connection is free for the next.
/// What was committed is in the record of commits before anybody learns it.
///
/// # Errors
///
/// [`Locked`] when the connection's patience ran out; then no piece has an outcome.
pub(super) fn transact(db: &Connection, works: &mut [&mut dyn Work], side: &Side) -> Result<(), Locked> {
    roll_back(db);
    match execute(db, "BEGIN IMMEDIATE") {
        Err(error) if is_locked(&error) => return Err(Locked),
        Err(error) if side.makes_room(&error, works) => return transact(db, works, side),
        Err(error) => {
            works.iter_mut().for_each(|work| work.fail(explain(&error, &side.path)));
            return Ok(());
        }
        Ok(()) => {}
    }
    let done = works.iter_mut().try_for_each(|work| work.run(db)).and_then(|()| commit(db, side.newest.as_ref()));
    let Err(error) = done else { return Ok(()) };
    roll_back(db);
    match works {
        [_] if side.makes_room(&error, works) => return transact(db, works, side),
        [only] => only.fail(explain(&error, &side.path)),
        many => many.iter_mut().for_each(|work| alone(db, *work, side)),
    }
    Ok(())
}

fn commit(db: &Connection, newest: Option<&Newest>) -> rusqlite::Result<()> {
    // Within the transaction: afterwards others may have committed more. What can't be counted is not recorded.
    let mark = newest.and_then(|newest| Some((newest, newest.mark(db).ok()?)));
    execute(db, "COMMIT")?;
    if let Some((newest, mark)) = mark {
        newest.note(&mark);
    }
    Ok(())
}

fn alone(db: &Connection, work: &mut dyn Work, side: &Side) {
    if let Err(locked) = transact(db, &mut [&mut *work], side) {
        work.fail(locked.explain(&side.path));
    }
}

/// Ends a transaction that a failure left open.
fn roll_back(db: &Connection) {
    if !db.is_autocommit() {
        // Some failures roll back by themselves; the one before says more than this one could.
        let _ = execute(db, "ROLLBACK");
    }
}

fn execute(db: &Connection, statement: &str) -> rusqlite::Result<()> {
    db.prepare_cached(statement)?.execute([]).map(drop)
}
