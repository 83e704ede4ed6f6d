//! The disk of a simulated machine, with the one store on it, and what is left of both when processes die.
//!
//! A store in memory is one object that all processes share. One in SQLite is a file, which each process opens for
//! itself, in a folder that is removed with the simulation.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestep_core::{Error, Result};
use lodestep_store::{Clock, MemoryStore, SqliteStore, Store, WorkerId};
use tempfile::TempDir;

use super::clock::SimClock;

/// In memory, where there is such a place: thousands of stories would wear a real disk, and what it keeps of a power
/// loss is not what is played here.
const QUICK: &str = "/dev/shm";

/// What a simulation's store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// The reference implementation.
    #[default]
    Memory,
    /// One file, and each process has its own connections and locks.
    Sqlite,
}

/// The disk.
pub(super) enum Disk {
    Memory(MemoryStore),
    Sqlite(Files),
}

/// A store's files, and how often the machine was started.
pub(super) struct Files {
    clock: Arc<SimClock>,
    folder: TempDir,
    boots: Mutex<u32>,
}

/// The store as one process has it open.
pub(super) enum Opened {
    Memory(MemoryStore),
    Sqlite(Box<SqliteStore>),
}

impl Disk {
    /// An empty one.
    pub(super) fn new(kind: StoreKind, clock: &Arc<SimClock>) -> Result<Self> {
        match kind {
            StoreKind::Memory => Ok(Self::Memory(MemoryStore::new(clock.clone()))),
            StoreKind::Sqlite => {
                let named = |builder: &mut tempfile::Builder| builder.prefix("lodestep-simulated-").tempdir_in(QUICK);
                let folder = named(&mut tempfile::Builder::new()).or_else(|_| tempfile::tempdir()).map_err(broken)?;
                Ok(Self::Sqlite(Files { clock: clock.clone(), folder, boots: Mutex::new(0) }))
            }
        }
    }

    /// Opens the store, for a process or for whoever looks from outside.
    pub(super) fn open(&self) -> Result<Opened> {
        match self {
            Self::Memory(store) => Ok(Opened::Memory(store.clone())),
            Self::Sqlite(files) => {
                let clock: Arc<dyn Clock> = files.clock.clone();
                let store = SqliteStore::open_simulated(&files.place(*files.boots()).join("store.db"), clock)?;
                Ok(Opened::Sqlite(Box::new(store)))
            }
        }
    }

    /// The machine stops and starts again: what is in the files is there, and nothing else. No process may have the
    /// store open.
    pub(super) fn restart(&self) -> Result<()> {
        if let Self::Sqlite(files) = self {
            let mut boots = files.boots();
            let (before, after) = (files.place(*boots), files.place(*boots + 1));
            copy(&before, &after).and_then(|()| fs::remove_dir_all(&before)).map_err(broken)?;
            *boots += 1;
        }
        Ok(())
    }
}

impl Files {
    fn place(&self, boot: u32) -> PathBuf {
        self.folder.path().join(boot.to_string())
    }

    fn boots(&self) -> MutexGuard<'_, u32> {
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    pub(super) fn store(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::Sqlite(store) => store.as_ref(),
        }
    }

    /// The process that has it open is dead, with these workers.
    pub(super) fn die(&self, workers: &[WorkerId]) {
        match self {
            Self::Memory(store) => workers.iter().for_each(|worker| store.kill(worker)),
            Self::Sqlite(store) => {
                if let Err(error) = store.die() {
                    // A simulation in which a process can't die shows nothing.
                    panic!("no process can be ended: {error}");
                }
            }
        }
    }
}

/// All but what lives in the memory of processes.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let (source, target) = (entry.as_ref().map(fs::DirEntry::path), entry.as_ref().map(fs::DirEntry::file_name));
        let (Ok(source), Ok(name)) = (source, target) else { continue };
        match source.is_dir() {
            true => copy(&source, &to.join(name))?,
            false if name.to_string_lossy().ends_with("-shm") => {}
            false => fs::copy(&source, to.join(name)).map(drop)?,
        }
    }
    Ok(())
}

fn broken(error: io::Error) -> Error {
    Error::new(
        "simulation.broken",
        format!("no files can be made: {error}"),
        "make room in the folder for temporary files",
    )
}
