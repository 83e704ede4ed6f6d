//! Large values as they are stored, and what of the store is swept or removed: files and rows together.

use std::sync::Arc;

use lodestep_core::{INLINE_VALUE_BYTES, Result, Transition, ValueRef};

use super::failure::unavailable;
use super::reserve::Room;
use super::sweep::{self, BATCH, Seen};
use super::{SqliteStore, compact, leftover, remove};
use crate::garbage::{Amount, Mode, Removal, Sweep};
use crate::store::RunRef;

/// So often a pass begins anew because runs were removed while it read.
const LOOKS: u32 = 3;

impl SqliteStore {
    /// Stores bytes; after Ok they are durable, and no pass sweeps them for a day.
    pub(super) async fn put(&self, bytes: Vec<u8>, room: Room) -> Result<ValueRef> {
        let digest = ValueRef::of(&bytes).digest;
        if !self.readers.read(&self.path, |db| sweep::is_marked(db, &digest))? {
            return self.values.put(&bytes, room, &self.reserve);
        }
        // A pass may be about to remove the file: in here it can't, and behind it the mark is gone.
        let (files, reserve) = (self.values.clone(), self.reserve.clone());
        self.writer
            .write_within(room, move |db| {
                let value = files.put(&bytes, room, &reserve)?;
                sweep::unmark(db, &digest)?;
                Ok(value)
            })
            .await
    }

    /// Moves what is too large for a transition's row into files. One that its writer keeps is copied only when there is
    /// something to move.
    pub(super) async fn take_large_shared(&self, transition: &mut Arc<Transition>, room: Room) -> Result<()> {
        match transition.values.iter().any(|bytes| bytes.len() > INLINE_VALUE_BYTES) {
            true => self.take_large(Arc::make_mut(transition), room).await,
            false => Ok(()),
        }
    }

    /// The same for a transition that nobody else has.
    pub(super) async fn take_large(&self, transition: &mut Transition, room: Room) -> Result<()> {
        if transition.values.iter().all(|bytes| bytes.len() <= INLINE_VALUE_BYTES) {
            return Ok(());
        }
        if room == Room::Free {
            self.reserve.refuse_if_spent()?;
        }
        let values = std::mem::take(&mut transition.values);
        for bytes in values {
            if bytes.len() <= INLINE_VALUE_BYTES {
                transition.values.push(bytes);
            } else {
                self.put(bytes, room).await?;
            }
        }
        Ok(())
    }

    /// A pass over the values, and over what dead processes left.
    pub(super) async fn collect(&self, mode: Mode) -> Result<Sweep> {
        for _ in 0..LOOKS {
            let seen = Arc::new(sweep::look(&self.path, self.reader, &self.values)?);
            let swept = match mode {
                Mode::DryRun => Some(self.would_sweep(&seen)),
                Mode::Apply => self.sweep_seen(&seen).await?,
            };
            let Some(swept) = swept else { continue };
            let mut waiting = Amount::default();
            seen.unnamed.values().for_each(|bytes| waiting.add(*bytes));
            waiting.count -= swept.count;
            waiting.bytes -= swept.bytes;
            let leftovers = self.leftovers(mode)?;
            let free_bytes = self.readers.read(&self.path, compact::free_bytes)?;
            return Ok(Sweep { named: seen.named, waiting, swept, leftovers, free_bytes });
        }
        Err(unavailable("runs are being removed all the time: no pass could end", "try again later"))
    }

    fn would_sweep(&self, seen: &Seen) -> Amount {
        let mut swept = Amount::default();
        seen.due(self.clock.wall()).iter().for_each(|(_, bytes)| swept.add(*bytes));
        swept
    }

    /// Marks and sweeps; `None` when what was seen is no longer what is.
    async fn sweep_seen(&self, seen: &Arc<Seen>) -> Result<Option<Amount>> {
        let now = self.clock.wall();
        let marked = Arc::clone(seen);
        self.writer.write(move |db| sweep::mark(db, &marked, now)).await?;
        let mut swept = Amount::default();
        for batch in seen.due(now).chunks(BATCH) {
            let (batch, seen, files) = (batch.to_vec(), Arc::clone(seen), self.values.clone());
            let Some(took) = self.writer.write(move |db| sweep::take(db, &files, &seen, &batch, now)).await? else {
                return Ok(None);
            };
            swept.count += took.count;
            swept.bytes += took.bytes;
        }
        Ok(Some(swept))
    }

    fn leftovers(&self, mode: Mode) -> Result<Amount> {
        let mut leftovers = leftover::drafts(&self.place, self.clock.wall());
        let locks = self.readers.read(&self.path, |db| self.workers.leftovers(db))?;
        leftovers.extend(locks.into_iter().map(|file| (file, 0)));
        let mut gone = Amount::default();
        for (file, bytes) in leftovers {
            // What can't be removed now is tried again by the next pass.
            if mode == Mode::DryRun || std::fs::remove_file(file).is_ok() {
                gone.add(bytes);
            }
        }
        Ok(gone)
    }

    /// Removes the runs of a lineage, or says what that would come to.
    pub(super) async fn remove_lineage(&self, runs: &[RunRef], mode: Mode) -> Result<Removal> {
        let now = self.clock.wall();
        if mode == Mode::DryRun {
            return self.readers.read_one_moment(&self.path, |db| remove::remove(db, runs, mode, now));
        }
        let runs = runs.to_vec();
        let removal = self.writer.write(move |db| remove::remove(db, &runs, mode, now)).await?;
        // The numbers that the witness knows are of the timeline before.
        self.note();
        Ok(removal)
    }
}
