//! The write-ahead log's length, and when its pages are moved into the database.
//!
//! A checkpoint costs milliseconds, and dominates the slowest commits when it is taken in their way. So one is taken
//! beside them, by a thread and a connection of its own, when nothing was written for a moment and the log is worth it.
//! Beside a busy writer that would never catch up: a log that has grown to its cap, because there never was such a
//! moment, is restarted on the writing connection before anything else is written.
//!
//! No page of the log may be written over while somebody reads a state older than it. So a program that reads one state
//! for long makes the log as long as what is committed meanwhile. Once it is gone the next commits shorten the log; where
//! none come, the cleaner does.
//!
//! On a full disk nothing is committed that could shorten it, and its pages may be the very room that is missing: then the
//! cleaner cuts it, however short it is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lodestep_core::Result;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::failure::{explain, unavailable};
use super::open::log_name;
use super::settings;

/// Nothing was written for so long: the writer is idle.
const IDLE: Duration = Duration::from_millis(15);

/// Between two looks whether those are gone who read an old state and so kept the log beyond its cap.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// About 2 MiB: worth a checkpoint.
const LONG_PAGES: i32 = 500;

/// About 16 MiB: no commit before a checkpoint.
const MOST_PAGES: i32 = 4_000;

/// The bytes of the log beside a database; none while nobody uses it.
pub(super) fn log_bytes(database: &Path) -> u64 {
    std::fs::metadata(database.with_file_name(log_name(database))).map_or(0, |found| found.len())
}

/// What a checkpoint came to.
#[derive(Clone, Copy)]
struct Moved {
    /// The pages of the log.
    pages: i32,
    /// Are all of them in the database?
    is_whole: bool,
}

/// How long the cleaner left a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Within its cap, or worth nothing any more: the next commit writes over it.
    Short,
    /// Beyond its cap, by those who read an old state.
    BeyondCap,
}

/// The log of one store's writing connection.
#[derive(Debug)]
pub(super) struct Log {
    /// How long it was after the last commit of this connection; SQLite tells.
    pages: Arc<AtomicI32>,
    /// No commit before a checkpoint beyond it, where nobody reads an old state.
    most_pages: i32,
    /// From which length on nothing is written before a checkpoint. Rises while somebody reads an old state, so
    /// that not every commit tries in vain.
    cap: AtomicI32,
    commits: AtomicU64,
    /// Does the cleaner know that the log is long?
    told: AtomicBool,
    /// Is the disk full, so that the log's pages are wanted for something else?
    is_room_wanted: AtomicBool,
    is_closed: Mutex<bool>,
    woken: Condvar,
    /// Held during a checkpoint: SQLite would refuse a second one at once, and the log would outgrow its cap.
    checkpointing: Mutex<()>,
}

impl Default for Log {
    fn default() -> Self {
        Self::of_most(MOST_PAGES)
    }
}

impl Log {
    /// A log that is restarted when it is longer than this, in pages.
    pub(super) fn of_most(most_pages: i32) -> Self {
        Self {
            pages: Arc::default(),
            most_pages,
            cap: AtomicI32::new(most_pages),
            commits: AtomicU64::new(0),
            told: AtomicBool::new(false),
            is_room_wanted: AtomicBool::new(false),
            is_closed: Mutex::new(false),
            woken: Condvar::new(),
            checkpointing: Mutex::new(()),
        }
    }

    /// Where the connection's hook writes the length.
    pub(super) fn pages(&self) -> Arc<AtomicI32> {
        Arc::clone(&self.pages)
    }

    /// Counts a commit, and wakes the cleaner when the log has become long.
    pub(super) fn note_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.is_long() {
            self.tell();
        }
    }

    /// The disk is full: the cleaner gives back what the log holds of it, if nobody reads an old state. Returns at once.
    pub(super) fn give_room(&self) {
        self.is_room_wanted.store(true, Ordering::Relaxed);
        self.tell();
    }

    fn tell(&self) {
        if !self.told.swap(true, Ordering::Relaxed) {
            // Between its look and its wait the cleaner holds the lock: it is told before the one or after the other.
            drop(self.lock());
            self.woken.notify_all();
        }
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > self.cap.load(Ordering::Relaxed)
    }

    fn is_long(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > LONG_PAGES
    }

    /// A checkpoint on the writing connection, after which the log begins anew. Waits a little for readers of an old
    /// state.
    pub(super) fn restart(&self, db: &Connection) {
        if self.checkpoint(db, CheckpointMode::RESTART).is_some_and(|moved| moved.is_whole) {
            self.cap.store(self.most_pages, Ordering::Relaxed);
        } else {
            let pages = self.pages.load(Ordering::Relaxed);
            self.cap.store(pages.saturating_add(self.most_pages / 4), Ordering::Relaxed);
        }
    }

    /// The log's pages and those of them that are in the database. `None` after a failure, which is no matter: the log
    /// holds everything, and the next commit says what is wrong.
    fn checkpoint(&self, db: &Connection, mode: CheckpointMode) -> Option<Moved> {
        let _alone = self.checkpointing.lock().unwrap_or_else(PoisonError::into_inner);
        let (pages, moved) = db.wal_checkpoint_v2(None::<&str>, mode).ok()?;
        let moved = Moved { pages, is_whole: pages == moved };
        if moved.is_whole {
            self.pages.store(0, Ordering::Relaxed);
        }
        Some(moved)
    }

    /// The cleaner's thread: a checkpoint that waits for nobody, whenever a long log is let be for a moment; again and
    /// again while readers keep it beyond its cap.
    fn clean(&self, db: &Connection) {
        let mut seen = 0;
        let mut left = Left::Short;
        let mut is_closed = self.lock();
        while !*is_closed {
            let pause = match (self.told.load(Ordering::Relaxed), left) {
                (true, _) => IDLE,
                (false, Left::BeyondCap) => BETWEEN_LOOKS,
                (false, Left::Short) => {
                    is_closed = self.woken.wait(is_closed).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            };
            is_closed = self.woken.wait_timeout(is_closed, pause).unwrap_or_else(PoisonError::into_inner).0;
            let commits = self.commits.load(Ordering::Relaxed);
            if std::mem::replace(&mut seen, commits) != commits || *is_closed {
                continue;
            }
            drop(is_closed);
            self.told.store(false, Ordering::Relaxed);
            left = self.shorten(db);
            is_closed = self.lock();
        }
    }

    /// A checkpoint that waits for nobody. Of a log within its cap the next commit writes over what is in the database,
    /// and what a reader or a commit beside it left is for the next time that it is long; one beyond it, or whose room is
    /// wanted, is cut to nothing.
    fn shorten(&self, db: &Connection) -> Left {
        let is_room_wanted = self.is_room_wanted.swap(false, Ordering::Relaxed);
        let Some(moved) = self.checkpoint(db, CheckpointMode::PASSIVE) else { return Left::Short };
        let is_beyond_cap = moved.pages > self.most_pages;
        if !is_beyond_cap && !is_room_wanted {
            return Left::Short;
        }
        let is_cut = || self.checkpoint(db, CheckpointMode::TRUNCATE).is_some_and(|moved| moved.is_whole);
        // Whoever wants room asks again.
        if moved.is_whole && is_cut() || !is_beyond_cap { Left::Short } else { Left::BeyondCap }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that keeps a log short. Dropping it ends the thread.
pub(super) struct Cleaner {
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl Cleaner {
    pub(super) fn start(path: &Path, log: Arc<Log>) -> Result<Self> {
        let db = settings::cleaner(path).map_err(|error| explain(&error, path))?;
        let cleaned = Arc::clone(&log);
        let thread = std::thread::Builder::new()
            .name("lodestep-log".to_owned())
            .spawn(move || cleaned.clean(&db))
            .map_err(|error| unavailable(format!("no thread can be started: {error}"), "end other programs"))?;
        Ok(Self { log, thread: Some(thread) })
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        *self.log.lock() = true;
        self.log.woken.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Instant;

    use super::*;

    /// A database with a log of 100 KB, which is short.
    pub fn with_log(path: &Path) -> Connection {
        let db = Connection::open(path).expect("opened");
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE one (bytes BLOB);
             INSERT INTO one VALUES (randomblob(100000));",
        )
        .expect("written");
        assert!(log_bytes(path) > 100_000);
        db
    }

    /// Waits until nothing is left of the log.
    pub fn is_cut(path: &Path) {
        let long = Instant::now() + Duration::from_secs(30);
        while log_bytes(path) > 0 {
            assert!(Instant::now() < long, "the log has {} bytes for ever", log_bytes(path));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_log_whose_room_is_wanted_is_cut_though_it_is_short_and_nothing_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let db = with_log(&path);
        let log = Arc::new(Log::default());
        let _cleaner = Cleaner::start(&path, Arc::clone(&log)).expect("started");
        log.give_room();
        is_cut(&path);
        let bytes = db.query_row("SELECT length(bytes) FROM one", [], |row| row.get::<_, i64>(0));
        assert_eq!(bytes, Ok(100_000), "nothing is lost");
    }
}
