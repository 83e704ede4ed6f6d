//! The worker: it claims what is due and advances each run until nothing can be done now.
//!
//! - `drive`: the one loop: draft, commit, dispatch, wait; what it does when a run is damaged, and with equal effects.
//! - `done`: what came back from outside.
//! - `dispatch`: one action performed, off the loop.
//! - `asking`: a model asked, and the limits of its service.
//! - `pinned`: what a run is pinned to, compiled.
//! - `request`: what the model is asked.
//! - `lease`: the right to advance runs, and its end.
//! - `probation`: runs that crash their workers are kept apart.
//! - `trouble`: a store that can't be written for a while.

mod asking;
mod dispatch;
mod done;
mod drive;
mod lease;
pub(crate) mod pinned;
mod probation;
mod request;
mod trouble;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use lodestep_core::hold::Held;
use lodestep_core::rules::standing::{Standing, standing_at};
use lodestep_core::{Result, RunKey, Timestamp};
use lodestep_store::loaded::undecodable;
use lodestep_store::{Claim, Hold, Loaded, Release, Store, Want};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::observe::Observer;
use crate::runtime::Runtime;
use crate::worker::drive::Drive;
use crate::worker::lease::Lease;
use crate::worker::pinned::Pinned;
use crate::worker::probation::Probation;
use crate::worker::trouble::{Tries, will_pass};

/// How many runs one worker advances at once.
pub const RUNS_AT_ONCE: usize = 512;

/// A full worker claims again when so many runs have ended: a claim is a transaction, and one for each run would cost
/// as much as the runs' own.
const CLAIM_BATCH: usize = 128;

/// Claims are at least so far apart, and a full worker waits no longer than that for a whole batch.
const BETWEEN_CLAIMS: Duration = Duration::from_millis(2);

/// A look at the store is taken at least so often, whatever the hints say.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long a graceful stop lets actions under way end by themselves.
pub const DRAIN: Duration = Duration::from_secs(2);

/// Tells a worker to stop: it hands over what it holds. It never cancels anything.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Begun>);

#[derive(Debug, Default)]
struct Begun {
    is_begun: AtomicBool,
    // Wakes in the order of waiting, where a watch channel draws lots.
    told: Notify,
}

impl Shutdown {
    /// Tells it.
    pub fn begin(&self) {
        self.0.is_begun.store(true, Ordering::SeqCst);
        self.0.told.notify_waiters();
    }

    /// Has it been told?
    pub fn is_begun(&self) -> bool {
        self.0.is_begun.load(Ordering::SeqCst)
    }

    /// Ends when it has been told.
    pub async fn begun(&self) {
        // From here on it hears of it, also when it is told between the look and the wait.
        let told = self.0.told.notified();
        if !self.is_begun() {
            told.await;
        }
    }
}

impl Runtime {
    /// Advances everything that is due until told to stop; then hands over.
    ///
    /// # Errors
    ///
    /// The store's errors; what was committed stays.
    pub async fn work(&self, observer: Arc<dyn Observer>, shutdown: &Shutdown) -> Result<()> {
        let lease = Lease::take(self, shutdown.clone()).await?;
        let worked = Pool { runtime: self, lease: &lease, observer, shutdown }.run(|_| false).await;
        lease.give_back().await?;
        worked
    }

    /// Advances everything until no run has anything to do that needs no person and no later time; then hands over.
    ///
    /// # Errors
    ///
    /// As [`Self::work`].
    pub async fn work_until_idle(&self, observer: Arc<dyn Observer>, shutdown: &Shutdown) -> Result<()> {
        let lease = Lease::take(self, shutdown.clone()).await?;
        let worked = Pool { runtime: self, lease: &lease, observer, shutdown }.run(|idle| idle).await;
        lease.give_back().await?;
        worked
    }

    /// Advances one run until `enough` says so of where it stands, or until told to stop. Another worker may do the work.
    ///
    /// # Errors
    ///
    /// As [`Self::work`]; `run.not_found`.
    pub async fn work_on(
        &self,
        run: &RunKey,
        observer: Arc<dyn Observer>,
        shutdown: &Shutdown,
        enough: impl Fn(&Standing) -> bool,
    ) -> Result<Standing> {
        let lease = Lease::take(self, shutdown.clone()).await?;
        let mut changes = self.store.changes();
        let stands = loop {
            changes.mark_unchanged();
            for claim in self.store.claim(lease.worker(), Want::Run(run.clone())).await? {
                advance(self.clone(), lease.share(), claim, observer.clone(), shutdown.clone()).await;
            }
            let Some(loaded) = self.readable(run).await? else { break undecodable() };
            let stands = self.stands(&loaded).await?;
            let held = loaded.row.holder.is_some();
            if shutdown.is_begun() || (!held && loaded.unread.is_empty() && enough(&stands)) {
                break stands;
            }
            wait(self.store.as_ref(), &mut changes, stands.due.filter(|_| !held), shutdown).await;
        };
        lease.give_back().await?;
        Ok(stands)
    }

    /// Where a run stands; for one that is parked under the holds of this moment.
    async fn stands(&self, loaded: &Loaded) -> Result<Standing> {
        if loaded.row.hold.is_some_and(|hold| hold != Hold::Parked) {
            return loaded.standing();
        }
        let (checkpoint, now) = (loaded.checkpoint()?, self.store.now());
        if loaded.row.hold.is_none() {
            return Ok(standing_at(&checkpoint, &Held::default(), now));
        }
        let pinned = Pinned::of(self, &loaded.row.run, &checkpoint).await?;
        let holds = self.store.dispatch_holds().await?;
        Ok(standing_at(&checkpoint, &Held::of(&holds.open, &pinned.definition), now))
    }

    /// A run, as it is loaded; `None` when it is held because it can't be read.
    async fn readable(&self, run: &RunKey) -> Result<Option<Loaded>> {
        let error = match self.store.load(run).await {
            Ok(loaded) if loaded.row.hold == Some(Hold::Undecodable) => return Ok(None),
            Ok(loaded) => return Ok(Some(loaded)),
            Err(error) => error,
        };
        let found = self.store.find(&run.namespace, run.run.as_str(), 1).await?;
        let is_held = found.iter().any(|row| row.hold == Some(Hold::Undecodable));
        if is_held { Ok(None) } else { Err(error) }
    }
}

/// Waits for a hint, a due time or the stop, whichever comes first.
async fn wait(store: &dyn Store, changes: &mut watch::Receiver<u64>, due: Option<Timestamp>, shutdown: &Shutdown) {
    let until_due = due.map_or(LONGEST_WAIT, |due| Duration::from_millis(due.ms_since(store.now()).max(1)));
    tokio::select! {
        biased;
        _ = changes.changed() => {}
        () = tokio::time::sleep(until_due.min(LONGEST_WAIT)) => {}
        () = shutdown.begun() => {}
    }
}

/// Waits until fewer than so many are under way; when they are already, for a moment's time to pass.
async fn fewer_than(driven: &mut JoinSet<()>, most: usize) {
    if driven.len() < most {
        std::future::pending::<()>().await;
    }
    while driven.len() >= most && driven.join_next().await.is_some() {}
}

/// Several runs at once.
struct Pool<'a> {
    runtime: &'a Runtime,
    lease: &'a Lease,
    observer: Arc<dyn Observer>,
    shutdown: &'a Shutdown,
}

impl Pool<'_> {
    /// Works until told to stop, or until `leave` says so of an idle moment.
    async fn run(self, leave: impl Fn(bool) -> bool) -> Result<()> {
        let store = self.runtime.store.as_ref();
        let mut changes = store.changes();
        let mut driven: JoinSet<()> = JoinSet::new();
        let mut tries = Tries::new(&self.lease.share().trouble);
        let probation = Probation::default();
        while !self.shutdown.is_begun() {
            changes.mark_unchanged();
            let free = RUNS_AT_ONCE - driven.len();
            let claimed = match free {
                0 => Ok(Vec::new()),
                _ => store.claim(self.lease.worker(), probation.want(free)).await,
            };
            let claims = match claimed {
                // What is under way may hold an outcome that only this worker knows.
                Err(error) if will_pass(&error) && !(driven.is_empty() && leave(true)) => {
                    tries.refused(&error);
                    tokio::select! {
                        biased;
                        () = tries.pause() => {}
                        () = self.shutdown.begun() => {}
                    }
                    while driven.try_join_next().is_some() {}
                    continue;
                }
                claimed => claimed?,
            };
            tries.taken();
            let none = claims.is_empty();
            for claim in claims {
                let (runtime, observer) = (self.runtime.clone(), probation.watch(&claim, self.observer.clone()));
                let advanced = advance(runtime, self.lease.share(), claim, observer, self.shutdown.clone());
                driven.spawn(self.runtime.task(advanced));
            }
            if none && driven.is_empty() && leave(true) {
                break;
            }
            if none || driven.len() >= RUNS_AT_ONCE {
                tokio::select! {
                    biased;
                    Some(_) = driven.join_next() => {}
                    () = probation.left() => {}
                    () = wait(store, &mut changes, None, self.shutdown) => {}
                }
                let _ = tokio::time::timeout(BETWEEN_CLAIMS, fewer_than(&mut driven, RUNS_AT_ONCE - CLAIM_BATCH)).await;
            }
            while driven.try_join_next().is_some() {}
        }
        while driven.join_next().await.is_some() {}
        Ok(())
    }
}

/// Advances one claimed run as far as it goes. What goes wrong stays with this run.
async fn advance(
    runtime: Runtime,
    lease: lease::Shared,
    claim: Claim,
    observer: Arc<dyn Observer>,
    shutdown: Shutdown,
) {
    let store = runtime.store.clone();
    let (back, stopping, trouble) = (claim.clone(), shutdown.clone(), lease.trouble.clone());
    // Boxed: a run's future is large, and a task is moved a few times before it is polled.
    let driven = Box::pin(Drive::new(runtime, lease, claim, observer, shutdown).run());
    let (due, how) = match AssertUnwindSafe(driven).catch_unwind().await {
        Ok(Ok(())) => return,
        Ok(Err(error)) if error.code() == "lease.lost" => return,
        // A value that was swept under a worker that stood still is made and stored anew by the next one.
        Ok(Err(error)) if will_pass(&error) || error.code() == "store.value_swept" => {
            (Some(store.now().plus_ms(1_000)), Release::Idle)
        }
        // Another build can go on with it.
        Ok(Err(error)) if error.code() == "store.newer_format" => {
            (Some(store.now().plus_ms(60_000)), Release::Deferred)
        }
        // What was claimed and isn't found has a row that is not what it was; given back, it would be claimed for ever.
        Ok(Err(error)) if matches!(error.code(), "store.corrupt" | "store.undecodable" | "run.not_found") => {
            crate::note!("run {}: {error}", back.run.key.run);
            match store.hold(&back, &format!("undecodable: {}", error.what())).await {
                Err(error) if will_pass(&error) => (Some(store.now().plus_ms(64_000)), Release::Crashed),
                // Its row can't be changed either: given back, it would be claimed again and again. It stays this worker's.
                Err(error) if error.code() != "lease.lost" => {
                    return crate::note!("run {} can't even be held: {error}", back.run.key.run);
                }
                _ => return,
            }
        }
        // It is taken up again, and after a few crashes quarantined with that as its reason.
        Ok(Err(error)) => {
            crate::note!("run {}: {error}", back.run.key.run);
            (Some(store.now().plus_ms(1_000 << back.crashes.min(6))), Release::Crashed)
        }
        // The panic's own message is on stderr already.
        Err(_) => {
            crate::note!("run {}: the worker panicked", back.run.key.run);
            (Some(store.now()), Release::Crashed)
        }
    };
    let mut tries = Tries::new(&trouble);
    // While the store can't take it this is tried again: a living worker's claim is nobody else's, and the run would wait
    // for ever. A claim that is gone already needs no giving back; the end of the worker frees it too.
    while let Err(error) = store.release(&back, due, how).await {
        if !will_pass(&error) || stopping.is_begun() {
            return;
        }
        tries.refused(&error);
        tokio::select! {
            biased;
            () = tries.pause() => {}
            () = stopping.begun() => {}
        }
    }
    tries.taken();
}
