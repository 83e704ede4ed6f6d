//! What a memory store holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lodestep_core::rules::inbox::Message;
use lodestep_core::{Digest, INLINE_VALUE_BYTES, Result, RunId, RunKey, Timestamp, ValueRef};

use super::hold::Holds;
use crate::refusals;
use crate::rows::Tables;
use crate::store::{EffectRow, JournalRow, RunRef, RunRow, WorkerId};

/// Everything.
#[derive(Default)]
pub(super) struct State {
    /// By number.
    pub(super) runs: Vec<Run>,
    /// The highest number that a run ever had.
    pub(super) runs_ever: i64,
    pub(super) by_key: HashMap<RunKey, i64>,
    /// The requests of all runs, by run and name, oldest first.
    pub(super) asked: Vec<(i64, Digest)>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    pub(super) workers_ever: u64,
    pub(super) holds: Holds,
    /// Until when services are not to be asked.
    pub(super) rate_limits: HashMap<String, Timestamp>,
    /// Values above the inline bound.
    pub(super) files: HashMap<Digest, Vec<u8>>,
    /// Those that no transition named when a pass first looked, and when that was.
    pub(super) unnamed: BTreeMap<Digest, Timestamp>,
    /// Runs that were removed, and when.
    pub(super) removed: HashMap<RunKey, Timestamp>,
}

pub(super) struct Worker {
    pub(super) alive: bool,
    pub(super) lease_until_us: u64,
}

/// One run.
pub(super) struct Run {
    pub(super) row: RunRow,
    pub(super) journal: Vec<JournalRow>,
    /// Oldest first.
    pub(super) snapshots: Vec<(u64, Vec<u8>)>,
    pub(super) inbox: Vec<Letter>,
    /// The position of the last message that a transition read.
    pub(super) inbox_read: u64,
    pub(super) tables: Tables,
    /// The run at the root of its lineage, for forks.
    pub(super) root: Option<RunId>,
}

/// A message in an inbox.
pub(super) struct Letter {
    pub(super) position: u64,
    pub(super) id: String,
    pub(super) message: Message,
}

impl State {
    pub(super) fn limit(&mut self, service: &str, until: Timestamp) {
        let stands = self.rate_limits.entry(service.to_owned()).or_insert(until);
        *stands = until.max(*stands);
    }

    pub(super) fn limited_until(&self, service: &str, now: Timestamp) -> Option<Timestamp> {
        self.rate_limits.get(service).copied().filter(|until| *until > now)
    }

    pub(super) fn find_run(&self, key: &RunKey) -> Option<&Run> {
        self.by_key.get(key).and_then(|number| self.by_number(*number))
    }

    pub(super) fn run(&self, run: &RunRef) -> Result<&Run> {
        self.by_number(run.number).ok_or_else(|| refusals::not_found(&run.key))
    }

    pub(super) fn by_number(&self, number: i64) -> Option<&Run> {
        self.runs.get(self.place(number)?)
    }

    pub(super) fn run_mut(&mut self, run: &RunRef) -> Result<&mut Run> {
        let place = self.place(run.number).ok_or_else(|| refusals::not_found(&run.key))?;
        Ok(&mut self.runs[place])
    }

    pub(super) fn run_by_key(&mut self, key: &RunKey) -> Result<&mut Run> {
        let number = self.by_key.get(key).copied().unwrap_or_default();
        let place = self.place(number).ok_or_else(|| refusals::not_found(key))?;
        Ok(&mut self.runs[place])
    }

    /// Where the run of a number stands.
    pub(super) fn place(&self, number: i64) -> Option<usize> {
        self.runs.binary_search_by_key(&number, |run| run.row.run.number).ok()
    }

    /// The other runs of a lineage.
    pub(super) fn kin<'a>(&'a self, run: &'a RunRef, root: &'a RunId) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |kin| {
            let key = &kin.row.run.key;
            let of_it = kin.root.as_ref() == Some(root) || key.run == *root;
            of_it && key.namespace == run.key.namespace && kin.row.run.number != run.number
        })
    }

    pub(super) fn kin_effects(&self, run: &RunRef, root: &RunId, same: &Digest) -> Vec<(RunRef, EffectRow)> {
        let of = |kin: &'_ Run| {
            let equal = kin.tables.effects.iter().filter(|effect| effect.same == *same).cloned();
            equal.map(|effect| (kin.row.run.clone(), effect)).collect::<Vec<_>>()
        };
        self.kin(run, root).flat_map(of).collect()
    }

    pub(super) fn next_ref(&mut self, key: RunKey) -> RunRef {
        self.runs_ever += 1;
        RunRef { key: Arc::new(key), number: self.runs_ever }
    }

    pub(super) fn put_value(&mut self, bytes: Vec<u8>) -> ValueRef {
        let value = ValueRef::of(&bytes);
        self.files.insert(value.digest, bytes);
        // Somebody is about to name it.
        self.unnamed.remove(&value.digest);
        value
    }

    /// Moves the values above the inline bound to the files, and gives the others.
    pub(super) fn inline(&mut self, values: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let (inline, large): (Vec<_>, Vec<_>) = values.into_iter().partition(|bytes| bytes.len() <= INLINE_VALUE_BYTES);
        for bytes in large {
            self.put_value(bytes);
        }
        inline
    }

    pub(super) fn damage_value(&mut self, digest: &Digest) -> bool {
        let rows = self.runs.iter_mut().flat_map(|run| &mut run.journal);
        let inline = rows.flat_map(|row| row.values.iter_mut().flatten());
        let mut all = inline.chain(self.files.get_mut(digest));
        match all.find(|bytes| Digest::of(bytes) == *digest).and_then(|bytes| bytes.first_mut()) {
            Some(byte) => {
                *byte ^= 1;
                true
            }
            None => false,
        }
    }

    pub(super) fn erase_values(&mut self, run: &RunRef, seq: u64) {
        let Ok(run) = self.run_mut(run) else { return };
        if let Some(row) = run.journal.iter_mut().find(|row| row.seq == seq) {
            row.values = None;
        }
    }
}

impl Run {
    pub(super) fn unread(&self, after: u64) -> Vec<(u64, Message)> {
        let letters = self.inbox.iter().filter(|letter| letter.position > after);
        letters.map(|letter| (letter.position, letter.message.clone())).collect()
    }

    /// Were the values of that transition erased?
    pub(super) fn is_erased(&self, seq: u64) -> bool {
        self.journal.iter().any(|row| row.seq == seq && row.values.is_none())
    }

    /// Ends the lease; the run is due at `due`, or at once when something is unread.
    pub(super) fn let_go(&mut self, due: Option<Timestamp>, now: Timestamp) {
        self.row.holder = None;
        self.row.due = if self.row.inbox > self.inbox_read { Some(now) } else { due };
    }
}
