//! Room that is held back for outcomes: a file of a few megabytes beside the database, whose blocks are freed when there
//! is no other room for what became of an effect.
//!
//! The file is whole, or empty once it was spent, or missing where there never was room for it. While it is empty,
//! whatever is no outcome and would add to the store is refused, in every process: the room that was freed is not theirs.
//! Whoever is refused looks first whether there is room for a new reserve, and makes it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lodestep_core::Result;
use rustix::fs::FallocateFlags;
use rustix::process::{Resource, getrlimit};

use super::failure::unavailable;
use super::log::Log;
use super::place::Place;

/// The pages of some hundred outcomes.
const RESERVE: u64 = 4 << 20;

/// So much has to be free for one: more than one that was just spent has freed.
const ENOUGH: u64 = RESERVE + RESERVE / 4;

/// The largest value that it is spent for: what follows has to find room, too.
const LARGEST: usize = 2 << 20;

/// What a piece of work may take when the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// What the disk has left.
    Free,
    /// The reserve: it says what became of an effect.
    Reserve,
}

/// How a store's reserve is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is there, with so many bytes.
    Kept(u64),
    /// It was spent, and is not made anew yet: nothing but outcomes is stored.
    Spent,
    /// There never was room for one.
    Missing,
}

/// The reserve of a store.
#[derive(Clone, Debug)]
pub(super) struct Reserve(Arc<Held>);

#[derive(Debug)]
struct Held {
    path: PathBuf,
    database: PathBuf,
    /// The file, once it was found whole: each commit looks at its length.
    file: OnceLock<File>,
    /// The store's log, which may hold the room that is missing.
    log: Option<Arc<Log>>,
}

impl Reserve {
    pub(super) fn of(place: &Place) -> Self {
        Self::beside(place, None)
    }

    /// The same for whoever has the log that gives its room back when there is no other for a new reserve.
    pub(super) fn with_log(place: &Place, log: Arc<Log>) -> Self {
        Self::beside(place, Some(log))
    }

    fn beside(place: &Place, log: Option<Arc<Log>>) -> Self {
        let (path, database) = (place.reserve(), place.database.clone());
        Self(Arc::new(Held { path, database, file: OnceLock::new(), log }))
    }

    /// How it is: one look at the file's length.
    pub(super) fn state(&self) -> Reserved {
        let known = self.0.file.get().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        if known >= RESERVE {
            return Reserved::Kept(known);
        }
        match fs::metadata(&self.0.path).map(|found| found.len()) {
            Ok(length) if length >= RESERVE => {
                // It is spent and made anew in place; without the file itself it is looked up by its path.
                let _ = File::open(&self.0.path).map(|file| self.0.file.set(file));
                Reserved::Kept(length)
            }
            Ok(_) => Reserved::Spent,
            Err(_) => Reserved::Missing,
        }
    }

    /// Makes it where it is missing or spent and there is room. Call it while nobody else opens the store.
    pub(super) fn prepare(&self) {
        match self.state() {
            Reserved::Kept(_) => {}
            // Without one the store works as well, until the disk is full.
            Reserved::Missing if self.make().is_err() => drop(fs::remove_file(&self.0.path)),
            Reserved::Spent | Reserved::Missing => drop(self.make()),
        }
    }

    /// Refuses what is no outcome while the reserve is spent.
    ///
    /// # Errors
    ///
    /// `store.unavailable`, as long as there is no room for a new one.
    pub(super) fn refuse_if_spent(&self) -> Result<()> {
        if self.state() != Reserved::Spent || self.make().is_ok() {
            return Ok(());
        }
        if let Some(log) = &self.0.log {
            log.give_room();
        }
        Err(unavailable(
            format!("no room to write {}: what was held back for outcomes is spent", self.0.database.display()),
            format!("make room on its disk, at least {} MiB, then try again", ENOUGH.div_ceil(1 << 20)),
        ))
    }

    /// Frees its blocks; false when there were none.
    pub(super) fn spend(&self) -> bool {
        matches!(self.state(), Reserved::Kept(_))
            && OpenOptions::new().write(true).open(&self.0.path).and_then(|file| file.set_len(0)).is_ok()
    }

    /// Is it worth the reserve to store this value?
    pub(super) fn is_for(bytes: &[u8]) -> bool {
        bytes.len() <= LARGEST
    }

    fn make(&self) -> io::Result<()> {
        // A file beyond the limit would be a signal that ends the process.
        let is_allowed = getrlimit(Resource::Fsize).current.is_none_or(|most| most >= RESERVE);
        let folder = self.0.path.parent().ok_or(io::ErrorKind::NotFound)?;
        let found = rustix::fs::statvfs(folder)?;
        if !is_allowed || found.f_bavail.saturating_mul(found.f_frsize) < ENOUGH {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.0.path)?;
        let made = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE) {
            // A file system that can't give blocks unwritten gives them as they are written.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => fill(&mut file),
            done => done.map_err(io::Error::from),
        };
        if made.is_err() {
            file.set_len(0)?;
        }
        made
    }
}

/// Writes bytes that no file system stores shorter than they are.
fn fill(file: &mut File) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0_u8; 1 << 16];
    for _ in 0..RESERVE / (1 << 16) {
        for bytes in block.chunks_exact_mut(8) {
            // Marsaglia's xorshift64.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::log;

    fn reserve() -> (tempfile::TempDir, Reserve) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::prepare(&folder.path().join("store.db")).expect("prepared");
        (folder, Reserve::of(&place))
    }

    fn blocks(reserve: &Reserve) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(&reserve.0.path).map_or(0, |found| found.blocks() * 512)
    }

    #[test]
    fn it_has_its_blocks_until_it_is_spent_and_is_made_anew_where_there_is_room() {
        let (_folder, reserve) = reserve();
        assert_eq!(reserve.state(), Reserved::Missing);
        assert!(!reserve.spend(), "there is none");
        assert_eq!(reserve.refuse_if_spent(), Ok(()), "one that never was holds nothing up");
        reserve.prepare();
        assert_eq!(reserve.state(), Reserved::Kept(RESERVE));
        assert!(blocks(&reserve) >= RESERVE, "its blocks are not taken");
        assert!(reserve.spend());
        assert_eq!((reserve.state(), blocks(&reserve)), (Reserved::Spent, 0));
        assert!(!reserve.spend(), "it is spent once");
        // Here there is room.
        assert_eq!(reserve.refuse_if_spent(), Ok(()));
        assert_eq!(reserve.state(), Reserved::Kept(RESERVE));
    }

    #[test]
    fn one_that_cannot_be_made_refuses_and_says_how_much_is_needed() {
        let (_folder, reserve) = reserve();
        // In the place of a disk without room: a file that can't be written.
        let gone = Reserve(Arc::new(Held {
            path: reserve.0.path.join("below/a file"),
            database: reserve.0.database.clone(),
            file: OnceLock::new(),
            log: None,
        }));
        fs::write(&reserve.0.path, "").expect("written");
        gone.prepare();
        assert_eq!(gone.state(), Reserved::Missing);
        fs::remove_file(&reserve.0.path).expect("removed");
        fs::create_dir(&reserve.0.path).expect("made");
        let error = reserve.refuse_if_spent().expect_err("refused");
        assert_eq!(error.code(), "store.unavailable");
        assert!(error.what().contains("no room") && error.next().contains("5 MiB"), "{error}");
    }

    #[test]
    fn where_it_finds_no_room_the_log_gives_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::prepare(&folder.path().join("store.db")).expect("prepared");
        let _db = log::tests::with_log(&place.database);
        let log = Arc::new(Log::default());
        let _cleaner = log::Cleaner::start(&place.database, Arc::clone(&log)).expect("started");
        let reserve = Reserve::with_log(&place, log);
        // In the place of a disk without room.
        fs::create_dir(&reserve.0.path).expect("made");
        assert_eq!(reserve.state(), Reserved::Spent);
        reserve.refuse_if_spent().expect_err("refused");
        log::tests::is_cut(&place.database);
    }

    #[test]
    fn what_is_written_in_its_place_is_no_shorter_than_it() {
        let (_folder, reserve) = reserve();
        let mut file = fs::File::create(&reserve.0.path).expect("made");
        fill(&mut file).expect("filled");
        assert_eq!(reserve.state(), Reserved::Kept(RESERVE));
        assert!(blocks(&reserve) >= RESERVE);
    }
}
