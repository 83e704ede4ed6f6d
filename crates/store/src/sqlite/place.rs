//! Where a store is: its database, the folder with its files, and whether both may be there.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use lodestep_core::{Error, Result};
use rustix::fs::{Access, access};

use super::failure::unavailable;
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
        let mut files = database.clone().into_os_string();
        files.push("-files");
        let place = Self { database, files: files.into() };
        for folder in [place.files.clone(), place.values(), place.workers()] {
            make_folder(&folder).map_err(|error| unusable(&folder, &error))?;
        }
        owner::narrow(&place).map_err(|error| unusable(&place.database, &error))?;
        Ok(place)
    }

    /// Finds the place of a database that exists, and makes nothing.
    pub(super) fn of_existing(path: &Path) -> Result<Self> {
        let database = fs::canonicalize(path).map_err(|error| unusable(path, &error))?;
        if let Some(folder) = database.parent() {
            refuse_shared(folder)?;
        }
        let mut files = database.clone().into_os_string();
        files.push("-files");
        Ok(Self { database, files: files.into() })
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
    let Some(kind) = shared_kind(folder) else { return Ok(()) };
    Err(Error::new(
        "store.network_file_system",
        format!("{} is on {kind}: processes on two machines would damage a store there", folder.display()),
        "put the store on a local disk (`--store PATH`)",
    ))
}

/// The kinds by the number that statfs gives.
///
/// FUSE is refused whatever is behind it: virtiofs, the shares of container and virtual machines and most network file
/// systems in user space report the same number, and its locks and shared memory are the server's to keep.
#[cfg(target_os = "linux")]
fn shared_kind(folder: &Path) -> Option<&'static str> {
    // From the kernel's include/uapi/linux/magic.h and the file systems' own sources. The field is signed on
    // some machines; the numbers are 32 bits wide on all of them.
    let magic = rustix::fs::statfs(folder).ok()?.f_type as u32;
    Some(match magic {
        0x0000_6969 => "NFS",
        0x0000_517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9P",
        0x6573_5546 => "FUSE (virtiofs, a share of a virtual machine, or a network file system)",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x786f_4256 => "a share of VirtualBox",
        0xbacb_acbc => "a share of VMware",
        _ => return None,
    })
}

#[cfg(target_os = "macos")]
fn shared_kind(folder: &Path) -> Option<&'static str> {
    const MNT_LOCAL: u32 = 0x1000;
    let found = rustix::fs::statfs(folder).ok()?;
    (found.f_flags & MNT_LOCAL == 0).then_some("a network file system")
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn shared_kind(_folder: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_shared_file_system_is_refused_by_name() {
        // No such file system is mounted in a test; /proc stands for any that is not one of them.
        assert!(refuse_shared(Path::new("/proc")).is_ok());
        assert!(refuse_shared(Path::new("/")).is_ok() || shared_kind(Path::new("/")).is_some());
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
