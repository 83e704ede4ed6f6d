//! Opening a store: what is checked before anything of it is believed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use lodestep_core::{Error, Result};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};

use super::failure::{explain, unavailable, unreadable};
use super::log::{Cleaner, Log};
use super::migrate::migrate;
use super::place::Place;
use super::readers::Readers;
use super::reserve::Reserve;
use super::settings::{self, OLDEST_SQLITE, Patience, Reader};
use super::transact::Side;
use super::value::ValueFiles;
use super::watch::Watch;
use super::witness::{self, Witness};
use super::worker::Workers;
use super::writer::Writer;
use super::{SqliteStore, owner};
use crate::changes::Changes;
use crate::clock::Clock;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long another process may take to make or migrate the tables.
const OPENING: Duration = Duration::from_secs(10);

/// What the ways of opening a store differ in.
pub(super) struct Parts {
    /// Makes connections that read.
    pub(super) reader: Reader,
    /// None in a store that is only read.
    pub(super) witness: Option<Witness>,
    pub(super) reserve: Reserve,
    /// Are there hints from other processes?
    pub(super) watches: bool,
    pub(super) cleaner: Option<Cleaner>,
    pub(super) writer: Writer,
    /// Held while a store is read as it lies.
    pub(super) at_rest: Option<File>,
}

impl SqliteStore {
    /// Opens the store at a path, or makes it, for its owner only. Whichever link names it, it is the same store.
    ///
    /// # Errors
    ///
    /// `store.corrupt` when there is something else than a sound store, `store.newer_format` when a newer lodestep made
    /// it, `store.network_file_system` where it would be damaged, `store.unavailable` when it can't be opened.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let place = Place::prepare(path)?;
        let (patience, log) = (Patience::default(), Arc::new(Log::default()));
        let (db, side) = open(&place, &patience, log.pages())?;
        let parts = Parts {
            reader: settings::reader,
            witness: Some(Witness::at(place.witness())),
            reserve: Reserve::with_log(&place, Arc::clone(&log)),
            watches: true,
            cleaner: Some(Cleaner::start(&place.database, Arc::clone(&log))?),
            writer: Writer::start(db, side, patience, log)?,
            at_rest: None,
        };
        Self::of(place, clock, parts)
    }

    /// The store at a place, of the parts that each way of opening it makes in its own way.
    pub(super) fn of(place: Place, clock: Arc<dyn Clock>, parts: Parts) -> Result<Self> {
        let path = place.database.clone();
        let (changes, workers) = (Changes::default(), Arc::new(Workers::new(place.workers())));
        let watch = || Watch::new(path.clone(), changes.clone(), Arc::clone(&clock), Arc::clone(&workers));
        Ok(Self {
            reader: parts.reader,
            readers: Readers::open(&path, parts.reader)?,
            witness: parts.witness,
            values: ValueFiles::new(place.values()),
            reserve: parts.reserve,
            watch: parts.watches.then(watch),
            _cleaner: parts.cleaner,
            writer: parts.writer,
            own_paths: owner::own_paths(&place),
            path,
            place,
            clock,
            changes,
            workers,
            _at_rest: parts.at_rest,
        })
    }
}

/// Opens the writing connection of the store at a place, making or migrating its tables and what stands beside them.
pub(super) fn open(place: &Place, patience: &Patience, pages: Arc<AtomicI32>) -> Result<(Connection, Side)> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(unavailable(
            format!("SQLite {} can damage a store with several connections", rusqlite::version()),
            "build lodestep with its own SQLite",
        ));
    }
    let path = &place.database;
    let _alone = wait_alone(place)?;
    refuse_lost(place)?;
    make_file(path).map_err(|error| unusable(path, &error))?;
    check_header(path)?;
    patience.set(Patience::LONG);
    let db = settings::writer(path, patience.clone(), pages).map_err(|error| explain(&error, path))?;
    migrate(&db, path)?;
    let newest = witness::question(&db, place)?;
    let made = place.made();
    OpenOptions::new().create(true).append(true).mode(0o600).open(&made).map_err(|error| unusable(&made, &error))?;
    let reserve = Reserve::of(place);
    reserve.prepare();
    Ok((db, Side { path: path.clone(), newest, reserve: Some(reserve) }))
}

/// A store that was made here before and is gone or empty now is not begun anew: its runs would do everything again.
pub(super) fn refuse_lost(place: &Place) -> Result<()> {
    let path = &place.database;
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let is_there = bytes(path) > 0 || bytes(&path.with_file_name(log_name(path))) > 0;
    if is_there || !place.made().exists() {
        return Ok(());
    }
    Err(Error::new(
        "store.corrupt",
        format!("the store at {} was made before, and now it is gone or empty", path.display()),
        format!("put it back from a copy; to begin anew, move {} away", place.files.display()),
    ))
}

/// Held while the store is opened.
fn wait_alone(place: &Place) -> Result<File> {
    let path = place.opening();
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = file.map_err(|error| unusable(&path, &error))?;
    wait_for(&file, FlockOperation::NonBlockingLockExclusive, place)?;
    Ok(file)
}

/// Waits for the lock of those who open the store.
pub(super) fn wait_for(file: &File, lock: FlockOperation, place: &Place) -> Result<()> {
    let until = Instant::now() + OPENING;
    while flock(file, lock).is_err() {
        if Instant::now() > until {
            let what = format!("another process has been opening {} for too long", place.database.display());
            return Err(unavailable(what, "end it, then try again"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

pub(super) fn unusable(path: &Path, error: &io::Error) -> Error {
    unavailable(format!("{} can't be opened: {error}", path.display()), "check the path and its permissions")
}

/// Makes the file for its owner only: SQLite gives its log and shared memory the same permissions.
fn make_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop)
}

/// A look at the first bytes, and at the length that they promise. Pages further in are checked as they are read.
pub(super) fn check_header(path: &Path) -> Result<()> {
    let mut header = Vec::with_capacity(100);
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut header));
    read.map_err(|error| unusable(path, &error))?;
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < 100 || !header.starts_with(MAGIC) {
        return Err(unreadable(path, "it is not a database"));
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let (promised, is_valid) = (u64::from(number(28)) * page_size, number(24) == number(92));
    let length = fs::metadata(path).map_err(|error| unusable(path, &error))?.len();
    // With pages in the log the file may be shorter than it will be: SQLite looks at both.
    let has_log = fs::metadata(path.with_file_name(log_name(path))).is_ok_and(|log| log.len() > 0);
    if is_valid && !has_log && length < promised {
        return Err(unreadable(path, &format!("it was cut off: {length} of {promised} bytes are there")));
    }
    Ok(())
}

pub(super) fn log_name(path: &Path) -> std::ffi::OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push("-wal");
    name
}
