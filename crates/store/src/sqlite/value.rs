//! Values: short ones in their transition's row, large ones in files that are named by their digest.
//!
//! A file is written beside its place, synced, renamed, and its folder synced: under its name it is always whole.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lodestep_core::context::Blobs;
use lodestep_core::{Digest, Error, INLINE_VALUE_BYTES, Result, Stored, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use super::failure::{Done, unavailable};
use super::pack::unpack_values;
use super::piece::{self, Column};
use super::place::make_folder;
use super::reserve::{Reserve, Room};
use super::row::signed;
use crate::refusals;
use crate::store::RunRef;

/// The folder with the large values.
#[derive(Clone, Debug)]
pub(super) struct ValueFiles {
    folder: PathBuf,
}

impl ValueFiles {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Stores bytes; after Ok they are durable.
    pub(super) fn put(&self, bytes: &[u8], room: Room, reserve: &Reserve) -> Result<ValueRef> {
        let value = ValueRef::of(bytes);
        let path = self.path(&value.digest);
        let mut written = self.write(&path, bytes);
        let is_full = written
            .as_ref()
            .is_err_and(|error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded));
        if is_full && room == Room::Reserve && Reserve::is_for(bytes) && reserve.spend() {
            written = self.write(&path, bytes);
        }
        written.map(|()| value).map_err(|error| unwritable(&path, &error))
    }

    /// Every file under its name, with its size. Drafts and strange names are left out.
    pub(super) fn all(&self) -> Result<Vec<(Digest, u64)>> {
        let mut found = Vec::new();
        for folder in entries(&self.folder).map_err(|error| unreadable(&self.folder, &error))? {
            if !folder.is_dir() {
                continue;
            }
            for path in entries(&folder).map_err(|error| unreadable(&folder, &error))? {
                let digest = path.file_name().and_then(|name| Digest::from_hex(name.to_str()?));
                // One that goes meanwhile is none.
                if let (Some(digest), Ok(about)) = (digest, fs::metadata(&path)) {
                    found.push((digest, about.len()));
                }
            }
        }
        Ok(found)
    }

    /// Is the file of this value there?
    pub(super) fn is_there(&self, digest: &Digest) -> bool {
        self.path(digest).exists()
    }

    /// Removes a file; one that is not there is gone already.
    pub(super) fn remove(&self, digest: &Digest) -> Result<()> {
        let path = self.path(digest);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(&path, &error)),
            _ => Ok(()),
        }
    }

    /// `None` when there is no such file.
    pub(super) fn read(&self, digest: &Digest) -> Result<Option<Vec<u8>>> {
        let path = self.path(digest);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.folder);
        if !folder.is_dir() {
            make_folder(folder)?;
            sync_folder(&self.folder)?;
        }
        // One that is there already may have been renamed by a process that died before it synced the folder.
        if fs::read(path).is_ok_and(|found| found == bytes) {
            return sync_folder(folder);
        }
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!(".{}-{number}", std::process::id()));
        let written = write_new(&draft, bytes).and_then(|()| fs::rename(&draft, path));
        if written.is_err() {
            // It may not even exist.
            let _ = fs::remove_file(&draft);
        }
        written.and_then(|()| sync_folder(folder))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_hex();
        self.folder.join(&hex[..2]).join(hex)
    }
}

/// What stands in a folder; nothing when there is no such folder.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A draft of that name is one of a dead process with this one's number.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    unavailable(
        format!("{} can't be read: {error}", path.display()),
        "check its permissions and its disk, then try again",
    )
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let next = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on its disk, then try again",
        _ => "check the permissions of its folder and its disk, then try again",
    };
    unavailable(format!("{} can't be written: {error}", path.display()), next)
}

/// Reads values of a run; those of a transition whose values were erased are left out.
pub(super) fn read(db: &Connection, files: &ValueFiles, run: &RunRef, wanted: &[Stored]) -> Done<Blobs> {
    let mut blobs = Blobs::default();
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    for stored in wanted {
        if blobs.contains_key(&stored.digest) {
            continue;
        }
        let bytes = if stored.len > INLINE_VALUE_BYTES as u64 {
            files.read(&stored.digest)?.filter(|bytes| Digest::of(bytes) == stored.digest)
        } else {
            take(&mut rows, db, run, stored)?
        };
        match bytes {
            Some(bytes) => {
                blobs.insert(stored.digest, bytes);
            }
            None if is_erased(&mut rows, db, run, stored.seq)? => {}
            None => return Err(refusals::value_damaged(&stored.digest, &run.key, "is damaged or missing").into()),
        }
    }
    Ok(blobs)
}

/// What stands in a transition's row.
enum Row {
    Erased,
    /// Empty as well when the packed bytes are damaged: then each value in it is missed by its name.
    Values(Vec<Vec<u8>>),
}

fn take(rows: &mut BTreeMap<u64, Row>, db: &Connection, run: &RunRef, stored: &Stored) -> Done<Option<Vec<u8>>> {
    match row(rows, db, run, stored.seq)? {
        Row::Values(values) => {
            let found =
                values.iter().find(|bytes| bytes.len() as u64 == stored.len && Digest::of(bytes) == stored.digest);
            Ok(found.cloned())
        }
        Row::Erased => Ok(None),
    }
}

fn is_erased(rows: &mut BTreeMap<u64, Row>, db: &Connection, run: &RunRef, seq: u64) -> Done<bool> {
    Ok(matches!(row(rows, db, run, seq)?, Row::Erased))
}

fn row<'a>(rows: &'a mut BTreeMap<u64, Row>, db: &Connection, run: &RunRef, seq: u64) -> Done<&'a Row> {
    match rows.entry(seq) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(vacant) => {
            let found = db
                .prepare_cached("SELECT n, vals FROM journal WHERE run = ? AND seq = ?")?
                .query_row(params![run.number, signed(seq)], |row| <(i64, Option<Vec<u8>>)>::try_from(row))
                .optional()?;
            Ok(vacant.insert(match found {
                Some((_, None)) => Row::Erased,
                Some((transition, Some(in_row))) => {
                    let packed = piece::whole(db, transition, Column::Values, &in_row)?;
                    Row::Values(packed.and_then(|packed| unpack_values(&packed)).unwrap_or_default())
                }
                None => Row::Values(Vec::new()),
            }))
        }
    }
}
