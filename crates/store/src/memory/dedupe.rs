//! Dedupe keys: who has one, and who waits for one that is not another's any more.

use lodestep_core::rules::standing::Status;
use lodestep_core::{Error, Timestamp};

use super::state::{Run, State};
use crate::refusals;
use crate::rows::{KeyChange, KeyFate, KeyRow};
use crate::store::{Hold, KeyHolder, RunRef};

impl State {
    pub(super) fn dedupe_keys(&self, namespace: &str, keys: &[String]) -> Vec<KeyHolder> {
        let wanted = self.keys_of(namespace).filter(|(_, row)| keys.contains(&row.key));
        wanted.map(|(run, row)| KeyHolder { run: run.row.run.clone(), row: row.clone() }).collect()
    }

    fn keys_of<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Run, &'a KeyRow)> {
        let runs = self.runs.iter().filter(move |run| run.row.run.key.namespace == namespace);
        runs.flat_map(|run| run.tables.keys.iter().map(move |row| (run, row)))
    }

    /// Why a transition can't have a key that it takes.
    pub(super) fn taken_by_another(&self, run: &RunRef, changes: &[KeyChange]) -> Option<Error> {
        changes.iter().find_map(|change| {
            let KeyChange::Taken(wanted) = change else { return None };
            let mut holders = self.keys_of(&run.key.namespace).filter(|(_, row)| row.key == wanted.key);
            let (holder, row) =
                holders.find(|(holder, row)| holder.row.run.number != run.number || row.ordinal != wanted.ordinal)?;
            Some(refusals::key_taken(&run.key, &wanted.key, &holder.row.run.key, row.ordinal))
        })
    }

    /// Makes runs due that wait for a key that is free, or whose effect is known.
    pub(super) fn wake_waiting(&mut self, now: Timestamp) {
        let free: Vec<usize> = (0..self.runs.len()).filter(|place| self.may_go_on(&self.runs[*place])).collect();
        for place in free {
            let due = &mut self.runs[place].row.due;
            *due = Some(due.map_or(now, |due| due.min(now)));
        }
    }

    fn may_go_on(&self, run: &Run) -> bool {
        let row = &run.row;
        let waits = row.holder.is_none()
            && row.hold != Some(Hold::Undecodable)
            && matches!(row.status, Status::Waiting | Status::InDoubt);
        let is_open = |key: &String| {
            self.keys_of(&row.run.key.namespace).any(|(_, of)| of.key == *key && of.fate == KeyFate::Open)
        };
        waits && run.tables.waits.iter().any(|(_, key)| !is_open(key))
    }
}
