//! Where a store is: its database, the folder with its files, and whether both may be there.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use lodestep_core::{Error, Result};
use rustix::fs::{Access, access};

use super::failure::unavailable;
use super::file_system::FileSystem;
use super::open::refuse_lost;
use super::owner;

/// A store's paths, free of links.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) database: PathBuf,
    /// Large values and the workers' locks.
    pub(super) files: PathBuf,
}

impl Place {
    /// Finds the place of a database, and makes its folders when they are missing, for the owner only.
    ///
    /// A link is followed first: whichever path names it, a store has one folder of files and one set of locks.
    pub(super) fn prepare(path: &Path) -> Result<Self> {
        let database = resolve(path).map_err(|error| unusable(path, &error))?;
        if let Some(folder) = database.parent() {
            refuse_shared(folder)?;
        }
        let place = Self::beside(database);
        for folder in [place.files.clone(), place.values(), place.workers()] {
            make_folder(&folder).map_err(|error| unusable(&folder, &error))?;
        }
        owner::narrow(&place).map_err(|error| unusable(&place.database, &error))?;
        Ok(place)
    }

    /// Finds the place of a database that exists, and makes nothing.
    pub(super) fn of_existing(path: &Path) -> Result<Self> {
        let database = match fs::canonicalize(path) {
            Ok(database) => database,
            Err(error) => {
                refuse_lost(&Self::beside(path.to_owned()))?;
                return Err(unusable(path, &error));
            }
        };
        if let Some(folder) = database.parent() {
            refuse_shared(folder)?;
        }
        Ok(Self::beside(database))
    }

    /// The place of a database, whether or not anything is there.
    pub(super) fn beside(database: PathBuf) -> Self {
        let mut files = database.clone().into_os_string();
        files.push("-files");
        Self { database, files: files.into() }
    }

    /// May this process write the database and make files beside it?
    pub(super) fn is_writable(&self) -> bool {
        let may = |path: &Path| access(path, Access::WRITE_OK).is_ok();
        let folder = self.database.parent().unwrap_or(Path::new("."));
        // A store that was only copied has no folder of files yet.
        may(&self.database) && may(folder) && (may(&self.files) || !self.files.exists())
    }

    pub(super) fn values(&self) -> PathBuf {
        self.files.join("values")
    }

    pub(super) fn workers(&self) -> PathBuf {
        self.files.join("workers")
    }

    /// Stands once the store was made: what is gone later was lost, and is not begun anew.
    pub(super) fn made(&self) -> PathBuf {
        self.files.join("made")
    }

    /// Knows how far the database had come.
    pub(super) fn witness(&self) -> PathBuf {
        self.files.join("witness")
    }

    /// As far as it had come at its last commit.
    pub(super) fn newest(&self) -> PathBuf {
        self.files.join("newest")
    }

    /// Room that is held back for outcomes.
    pub(super) fn reserve(&self) -> PathBuf {
        self.files.join("reserve")
    }

    /// Locked while a process opens the store, so that only one makes or migrates the tables.
    pub(super) fn opening(&self) -> PathBuf {
        self.files.join("opening.lock")
    }
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    unavailable(format!("{} can't be used: {error}", path.display()), "check the path and its permissions")
}

/// The path without links. The file itself need not exist yet, its folder is made.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    if fs::symlink_metadata(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is a link to nothing"));
    }
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    make_folder(folder)?;
    Ok(fs::canonicalize(folder)?.join(name))
}

/// Makes a folder, and those above it, which only their owner can enter. One that exists stays as it is.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Refuses file systems on which the write-ahead log's shared memory or a lock does not reach every process.
fn refuse_shared(folder: &Path) -> Result<()> {
    let FileSystem::Shared(kind) = FileSystem::of(folder) else { return Ok(()) };
    Err(Error::new(
        "store.network_file_system",
        format!("{} is on {kind}: processes on two machines would damage a store there", folder.display()),
        "put the store on a local disk (`--store PATH`)",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_shared_file_system_is_refused_by_name() {
        // No such file system is mounted in a test; /proc stands for any that is not one of them.
        assert!(refuse_shared(Path::new("/proc")).is_ok());
        let root = FileSystem::of(Path::new("/"));
        assert!(refuse_shared(Path::new("/")).is_ok() || matches!(root, FileSystem::Shared(_)));
    }

    #[test]
    fn new_folders_are_their_owners_only() {
        let temp = tempfile::tempdir().expect("a folder");
        let place = Place::prepare(&temp.path().join("a/b/store.db")).expect("prepared");
        for folder in [temp.path().join("a"), temp.path().join("a/b"), place.files.clone(), place.workers()] {
            let mode = fs::metadata(&folder).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }

    #[test]
    fn what_was_widened_is_narrowed_and_what_is_not_the_store_s_stays() {
        let temp = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let widen = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        let own = Place::prepare(&temp.path().join(".lodestep/store.db")).expect("prepared");
        let shared = Place::prepare(&temp.path().join("shared/store.db")).expect("prepared");
        for place in [&own, &shared] {
            let folder = place.database.parent().expect("a folder");
            let log = folder.join("store.db-wal");
            fs::write(&place.database, "").expect("written");
            fs::write(&log, "").expect("written");
            let all = [folder, &place.files, &place.values(), &place.workers()];
            all.iter().for_each(|folder| widen(folder, 0o755));
            widen(&place.database, 0o666);
            widen(&log, 0o644);
            Place::prepare(&place.database).expect("prepared again");
            assert_eq!(all[1..].iter().map(|folder| mode(folder)).collect::<Vec<_>>(), [0o700; 3]);
            assert_eq!([mode(&place.database), mode(&log)], [0o600; 2]);
        }
        assert_eq!(mode(own.database.parent().expect("a folder")), 0o700);
        assert_eq!(mode(shared.database.parent().expect("a folder")), 0o755);
    }

    #[test]
    fn a_folder_named_for_the_store_is_kept_whole_and_another_for_the_store_s_files() {
        let temp = tempfile::tempdir().expect("a folder");
        let real = fs::canonicalize(temp.path()).expect("a path");
        let own = Place::prepare(&temp.path().join(".lodestep/store.db")).expect("prepared");
        assert_eq!(owner::own_paths(&own), [real.join(".lodestep")]);
        let shared = Place::prepare(&temp.path().join("store.db")).expect("prepared");
        let names = ["-files", "", "-wal", "-shm", "-journal"].map(|end| real.join(format!("store.db{end}")));
        assert_eq!(owner::own_paths(&shared), names);
    }

    #[test]
    fn a_link_to_nothing_and_a_folder_that_cannot_be_are_refused() {
        let temp = tempfile::tempdir().expect("a folder");
        let link = temp.path().join("link.db");
        std::os::unix::fs::symlink(temp.path().join("gone.db"), &link).expect("linked");
        assert_eq!(Place::prepare(&link).expect_err("refused").code(), "store.unavailable");
        fs::write(temp.path().join("file"), "x").expect("written");
        let below = temp.path().join("file/store.db");
        assert_eq!(Place::prepare(&below).expect_err("refused").code(), "store.unavailable");
    }
}
