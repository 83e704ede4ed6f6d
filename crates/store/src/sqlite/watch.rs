//! Hints from other processes, and from the clock: a thread that looks every 20 ms while somebody listens.
//!
//! It gives one when some run is due, a message has come or a worker has died since it last looked; a plain step of
//! another process makes it look, and no more. An idle look is one read of shared memory.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::failure::Done;
use super::hold;
use super::settings;
use super::worker::{Known, Workers};
use crate::changes::Changes;
use crate::clock::Clock;

/// With what a look and a wake-up take, this stays within 50 ms.
const LOOK: Duration = Duration::from_millis(20);

/// Workers are looked at every so many looks: 200 ms, and a takeover well within a second.
const LOOKS_PER_PROBE: u64 = 10;

/// The watching thread; started when somebody first listens. Dropping it ends the thread.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    path: PathBuf,
    changes: Changes,
    clock: Arc<dyn Clock>,
    workers: Arc<Workers>,
    is_closed: Mutex<bool>,
    woken: Condvar,
}

impl Watch {
    pub(super) fn new(path: PathBuf, changes: Changes, clock: Arc<dyn Clock>, workers: Arc<Workers>) -> Self {
        let shared = Shared { path, changes, clock, workers, is_closed: Mutex::new(false), woken: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Sees that the thread runs. When none can be started, local hints still come.
    pub(super) fn wake(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let started = std::thread::Builder::new().name("lodestep-watch".to_owned()).spawn(move || shared.watch());
            *thread = started.ok();
        }
        self.shared.woken.notify_all();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.shared.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.woken.notify_all();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn watch(&self) {
        let mut eye: Option<Eye> = None;
        while self.pause() {
            // A look that fails hints: whoever then looks properly learns what is wrong.
            let hint = match &mut eye {
                Some(eye) => self.look(eye).unwrap_or(true),
                None => {
                    eye = settings::reader(&self.path).ok().map(Eye::new);
                    true
                }
            };
            if hint {
                self.changes.notify();
            }
        }
    }

    /// Waits for the next look, and as long as nobody listens; false when the store has ended.
    fn pause(&self) -> bool {
        let mut is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return false;
        }
        is_closed = self.woken.wait_timeout(is_closed, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        while !*is_closed && !self.changes.has_listeners() {
            is_closed = self.woken.wait(is_closed).unwrap_or_else(PoisonError::into_inner);
        }
        !*is_closed
    }

    fn look(&self, eye: &mut Eye) -> Done<bool> {
        let now = self.clock.wall().as_micros();
        let changed = eye.refresh()?;
        let holds_changed = self.changes.sees_holds(eye.holds);
        let is_due = eye.next_due.is_some_and(|due| due <= now);
        // A run whose time has come by the clock alone is told once.
        let hint = holds_changed || (is_due && (changed || !eye.told_due)) || eye.message_is_new();
        eye.told_due = is_due;
        eye.looks += 1;
        let probes = eye.looks.is_multiple_of(LOOKS_PER_PROBE);
        Ok(hint || (probes && !self.workers.dead(&eye.known, self.clock.boot_us()).is_empty()))
    }
}

/// What was last seen.
struct Eye {
    db: Connection,
    looks: u64,
    version: Option<i64>,
    next_due: Option<i64>,
    told_due: bool,
    newest_message: Option<i64>,
    told_message: Option<i64>,
    known: Vec<Known>,
    holds: u64,
}

impl Eye {
    fn new(db: Connection) -> Self {
        Self {
            db,
            looks: 0,
            version: None,
            next_due: None,
            told_due: false,
            newest_message: None,
            told_message: None,
            known: Vec::new(),
            holds: 0,
        }
    }

    /// Reads anew if anything was written since; true then.
    fn refresh(&mut self) -> Done<bool> {
        let version: i64 = self.db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.version == Some(version) {
            return Ok(false);
        }
        self.next_due = self
            .db
            .prepare_cached("SELECT min(due_at) FROM head WHERE due_at IS NOT NULL")?
            .query_row([], |row| row.get(0))?;
        self.newest_message = self.db.prepare_cached("SELECT max(n) FROM message")?.query_row([], |row| row.get(0))?;
        self.known = Workers::others(&self.db, "")?;
        self.holds = hold::version(&self.db)?;
        self.version = Some(version);
        Ok(true)
    }

    fn message_is_new(&mut self) -> bool {
        let is_new = self.newest_message != self.told_message;
        self.told_message = self.newest_message;
        is_new
    }
}
