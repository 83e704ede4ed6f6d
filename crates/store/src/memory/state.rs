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
    /// A run's number is its place, from 1.
    pub(super) runs: Vec<Run>,
    pub(super) by_key: HashMap<RunKey, i64>,
    /// The requests of all runs, by run and name, oldest first.
    pub(super) asked: Vec<(i64, Digest)>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    pub(super) workers_ever: u64,
    pub(super) holds: Holds,
    /// Values above the inline bound.
    pub(super) files: HashMap<Digest, Vec<u8>>,
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
    pub(super) fn find_run(&self, key: &RunKey) -> Option<&Run> {
        self.by_key.get(key).and_then(|number| self.runs.get(place(*number)))
    }

    pub(super) fn run(&self, run: &RunRef) -> Result<&Run> {
        self.runs.get(place(run.number)).ok_or_else(|| refusals::not_found(&run.key))
    }

    pub(super) fn by_number(&self, number: i64) -> Option<&Run> {
        self.runs.get(place(number))
    }

    pub(super) fn run_mut(&mut self, run: &RunRef) -> Result<&mut Run> {
        self.runs.get_mut(place(run.number)).ok_or_else(|| refusals::not_found(&run.key))
    }

    pub(super) fn run_by_key(&mut self, key: &RunKey) -> Result<&mut Run> {
        let number = self.by_key.get(key).copied().unwrap_or_default();
        self.runs.get_mut(place(number)).ok_or_else(|| refusals::not_found(key))
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

    pub(super) fn next_ref(&self, key: RunKey) -> RunRef {
        let number = i64::try_from(self.runs.len()).unwrap_or(i64::MAX - 1) + 1;
        RunRef { key: Arc::new(key), number }
    }

    pub(super) fn put_value(&mut self, bytes: Vec<u8>) -> ValueRef {
        let value = ValueRef::of(&bytes);
        self.files.insert(value.digest, bytes);
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
        let Some(run) = self.runs.get_mut(place(run.number)) else { return };
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

fn place(number: i64) -> usize {
    usize::try_from(number - 1).unwrap_or(usize::MAX)
}
