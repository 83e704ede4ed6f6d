//! Opening a store that can't be written: its folder is somebody else's, or the file system is mounted to be read.
//!
//! SQLite shares a database with a log through a file of shared memory beside it, and makes that file when it is
//! missing. While a store is in use, it is there, and can be read. When it is not, nothing of the store is in a log
//! either, and the database can be read as it lies, if nobody begins to write it meanwhile: whoever opens a store waits
//! for the lock that is held here.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use lodestep_core::Result;
use rusqlite::{Connection, ErrorCode};
use rustix::fs::FlockOperation;

use super::SqliteStore;
use super::failure::{explain, unavailable};
use super::log::Log;
use super::migrate::check;
use super::open::{Parts, check_header, log_name, unusable, wait_for};
use super::place::Place;
use super::reserve::Reserve;
use super::settings::{self, Patience, Reader};
use super::transact::Side;
use super::writer::Writer;
use crate::clock::Clock;

/// A store that is only read.
pub(super) struct Opened {
    /// In the place of the writing connection: it refuses to write.
    pub(super) db: Connection,
    /// Makes further connections.
    pub(super) reader: Reader,
    /// Held while the database is read as it lies.
    pub(super) at_rest: Option<File>,
}

impl SqliteStore {
    /// Opens the store at a path to look at it. Where it can be written this is [`Self::open`]; elsewhere every change is
    /// refused as `store.unavailable`.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_to_read(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let place = Place::of_existing(path)?;
        if place.is_writable() {
            return Self::open(path, clock);
        }
        Self::untouched(place, clock)
    }

    /// Opens the store at a path to look at it and changes nothing there, whoever may write it: no table is brought to a
    /// newer format, no permission narrowed, no witness written. Every change is refused as `store.unavailable`. While nobody
    /// else uses the store, whoever wants to open it waits.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], and `store.unavailable` for one of an older format.
    pub fn open_untouched(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::untouched(Place::of_existing(path)?, clock)
    }

    fn untouched(place: Place, clock: Arc<dyn Clock>) -> Result<Self> {
        let opened = open(&place)?;
        let side = Side { path: place.database.clone(), newest: None, reserve: None };
        let parts = Parts {
            reader: opened.reader,
            witness: None,
            reserve: Reserve::of(&place),
            watches: true,
            cleaner: None,
            writer: Writer::start(opened.db, side, Patience::default(), Arc::new(Log::default()))?,
            at_rest: opened.at_rest,
        };
        Self::of(place, clock, parts)
    }
}

/// Opens it.
///
/// # Errors
///
/// `store.unavailable` when what SQLite needs beside the database is not there and can't be made; as `open` otherwise.
pub(super) fn open(place: &Place) -> Result<Opened> {
    let path = &place.database;
    check_header(path)?;
    let at_rest = lock_at_rest(place)?;
    if is_in_use(path) {
        // Whoever uses it keeps what readers need.
        let db =
            settings::reader(path).and_then(|db| look(&db).map(|()| db)).map_err(|error| unshared(path, &error))?;
        check(&db, path)?;
        return Ok(Opened { db, reader: settings::reader, at_rest: None });
    }
    let db = settings::still_reader(path).map_err(|error| explain(&error, path))?;
    check(&db, path)?;
    Ok(Opened { db, reader: settings::still_reader, at_rest })
}

/// Nobody opens the store while this is held. A store without the file was never opened where it is.
fn lock_at_rest(place: &Place) -> Result<Option<File>> {
    let path = place.opening();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(&path, &error)),
    };
    wait_for(&file, FlockOperation::NonBlockingLockShared, place)?;
    Ok(Some(file))
}

/// Is there a log? Whoever has the store open has one.
fn is_in_use(path: &Path) -> bool {
    fs::metadata(path.with_file_name(log_name(path))).is_ok()
}

/// The first look is what makes SQLite open the files beside the database.
fn look(db: &Connection) -> rusqlite::Result<()> {
    db.query_row("PRAGMA schema_version", [], |_| Ok(()))
}

fn unshared(path: &Path, error: &rusqlite::Error) -> lodestep_core::Error {
    match error.sqlite_error_code() {
        // The last where it is there, and whoever had it open died before it said anything.
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::FileLockingProtocolFailed) => unavailable(
            format!(
                "{} has a log beside it, and the shared memory that SQLite reads it by can't be made or mended: the folder can't \
                 be written ({error})",
                path.display()
            ),
            "open the store as its owner, or copy it with its -wal file to a folder that can be written",
        ),
        _ => explain(error, path),
    }
}
