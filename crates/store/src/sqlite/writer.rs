//! The one writing connection, and how it is shared: on the caller's thread when it is free, else by a thread that
//! drains the whole queue into one transaction.
//!
//! Handing work to another thread costs more than the work: a lone run commits where it is called. When many runs
//! commit at once, what queued up while the last sync ran becomes the next transaction. Nothing ever waits for company,
//! and there is no largest batch.
//!
//! A call blocks its thread for one sync at most. A future that is dropped may still take effect.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lodestep_core::{Error, Result};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::{Done, Failure, unavailable};
use super::log::Log;
use super::reserve::Room;
use super::settings::Patience;
use super::transact::{Locked, Side, Work, transact};

/// The owner of the writing connection. Dropping it ends its thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    db: Mutex<Connection>,
    side: Side,
    patience: Patience,
    log: Arc<Log>,
    queue: Mutex<Queue>,
    /// How long the queue is, to be asked without its lock.
    queued: AtomicUsize,
    arrived: Condvar,
    /// Callers that let others go first.
    polite: AtomicUsize,
    /// The run that committed last.
    last: AtomicI64,
}

#[derive(Default)]
struct Queue {
    works: Vec<Box<dyn Queued>>,
    is_closed: bool,
}

/// Work whose outcome somebody waits for.
trait Queued: Work {
    fn answer(self: Box<Self>);
}

/// An act, what came of it, and who wants to know.
struct Act<T, F> {
    act: F,
    room: Room,
    outcome: Option<Result<T>>,
    reply: Option<oneshot::Sender<Answer<T, F>>>,
}

/// The outcome, and the act itself: whoever made it frees it. What one thread allocates and another frees makes
/// both wait for the allocator.
type Answer<T, F> = (Option<Result<T>>, F);

impl<T: Send, F: FnMut(&Connection) -> Done<T> + Send> Work for Act<T, F> {
    fn run(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.outcome = Some(match (self.act)(db) {
            Ok(value) => Ok(value),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Broken(error)) => return Err(error),
        });
        Ok(())
    }

    fn fail(&mut self, error: Error) {
        self.outcome = Some(Err(error));
    }

    fn room(&self) -> Room {
        self.room
    }
}

impl<T: Send, F: FnMut(&Connection) -> Done<T> + Send> Queued for Act<T, F> {
    fn answer(mut self: Box<Self>) {
        if let Some(reply) = self.reply.take() {
            // Nobody listens any more when the future was dropped.
            let _ = reply.send((self.outcome, self.act));
        }
    }
}

impl Writer {
    /// Takes the connection and starts the thread.
    pub(super) fn start(db: Connection, side: Side, patience: Patience, log: Arc<Log>) -> Result<Self> {
        let shared = Arc::new(Shared::new(db, side, patience, log));
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("lodestep-writer".to_owned())
            .spawn(move || served.serve())
            .map_err(|error| unavailable(format!("no thread can be started: {error}"), "end other programs"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes the connection and starts no thread: every act is done where it is called, also when others wait. For
    /// callers on one thread.
    pub(super) fn without_thread(db: Connection, side: Side, patience: Patience, log: Arc<Log>) -> Self {
        Self { shared: Arc::new(Shared::new(db, side, patience, log)), thread: None }
    }

    /// Replaces the connection; returns the one before.
    pub(super) fn replace(&self, db: Connection) -> Connection {
        std::mem::replace(&mut lock(&self.shared.db), db)
    }

    /// Runs one act in a transaction; after Ok it is durable.
    pub(super) async fn write<T, F>(&self, act: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Done<T> + Send + 'static,
    {
        self.write_within(Room::Free, act).await
    }

    /// The same for an act that may take so much when the disk is full.
    pub(super) async fn write_within<T, F>(&self, room: Room, act: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Done<T> + Send + 'static,
    {
        self.write_all(0, vec![(room, act)]).await.pop().unwrap_or_else(|| Err(ended()))
    }

    /// Runs acts in one transaction, each standing or falling alone. An act may run again after a rollback.
    ///
    /// `run` is the run that commits, or 0. When it is another than the last one, other runs are likely to be about to
    /// commit on this thread: they are let go first, so that one sync serves them all.
    pub(super) async fn write_all<T, F>(&self, run: i64, acts: Vec<(Room, F)>) -> Vec<Result<T>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Done<T> + Send + 'static,
    {
        let shared = &self.shared;
        let new = |(room, act)| Act { act, room, outcome: None, reply: None };
        let mut acts: Vec<Act<T, F>> = acts.into_iter().map(new).collect();
        if self.thread.is_none() {
            shared.wait_here(&mut acts);
            return acts.into_iter().map(|act| act.outcome.unwrap_or_else(|| Err(ended()))).collect();
        }
        let is_same = shared.last.swap(run, Ordering::Relaxed) == run && run != 0;
        let is_alone = is_same || (shared.is_free() && shared.is_alone_after_others().await);
        if is_alone && shared.try_here(&mut acts) {
            return acts.into_iter().map(|act| act.outcome.unwrap_or_else(|| Err(ended()))).collect();
        }
        let mut results = Vec::with_capacity(acts.len());
        for answer in shared.enqueue(acts) {
            let outcome = answer.await.ok().and_then(|(outcome, _)| outcome);
            results.push(outcome.unwrap_or_else(|| Err(ended())));
        }
        results
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.shared.queue).is_closed = true;
        self.shared.arrived.notify_all();
        if let Some(thread) = self.thread.take() {
            // It ended by itself, or by a panic that it has answered for.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new(db: Connection, side: Side, patience: Patience, log: Arc<Log>) -> Self {
        Self {
            db: Mutex::new(db),
            side,
            patience,
            log,
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            arrived: Condvar::new(),
            polite: AtomicUsize::new(0),
            last: AtomicI64::new(0),
        }
    }

    /// Is nobody writing, and nobody waiting to?
    fn is_free(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
            && !matches!(self.db.try_lock(), Err(std::sync::TryLockError::WouldBlock))
    }

    async fn is_alone_after_others(&self) -> bool {
        let polite = Polite::join(&self.polite);
        tokio::task::yield_now().await;
        polite.ends_alone()
    }

    /// Runs the acts on this thread when the connection is free and nobody waits for it.
    fn try_here<T: Send, F: FnMut(&Connection) -> Done<T> + Send>(&self, acts: &mut [Act<T, F>]) -> bool {
        if self.queued.load(Ordering::Acquire) > 0 || self.log.is_overdue() {
            return false;
        }
        let db = match self.db.try_lock() {
            Ok(db) => db,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return false,
        };
        self.patience.set(Patience::NONE);
        let mut works: Vec<&mut dyn Work> = acts.iter_mut().map(|act| act as &mut dyn Work).collect();
        let done = transact(&db, &mut works, &self.side);
        drop(db);
        self.log.note_commit();
        if self.log.is_overdue() {
            // Between its look and its wait the thread holds the lock: it is told before the one or after the other.
            drop(lock(&self.queue));
            self.arrived.notify_one();
        }
        !matches!(done, Err(Locked))
    }

    /// Runs the acts on this thread, however long another process keeps it waiting, and sees to the log.
    fn wait_here<T: Send, F: FnMut(&Connection) -> Done<T> + Send>(&self, acts: &mut [Act<T, F>]) {
        let db = lock(&self.db);
        self.patience.set(Patience::LONG);
        let mut works: Vec<&mut dyn Work> = acts.iter_mut().map(|act| act as &mut dyn Work).collect();
        if let Err(locked) = transact(&db, &mut works, &self.side) {
            works.iter_mut().for_each(|work| work.fail(locked.explain(&self.side.path)));
        }
        self.log.note_commit();
        self.restart_overdue(&db);
    }

    fn enqueue<T, F>(&self, acts: Vec<Act<T, F>>) -> Vec<oneshot::Receiver<Answer<T, F>>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Done<T> + Send + 'static,
    {
        let mut queue = lock(&self.queue);
        let mut answers = Vec::with_capacity(acts.len());
        for mut act in acts {
            let (reply, answer) = oneshot::channel();
            act.reply = Some(reply);
            answers.push(answer);
            // Dropped with its reply otherwise: whoever waits learns that the store has ended.
            if !queue.is_closed {
                queue.works.push(Box::new(act));
            }
        }
        self.queued.store(queue.works.len(), Ordering::Release);
        drop(queue);
        self.arrived.notify_one();
        answers
    }

    /// The thread: drains the queue for as long as the store lives, and restarts a log that has grown too long.
    fn serve(&self) {
        while self.wait() {
            let db = lock(&self.db);
            let mut works = {
                let mut queue = lock(&self.queue);
                self.queued.store(0, Ordering::Release);
                std::mem::take(&mut queue.works)
            };
            self.patience.set(Patience::LONG);
            let ran = catch_unwind(AssertUnwindSafe(|| {
                let mut each: Vec<&mut dyn Work> = works.iter_mut().map(|work| &mut **work as &mut dyn Work).collect();
                transact(&db, &mut each, &self.side)
            }));
            self.log.note_commit();
            // A panic is a bug in one of them; none was committed, and whoever waits learns it.
            let end = match ran {
                Ok(Ok(())) => None,
                Ok(Err(Locked)) => Some(Locked.explain(&self.side.path)),
                Err(_) => Some(unavailable("the store failed while it wrote", "this is a fault in lodestep")),
            };
            if let Some(error) = end {
                works.iter_mut().for_each(|work| work.fail(error.clone()));
            }
            works.into_iter().for_each(Queued::answer);
            self.restart_overdue(&db);
        }
    }

    fn restart_overdue(&self, db: &Connection) {
        if self.log.is_overdue() {
            self.patience.set(Patience::SHORT);
            self.log.restart(db);
        }
    }

    /// Waits until there is work; false when the store has ended.
    fn wait(&self) -> bool {
        let mut queue = lock(&self.queue);
        while queue.works.is_empty() && !queue.is_closed {
            if self.log.is_overdue() {
                drop(queue);
                self.restart_overdue(&lock(&self.db));
                queue = lock(&self.queue);
            } else {
                queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
        !queue.works.is_empty()
    }
}

/// Somebody who lets others go first; counted while it does, also when its future is dropped.
struct Polite<'a>(&'a AtomicUsize);

impl<'a> Polite<'a> {
    fn join(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }

    /// Is nobody else letting others go first?
    fn ends_alone(self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }
}

impl Drop for Polite<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done by a panic: a queue is whole after each push, and an open transaction is
    // rolled back before the next begins.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> Error {
    unavailable("the store has ended", "open it again")
}

#[cfg(test)]
mod tests;
