//! The one loop: what is known becomes a draft, the draft is committed, what was committed is dispatched, then it waits.
//!
//! Nothing is sent that is not committed. An outcome is committed as soon as it is known, with whatever
//! follows from it. When a commit fails, the state is read again and what was seen is applied to it anew.

mod dedupe;
mod draft;
mod holds;
mod lineage;
mod pass;
mod pins;
mod priors;
mod quarantine;
mod remind;
mod send;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, BoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use lodestep_core::checkpoint::Phase;
use lodestep_core::context::memo::Memo;
use lodestep_core::event::{CallLost, Event, HandedOver, RunStopped, StopReason};
use lodestep_core::rules::inbox::{self, Message};
use lodestep_core::rules::recover;
use lodestep_core::rules::remind::Reminder;
use lodestep_core::rules::standing::standing;
use lodestep_core::{Checkpoint, Draft, Error, INLINE_VALUE_BYTES, Ordinal, Result, Transition};
use lodestep_store::{Claim, Commit, Hold, Release};
use tokio::sync::watch;

use crate::observe::Observer;
use crate::process::wait_until_free;
use crate::runtime::Runtime;
use crate::secrets::Secrets;
use crate::worker::done::Done;
use crate::worker::lease::Shared;
use crate::worker::pinned::Pinned;
use crate::worker::request::Cache;
use crate::worker::trouble::will_pass;
use crate::worker::{DRAIN, Shutdown};
use holds::Known;
use priors::Index;

/// How long a dead worker's tools are waited for before anything of theirs is done again.
const LEFT_TOOLS: Duration = Duration::from_secs(10);

/// How often a run under way looks into its inbox at most, however many hints there are.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Waits for a hint, but not before `earliest`.
async fn hinted(changes: &mut watch::Receiver<u64>, earliest: tokio::time::Instant) {
    tokio::time::sleep_until(earliest).await;
    // The store outlives its runs' loops: this ends only by a hint.
    let _ = changes.changed().await;
}

/// One claimed run under way.
pub(super) struct Drive {
    runtime: Runtime,
    lease: Shared,
    claim: Claim,
    observer: Arc<dyn Observer>,
    shutdown: Shutdown,
    cache: Cache,
    memo: Memo,
    index: Index,
    /// What is under way, polled by the run's own task: a step costs no hand-over between threads.
    tasks: FuturesUnordered<BoxFuture<'static, Option<Done>>>,
    under_way: BTreeSet<Ordinal>,
    asking: Option<(u64, AbortHandle)>,
    /// Told to what is under way when its time is over.
    stop: Shutdown,
    inbox: u64,
    holds: Known,
    /// Has the lineage another run, as the newest commit says? True before the first.
    has_kin: bool,
    /// Does the store say that it waits for the end of a hold?
    was_parked: bool,
    /// When the inbox was looked into last: other runs' hints are frequent, and mean nothing to this one.
    looked: tokio::time::Instant,
    worked_until_us: u64,
    secrets: Arc<Secrets>,
    /// The reminders that have been told in this claim and are still the newest.
    reminded: Vec<Reminder>,
    /// What some actions go by that may have begun before an upgrade.
    earlier: BTreeMap<Ordinal, Arc<Pinned>>,
}

impl Drive {
    pub fn new(runtime: Runtime, lease: Shared, claim: Claim, observer: Arc<dyn Observer>, shutdown: Shutdown) -> Self {
        let worked_until_us = runtime.clock.boot_us();
        Self {
            runtime,
            lease,
            claim,
            observer,
            shutdown,
            cache: Cache::default(),
            memo: Memo::default(),
            index: Index::default(),
            tasks: FuturesUnordered::new(),
            under_way: BTreeSet::new(),
            asking: None,
            stop: Shutdown::default(),
            inbox: 0,
            holds: Known::default(),
            has_kin: true,
            was_parked: false,
            looked: tokio::time::Instant::now(),
            worked_until_us,
            secrets: Arc::default(),
            reminded: Vec::new(),
            earlier: BTreeMap::new(),
        }
    }

    /// Advances the run until nothing can be done now; the claim is given back with the last commit.
    pub async fn run(mut self) -> Result<()> {
        if let Some(left) = &self.claim.left_tools {
            self.wait_for_left_tools(left.clone()).await?;
        }
        let mut checkpoint = self.load().await?;
        if let Some(why) = self.is_rewound(&checkpoint) {
            return self.stop(checkpoint, StopReason::Rewound, why).await;
        }
        let unread = self.unread(&checkpoint).await?;
        if pins::is_among(&unread) {
            // What the run can't go on with may be what the upgrade replaces.
            let draft = self.words(checkpoint, &unread)?;
            checkpoint = self.commit(draft, &[], false).await?;
        }
        let mut run = match self.pin(&checkpoint).await {
            Ok(run) => run,
            Err(unfit) => return self.stop_unfit(checkpoint, unfit).await,
        };
        self.observer.taken(&self.claim.run.key, &run.definition, &checkpoint, self.claim.crashes);
        let mut seen: Vec<Done> = Vec::new();
        let mut changes = self.runtime.store.changes();
        loop {
            match self.pass(checkpoint, &run, &mut seen).await? {
                Some(after) => checkpoint = after,
                None => return Ok(()),
            }
            if !run.is_of(&checkpoint) {
                match self.pin(&checkpoint).await {
                    Ok(other) => run = other,
                    Err(unfit) => {
                        checkpoint = self.end_under_way(checkpoint, seen).await?;
                        return self.stop_unfit(checkpoint, unfit).await;
                    }
                }
                self.forget_holds();
                continue;
            }
            if self.shutdown.is_begun() {
                return self.hand_over(checkpoint, run.as_ref()).await;
            }
            seen = self.wait(&checkpoint, &mut changes).await?;
        }
    }

    /// Stops the run and gives it back.
    async fn stop(mut self, checkpoint: Checkpoint, reason: StopReason, text: String) -> Result<()> {
        let mut draft = Draft::next(checkpoint, self.runtime.store.now(), self.claim.epoch, 0);
        recover::recover(&mut draft)?;
        let text = draft.put(text);
        draft.push(Event::RunStopped(RunStopped { reason, text }))?;
        self.commit(draft, &[], true).await.map(|_| ())
    }

    /// The lease is gone. What is known for sure of what was sent is told to whoever has the run now.
    async fn report_late(&mut self, seen: &[Done]) {
        for done in seen {
            let Done::Attempt { ordinal, attempt, sight, .. } = done else { continue };
            let Some(word) = inbox::late_word(*ordinal, *attempt, sight.seen, sight.text.clone()) else { continue };
            let id = format!("late-{ordinal}-{attempt}-{}", self.claim.epoch);
            let message = Message { by: "a worker without its lease".to_owned(), word };
            // It is a help, not a duty: without it the doubt is settled as any other.
            let _ = self.runtime.store.send(&self.claim.run.key, &id, &message).await;
        }
    }

    async fn wait_for_left_tools(&mut self, left: std::path::PathBuf) -> Result<()> {
        let free = wait_until_free(&left, LEFT_TOOLS).await.unwrap_or(true);
        if free {
            return Ok(());
        }
        let what = format!("tools of the worker that had run {} before are still running", self.claim.run.key.run);
        Err(Error::new("store.unavailable", what, "they are waited for"))
    }

    async fn load(&mut self) -> Result<Checkpoint> {
        let loaded = self.runtime.store.load(&self.claim.run.key).await?;
        // A commit that gave the claim back may have taken effect though its answer was lost.
        if loaded.row.epoch != self.claim.epoch || loaded.row.holder.as_ref() != Some(&self.lease.worker) {
            let what = format!("run {} is no longer this worker's", self.claim.run.key.run);
            return Err(Error::new("lease.lost", what, "whoever has it goes on with it"));
        }
        self.inbox = loaded.row.inbox;
        self.was_parked = loaded.row.hold == Some(Hold::Parked);
        // A commit whose outcome was unknown may have brought effects, and not have said what it found.
        self.has_kin = true;
        self.index = Index::default();
        loaded.checkpoint()
    }

    async fn unread(&mut self, checkpoint: &Checkpoint) -> Result<Vec<(u64, Message)>> {
        if self.inbox <= checkpoint.inbox {
            return Ok(Vec::new());
        }
        self.runtime.store.unread(&self.claim.run, checkpoint.inbox).await
    }

    /// Is there nothing under way, and nothing to dispatch or to ask now?
    fn can_let_go(&self, checkpoint: &Checkpoint) -> bool {
        let now = self.runtime.store.now();
        self.under_way.is_empty()
            && self.asking.is_none()
            && self.dispatchable(checkpoint, now).is_empty()
            && !self.wants_model(checkpoint, now)
            && self.stands(checkpoint).due.is_none_or(|due| due > now)
    }

    async fn commit(&mut self, draft: Draft, seen: &[Done], release: bool) -> Result<Checkpoint> {
        self.cache.keep(draft.values());
        let mut transition = draft.seal();
        self.put_large(&mut transition.values).await?;
        self.store(transition, seen, release).await
    }

    async fn store(&mut self, transition: Transition, seen: &[Done], release: bool) -> Result<Checkpoint> {
        let sealed = Arc::new(transition);
        let after = &sealed.checkpoint;
        let every = u64::from(after.limits.snapshot_every.max(1));
        let commit = Commit {
            run: self.claim.run.clone(),
            epoch: self.claim.epoch,
            snapshot: after.seq.is_multiple_of(every),
            transition: sealed.clone(),
            transcript: seen.iter().find_map(|done| match done {
                Done::Reply { reply: Ok(answered), .. } => Some(answered.transcript.clone()),
                _ => None,
            }),
            standing: standing(after),
            known_hold: self.holds.newest,
            known_kin: self.has_kin,
            release,
        };
        let mut results = self.runtime.store.commit(vec![commit]).await;
        let committed = results.pop().unwrap_or_else(|| {
            Err(Error::new("store.unavailable", "the store gave no answer to a commit", "it is tried again"))
        })?;
        self.inbox = self.inbox.max(committed.inbox);
        self.has_kin = committed.has_kin;
        self.worked_until_us = self.runtime.clock.boot_us();
        self.index.learn(&sealed.events, after);
        self.observer.committed(&self.claim.run.key, &sealed.events, &sealed.values, after);
        // The store has let go of it by now; where it has not, the state is copied.
        Ok(Arc::unwrap_or_clone(sealed).checkpoint)
    }

    /// Values above the inline bound become files before the commit that names them.
    async fn put_large(&mut self, values: &mut Vec<Vec<u8>>) -> Result<()> {
        if values.iter().all(|bytes| bytes.len() <= INLINE_VALUE_BYTES) {
            return Ok(());
        }
        let (large, inline) = std::mem::take(values).into_iter().partition(|bytes| bytes.len() > INLINE_VALUE_BYTES);
        *values = inline;
        for bytes in large as Vec<Vec<u8>> {
            self.runtime.store.put_value(bytes).await?;
        }
        Ok(())
    }

    /// Waits for something to happen: an outcome, a word from outside, a due time, the stop.
    async fn wait(&mut self, checkpoint: &Checkpoint, changes: &mut watch::Receiver<u64>) -> Result<Vec<Done>> {
        let now = self.runtime.store.now();
        let due = match &checkpoint.phase {
            Phase::Cancelling { grace_until, .. } => Some(*grace_until),
            _ => self.stands(checkpoint).due.filter(|due| *due > now),
        };
        let until_due = due.map_or(Duration::from_secs(5), |due| Duration::from_millis(due.ms_since(now).max(1)));
        let mut seen = Vec::new();
        tokio::select! {
            biased;
            Some(done) = self.tasks.next() => seen.extend(self.came_back(done)),
            () = hinted(changes, self.looked + BETWEEN_LOOKS) => {}
            () = tokio::time::sleep(until_due.min(Duration::from_secs(5))) => self.end_grace(checkpoint),
            () = self.shutdown.begun() => {}
        }
        while let Some(Some(done)) = self.tasks.next().now_or_never() {
            seen.extend(self.came_back(done));
        }
        if seen.is_empty() {
            // A hint says that something may have changed; the inbox is what could concern this run.
            self.looked = tokio::time::Instant::now();
            match self.runtime.store.unread(&self.claim.run, checkpoint.inbox).await {
                Ok(unread) => self.inbox = unread.last().map_or(self.inbox, |(at, _)| self.inbox.max(*at)),
                // It is looked into again; what is under way is not dropped for it.
                Err(error) if will_pass(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(seen)
    }

    /// After the grace of a cancel what is still under way is stopped.
    fn end_grace(&mut self, checkpoint: &Checkpoint) {
        if let Phase::Cancelling { grace_until, .. } = &checkpoint.phase
            && self.runtime.store.now() >= *grace_until
        {
            self.stop.begin();
        }
    }

    /// A graceful stop: what is under way may end within the drain time, then the run is given back as it is.
    async fn hand_over(mut self, mut checkpoint: Checkpoint, run: &Pinned) -> Result<()> {
        let deadline = tokio::time::Instant::now() + DRAIN;
        let mut seen = Vec::new();
        while !self.tasks.is_empty() {
            tokio::select! {
                biased;
                Some(done) = self.tasks.next() => seen.extend(self.came_back(done)),
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        if let Some((_, handle)) = self.asking.take() {
            handle.abort();
        }
        self.stop.begin();
        while let Some(done) = self.tasks.next().await {
            seen.extend(self.came_back(done));
        }
        let unread = self.unread(&checkpoint).await?;
        let mut draft = match pins::is_among(&unread) {
            // What follows by the other definition is the next worker's.
            true => self.words_and_outcomes(checkpoint, &unread, &seen)?,
            false => self.draft(checkpoint, run, &seen, &unread).await?.0,
        };
        if let Some(open) = draft.checkpoint().model.open {
            draft.push(Event::CallLost(CallLost { call: open.call, charged: None }))?;
        }
        if !draft.checkpoint().is_over() {
            draft.push(Event::HandedOver(HandedOver { unsent_call: None }))?;
        }
        if draft.is_empty() {
            let due = standing(draft.checkpoint()).due;
            return self.runtime.store.release(&self.claim, due, Release::Idle).await;
        }
        checkpoint = self.commit(draft, &seen, true).await?;
        drop(checkpoint);
        Ok(())
    }
}
