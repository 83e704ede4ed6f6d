//! Loading and listing.

use lodestep_core::context::Blobs;
use lodestep_core::{Digest, INLINE_VALUE_BYTES, Result, RunKey, Stored};

use super::state::{Run, State};
use crate::audit::{Audit, Beside, Letter};
use crate::loaded::Loaded;
use crate::refusals;
use crate::rows::Tables;
use crate::store::{Filter, RequestRow, RunRef, RunRow};

impl State {
    pub(super) fn load(&self, key: &RunKey) -> Result<Loaded> {
        let run = self.find_run(key).ok_or_else(|| refusals::not_found(key))?;
        let (from, snapshot) = match run.snapshots.last() {
            Some((seq, bytes)) => (*seq, Some(bytes.clone())),
            None => (0, None),
        };
        let tail = run.journal.iter().filter(|row| row.seq > from).map(|row| row.envelope.clone()).collect();
        Ok(Loaded { row: run.row.clone(), snapshot, tail, unread: run.unread(run.inbox_read) })
    }

    pub(super) fn values(&self, run: &RunRef, wanted: &[Stored]) -> Result<Blobs> {
        let run = self.run(run)?;
        let mut blobs = Blobs::default();
        for stored in wanted {
            match self.value(run, stored) {
                Some(bytes) if Digest::of(bytes) == stored.digest => {
                    blobs.insert(stored.digest, bytes.to_vec());
                }
                None if run.is_erased(stored.seq) => {}
                _ => return Err(refusals::value_damaged(&stored.digest, &run.row.run.key, "is damaged")),
            }
        }
        Ok(blobs)
    }

    fn value<'a>(&'a self, run: &'a Run, stored: &Stored) -> Option<&'a [u8]> {
        if stored.len > INLINE_VALUE_BYTES as u64 {
            return self.files.get(&stored.digest).map(Vec::as_slice);
        }
        let row = run.journal.iter().find(|row| row.seq == stored.seq)?;
        let mut values = row.values.iter().flatten().map(Vec::as_slice);
        values.find(|bytes| Digest::of(bytes) == stored.digest)
    }

    pub(super) fn list(&self, namespace: &str, filter: &Filter) -> Vec<RunRow> {
        let shown = |row: &RunRow| row.run.key.namespace == namespace && filter.takes(row);
        let newest_first = self.runs.iter().rev().map(|run| &run.row);
        newest_first.filter(|row| shown(row)).take(filter.limit.unwrap_or(usize::MAX)).cloned().collect()
    }

    pub(super) fn find(&self, namespace: &str, id_end: &str, limit: usize) -> Vec<RunRow> {
        let rows = || self.runs.iter().rev().map(|run| &run.row).filter(|row| row.run.key.namespace == namespace);
        if let Some(row) = rows().find(|row| row.run.key.run.as_str() == id_end) {
            return vec![row.clone()];
        }
        rows().filter(|row| row.run.key.run.as_str().ends_with(id_end)).take(limit).cloned().collect()
    }

    pub(super) fn requests<'a>(
        &'a self,
        namespace: &'a str,
        wanted: impl Fn(&RequestRow) -> bool + 'a,
    ) -> impl Iterator<Item = RequestRow> + 'a {
        let rows = self.asked.iter().filter_map(|(number, name)| {
            let run = self.by_number(*number)?;
            let asked = run.tables.requests.iter().find(|asked| asked.name == *name)?;
            Some(RequestRow { name: asked.name, run: run.row.run.clone(), ordinal: asked.ordinal, open: asked.open })
        });
        rows.filter(move |row| row.run.key.namespace == namespace && wanted(row))
    }

    pub(super) fn beside(&self, run: &RunRef) -> Result<Beside> {
        let run = self.run(run)?;
        let letters = run.inbox.iter().map(|letter| Letter {
            position: letter.position,
            id: letter.id.clone(),
            message: Ok(letter.message.clone()),
        });
        let found = self.by_key.iter().find(|(_, number)| **number == run.row.run.number);
        Ok(Beside {
            found_as: found.map(|(key, _)| key.run.to_string()).unwrap_or_default(),
            listed_in: run.row.run.key.namespace.clone(),
            inbox_read: run.inbox_read,
            cancel_at: run
                .inbox
                .iter()
                .rev()
                .find(|letter| letter.message.holds_intents())
                .map(|letter| letter.position),
            found_by: run.row.labels.clone(),
            root: run.root.as_ref().map(ToString::to_string),
            parked_under: self.parked_under(run.row.run.number),
            holder_is_known: run.row.holder.as_ref().is_none_or(|holder| self.workers.contains_key(holder)),
            tables: Tables { requests: Vec::new(), ..run.tables.clone() },
            letters: letters.collect(),
            row: run.row.clone(),
        })
    }

    pub(super) fn audit(&self) -> Audit {
        Audit { runs: self.runs.iter().map(|run| run.row.run.clone()).collect(), strays: Vec::new() }
    }
}
