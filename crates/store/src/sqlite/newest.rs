//! How far the database had come at its last commit: a record of fixed size beside it, written after each commit and
//! before anybody is told of it.
//!
//! It is written in place and never synced. The page cache outlives a kill, so whoever opens the store next knows of
//! every commit that was acknowledged; a power loss may lose the record, and then the synced witness counts. What it
//! names was durable before, so it is never ahead of the database.
//!
//! Whoever has the store open has a record of its own in the file, and writes no other: nobody waits, and one that is
//! late after its commit hides nothing of a quicker one. The furthest of all records counts. A record has two slots, each
//! with a checksum, that are written in turn: one that was torn is none, and the other one counts.
//!
//! Records are given out while nobody else opens the store. One that is all zeros is free; a process that was killed
//! leaves its own behind, until somebody opens the store that nobody else has open. Everybody who has it open holds a
//! shared lock on the file, and that tells.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::Digest;
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};

use super::place::Place;
use super::witness::{self, Mark};

/// A slot's first bytes.
const MAGIC: &[u8; 8] = b"LODEnew1";

/// The length of a store's name.
const NAME: usize = 32;

/// What a slot holds: the magic, the name, three numbers, little endian, and the first bytes of a digest over all that.
const SLOT: usize = 8 + NAME + 3 * 8 + 8;

/// Where the second slot of a record begins.
const SECOND: usize = 128;

/// A record with both slots.
const RECORD: usize = 2 * SECOND;

/// The record of one that has the store open to write.
pub(super) struct Newest {
    file: File,
    place: Place,
    store: Arc<str>,
    /// Where the record begins.
    at: u64,
    last: Mutex<Last>,
}

/// What this one wrote last.
struct Last {
    mark: Mark,
    slot: usize,
}

impl Newest {
    /// Takes a record, which says at once how far the database has come. Call it while nobody else opens the store, and
    /// after what the records say was judged: what they say of another store is gone.
    ///
    /// # Errors
    ///
    /// When it can't be written. Then there is no record, and the witness alone counts.
    pub(super) fn begin(place: &Place, mark: &Mark) -> io::Result<Self> {
        let path = place.newest();
        // Never cut as it is opened: others may have it open.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let at = if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            file.set_len(RECORD as u64)?;
            0
        } else {
            free(&file, &fs::read(&path)?, mark)?
        };
        flock(&file, FlockOperation::NonBlockingLockShared)?;
        // Its room is taken now: no commit needs any for it.
        let mut record = [0; RECORD];
        record[..SLOT].copy_from_slice(&encode(mark).ok_or(io::ErrorKind::InvalidData)?);
        file.write_all_at(&record, at as u64)?;
        let last = Mutex::new(Last { mark: mark.clone(), slot: 0 });
        Ok(Self { file, place: place.clone(), store: Arc::clone(&mark.store), at: at as u64, last })
    }

    /// Within a write transaction: how far the database will have come once that is committed.
    pub(super) fn mark(&self, db: &Connection) -> rusqlite::Result<Mark> {
        Mark::of_store(db, &self.store)
    }

    /// Writes down how far the database has come, if that is further than its record says.
    pub(super) fn note(&self, mark: &Mark) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.mark == *mark || mark.is_older_than(&last.mark) {
            return;
        }
        let Some(bytes) = encode(mark) else { return };
        let slot = SECOND - last.slot;
        // A failure leaves it behind: what it has not seen it can't miss.
        if self.file.write_all_at(&bytes, self.at + slot as u64).is_ok() {
            *last = Last { mark: mark.clone(), slot };
        }
    }
}

impl Drop for Newest {
    /// Frees the record, if the witness says as much.
    fn drop(&mut self) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        if witness::read(&self.place.witness()).is_some_and(|seen| !seen.is_older_than(&last.mark)) {
            // It stays until the store is next opened by one alone.
            let _ = self.file.write_all_at(&[0; RECORD], self.at);
        }
    }
}

/// Where a record is free, and be it at the end. What is said of another store than this mark's is wiped out.
fn free(file: &File, bytes: &[u8], mark: &Mark) -> io::Result<usize> {
    let mut at = bytes.len().next_multiple_of(RECORD);
    for (place, record) in bytes.chunks(RECORD).enumerate() {
        if said(record).iter().any(|said| said.store != mark.store) {
            file.write_all_at(&[0; RECORD][..record.len()], (place * RECORD) as u64)?;
        }
        if record.iter().all(|byte| *byte == 0) {
            at = at.min(place * RECORD);
        }
    }
    Ok(at)
}

/// What the records of a place say; nothing when there is none that can be read. A slot that is being written is none.
pub(super) fn read(place: &Place) -> Vec<Mark> {
    fs::read(place.newest()).unwrap_or_default().chunks(RECORD).flat_map(said).collect()
}

fn said(record: &[u8]) -> Vec<Mark> {
    [0, SECOND].into_iter().filter_map(|slot| decode(record.get(slot..slot + SLOT)?)).collect()
}

fn check_of(bytes: &[u8]) -> [u8; 8] {
    let mut check = [0; 8];
    check.copy_from_slice(&Digest::of(bytes).as_bytes()[..8]);
    check
}

/// `None` for a store whose name is none.
fn encode(mark: &Mark) -> Option<[u8; SLOT]> {
    let mut bytes = [0; SLOT];
    let (said, check) = bytes.split_at_mut(SLOT - 8);
    if mark.store.len() != NAME {
        return None;
    }
    said[..8].copy_from_slice(MAGIC);
    said[8..8 + NAME].copy_from_slice(mark.store.as_bytes());
    for (place, number) in [mark.timeline, mark.transitions, mark.messages].into_iter().enumerate() {
        said[8 + NAME + 8 * place..][..8].copy_from_slice(&number.to_le_bytes());
    }
    check.copy_from_slice(&check_of(said));
    Some(bytes)
}

fn decode(bytes: &[u8]) -> Option<Mark> {
    let (said, check) = bytes.split_at(SLOT - 8);
    if !said.starts_with(MAGIC) || check != check_of(said) {
        return None;
    }
    let number = |place: usize| {
        let bytes = said[8 + NAME + 8 * place..][..8].try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    Some(Mark {
        store: std::str::from_utf8(&said[8..8 + NAME]).ok()?.into(),
        timeline: number(0)?,
        transitions: number(1)?,
        messages: number(2)?,
    })
}

#[cfg(test)]
mod tests;
