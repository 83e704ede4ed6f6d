//! Values that no transition names, and runs that ended long ago.

use std::collections::BTreeSet;

use lodestep_core::{Digest, Result, Timestamp};

use super::state::{Run, State};
use crate::garbage::{Kept, Mode, Removal, Removed, Sweep, digests_in, is_due};
use crate::store::{JournalRow, RunRef};

impl State {
    pub(super) fn sweep(&mut self, mode: Mode, now: Timestamp) -> Sweep {
        let envelopes = self.runs.iter().flat_map(|run| &run.journal);
        let named: BTreeSet<Digest> = envelopes.flat_map(|row| digests_in(&row.envelope)).collect();
        let mut sweep = Sweep::default();
        let mut due = Vec::new();
        for (digest, bytes) in &self.files {
            let bytes = bytes.len() as u64;
            if named.contains(digest) {
                sweep.named.add(bytes);
            } else if self.unnamed.get(digest).is_some_and(|since| is_due(*since, now)) {
                due.push(*digest);
                sweep.swept.add(bytes);
            } else {
                sweep.waiting.add(bytes);
            }
        }
        if mode == Mode::Apply {
            self.files.retain(|digest, _| !due.contains(digest));
            let unnamed = self.files.keys().filter(|digest| !named.contains(digest));
            let since = |digest: &Digest| self.unnamed.get(digest).map_or(now, |since| now.min(*since));
            self.unnamed = unnamed.map(|digest| (*digest, since(digest))).collect();
        }
        sweep
    }

    pub(super) fn remove(&mut self, runs: &[RunRef], mode: Mode, now: Timestamp) -> Result<Removal> {
        let mut removed = Removed::default();
        for named in runs {
            let run = self.run(named)?;
            if let Some(kept) = self.kept(run, runs) {
                return Ok(Removal::Kept(kept));
            }
            removed.runs += 1;
            removed.transitions += run.journal.len() as u64;
            removed.bytes += run.bytes();
        }
        if mode == Mode::Apply {
            let goes = |number: i64| runs.iter().any(|run| run.number == number);
            self.runs.retain(|run| !goes(run.row.run.number));
            self.by_key.retain(|_, number| !goes(*number));
            self.asked.retain(|(number, _)| !goes(*number));
            self.removed.extend(runs.iter().map(|run| (run.key.as_ref().clone(), now)));
        }
        Ok(Removal::Removed(removed))
    }

    /// Why this run has to stay.
    fn kept(&self, run: &Run, runs: &[RunRef]) -> Option<Kept> {
        let row = &run.row;
        let id = &row.run.key.run;
        if row.holder.is_some() || !row.status.is_terminal() {
            return Some(Kept::NotOver(id.clone()));
        }
        if row.inbox > run.inbox_read {
            return Some(Kept::Unread(id.clone()));
        }
        if let Some(key) = run.tables.keys.first() {
            return Some(Kept::DedupeKey(id.clone(), key.key.clone()));
        }
        let root = run.root.as_ref().unwrap_or(id);
        let is_named = |kin: &&Run| runs.iter().any(|run| run.number == kin.row.run.number);
        self.kin(&row.run, root).find(|kin| !is_named(kin)).map(|kin| Kept::Relative(kin.row.run.key.run.clone()))
    }
}

impl Run {
    fn bytes(&self) -> u64 {
        let row = |row: &JournalRow| {
            let values = row.values.iter().flatten().map(Vec::len).sum::<usize>();
            row.envelope.len() + values + row.transcript.as_ref().map_or(0, Vec::len)
        };
        let journal: usize = self.journal.iter().map(row).sum();
        let snapshots: usize = self.snapshots.iter().map(|(_, bytes)| bytes.len()).sum();
        (journal + snapshots) as u64
    }
}
