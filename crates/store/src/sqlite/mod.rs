//! A store in one SQLite file, for any number of processes on one machine.
//!
//! Beside the file `x.db` stands the folder `x.db-files`: large values, and the locks by which processes know whether a
//! worker lives. Reads and writes happen on the caller's thread where that is possible, and take as long as the disk
//! takes for one sync; no lock is held across an await.
//!
//! - `owner`, `place`, `open`, `open_to_read`, `settings`, `migrate`: getting at a store.
//! - `writer`, `transact`, `log`: the one writing connection, its transactions, its write-ahead log.
//! - `readers`: reading connections.
//! - `start`, `commit`, `journal`, `snapshot`, `inbox`: what is written.
//! - `worker`, `lease`: who may advance a run.
//! - `load`, `list`, `label`, `value`, `beside`, `found`: what is read; `integrity`: whether it can be.
//! - `examine`, `file_system`: what a doctor asks.
//! - `witness`, `newest`: was the file put back to an older copy?
//! - `hold`: what operators stopped; `rate_limit`: services that are not to be asked before a time.
//! - `collect`, `sweep`, `leftover`, `remove`, `compact`: what nothing needs any more.
//! - `reserve`: room that is held back for outcomes.
//! - `watch`: hints from other processes.
//! - `simulated`: a store whose process is simulated.
//! - `row`, `pack`, `piece`, `failure`: columns, packed columns, long ones in pieces, errors.

mod adopt;
mod beside;
mod collect;
mod commit;
mod compact;
mod dedupe;
mod examine;
mod failure;
mod file_system;
mod found;
mod hold;
mod inbox;
mod integrity;
mod journal;
mod kin;
mod label;
mod lease;
mod leftover;
mod list;
mod load;
mod log;
mod migrate;
mod newest;
mod open;
mod open_to_read;
mod owner;
pub(crate) mod pack;
mod piece;
mod place;
mod rate_limit;
mod readers;
mod remove;
mod reserve;
mod row;
mod settings;
mod simulated;
mod snapshot;
mod start;
mod sweep;
mod transact;
mod value;
mod watch;
mod witness;
mod worker;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use lodestep_core::context::Blobs;
use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::rules::standing::Standing;
use lodestep_core::{Digest, Result, RunId, RunKey, Stored, Timestamp, ValueRef};
use rusqlite::Connection;

use crate::audit::{Audit, Beside, Found, Letter};
use crate::changes::Changes;
use crate::clock::Clock;
use crate::garbage::{Amount, Mode, Removal, Sweep};
use crate::loaded::Loaded;
use crate::refusals;
use crate::store::*;
pub use examine::{Condition, Ground, WorkerState, ground};
use failure::Done;
pub use file_system::FileSystem;
use inbox::Outgoing;
use lease::Claiming;
use log::Cleaner;
pub use owner::STORE_FOLDER;
use place::Place;
use readers::Readers;
pub use reserve::Reserved;
use reserve::{Reserve, Room};
pub use settings::APPLICATION_ID;
use settings::Reader;
use start::PreparedStart;
use value::ValueFiles;
use watch::Watch;
pub use witness::Testimony;
use witness::Witness;
pub use worker::Life;
use worker::Workers;
use writer::Writer;

/// A store in one SQLite file.
pub struct SqliteStore {
    place: Place,
    path: PathBuf,
    own_paths: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    changes: Changes,
    reader: Reader,
    readers: Readers,
    values: ValueFiles,
    reserve: Reserve,
    workers: Arc<Workers>,
    // Dropped in this order: each ends its thread, and the connection that is closed last empties the log.
    /// None in a store that is only read.
    witness: Option<Witness>,
    /// None in a simulation: its hints come by another way.
    watch: Option<Watch>,
    _cleaner: Option<Cleaner>,
    writer: Writer,
    /// Held by one that only reads a file at rest: nobody else opens the store meanwhile.
    _at_rest: Option<File>,
}

impl SqliteStore {
    /// Is there a store at a path, or was one made there whose file is gone? Reads nothing of it.
    pub fn is_or_was_at(path: &Path) -> bool {
        path.exists() || Place::beside(path.to_owned()).made().exists()
    }

    /// What is alone the store's that is or was at this path, and is there: tools of others are to be kept from it, too.
    pub fn own_paths_at(path: &Path) -> Vec<PathBuf> {
        let database = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        owner::own_paths(&Place::beside(database)).into_iter().filter(|path| path.exists()).collect()
    }

    /// Where its database is, free of links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// For tests: the worker's process is dead from now on, as far as any other can tell.
    pub fn kill(&self, worker: &WorkerId) {
        self.workers.let_go(worker);
    }

    /// Reads where it is called, when the future is first polled.
    fn read<'a, T: Send + 'a>(&'a self, act: impl FnOnce(&Connection) -> Done<T> + Send + 'a) -> StoreFuture<'a, T> {
        Box::pin(async move { self.readers.read(&self.path, act) })
    }

    /// As [`Self::read`], for several statements that must agree.
    fn read_one_moment<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&Connection) -> Done<T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move { self.readers.read_one_moment(&self.path, act) })
    }

    /// Writes; says that something changed when it did.
    fn change<'a, T: Send + 'static>(
        &'a self,
        act: impl FnMut(&Connection) -> Done<T> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        self.change_within(Room::Free, act)
    }

    /// The same for what may take so much when the disk is full.
    fn change_within<'a, T: Send + 'static>(
        &'a self,
        room: Room,
        act: impl FnMut(&Connection) -> Done<T> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let done = self.writer.write_within(room, act).await?;
            self.changes.notify();
            Ok(done)
        })
    }

    /// An act that is refused while the reserve is spent.
    fn with_room<T, F>(&self, mut act: F) -> impl FnMut(&Connection) -> Done<T> + Send + 'static + use<T, F>
    where
        F: FnMut(&Connection) -> Done<T> + Send + 'static,
    {
        let reserve = self.reserve.clone();
        move |db| {
            reserve.refuse_if_spent()?;
            act(db)
        }
    }

    /// Lets the witness see how far the database has come.
    fn note(&self) {
        let Some(witness) = &self.witness else { return };
        // It may lag behind: what it has not seen it can't miss.
        let _ = self.readers.read_one_moment(&self.path, |db| Ok(witness.note(db)?));
    }

    /// As [`Self::change`], for an act that also gives the version of the holds after it.
    fn change_holds<'a, T: Send + 'static>(
        &'a self,
        act: impl FnMut(&Connection) -> Done<(T, u64)> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let (done, version) = self.change(act).await?;
            self.changes.sees_holds(version);
            self.changes.notify();
            Ok(done)
        })
    }

    async fn enlist_one(&self) -> Result<WorkerId> {
        let boot_us = self.clock.boot_us();
        let worker = self.workers.lock_new(boot_us)?;
        let (workers, new) = (Arc::clone(&self.workers), worker.clone());
        let done = self
            .writer
            .write(move |db| {
                workers.sweep(db)?;
                workers.insert(db, &new, boot_us + LEASE_US)
            })
            .await;
        if done.is_err() {
            self.workers.remove_files(&worker.0);
        }
        done.map(|()| worker)
    }

    async fn claim_some(&self, worker: &WorkerId, want: Want) -> Result<Vec<Claim>> {
        let claiming = Claiming {
            workers: Arc::clone(&self.workers),
            worker: worker.clone(),
            want,
            now: self.now(),
            boot_us: self.clock.boot_us(),
        };
        if self.readers.read(&self.path, |db| claiming.is_idle(db))? {
            return Ok(Vec::new());
        }
        let mut claimed = self.writer.write(move |db| claiming.apply(db)).await?;
        for id in &claimed.buried {
            self.workers.remove_files(id);
        }
        if !claimed.buried.is_empty() {
            // More may have become due than this one wanted.
            self.changes.notify();
        }
        for claim in &mut claimed.claims {
            // Without the file there is nobody who holds it.
            claim.left_tools = claim.left_tools.take().filter(|file| file.exists());
        }
        Ok(claimed.claims)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.note();
    }
}

impl Store for SqliteStore {
    fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        let receiver = self.changes.subscribe();
        self.watch.iter().for_each(Watch::wake);
        receiver
    }

    fn enlist(&self) -> StoreFuture<'_, WorkerId> {
        Box::pin(self.enlist_one())
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let until_us = self.clock.boot_us() + LEASE_US;
            let worker = worker.clone();
            self.writer.write(move |db| lease::renew(db, &worker, until_us)).await?;
            self.note();
            Ok(until_us)
        })
    }

    fn retire<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (retired, clock) = (worker.clone(), Arc::clone(&self.clock));
            let done = self.change(move |db| lease::retire(db, &retired, clock.wall())).await;
            // A worker without its lock is dead, and whoever claims next frees what it held.
            self.workers.remove_files(&worker.0);
            done?;
            self.note();
            Ok(())
        })
    }

    fn is_alive(&self, worker: &WorkerId) -> bool {
        self.workers.is_alive(&worker.0)
    }

    fn tools_lock(&self, worker: &WorkerId) -> Option<PathBuf> {
        Some(self.workers.tools_file(&worker.0))
    }

    fn own_paths(&self) -> Vec<PathBuf> {
        self.own_paths.clone()
    }

    fn start(&self, mut start: StartRun) -> StoreFuture<'_, Started> {
        Box::pin(async move {
            refusals::check_start(&start)?;
            self.take_large(&mut start.transition, Room::Free).await?;
            let (prepared, clock) = (Box::new(PreparedStart::new(start, &self.values)), Arc::clone(&self.clock));
            self.change(self.with_room(move |db| prepared.apply(db, clock.wall()))).await
        })
    }

    fn adopt(&self, adopt: Adopt) -> StoreFuture<'_, RunRef> {
        Box::pin(async move {
            let (adopt, clock, files) = (Box::new(adopt), Arc::clone(&self.clock), self.values.clone());
            self.change(self.with_room(move |db| adopt::adopt(db, &adopt, &files, clock.wall()))).await
        })
    }

    fn claim<'a>(&'a self, worker: &'a WorkerId, want: Want) -> StoreFuture<'a, Vec<Claim>> {
        Box::pin(self.claim_some(worker, want))
    }

    fn commit(&self, batch: Vec<Commit>) -> Pin<Box<dyn Future<Output = Vec<Result<Committed>>> + Send + '_>> {
        Box::pin(self.commit_all(batch))
    }

    fn release<'a>(&'a self, claim: &'a Claim, due: Option<Timestamp>, how: Release) -> StoreFuture<'a, ()> {
        let (claim, clock) = (claim.clone(), Arc::clone(&self.clock));
        self.change(move |db| lease::release(db, &claim, due, how, clock.wall()))
    }

    fn hold<'a>(&'a self, claim: &'a Claim, why: &'a str) -> StoreFuture<'a, ()> {
        let (claim, why) = (claim.clone(), why.to_owned());
        self.change(move |db| lease::hold(db, &claim, &why))
    }

    fn hold_dispatch<'a>(&'a self, target: &'a Target, by: &'a str, reason: &'a str) -> StoreFuture<'a, Holding> {
        let (target, by, reason) = (target.clone(), by.to_owned(), reason.to_owned());
        let clock = Arc::clone(&self.clock);
        self.change_holds(move |db| hold::begin(db, &target, &by, &reason, clock.wall()))
    }

    fn release_dispatch<'a>(&'a self, target: &'a Target, by: &'a str) -> StoreFuture<'a, Option<DispatchHold>> {
        let (target, by, clock) = (target.clone(), by.to_owned(), Arc::clone(&self.clock));
        self.change_holds(move |db| hold::end(db, &target, &by, clock.wall()))
    }

    fn dispatch_holds(&self) -> StoreFuture<'_, DispatchHolds> {
        self.read_one_moment(hold::all)
    }

    fn holds_version(&self) -> u64 {
        if self.watch.is_none() {
            self.look_at_holds();
        }
        self.changes.holds_version()
    }

    fn limit<'a>(&'a self, service: &'a str, until: Timestamp) -> StoreFuture<'a, ()> {
        let (service, clock) = (service.to_owned(), Arc::clone(&self.clock));
        self.change(move |db| rate_limit::set(db, &service, until, clock.wall()))
    }

    fn limited_until<'a>(&'a self, service: &'a str) -> StoreFuture<'a, Option<Timestamp>> {
        self.read(move |db| rate_limit::get(db, service, self.clock.wall()))
    }

    fn park<'a>(&'a self, claim: &'a Claim, standing: &'a Standing, holds: &'a [u64]) -> StoreFuture<'a, ()> {
        let (claim, standing, holds) = (claim.clone(), standing.clone(), holds.to_vec());
        let clock = Arc::clone(&self.clock);
        self.change(move |db| hold::park(db, &claim, &standing, &holds, clock.wall()))
    }

    fn load<'a>(&'a self, run: &'a RunKey) -> StoreFuture<'a, Loaded> {
        self.read_one_moment(|db| load::load(db, run, &self.path))
    }

    fn unread<'a>(&'a self, run: &'a RunRef, after: u64) -> StoreFuture<'a, Vec<(u64, Message)>> {
        self.read(move |db| inbox::unread(db, run, after))
    }

    fn send<'a>(&'a self, run: &'a RunKey, id: &'a str, message: &'a Message) -> StoreFuture<'a, Verdict> {
        Box::pin(async move {
            let body = refusals::check_size(message)?;
            let letter = Outgoing { run: run.clone(), id: id.to_owned(), message: message.clone(), body };
            let (clock, path) = (Arc::clone(&self.clock), self.path.clone());
            let act = move |db: &Connection| letter.apply(db, clock.wall(), &path);
            match message.word {
                Word::Resolve { .. } | Word::LateOutcome { .. } => self.change_within(Room::Reserve, act).await,
                // What keeps a run from sending is taken as long as there is any room.
                Word::Cancel { .. } | Word::Pause { .. } => self.change(act).await,
                _ => self.change(self.with_room(act)).await,
            }
        })
    }

    fn put_value(&self, bytes: Vec<u8>) -> StoreFuture<'_, ValueRef> {
        Box::pin(async move {
            self.reserve.refuse_if_spent()?;
            self.put(bytes, Room::Free).await
        })
    }

    fn values<'a>(&'a self, run: &'a RunRef, wanted: &'a [Stored]) -> StoreFuture<'a, Blobs> {
        self.read(move |db| value::read(db, &self.values, run, wanted))
    }

    fn list<'a>(&'a self, namespace: &'a str, filter: &'a Filter) -> StoreFuture<'a, Vec<RunRow>> {
        self.read_one_moment(move |db| list::list(db, namespace, filter))
    }

    fn count<'a>(&'a self, namespace: &'a str, filter: &'a Filter, most: usize) -> StoreFuture<'a, usize> {
        self.read_one_moment(move |db| list::count(db, namespace, filter, most))
    }

    fn find<'a>(&'a self, namespace: &'a str, id_end: &'a str, limit: usize) -> StoreFuture<'a, Vec<RunRow>> {
        self.read_one_moment(move |db| list::find(db, namespace, id_end, limit))
    }

    fn open_requests<'a>(&'a self, namespace: &'a str, limit: usize) -> StoreFuture<'a, Vec<RequestRow>> {
        self.read(move |db| list::open_requests(db, namespace, limit))
    }

    fn find_requests<'a>(&'a self, namespace: &'a str, name_start: &'a str) -> StoreFuture<'a, Vec<RequestRow>> {
        self.read(move |db| list::find_requests(db, namespace, name_start))
    }

    fn journal<'a>(&'a self, run: &'a RunRef, from: u64, limit: usize) -> StoreFuture<'a, Vec<JournalRow>> {
        self.read(move |db| journal::read(db, run, from, limit, &self.path))
    }

    fn snapshots<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>> {
        self.read(|db| snapshot::all(db, run.number, &self.path))
    }

    fn effects<'a>(&'a self, run: &'a RunRef, same: Option<&'a Digest>) -> StoreFuture<'a, Vec<EffectRow>> {
        self.read(move |db| load::effects(db, run, same))
    }

    fn kin_effects<'a>(
        &'a self,
        run: &'a RunRef,
        root: &'a RunId,
        same: &'a Digest,
    ) -> StoreFuture<'a, Vec<(RunRef, EffectRow)>> {
        self.read(move |db| kin::effects(db, run, root, same))
    }

    fn kin<'a>(&'a self, run: &'a RunRef, root: &'a RunId) -> StoreFuture<'a, Vec<RunRow>> {
        self.read_one_moment(move |db| kin::runs(db, run, root))
    }

    fn artifacts<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<ArtifactRow>> {
        self.read(|db| load::artifacts(db, run))
    }

    fn dedupe_keys<'a>(&'a self, namespace: &'a str, keys: &'a [String]) -> StoreFuture<'a, Vec<KeyHolder>> {
        self.read_one_moment(|db| dedupe::holders(db, namespace, keys))
    }

    fn beside<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Beside> {
        self.read_one_moment(|db| beside::beside(db, run))
    }

    fn audit(&self) -> StoreFuture<'_, Audit> {
        self.read_one_moment(beside::audit)
    }

    fn found(&self) -> StoreFuture<'_, Found> {
        // Not of one moment: what can't be read ends no other look.
        self.read(|db| found::found(db, &self.path))
    }

    fn carried<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, (RunRow, Vec<Letter>)> {
        self.read_one_moment(|db| found::carried(db, run))
    }

    fn integrity(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move { integrity::check(&self.path, self.reader) })
    }

    fn forget_transcripts<'a>(&'a self, run: &'a RunRef, mode: Mode) -> StoreFuture<'a, Amount> {
        Box::pin(async move {
            if mode == Mode::DryRun {
                return self.readers.read_one_moment(&self.path, |db| journal::forget_transcripts(db, run, mode));
            }
            let run = run.clone();
            self.writer.write(move |db| journal::forget_transcripts(db, &run, mode)).await
        })
    }

    fn sweep(&self, mode: Mode) -> StoreFuture<'_, Sweep> {
        Box::pin(self.collect(mode))
    }

    fn remove<'a>(&'a self, runs: &'a [RunRef], mode: Mode) -> StoreFuture<'a, Removal> {
        Box::pin(self.remove_lineage(runs, mode))
    }

    fn compact(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move { compact::compact(&self.path, &self.workers) })
    }
}
