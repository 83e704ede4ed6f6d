//! A store whose process is simulated: several of them live in one real process, on one thread, and die one by one.
//!
//! Nothing happens but what its callers do: no thread commits, checkpoints or watches, so that what is done in which
//! order is theirs to say. All else is that of any store: its connections, its transactions, its locks, its files.

use std::path::Path;
use std::sync::Arc;

use lodestep_core::Result;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::failure::explain;
use super::log::Log;
use super::open::Parts;
use super::place::Place;
use super::reserve::Reserve;
use super::settings::{self, Patience};
use super::witness::Witness;
use super::writer::Writer;
use super::{SqliteStore, hold, open};
use crate::clock::Clock;

/// Short, so that a story of a few hundred commits has checkpoints in it.
const MOST_PAGES: i32 = 120;

impl SqliteStore {
    /// Opens the store at a path, or makes it, for a simulated process. It gives hints of its own changes alone; whoever
    /// simulates hands them on.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_simulated(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let place = Place::prepare(path)?;
        let (patience, log) = (Patience::default(), Arc::new(Log::of_most(MOST_PAGES)));
        let (db, side) = open::open(&place, &patience, log.pages())?;
        let parts = Parts {
            reader: settings::reader,
            witness: Some(Witness::at(place.witness())),
            reserve: Reserve::of(&place),
            watches: false,
            cleaner: None,
            writer: Writer::without_thread(db, side, patience, log),
            at_rest: None,
        };
        Self::of(place, clock, parts)
    }

    /// Does to the store what kill -9 of its process does: locks are let go of, and connections end without a
    /// checkpoint and without a word to the witness. Every call fails from then on. For one that is simulated.
    ///
    /// # Errors
    ///
    /// `store.unavailable` when a connection can't be replaced; it is alive then.
    pub fn die(&self) -> Result<()> {
        let die = || {
            let mut ended = self.readers.replace(Connection::open_in_memory)?;
            ended.push(self.writer.replace(Connection::open_in_memory()?));
            // Without it, the last connection of all would move the log into the database.
            ended.iter().try_for_each(|db| db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop))
        };
        die().map_err(|error| explain(&error, &self.path))?;
        self.workers.let_go_of_all();
        self.changes.notify();
        Ok(())
    }

    /// Learns of the holds what a watching thread would tell.
    pub(super) fn look_at_holds(&self) {
        if let Ok(version) = self.readers.read(&self.path, |db| Ok(hold::version(db)?)) {
            self.changes.sees_holds(version);
        }
    }
}
