//! Workers, and whether they live: each holds a lock on a file of its own, which the system lets go of when its
//! process dies, however it dies.
//!
//! Lock free, or another boot: dead, at once. Lock held: dead only once its lease ran out, for a process that hangs. A
//! lock file gets its name when it is locked already, so that nobody ever finds one unlocked that is about to live.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lodestep_core::{Digest, Result, Timestamp};
use rusqlite::{Connection, params};
use rustix::fs::{FlockOperation, flock};

use super::failure::{Done, unavailable};
use super::row::{signed, unsigned};
use crate::store::WorkerId;

/// The workers of one store, as this process sees them.
pub(super) struct Workers {
    folder: PathBuf,
    boot_id: String,
    host: String,
    /// The locks of this process's own, held while they are in here.
    own: Mutex<HashMap<String, File>>,
}

/// How a worker is, as far as another process can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Its process lives, and renews its lease.
    Alive,
    /// Its process lives, and its lease has ended: the next claim takes its runs.
    Hanging,
    /// Its process is gone: the next claim takes its runs.
    Dead,
}

/// What the table says of a worker.
pub(super) struct Known {
    id: String,
    boot_id: String,
    lease_until_us: u64,
}

impl Workers {
    pub(super) fn new(folder: PathBuf) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { folder, boot_id: boot_id(), host, own: Mutex::default() }
    }

    /// Makes and locks the file of a new worker.
    pub(super) fn lock_new(&self, boot_us: u64) -> Result<WorkerId> {
        let failed = |error: io::Error| {
            let what = format!("a worker's lock can't be made in {}: {error}", self.folder.display());
            unavailable(what, "check the folder's permissions and the room on its disk")
        };
        let mut attempt = 0_u64;
        loop {
            let seed = [u64::from(std::process::id()), boot_us, attempt].map(u64::to_le_bytes).concat();
            let id = Digest::over("lodestep worker", &[self.boot_id.as_bytes(), &seed]).to_hex()[..12].to_owned();
            match self.make_lock(&id) {
                Ok(file) => {
                    self.own().insert(id.clone(), file);
                    return Ok(WorkerId(id));
                }
                // Two in one microsecond, or an old one's that was left.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1_000 => attempt += 1,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn make_lock(&self, id: &str) -> io::Result<File> {
        let (draft, name) = (self.folder.join(format!("{id}.new")), self.lock_file(id));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from);
        // hard_link, unlike rename, never takes the place of another's.
        let named = locked.and_then(|()| fs::hard_link(&draft, &name));
        fs::remove_file(&draft)?;
        named.map(|()| file)
    }

    /// Adds it to the table.
    pub(super) fn insert(&self, db: &Connection, worker: &WorkerId, lease_until_us: u64) -> Done<()> {
        let pid = std::process::id();
        db.prepare_cached("INSERT INTO worker (id, pid, host, boot_id, lease_until_us) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![worker.0, pid, self.host, self.boot_id, signed(lease_until_us)])?;
        Ok(())
    }

    /// Lets go of a worker's lock, as the death of its process would.
    pub(super) fn let_go(&self, worker: &WorkerId) {
        self.own().remove(&worker.0);
    }

    /// Lets go of every lock.
    pub(super) fn let_go_of_all(&self) {
        self.own().clear();
    }

    /// Removes a dead or retired worker's files; the tools' file only once nobody holds it.
    pub(super) fn remove_files(&self, id: &str) {
        self.own().remove(id);
        // What can't be removed now is swept later.
        let _ = fs::remove_file(self.lock_file(id));
        let tools = self.tools_file(id);
        if is_free(&tools, FlockOperation::NonBlockingLockExclusive) {
            let _ = fs::remove_file(tools);
        }
    }

    /// Removes the files of workers that the table does not know, as a crash may leave them.
    pub(super) fn sweep(&self, db: &Connection) -> Done<()> {
        for file in self.leftovers(db)? {
            // What can't be removed now is swept later.
            let _ = fs::remove_file(file);
        }
        Ok(())
    }

    /// The files of workers that the table does not know and that nobody holds. One that somebody may still use is not
    /// even tried: the try itself is a lock.
    pub(super) fn leftovers(&self, db: &Connection) -> Done<Vec<PathBuf>> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(Vec::new()) };
        let mut leftovers = Vec::new();
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            let Some((id, "lock" | "tools")) = name.split_once('.') else { continue };
            // left_by has no index: the second half is looked at for a dead worker's file only.
            let named = "SELECT 1 FROM worker WHERE id = ?1 UNION ALL SELECT 1 FROM head WHERE left_by = ?1";
            if self.own().contains_key(id) || db.prepare_cached(named)?.exists([id])? {
                continue;
            }
            let file = self.folder.join(&name);
            if is_free(&file, FlockOperation::NonBlockingLockExclusive) {
                leftovers.push(file);
            }
        }
        Ok(leftovers)
    }

    /// How a worker that the table knows is.
    pub(super) fn life(&self, known: &[Known], id: &str, boot_us: u64) -> Life {
        match known.iter().find(|worker| worker.id == id) {
            Some(worker) if self.is_dead(worker) => Life::Dead,
            Some(worker) if worker.lease_until_us <= boot_us => Life::Hanging,
            Some(_) => Life::Alive,
            None => Life::Dead,
        }
    }

    /// The workers that live, of whatever process.
    pub(super) fn living(&self, db: &Connection) -> Done<Vec<String>> {
        let known = Self::others(db, "")?;
        Ok(known.into_iter().filter(|worker| !self.is_dead(worker)).map(|worker| worker.id).collect())
    }

    pub(super) fn tools_file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.tools"))
    }

    fn lock_file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.lock"))
    }

    /// The workers that the table knows, but for one.
    pub(super) fn others(db: &Connection, but: &str) -> Done<Vec<Known>> {
        let mut statement = db.prepare_cached("SELECT id, boot_id, lease_until_us FROM worker WHERE id <> ?")?;
        let rows = statement.query_map([but], |row| {
            Ok(Known { id: row.get(0)?, boot_id: row.get(1)?, lease_until_us: unsigned(row, 2)? })
        })?;
        Ok(rows.collect::<Result<Vec<_>, _>>()?)
    }

    /// Those of them that are dead, or hang beyond their lease.
    pub(super) fn dead<'a>(&self, known: &'a [Known], boot_us: u64) -> Vec<&'a str> {
        let dead = known.iter().filter(|worker| self.is_dead(worker) || worker.lease_until_us <= boot_us);
        dead.map(|worker| worker.id.as_str()).collect()
    }

    fn is_dead(&self, worker: &Known) -> bool {
        worker.boot_id != self.boot_id || !self.is_alive(&worker.id)
    }

    /// Is a worker's lock held? A boot lets go of all of them.
    pub(super) fn is_alive(&self, id: &str) -> bool {
        self.own().contains_key(id) || !is_free(&self.lock_file(id), FlockOperation::NonBlockingLockShared)
    }

    fn own(&self) -> MutexGuard<'_, HashMap<String, File>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees what dead workers held and forgets them, in the open transaction; returns who they were.
pub(super) fn bury(
    db: &Connection,
    workers: &Workers,
    claimer: &WorkerId,
    now: Timestamp,
    boot_us: u64,
) -> Done<Vec<String>> {
    let known = Workers::others(db, &claimer.0)?;
    let dead = workers.dead(&known, boot_us);
    for id in &dead {
        // A worker that died before its first transition did nothing: whose tools may still live is the one before.
        db.prepare_cached(
            "UPDATE head SET due_at = ?, left_by = coalesce(left_by, holder), holder = NULL WHERE holder = ?",
        )?
        .execute(params![now.as_micros(), id])?;
        db.prepare_cached("DELETE FROM worker WHERE id = ?")?.execute([id])?;
    }
    Ok(dead.into_iter().map(str::to_owned).collect())
}

/// Does nobody hold a lock on this file that excludes this one? A missing file has no holder; one that can't be
/// looked at is taken for held.
fn is_free(path: &Path, lock: FlockOperation) -> bool {
    match File::open(path) {
        Ok(file) => flock(&file, lock).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The machine's boot, where it tells; elsewhere locks alone decide, and a boot frees them all.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}
