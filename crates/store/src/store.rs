//! The [`Store`] trait: small, and each method says what is true after Ok, after Err and after a crash.
//!
//! No transaction spans runs. "Durable" means that it survives a power loss, as far as the machine's disk keeps its
//! word.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use lodestep_core::context::Blobs;
use lodestep_core::event::{Envelope, FORMAT};
use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::inbox::{Message, Verdict};
use lodestep_core::rules::standing::Standing;
use lodestep_core::{Checkpoint, Digest, Labels, Result, RunId, RunKey, Stored, Timestamp, Transition, ValueRef};
use tokio::sync::watch;

use crate::audit::{Audit, Beside, Found, Letter};
use crate::garbage::{Amount, Mode, Removal, Sweep, large_values};
pub use crate::listed::*;
use crate::loaded::Loaded;
use crate::rows::Tables;

/// The future that a store's methods return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The newest journal format that this build reads and writes.
pub const JOURNAL_FORMAT: u32 = FORMAT;

/// How long a lease lasts without renewal, in microseconds of the boot clock. A dead process frees its
/// runs at once; this is for one that hangs while it holds its lock.
pub const LEASE_US: u64 = 30_000_000;

/// A run, as a store found it: the key, and the store's own number for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunRef {
    /// The public name.
    pub key: Arc<RunKey>,
    /// The store's number; means nothing outside it.
    pub number: i64,
}

/// A worker that a store knows: it holds leases while it lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub String);

/// A run to be started.
#[derive(Clone, Debug)]
pub struct StartRun {
    /// The run.
    pub key: RunKey,
    /// The agent's name.
    pub agent: String,
    /// The digest of the definition that it began with; an upgrade moves its state to another.
    pub definition: Digest,
    /// The digest of its inputs' canonical bytes.
    pub inputs: Digest,
    /// Its first transition. Values above the inline bound are files already.
    pub transition: Transition,
    /// When true, an unfinished run of the same agent and inputs in the namespace is returned instead.
    pub join_unfinished: bool,
}

/// A run that comes whole from another store. Values above the inline bound are files already.
#[derive(Clone, Debug)]
pub struct Adopt {
    /// Every transition, from the first on; transcripts are not taken in.
    pub rows: Vec<JournalRow>,
    /// The state after the last one.
    pub state: Checkpoint,
    /// The digest of the definition that it began with.
    pub definition: Digest,
    /// The epoch of the last one.
    pub epoch: u64,
    /// What the journal gives for the tables beside it.
    pub tables: Tables,
    /// Its labels.
    pub labels: Labels,
    /// Every message that it was ever sent, oldest first.
    pub letters: Vec<Letter>,
}

impl Adopt {
    /// The values above the inline bound that its transitions name.
    ///
    /// # Errors
    ///
    /// `store.undecodable` when an envelope can't be read.
    pub(crate) fn large_values(&self) -> Result<BTreeSet<Digest>> {
        let mut large = BTreeSet::new();
        for row in self.rows.iter().filter(|row| row.values.is_some()) {
            large.extend(large_values(&Envelope::from_bytes(&row.envelope)?.events));
        }
        Ok(large)
    }
}

/// What came of a start.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each start, and it is looked into at once")]
pub enum Started {
    /// The run exists from now on, durably.
    New(RunRef),
    /// A run of that id, agent and inputs exists already; nothing changed.
    Existing(RunRow),
    /// There are unfinished runs of that agent and these inputs; nothing changed. Newest first.
    Unfinished(Vec<RunRow>),
}

/// After so many crashes in a row a run is suspected of being their cause.
pub const SUSPECT_CRASHES: u32 = 3;

/// Which runs a worker wants.
#[derive(Clone, Debug)]
pub enum Want {
    /// Any that is due, the longest due first, at most so many, and at most one of them a suspect: a run that shares its
    /// workers with one that crashes them is counted with it, and would be quarantined with it.
    Due(usize),
    /// As [`Self::Due`], without a suspect: for a worker that has one.
    Unsuspected(usize),
    /// This one, if it is due.
    Run(RunKey),
}

/// The right to advance a run, until the lease ends.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The run.
    pub run: RunRef,
    /// The fencing number: every claim raises it, and a commit with an old one changes nothing.
    pub epoch: u64,
    /// Claims since the last committed outcome that did not end in a release, this one not counted.
    pub crashes: u32,
    /// Was the store put back to an older copy, and the run does not know it yet? Its next transition has to say so.
    pub rewound: bool,
    /// When the last worker that did something died: the file on which its tools' holders keep a lock while they live.
    /// `None` when none of them can live any more.
    pub left_tools: Option<PathBuf>,
}

/// Why a claim is given back without a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// There is nothing to do. The run is due at once when something is unread.
    Idle,
    /// This worker can't go on with it and another could. The run is not due before its time, whatever is unread.
    Deferred,
    /// It went wrong: as [`Self::Deferred`], and the claim stays in the crash count.
    Crashed,
}

/// A transition to be committed.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The run.
    pub run: RunRef,
    /// The claim's epoch.
    pub epoch: u64,
    /// The transition. Values above the inline bound are files already.
    pub transition: Arc<Transition>,
    /// The raw reply that it took in: evidence for people, never needed.
    pub transcript: Option<Vec<u8>>,
    /// Where the run stands after it.
    pub standing: Standing,
    /// The newest hold that its worker knew: [`DispatchHolds::newest`].
    pub known_hold: u64,
    /// What its worker was told last: [`Committed::has_kin`]. A step that finds it so costs nothing for it.
    pub known_kin: bool,
    /// When true, the snapshot of the state after it is stored too.
    pub snapshot: bool,
    /// When true, the lease ends with it, and the crash count takes this claim back.
    pub release: bool,
}

/// What a commit tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The position of the newest message in the inbox: above the checkpoint's, there is something to read.
    pub inbox: u64,
    /// Has the run's lineage had another run, by the moment of this commit? Whichever is started or comes in later finds
    /// the effects whose intents this commit has.
    pub has_kin: bool,
}

/// What a store knows of a run that its journal does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The store was put back to an older copy: the run's next transition begins with a stop for it.
    Rewound,
    /// Something that every transition needs can't be read: no worker gets it before it is released.
    Undecodable,
    /// What comes next of it is held, as its reason says: it is due when that is released.
    Parked,
}

/// The dispatch holds of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchHolds {
    /// Those that are in force, oldest first.
    pub open: Vec<DispatchHold>,
    /// The number of the newest hold that ever was; 0 when there was none.
    pub newest: u64,
}

/// What came of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// It is in force from now on.
    New(DispatchHold),
    /// The same was held already; nothing changed.
    Existing(DispatchHold),
}

/// Where runs live.
///
/// A future may block its thread for as long as the disk takes for one sync, and one that is dropped before its end may
/// still take effect.
///
/// Every method may fail with `store.unavailable` (locked, full, unreachable) or `store.corrupt`; after either, nothing
/// of the call is stored unless the method says otherwise, and the same call may be made again.
pub trait Store: Send + Sync {
    /// The store's wall time: journal times and timers follow it.
    fn now(&self) -> Timestamp;

    /// Hints that something may be due or unread, also from other processes, within 50 ms.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Makes a worker known. It holds its leases until [`Self::retire`], or until its process dies.
    fn enlist(&self) -> StoreFuture<'_, WorkerId>;

    /// Prolongs all leases of a worker by [`LEASE_US`] from now; returns the boot time until which they hold.
    ///
    /// # Errors
    ///
    /// `lease.lost` when another worker has taken it for dead.
    fn renew<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, u64>;

    /// Ends a worker: what it still holds is due at once and counts as handed over. After an error it is dead all the same,
    /// as after a kill: what it holds is due once another worker finds it so.
    fn retire<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()>;

    /// Does this worker live, as far as can be seen without claiming? One that hangs does until its lease is taken.
    /// A run whose holder does not is any worker's to claim.
    fn is_alive(&self, worker: &WorkerId) -> bool;

    /// The file on which the holders of a worker's tools keep a shared lock while they live; `None` in memory.
    fn tools_lock(&self, worker: &WorkerId) -> Option<PathBuf>;

    /// The files and folders that are this store's alone, absolute and without links: what tools are to be kept from.
    ///
    /// Some of them may not exist at a given moment. Empty for a store that has none on this machine.
    fn own_paths(&self) -> Vec<PathBuf>;

    /// Starts a run: after Ok(New) it is durable and due. A crash leaves it whole or not there.
    ///
    /// # Errors
    ///
    /// `run.id_taken` when the id is another agent's or has other inputs, `run.removed` when a run of that id was removed,
    /// `run.not_found` when it is a fork whose origin is not here, `store.value_swept` as for a commit; nothing changed.
    fn start(&self, start: StartRun) -> StoreFuture<'_, Started>;

    /// Takes in a run that comes whole from another store: after Ok it is durable, and as due as its state says. After Err
    /// and after a crash before Ok nothing of it is here. The caller has checked that all of it fits together.
    ///
    /// # Errors
    ///
    /// `run.id_taken` when a run of that id is here, `effect.held` when a run that is here has one of its dedupe keys,
    /// `store.value_swept` as for a commit. One that was removed here may come back so.
    fn adopt(&self, adopt: Adopt) -> StoreFuture<'_, RunRef>;

    /// Frees what dead workers held, makes runs due whose dedupe key is no longer another's and open, then claims. Each
    /// claim raises the epoch and the crash count, durably.
    /// Exactly one of several workers gets a run.
    ///
    /// # Errors
    ///
    /// `lease.lost` when another worker has taken this one for dead.
    fn claim<'a>(&'a self, worker: &'a WorkerId, want: Want) -> StoreFuture<'a, Vec<Claim>>;

    /// Commits transitions of different runs, each standing or falling alone; results in the order given.
    ///
    /// After Ok the transition is durable, with its values, snapshot, requests, effects and artifacts, and its
    /// outcome resets the crash count. After `store.unavailable` it is not stored. After a crash it is stored whole or
    /// not at all.
    ///
    /// # Errors
    ///
    /// Per transition: `lease.lost` when the epoch or the sequence number is not the run's any more,
    /// `run.cancel_unread` when it holds an intent or the run's own end, and a cancel, pause or upgrade is unread; `run.hold_unknown` when
    /// it holds an intent or a call's reservation, and there is a newer hold than its worker knew;
    /// `effect.held` when it takes a dedupe key that another action has; `store.value_swept` when it names a value above the
    /// inline bound that is not stored (any more): see [`Self::put_value`]. Nothing of that one is stored.
    fn commit(&self, batch: Vec<Commit>) -> Pin<Box<dyn Future<Output = Vec<Result<Committed>>> + Send + '_>>;

    /// Gives a claim back without a transition; the run is due at `due`, or before that as [`Release`] says.
    ///
    /// # Errors
    ///
    /// `lease.lost` as for a commit.
    fn release<'a>(&'a self, claim: &'a Claim, due: Option<Timestamp>, how: Release) -> StoreFuture<'a, ()>;

    /// Gives a claim back and keeps the run from every worker until it is released: something that each transition
    /// needs can't be read. Its status is quarantined from then on, for the reason given; the claim counts as no crash.
    ///
    /// # Errors
    ///
    /// `lease.lost` as for a commit.
    fn hold<'a>(&'a self, claim: &'a Claim, why: &'a str) -> StoreFuture<'a, ()>;

    /// Stops the dispatch of a target in every run: after Ok no intent and no reservation is committed whose worker does
    /// not know of it. What was committed before is sent.
    fn hold_dispatch<'a>(&'a self, target: &'a Target, by: &'a str, reason: &'a str) -> StoreFuture<'a, Holding>;

    /// Ends the hold on a target, if there is one, and makes the runs due that were parked for it.
    fn release_dispatch<'a>(&'a self, target: &'a Target, by: &'a str) -> StoreFuture<'a, Option<DispatchHold>>;

    /// The holds.
    fn dispatch_holds(&self) -> StoreFuture<'_, DispatchHolds>;

    /// Changes whenever the holds have, as far as this handle knows: of its own changes at once, of another process's
    /// within 50 ms while somebody listens to [`Self::changes`]. It costs nothing to ask.
    fn holds_version(&self) -> u64;

    /// Notes that a service is not to be asked before a time, as it said itself. After Ok that holds for every run; a later
    /// time that it said before stands.
    fn limit<'a>(&'a self, service: &'a str, until: Timestamp) -> StoreFuture<'a, ()>;

    /// Until when a service is not to be asked; `None` where it did not say so, or that time is past.
    fn limited_until<'a>(&'a self, service: &'a str) -> StoreFuture<'a, Option<Timestamp>>;

    /// Gives a claim back without a transition, under these holds: the run waits, as its standing says, until one of them
    /// is released. Without any it stands as it is given. Where one was released meanwhile, it is due at once.
    ///
    /// # Errors
    ///
    /// `lease.lost` as for a commit.
    fn park<'a>(&'a self, claim: &'a Claim, standing: &'a Standing, holds: &'a [u64]) -> StoreFuture<'a, ()>;

    /// Reads a run: the newest snapshot, the transitions after it, and the unread messages, of one moment.
    ///
    /// # Errors
    ///
    /// `run.not_found`.
    fn load<'a>(&'a self, run: &'a RunKey) -> StoreFuture<'a, Loaded>;

    /// The messages after a position, oldest first.
    fn unread<'a>(&'a self, run: &'a RunRef, after: u64) -> StoreFuture<'a, Vec<(u64, Message)>>;

    /// Judges a message against the run with all that is unread, and stores it if it counts, in one transaction.
    /// After Ok(Accepted) it is durable and the run is due. The same `id` with the same message is `AlreadyGiven`,
    /// with another it is `Refused` as `message.id_reused`. A run that is held because it can't be read takes a release
    /// or a cancel once it can be read again; the release ends the hold and is not stored.
    ///
    /// # Errors
    ///
    /// `run.not_found`, `message.too_large`, `message.inbox_full`; nothing is stored. A cancel always has room.
    fn send<'a>(&'a self, run: &'a RunKey, id: &'a str, message: &'a Message) -> StoreFuture<'a, Verdict>;

    /// Stores bytes above the inline bound: after Ok they are durable and a transition may name them. Whoever waits for
    /// longer than a day with that may find them swept; then the commit is refused and they are put anew.
    fn put_value(&self, bytes: Vec<u8>) -> StoreFuture<'_, ValueRef>;

    /// Reads values of a run. Erased ones are left out.
    ///
    /// # Errors
    ///
    /// `store.value_damaged` names the digest of a value whose bytes are not what they were.
    fn values<'a>(&'a self, run: &'a RunRef, wanted: &'a [Stored]) -> StoreFuture<'a, Blobs>;

    /// Lists runs, newest first. It goes by an index for any filter, but looks through what the index gives: of two
    /// filters that each fit many runs and rarely the same, that is many.
    fn list<'a>(&'a self, namespace: &'a str, filter: &'a Filter) -> StoreFuture<'a, Vec<RunRow>>;

    /// How many runs a filter shows, its limit left aside; where there are more than `most`, more than `most`.
    fn count<'a>(&'a self, namespace: &'a str, filter: &'a Filter, most: usize) -> StoreFuture<'a, usize>;

    /// The runs whose id ends with this text, at most so many; a whole id finds just that one.
    fn find<'a>(&'a self, namespace: &'a str, id_end: &'a str, limit: usize) -> StoreFuture<'a, Vec<RunRow>>;

    /// The requests of a namespace that are open, oldest first, at most so many.
    fn open_requests<'a>(&'a self, namespace: &'a str, limit: usize) -> StoreFuture<'a, Vec<RequestRow>>;

    /// The requests, open or over, whose name's hex begins with this text.
    fn find_requests<'a>(&'a self, namespace: &'a str, name_start: &'a str) -> StoreFuture<'a, Vec<RequestRow>>;

    /// Transitions of a run from a number on, at most so many.
    fn journal<'a>(&'a self, run: &'a RunRef, from: u64, limit: usize) -> StoreFuture<'a, Vec<JournalRow>>;

    /// The snapshots that are kept, oldest first: transition number and bytes.
    fn snapshots<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>>;

    /// The effects of a run, oldest first: those with this sameness, or all.
    fn effects<'a>(&'a self, run: &'a RunRef, same: Option<&'a Digest>) -> StoreFuture<'a, Vec<EffectRow>>;

    /// Who has these dedupe keys of a namespace; free ones are left out.
    fn dedupe_keys<'a>(&'a self, namespace: &'a str, keys: &'a [String]) -> StoreFuture<'a, Vec<KeyHolder>>;

    /// The effects with this sameness of the other runs of a lineage: of the run whose id is `root` and of every fork
    /// that goes back to it, but this one. Oldest run first.
    fn kin_effects<'a>(
        &'a self,
        run: &'a RunRef,
        root: &'a RunId,
        same: &'a Digest,
    ) -> StoreFuture<'a, Vec<(RunRef, EffectRow)>>;

    /// The other runs of a lineage, as for [`Self::kin_effects`].
    fn kin<'a>(&'a self, run: &'a RunRef, root: &'a RunId) -> StoreFuture<'a, Vec<RunRow>>;

    /// Every version of every artifact of a run, oldest first.
    fn artifacts<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Vec<ArtifactRow>>;

    /// Everything that stands beside a run's journal, of one moment.
    fn beside<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, Beside>;

    /// Every run, and what belongs to none. Reads whole tables.
    fn audit(&self) -> StoreFuture<'_, Audit>;

    /// Every run that can still be found, whatever else of the store is damaged: a row that can't be read is named and
    /// passed over. Reads each run's row by itself.
    ///
    /// # Errors
    ///
    /// `store.corrupt` when it can't even be told how many there were.
    fn found(&self) -> StoreFuture<'_, Found> {
        Box::pin(async {
            let audit = self.audit().await?;
            Ok(Found { runs: audit.runs, lost: audit.strays })
        })
    }

    /// A run's row and every message that it was ever sent, of one moment: with its journal, all that can't be drawn
    /// from anything else. The tables that can be drawn from a journal are not looked at.
    fn carried<'a>(&'a self, run: &'a RunRef) -> StoreFuture<'a, (RunRow, Vec<Letter>)> {
        Box::pin(async {
            let beside = self.beside(run).await?;
            Ok((beside.row, beside.letters))
        })
    }

    /// What is wrong with the store's own file, in words; empty when it is sound, or there is none. It changes nothing,
    /// reads everything and takes as long; workers may go on meanwhile. What the runs say is not looked at.
    fn integrity(&self) -> StoreFuture<'_, Vec<String>>;

    /// Empties the transcripts of a run; returns how many there were, and their bytes as they were stored. Nothing needs
    /// them.
    fn forget_transcripts<'a>(&'a self, run: &'a RunRef, mode: Mode) -> StoreFuture<'a, Amount>;

    /// A pass over the values above the inline bound. One that no transition names is marked, and swept once a pass at
    /// least [`SWEEP_AFTER_MS`](crate::garbage::SWEEP_AFTER_MS) after the first that found it so still finds it so; to
    /// put it anew ends the mark. Any number of processes may store, commit and sweep at once: no value is ever gone that
    /// a transition names. What dead processes left beside the store goes too. After a crash some of it is gone, and
    /// nothing that is needed.
    ///
    /// # Errors
    ///
    /// `store.corrupt` when what the journals name can't be told; nothing is swept.
    fn sweep(&self, mode: Mode) -> StoreFuture<'_, Sweep>;

    /// Removes the runs of one lineage with all that belongs to them, together: after Ok(Removed) nothing of them is there but
    /// their ids, under which no run is started again. After Ok(Kept), after Err and after a crash before Ok all of them
    /// are as they were.
    ///
    /// # Errors
    ///
    /// `run.not_found`.
    fn remove<'a>(&'a self, runs: &'a [RunRef], mode: Mode) -> StoreFuture<'a, Removal>;

    /// Gives the room that removed rows left back to the system; how many bytes. Nobody can write meanwhile.
    ///
    /// # Errors
    ///
    /// `store.in_use` while a worker lives; nothing changed.
    fn compact(&self) -> StoreFuture<'_, u64>;
}
