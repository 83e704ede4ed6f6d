//! What is a store's alone on the disk, and that nobody but its owner gets at it.
//!
//! Whoever can write a store can approve in it, so permissions that were widened are narrowed again when it is opened.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::place::Place;

/// A store in a folder of this name has the whole folder to itself; in any other it has its own files only.
pub const STORE_FOLDER: &str = ".lodestep";

/// What SQLite keeps beside a database while it is in use.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The folder with the store in it, when the store has it to itself.
fn own_folder(place: &Place) -> Option<&Path> {
    place.database.parent().filter(|folder| folder.ends_with(STORE_FOLDER))
}

fn database_files(place: &Place) -> impl Iterator<Item = PathBuf> + use<> {
    let database = place.database.clone();
    ["", COMPANIONS[0], COMPANIONS[1], COMPANIONS[2]].into_iter().map(move |companion| {
        let mut name = database.clone().into_os_string();
        name.push(companion);
        PathBuf::from(name)
    })
}

/// Everything that tools are to be kept from.
pub(super) fn own_paths(place: &Place) -> Vec<PathBuf> {
    match own_folder(place) {
        Some(folder) => vec![folder.to_owned()],
        None => std::iter::once(place.files.clone()).chain(database_files(place)).collect(),
    }
}

/// What is the store's own here, and its owner's alone.
pub(super) fn narrowed(place: &Place) -> impl Iterator<Item = PathBuf> + use<> {
    let folders = own_folder(place).map(Path::to_owned).into_iter();
    folders.chain([place.files.clone(), place.values(), place.workers()]).chain(database_files(place))
}

/// Takes every right from everyone but the owner. What belongs to someone else stays as its owner left it.
pub(super) fn narrow(place: &Place) -> io::Result<()> {
    for path in narrowed(place) {
        let mode = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => continue,
            Ok(found) => found.permissions().mode() & 0o7777,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if mode & 0o077 == 0 {
            continue;
        }
        match fs::set_permissions(&path, Permissions::from_mode(mode & 0o700)) {
            // Gone meanwhile, as the log is when its last user leaves; or another user's.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            done => done?,
        }
    }
    Ok(())
}
