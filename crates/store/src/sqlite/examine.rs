//! What a doctor asks of a store: facts about its place and its file, read without changing a byte of either.
//!
//! What they mean, and what to do about it, is said by whoever asks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lodestep_core::{Result, Timestamp};
use rusqlite::Connection;

use super::failure::{Done, explain};
use super::file_system::FileSystem;
use super::log::log_bytes;
use super::migrate::MIGRATIONS;
use super::owner;
use super::place::Place;
use super::reserve::{Reserve, Reserved};
use super::row::{time, unsigned};
use super::witness::{self, Testimony};
use super::worker::{Life, Workers};
use super::{SqliteStore, value};

/// Where a store is or would be; it need not be one that can be opened.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The database, free of links as far as it is there.
    pub database: PathBuf,
    /// What it stands on.
    pub file_system: FileSystem,
    /// Bytes that this user can still write there; `None` where the system does not tell.
    pub free_bytes: Option<u64>,
    /// The room that is held back for outcomes.
    pub reserve: Reserved,
    /// What is the store's own and others than its owner may look into or change, with its mode.
    pub open_to_others: Vec<(PathBuf, u32)>,
    /// The bytes of the write-ahead log.
    pub log_bytes: u64,
}

/// The state of a store's file, and of who works with it.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The format of its tables, and the newest that this build reads.
    pub format: (usize, usize),
    /// How it is written: `wal` for a store.
    pub journal_mode: String,
    /// Bytes that are free in it.
    pub free_bytes: u64,
    /// What the witness beside it says.
    pub testimony: Testimony,
    /// Its workers.
    pub workers: Vec<WorkerState>,
    /// When a run was last committed; `None` without one.
    pub last_commit: Option<Timestamp>,
}

/// A worker that the store knows.
#[derive(Clone, Debug)]
pub struct WorkerState {
    /// Its id.
    pub id: String,
    /// Its process.
    pub pid: u32,
    /// How it is.
    pub life: Life,
    /// How many runs it holds.
    pub runs: u64,
}

/// Looks at the place of a store. Whether there is a sound one is not asked.
pub fn ground(path: &Path) -> Ground {
    let database = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let place = Place::beside(database);
    let folder = place.database.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let free = rustix::fs::statvfs(folder).ok().map(|found| found.f_bavail * found.f_frsize);
    let open_to_others = owner::narrowed(&place).filter_map(|path| {
        let mode = fs::symlink_metadata(&path).ok().filter(|found| !found.is_symlink())?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some((path, mode))
    });
    Ground {
        file_system: FileSystem::of(folder),
        free_bytes: free,
        reserve: Reserve::of(&place).state(),
        open_to_others: open_to_others.collect(),
        log_bytes: log_bytes(&place.database),
        database: place.database.clone(),
    }
}

impl SqliteStore {
    /// The state of its file and of its workers, of one moment.
    ///
    /// # Errors
    ///
    /// `store.corrupt` when that can't be read.
    pub fn condition(&self) -> Result<Condition> {
        let db = (self.reader)(&self.path).map_err(|error| explain(&error, &self.path))?;
        self.condition_in(&db).map_err(|failure| failure.explain(&self.path))
    }

    fn condition_in(&self, db: &Connection) -> Done<Condition> {
        let moment = db.unchecked_transaction()?;
        let format = moment.query_row("PRAGMA user_version", [], |row| unsigned(row, 0))?;
        Ok(Condition {
            format: (usize::try_from(format).unwrap_or(usize::MAX), MIGRATIONS.len()),
            journal_mode: journal_mode(&self.path)?,
            free_bytes: super::compact::free_bytes(&moment)?,
            testimony: witness::testimony(&moment, &self.place)?,
            workers: workers(&moment, &self.workers, self.clock.boot_us())?,
            last_commit: moment.query_row("SELECT max(updated_at), count(*) FROM head", [], |row| {
                if row.get::<_, i64>(1)? == 0 { Ok(None) } else { time(row, 0).map(Some) }
            })?,
        })
    }

    /// The files of large values whose bytes are not what their names say. Reads them all; `seen` is told how many were
    /// read, of how many.
    ///
    /// # Errors
    ///
    /// `store.unavailable` when a folder or a file can't be read.
    pub fn altered_values(&self, mut seen: impl FnMut(usize, usize)) -> Result<Vec<String>> {
        let all = self.values.all()?;
        let mut altered = Vec::new();
        for (place, (digest, _)) in all.iter().enumerate() {
            seen(place, all.len());
            if self.values.read(digest)?.is_some_and(|bytes| lodestep_core::Digest::of(&bytes) != *digest) {
                altered.push(digest.to_hex());
            }
        }
        Ok(altered)
    }
}

/// As the header says: a connection that reads a file at rest would tell another one.
fn journal_mode(path: &Path) -> Done<String> {
    use std::io::Read as _;
    let mut header = [0; 20];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(|error| value::unreadable(path, &error))?;
    Ok(if header[18..20] == [2, 2] { "wal" } else { "delete" }.to_owned())
}

fn workers(db: &Connection, workers: &Workers, boot_us: u64) -> Done<Vec<WorkerState>> {
    let mut statement =
        db.prepare("SELECT id, pid, (SELECT count(*) FROM head WHERE holder = worker.id) FROM worker ORDER BY id")?;
    let known = Workers::others(db, "")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, unsigned(row, 2)?)))?;
    let mut states = Vec::new();
    for row in rows {
        let (id, pid, runs) = row?;
        let life = workers.life(&known, &id, boot_us);
        states.push(WorkerState { id, pid, life, runs });
    }
    Ok(states)
}
