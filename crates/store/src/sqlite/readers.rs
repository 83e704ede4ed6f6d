//! A few reading connections. A read takes microseconds from the page cache, less than a hand-over to another thread
//! would: it happens where it is called.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use lodestep_core::Result;
use rusqlite::Connection;

use super::failure::{Done, explain};
use super::settings::Reader;

/// More than the threads of a machine that read at the same instant are rare; who finds none free waits for one.
const COUNT: usize = 3;

/// The reading connections.
pub(super) struct Readers {
    connections: Vec<Mutex<Connection>>,
}

impl Readers {
    /// Opens them; `open` makes one.
    pub(super) fn open(path: &Path, open: Reader) -> Result<Self> {
        let connections = (0..COUNT).map(|_| open(path).map(Mutex::new)).collect::<Result<_, _>>();
        Ok(Self { connections: connections.map_err(|error| explain(&error, path))? })
    }

    /// Reads; each statement sees the newest state.
    pub(super) fn read<T>(&self, path: &Path, act: impl FnOnce(&Connection) -> Done<T>) -> Result<T> {
        act(&self.free()).map_err(|failure| failure.explain(path))
    }

    /// Reads; all statements see the state of one moment.
    pub(super) fn read_one_moment<T>(&self, path: &Path, act: impl FnOnce(&Connection) -> Done<T>) -> Result<T> {
        self.read(path, |db| {
            // Dropped, it ends: there is nothing to commit.
            let moment = db.unchecked_transaction()?;
            act(&moment)
        })
    }

    /// Replaces every connection by one that `open` makes; returns those before.
    pub(super) fn replace(&self, open: impl Fn() -> rusqlite::Result<Connection>) -> rusqlite::Result<Vec<Connection>> {
        let each = self.connections.iter().map(|held| held.lock().unwrap_or_else(PoisonError::into_inner));
        each.map(|mut held| Ok(std::mem::replace(&mut *held, open()?))).collect()
    }

    fn free(&self) -> MutexGuard<'_, Connection> {
        for connection in &self.connections {
            match connection.try_lock() {
                Ok(free) => return free,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.connections[0].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
