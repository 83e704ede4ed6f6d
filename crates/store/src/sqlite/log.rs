//! The write-ahead log's length: when its pages are moved into the database.
//!
//! A checkpoint costs milliseconds, and dominates the slowest commits when it is taken in their way. So it is taken
//! when nothing was written for a moment and the log is worth it. A log that has grown to its cap, because there never
//! was such a moment, is restarted before anything else is written. Both on the writing connection: beside a busy
//! writer, a checkpoint on another connection never catches up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

/// Nothing was written for so long: the writer is idle.
pub(super) const IDLE: Duration = Duration::from_millis(15);

/// About 2 MiB: worth a checkpoint.
const LONG_PAGES: i32 = 500;

/// About 16 MiB: no commit before a checkpoint.
const MOST_PAGES: i32 = 4_000;

/// The log of one connection.
pub(super) struct Log {
    /// How long it was after the last commit of this connection; SQLite tells.
    pages: Arc<AtomicI32>,
    /// From which length on nothing is written before a checkpoint. Rises while somebody reads an old state, so
    /// that not every commit tries in vain.
    cap: AtomicI32,
    commits: AtomicU64,
    /// The number of commits when idleness was last asked for.
    asked: AtomicU64,
    /// The number of commits at the last checkpoint that could not be finished.
    tried: AtomicU64,
    /// Does the writer know that the log is long?
    told: AtomicBool,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            pages: Arc::default(),
            cap: AtomicI32::new(MOST_PAGES),
            commits: AtomicU64::new(1),
            asked: AtomicU64::new(0),
            tried: AtomicU64::new(0),
            told: AtomicBool::new(false),
        }
    }
}

impl Log {
    /// Where the connection's hook writes the length.
    pub(super) fn pages(&self) -> Arc<AtomicI32> {
        Arc::clone(&self.pages)
    }

    /// Counts a commit; true when the writer should look, because the log has just become long or is overdue.
    pub(super) fn note_commit(&self) -> bool {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.is_overdue() || (self.is_long() && !self.told.swap(true, Ordering::Relaxed))
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > self.cap.load(Ordering::Relaxed)
    }

    /// Is a checkpoint worth while, and can it come to more than the last one?
    pub(super) fn is_long(&self) -> bool {
        let is_new = self.commits.load(Ordering::Relaxed) != self.tried.load(Ordering::Relaxed);
        is_new && self.pages.load(Ordering::Relaxed) > LONG_PAGES
    }

    /// Was nothing committed since this was last asked?
    pub(super) fn is_idle(&self) -> bool {
        let commits = self.commits.load(Ordering::Relaxed);
        self.asked.swap(commits, Ordering::Relaxed) == commits
    }

    /// A checkpoint that waits for nobody.
    pub(super) fn clean(&self, db: &Connection) {
        self.checkpoint(db, CheckpointMode::PASSIVE);
        self.tried.store(self.commits.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// A checkpoint after which the log begins anew. Waits a little for readers of an old state.
    pub(super) fn restart(&self, db: &Connection) {
        if self.checkpoint(db, CheckpointMode::RESTART) {
            self.cap.store(MOST_PAGES, Ordering::Relaxed);
        } else {
            let pages = self.pages.load(Ordering::Relaxed);
            self.cap.store(pages.saturating_add(MOST_PAGES / 4), Ordering::Relaxed);
        }
    }

    /// True when the whole log is in the database. A failure is no matter: the log holds everything, and the next
    /// commit says what is wrong.
    fn checkpoint(&self, db: &Connection, mode: CheckpointMode) -> bool {
        self.told.store(false, Ordering::Relaxed);
        let is_whole = matches!(db.wal_checkpoint_v2(None::<&str>, mode), Ok((length, moved)) if length == moved);
        if is_whole {
            self.pages.store(0, Ordering::Relaxed);
        }
        is_whole
    }
}
