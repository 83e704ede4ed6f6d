//! The store as one simulated process reaches it: calls take time, fail, or take effect and lose their answer.
//!
//! What took effect is told to the [`Witness`], which stands outside of every process.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::context::Blobs;
use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::inbox::{Message, Verdict};
use lodestep_core::rules::standing::Standing;
use lodestep_core::{Digest, Error, Result, RunId, RunKey, Stored, Timestamp, ValueRef};
use lodestep_store::garbage::{Amount, Mode, Removal, Sweep};
use lodestep_store::*;
use tokio::sync::watch;
use tokio::time::Instant;

use super::chance::Chance;
use super::disk::Opened;
use super::faults::Faults;
use super::hints::Hints;
use super::process::Process;
use super::witness::Witness;

/// How long a full disk stays full, in milliseconds.
const FULL_MS: u64 = 8_000;

/// One process's way to the store.
pub(super) struct SimStore {
    inner: Opened,
    hints: Arc<Hints>,
    process: Arc<Process>,
    witness: Arc<Witness>,
    chance: Arc<Chance>,
    faults: Faults,
    full_until: Arc<Mutex<Option<Instant>>>,
    workers: Mutex<Vec<WorkerId>>,
    is_buried: AtomicBool,
}

/// What a call does when it arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Reads,
    Writes,
    /// Its answer may be lost: whoever makes it finds out what became of it.
    MayBeLost,
}

impl SimStore {
    pub(super) fn new(
        inner: Opened,
        hints: Arc<Hints>,
        process: Arc<Process>,
        witness: Arc<Witness>,
        chance: Arc<Chance>,
        faults: Faults,
        full_until: Arc<Mutex<Option<Instant>>>,
    ) -> Self {
        Self {
            inner,
            hints,
            process,
            witness,
            chance,
            faults,
            full_until,
            workers: Mutex::default(),
            is_buried: AtomicBool::new(false),
        }
    }

    fn store(&self) -> &dyn Store {
        self.inner.store()
    }

    /// The process is dead: so are its workers.
    pub(super) fn bury(&self) {
        if !self.is_buried.swap(true, Ordering::Relaxed) {
            self.inner.die(&self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// One call: the process may die, stall or wait before its effect and after it.
    fn call<'a, T: Send + 'a>(&'a self, call: Call, effect: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.arrive(call).await?;
            let result = effect.await;
            self.depart(call).await?;
            result
        })
    }

    async fn arrive(&self, call: Call) -> Result<()> {
        self.pass_time().await;
        if call != Call::Reads && self.is_full() {
            return Err(unavailable("the disk is full"));
        }
        if self.chance.permille(self.faults.refuse) { Err(unavailable("refused")) } else { Ok(()) }
    }

    async fn depart(&self, call: Call) -> Result<()> {
        if call != Call::Reads {
            self.process.wrote();
        }
        self.pass_time().await;
        let is_lost = call == Call::MayBeLost && self.chance.permille(self.faults.lose);
        if is_lost { Err(unavailable("the answer was lost")) } else { Ok(()) }
    }

    async fn pass_time(&self) {
        if self.chance.permille(self.faults.delay) {
            tokio::time::sleep(self.chance.ms_below(self.faults.longest_delay_ms)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    fn is_full(&self) -> bool {
        let mut until = self.full_until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_none_or(|until| until <= Instant::now()) {
            *until = None;
            if self.chance.permille(self.faults.full) {
                *until = Some(Instant::now() + self.chance.ms_below(FULL_MS));
            }
        }
        until.is_some()
    }
}

fn unavailable(why: &str) -> Error {
    Error::new("store.unavailable", format!("simulated: {why}"), "try again")
}

impl Store for SimStore {
    fn now(&self) -> Timestamp {
        self.store().now()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    fn enlist(&self) -> StoreFuture<'_, WorkerId> {
        let enlisted = async move {
            let worker = self.store().enlist().await?;
            self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker.clone());
            Ok(worker)
        };
        self.call(Call::Writes, Box::pin(enlisted))
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, u64> {
        self.call(Call::MayBeLost, self.store().renew(worker))
    }

    fn retire<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        self.call(Call::Writes, self.store().retire(worker))
    }

    fn is_alive(&self, worker: &WorkerId) -> bool {
        self.store().is_alive(worker)
    }

    fn tools_lock(&self, worker: &WorkerId) -> Option<PathBuf> {
        self.store().tools_lock(worker)
    }

    fn own_paths(&self) -> Vec<PathBuf> {
        self.store().own_paths()
    }

    fn start(&self, start: StartRun) -> StoreFuture<'_, Started> {
        let transition = start.transition.clone();
        let started = async move {
            let started = self.store().start(start).await?;
            if let Started::New(run) = &started {
                self.witness.committed(&run.key, None, &transition);
            }
            Ok(started)
        };
        self.call(Call::MayBeLost, Box::pin(started))
    }

    fn adopt(&self, adopt: Adopt) -> StoreFuture<'_, RunRef> {
        self.call(Call::Writes, self.store().adopt(adopt))
    }

    fn claim<'a>(&'a self, worker: &'a WorkerId, want: Want) -> StoreFuture<'a, Vec<Claim>> {
        let claimed = async move {
            let claims = self.store().claim(worker, want).await?;
            claims.iter().for_each(|claim| self.witness.claimed(&claim.run.key, claim.epoch));
            Ok(claims)
        };
        self.call(Call::Writes, Box::pin(claimed))
    }

    fn commit(&self, batch: Vec<Commit>) -> Pin<Box<dyn Future<Output = Vec<Result<Committed>>> + Send + '_>> {
        Box::pin(async move {
            let count = batch.len();
            if let Err(error) = self.arrive(Call::MayBeLost).await {
                return vec![Err(error); count];
            }
            let transitions: Vec<_> =
                batch.iter().map(|commit| (commit.run.key.clone(), commit.epoch, commit.transition.clone())).collect();
            let results = self.store().commit(batch).await;
            for ((run, epoch, transition), result) in transitions.iter().zip(&results) {
                if result.is_ok() {
                    self.witness.committed(run, Some(*epoch), transition);
                }
            }
            match self.depart(Call::MayBeLost).await {
                Ok(()) => results,
                Err(error) => vec![Err(error); count],
            }
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim, due: Option<Timestamp>, how: Release) -> StoreFuture<'a, ()> {
        self.call(Call::Writes, self.store().release(claim, due, how))
    }

    fn hold<'a>(&'a self, claim: &'a Claim, why: &'a str) -> StoreFuture<'a, ()> {
        self.call(Call::Writes, self.store().hold(claim, why))
    }

    fn hold_dispatch<'a>(&'a self, target: &'a Target, by: &'a str, reason: &'a str) -> StoreFuture<'a, Holding> {
        self.call(Call::Writes, self.store().hold_dispatch(target, by, reason))
    }

    fn release_dispatch<'a>(&'a self, target: &'a Target, by: &'a str) -> StoreFuture<'a, Option<DispatchHold>> {
        self.call(Call::Writes, self.store().release_dispatch(target, by))
    }

    fn dispatch_holds(&self) -> StoreFuture<'_, DispatchHolds> {
        self.call(Call::Reads, self.store().dispatch_holds())
    }

    fn limit<'a>(&'a self, service: &'a str, until: Timestamp) -> StoreFuture<'a, ()> {
        self.call(Call::Writes, self.store().limit(service, until))
    }

    fn limited_until<'a>(&'a self, service: &'a str) -> StoreFuture<'a, Option<Timestamp>> {
        self.call(Call::Reads, self.store().limited_until(service))
    }

    fn holds_version(&self) -> u64 {
        self.store().holds_version()
    }

    fn park<'a>(&'a self, claim: &'a Claim, standing: &'a Standing, holds: &'a [u64]) -> StoreFuture<'a, ()> {
        self.call(Call::Writes, self.store().park(claim, standing, holds))
    }

    fn load<'a>(&'a self, run: &'a RunKey) -> StoreFuture<'a, Loaded> {
        self.call(Call::Reads, self.store().load(run))
    }

    fn unread<'a>(&'a self, run: &'a RunRef, after: u64) -> StoreFuture<'a, Vec<(u64, Message)>> {
        self.call(Call::Reads, self.store().unread(run, after))
    }

    fn send<'a>(&'a self, run: &'a RunKey, id: &'a str, message: &'a Message) -> StoreFuture<'a, Verdict> {
        self.call(Call::MayBeLost, self.store().send(run, id, message))
    }

    fn put_value(&self, bytes: Vec<u8>) -> StoreFuture<'_, ValueRef> {
        self.call(Call::MayBeLost, self.store().put_value(bytes))
    }

    fn values<'a>(&'a self, run: &'a RunRef, wanted: &'a [Stored]) -> StoreFuture<'a, Blobs> {
        self.call(Call::Reads, self.store().values(run, wanted))
    }

    fn list<'a>(&'a self, namespace: &'a str, filter: &'a Filter) -> StoreFuture<'a, Vec<RunRow>> {
        self.call(Call::Reads, self.store().list(namespace, filter))
    }

    fn count<'a>(&'a self, namespace: &'a str, filter: &'a Filter, most: usize) -> StoreFuture<'a, usize> {
        self.call(Call::Reads, self.store().count(namespace, filter, most))
    }

    fn find<'a>(&'a self, namespace: &'a str, id_end: &'a str, limit: usize) -> StoreFuture<'a, Vec<RunRow>> {
        self.call(Call::Reads, self.store().find(namespace, id_end, limit))
    }

    fn open_requests<'a>(&'a self, namespace: &'a str, limit: usize) -> StoreFuture<'a, Vec<RequestRow>> {
        self.call(Call::Reads, self.store().open_requests(namespace, limit))
    }

    fn find_requests<'a>(&'a self, namespace: &'a str, name_start: &'a str) -> StoreFuture<'a, Vec<RequestRow>> {
        self.call(Call::Reads, self.store().find_requests(namespace, name_start))
    }

    fn journal<'a>(&'a self, run: &'a RunRef, from: u64, limit: usize) -> StoreFuture<'a, Vec<JournalRow>> {
        self.call(Call::Reads, self.store().journal(run, from, limit))
    }

    fn snapshots<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>> {
        self.call(Call::Reads, self.store().snapshots(run))
    }

    fn effects<'a>(&'a self, run: &'a RunRef, same: Option<&'a Digest>) -> StoreFuture<'a, Vec<EffectRow>> {
        self.call(Call::Reads, self.store().effects(run, same))
    }

    fn dedupe_keys<'a>(&'a self, namespace: &'a str, keys: &'a [String]) -> StoreFuture<'a, Vec<KeyHolder>> {
        self.call(Call::Reads, self.store().dedupe_keys(namespace, keys))
    }

    fn kin_effects<'a>(
        &'a self,
        run: &'a RunRef,
        root: &'a RunId,
        same: &'a Digest,
    ) -> StoreFuture<'a, Vec<(RunRef, EffectRow)>> {
        self.call(Call::Reads, self.store().kin_effects(run, root, same))
    }

    fn kin<'a>(&'a self, run: &'a RunRef, root: &'a RunId) -> StoreFuture<'a, Vec<RunRow>> {
        self.call(Call::Reads, self.store().kin(run, root))
    }

    fn artifacts<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<ArtifactRow>> {
        self.call(Call::Reads, self.store().artifacts(run))
    }

    fn beside<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Beside> {
        self.call(Call::Reads, self.store().beside(run))
    }

    fn audit(&self) -> StoreFuture<'_, Audit> {
        self.call(Call::Reads, self.store().audit())
    }

    fn integrity(&self) -> StoreFuture<'_, Vec<String>> {
        self.call(Call::Reads, self.store().integrity())
    }

    fn forget_transcripts<'a>(&'a self, run: &'a RunRef, mode: Mode) -> StoreFuture<'a, Amount> {
        self.call(Call::Writes, self.store().forget_transcripts(run, mode))
    }

    fn sweep(&self, mode: Mode) -> StoreFuture<'_, Sweep> {
        self.call(Call::Writes, self.store().sweep(mode))
    }

    fn remove<'a>(&'a self, runs: &'a [RunRef], mode: Mode) -> StoreFuture<'a, Removal> {
        self.call(Call::Writes, self.store().remove(runs, mode))
    }

    fn compact(&self) -> StoreFuture<'_, u64> {
        self.call(Call::Writes, self.store().compact())
    }
}
