//! The reference implementation: everything in memory under one lock, plain enough to be checked by reading.
//!
//! It keeps nothing beyond its process. Workers die only by [`MemoryStore::kill`], which stands for the death of their
//! process, or by a lease that ran out while another worker claimed.
//!
//! - `state`: what is held.
//! - `commit`: starts and transitions.
//! - `lease`: workers, claims, releases.
//! - `hold`: what operators stopped.
//! - `garbage`: what nothing needs any more.
//! - `inbox`: words to a run.
//! - `read`: loading and listing.

mod commit;
mod dedupe;
mod garbage;
mod hold;
mod inbox;
mod lease;
mod read;
mod state;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::context::Blobs;
use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::inbox::{Message, Verdict};
use lodestep_core::rules::standing::Standing;
use lodestep_core::{Digest, Result, RunId, RunKey, Stored, Timestamp, ValueRef};
use tokio::sync::watch;

use crate::audit::{Audit, Beside};
use crate::changes::Changes;
use crate::clock::{Clock, SystemClock};
use crate::garbage::{Amount, Mode, Removal, Sweep};
use crate::loaded::Loaded;
use crate::store::*;
use state::State;

/// A store in memory. A clone is another handle on the same store.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    changes: Changes,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl MemoryStore {
    /// An empty store under this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { state: Arc::default(), clock, changes: Changes::default() }
    }

    /// For tests: the worker's process is dead from now on. The next claim of another worker finds out.
    pub fn kill(&self, worker: &WorkerId) {
        self.with(|state| {
            if let Some(known) = state.workers.get_mut(worker) {
                known.alive = false;
            }
        });
        self.changes.notify();
    }

    /// For tests: changes a byte of a value, wherever it stands; false when there is none or it is empty.
    pub fn damage_value(&self, digest: &Digest) -> bool {
        self.with(|state| state.damage_value(digest))
    }

    /// For tests: erases the values of a transition, as a retention rule would.
    pub fn erase_values(&self, run: &RunRef, seq: u64) {
        self.with(|state| state.erase_values(run, seq));
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // A panic while the lock was held left a state that each method had not finished changing: none of them
        // panics, and a test that does is over anyway.
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs an act on the state when the future is first polled.
    fn later<'a, T: Send + 'a>(&'a self, act: impl FnOnce(&mut State) -> Result<T> + Send + 'a) -> StoreFuture<'a, T> {
        Box::pin(async move { self.with(act) })
    }

    /// As [`Self::later`], and says that something changed.
    fn change<'a, T: Send + 'a>(&'a self, act: impl FnOnce(&mut State) -> Result<T> + Send + 'a) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let result = self.with(act);
            self.changes.notify();
            result
        })
    }
}

impl Store for MemoryStore {
    fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn enlist(&self) -> StoreFuture<'_, WorkerId> {
        self.later(|state| Ok(state.enlist(self.clock.boot_us())))
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, u64> {
        self.later(|state| state.renew(worker, self.clock.boot_us()))
    }

    fn retire<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        self.change(|state| {
            state.retire(worker, self.now());
            Ok(())
        })
    }

    fn is_alive(&self, worker: &WorkerId) -> bool {
        self.with(|state| state.workers.get(worker).is_some_and(|worker| worker.alive))
    }

    fn tools_lock(&self, _worker: &WorkerId) -> Option<PathBuf> {
        None
    }

    fn own_paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn start(&self, start: StartRun) -> StoreFuture<'_, Started> {
        self.change(|state| state.start(start, self.now()))
    }

    fn adopt(&self, adopt: Adopt) -> StoreFuture<'_, RunRef> {
        self.change(|state| state.adopt(adopt))
    }

    fn claim<'a>(&'a self, worker: &'a WorkerId, want: Want) -> StoreFuture<'a, Vec<Claim>> {
        self.later(move |state| state.claim(worker, &want, self.now(), self.clock.boot_us()))
    }

    fn commit(&self, batch: Vec<Commit>) -> Pin<Box<dyn Future<Output = Vec<Result<Committed>>> + Send + '_>> {
        Box::pin(async move {
            let releases = batch.iter().any(|commit| commit.release);
            let results = self.with(|state| batch.into_iter().map(|commit| state.commit(commit, self.now())).collect());
            if releases {
                self.changes.notify();
            }
            results
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, due: Option<Timestamp>, how: Release) -> StoreFuture<'a, ()> {
        self.change(move |state| state.release(claim, due, how, self.now()))
    }

    fn hold<'a>(&'a self, claim: &'a Claim, why: &'a str) -> StoreFuture<'a, ()> {
        self.change(move |state| state.hold(claim, why))
    }

    fn hold_dispatch<'a>(&'a self, target: &'a Target, by: &'a str, reason: &'a str) -> StoreFuture<'a, Holding> {
        self.change(move |state| Ok(state.hold_dispatch(target, by, reason, self.now())))
    }

    fn release_dispatch<'a>(&'a self, target: &'a Target, _by: &'a str) -> StoreFuture<'a, Option<DispatchHold>> {
        self.change(move |state| Ok(state.release_dispatch(target, self.now())))
    }

    fn dispatch_holds(&self) -> StoreFuture<'_, DispatchHolds> {
        self.later(|state| Ok(state.dispatch_holds()))
    }

    fn limit<'a>(&'a self, service: &'a str, until: Timestamp) -> StoreFuture<'a, ()> {
        self.later(move |state| {
            state.limit(service, until);
            Ok(())
        })
    }

    fn limited_until<'a>(&'a self, service: &'a str) -> StoreFuture<'a, Option<Timestamp>> {
        self.later(move |state| Ok(state.limited_until(service, self.now())))
    }

    fn holds_version(&self) -> u64 {
        self.with(|state| state.holds_version())
    }

    fn park<'a>(&'a self, claim: &'a Claim, standing: &'a Standing, holds: &'a [u64]) -> StoreFuture<'a, ()> {
        self.change(move |state| state.park(claim, standing, holds, self.now()))
    }

    fn load<'a>(&'a self, run: &'a RunKey) -> StoreFuture<'a, Loaded> {
        self.later(|state| state.load(run))
    }

    fn unread<'a>(&'a self, run: &'a RunRef, after: u64) -> StoreFuture<'a, Vec<(u64, Message)>> {
        self.later(move |state| Ok(state.run(run)?.unread(after)))
    }

    fn send<'a>(&'a self, run: &'a RunKey, id: &'a str, message: &'a Message) -> StoreFuture<'a, Verdict> {
        self.change(move |state| state.send(run, id, message, self.now()))
    }

    fn put_value(&self, bytes: Vec<u8>) -> StoreFuture<'_, ValueRef> {
        self.later(|state| Ok(state.put_value(bytes)))
    }

    fn values<'a>(&'a self, run: &'a RunRef, wanted: &'a [Stored]) -> StoreFuture<'a, Blobs> {
        self.later(move |state| state.values(run, wanted))
    }

    fn list<'a>(&'a self, namespace: &'a str, filter: &'a Filter) -> StoreFuture<'a, Vec<RunRow>> {
        self.later(move |state| Ok(state.list(namespace, filter)))
    }

    fn count<'a>(&'a self, namespace: &'a str, filter: &'a Filter, most: usize) -> StoreFuture<'a, usize> {
        let all = Filter { limit: Some(most.saturating_add(1)), ..filter.clone() };
        self.later(move |state| Ok(state.list(namespace, &all).len()))
    }

    fn find<'a>(&'a self, namespace: &'a str, id_end: &'a str, limit: usize) -> StoreFuture<'a, Vec<RunRow>> {
        self.later(move |state| Ok(state.find(namespace, id_end, limit)))
    }

    fn open_requests<'a>(&'a self, namespace: &'a str, limit: usize) -> StoreFuture<'a, Vec<RequestRow>> {
        self.later(move |state| Ok(state.requests(namespace, |row| row.open).take(limit).collect()))
    }

    fn find_requests<'a>(&'a self, namespace: &'a str, name_start: &'a str) -> StoreFuture<'a, Vec<RequestRow>> {
        self.later(move |state| {
            Ok(state.requests(namespace, |row| row.name.to_hex().starts_with(name_start)).collect())
        })
    }

    fn journal<'a>(&'a self, run: &'a RunRef, from: u64, limit: usize) -> StoreFuture<'a, Vec<JournalRow>> {
        self.later(move |state| {
            let rows = state.run(run)?.journal.iter().filter(|row| row.seq >= from);
            Ok(rows.take(limit).cloned().collect())
        })
    }

    fn snapshots<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>> {
        self.later(move |state| Ok(state.run(run)?.snapshots.clone()))
    }

    fn effects<'a>(&'a self, run: &'a RunRef, same: Option<&'a Digest>) -> StoreFuture<'a, Vec<EffectRow>> {
        self.later(move |state| {
            let effects = state.run(run)?.tables.effects.iter();
            Ok(effects.filter(|effect| same.is_none_or(|same| effect.same == *same)).cloned().collect())
        })
    }

    fn dedupe_keys<'a>(&'a self, namespace: &'a str, keys: &'a [String]) -> StoreFuture<'a, Vec<KeyHolder>> {
        self.later(move |state| Ok(state.dedupe_keys(namespace, keys)))
    }

    fn kin_effects<'a>(
        &'a self,
        run: &'a RunRef,
        root: &'a RunId,
        same: &'a Digest,
    ) -> StoreFuture<'a, Vec<(RunRef, EffectRow)>> {
        self.later(move |state| Ok(state.kin_effects(run, root, same)))
    }

    fn kin<'a>(&'a self, run: &'a RunRef, root: &'a RunId) -> StoreFuture<'a, Vec<RunRow>> {
        self.later(move |state| Ok(state.kin(run, root).map(|kin| kin.row.clone()).collect()))
    }

    fn artifacts<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<ArtifactRow>> {
        self.later(move |state| Ok(state.run(run)?.tables.artifacts.clone()))
    }

    fn beside<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Beside> {
        self.later(move |state| state.beside(run))
    }

    fn audit(&self) -> StoreFuture<'_, Audit> {
        self.later(|state| Ok(state.audit()))
    }

    fn integrity(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn forget_transcripts<'a>(&'a self, run: &'a RunRef, mode: Mode) -> StoreFuture<'a, Amount> {
        self.later(move |state| {
            let mut amount = Amount::default();
            for row in &mut state.run_mut(run)?.journal {
                row.transcript.iter().for_each(|transcript| amount.add(transcript.len() as u64));
                if mode == Mode::Apply {
                    row.transcript = None;
                }
            }
            Ok(amount)
        })
    }

    fn sweep(&self, mode: Mode) -> StoreFuture<'_, Sweep> {
        self.later(move |state| Ok(state.sweep(mode, self.now())))
    }

    fn remove<'a>(&'a self, runs: &'a [RunRef], mode: Mode) -> StoreFuture<'a, Removal> {
        self.later(move |state| state.remove(runs, mode, self.now()))
    }

    fn compact(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }
}
