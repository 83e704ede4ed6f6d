//! A folder whose files are reached by names that cannot leave it.
//!
//! Checking a name as text does not help against links, and a link that is looked for before the
//! open can be put there after. So a name is walked part by part: each part is opened relative to
//! the handle of the folder before, with the order not to follow a link. No step ever resolves more
//! than one plain part, and what was opened is what is used.
//!
//! Two things are refused that other programs allow: symbolic links that stay inside the root, and
//! files with a second name (hard links), whose other name may be outside.
//!
//! It keeps no file locked, and does not hide one program's changes from another.

mod error;
mod name;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use cap_std::fs::{Dir, Metadata, MetadataExt};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

pub use error::RootedError;
pub use name::{NameError, NameProblem, check_name};

/// Never follow a link, never wait (a pipe without a writer would), never make a device this
/// process's terminal, never pass the handle on to a tool.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open folder and what lies below it.
#[derive(Debug)]
pub struct Rooted {
    root: Dir,
}

/// A file that a listing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name that opens it: parts with `/` between them.
    pub name: String,
    /// Its length in bytes when it was listed.
    pub bytes: u64,
}

/// What a listing found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The wanted files, sorted by the bytes of their names.
    pub files: Vec<Entry>,
    /// How many folders could not be read.
    pub unreadable_folders: usize,
}

/// What a listing asks about before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Wanted, it is looked into.
    Folder,
    /// Wanted, it is listed.
    File,
}

/// Whether missing folders on the way to a file are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parents {
    Need,
    Make,
}

impl Rooted {
    /// Opens a root. The path is the user's own and may well be a link; it is resolved once, here.
    ///
    /// # Errors
    ///
    /// The folder is missing or not readable.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Not by `Dir::open_ambient_dir`: its handle is for paths only and cannot be synced.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Rooted { root: Dir::from(rustix::fs::open(path, flags, Mode::empty())?) })
    }

    /// Opens a plain file for reading.
    ///
    /// # Errors
    ///
    /// See [`RootedError`]; `Missing` when a part of the name is not there.
    pub fn open_for_read(&self, name: &str) -> Result<File, RootedError> {
        check_name(name)?;
        let (folder, last) = self.folder_of(name, Parents::Need)?;
        let file = openat(&folder, last, PLAIN | OFlags::RDONLY, Mode::empty());
        let file = File::from(file.map_err(|errno| refused(name, "read", errno))?);
        let metadata = Metadata::from_file(&file).map_err(|source| failed(name, "read", source))?;
        check_plain(name, &metadata)?;
        Ok(file)
    }

    /// Lists files in all folders, asking `wanted` with the name of each folder and file.
    ///
    /// Links, files with a second name and names that [`check_name`] refuses are left out without
    /// being asked about, since they cannot be opened.
    ///
    /// # Errors
    ///
    /// The root itself cannot be read.
    pub fn list(&self, wanted: impl Fn(&str, Kind) -> bool) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut folders = vec![String::new()];
        while let Some(prefix) = folders.pop() {
            match self.list_folder(&prefix, &wanted, &mut listing.files, &mut folders) {
                Err(error) if prefix.is_empty() => return Err(error),
                Err(_) => listing.unreadable_folders += 1,
                Ok(()) => {}
            }
        }
        listing.files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Lists one folder; `prefix` is empty for the root, else a name and `/`.
    fn list_folder(
        &self,
        prefix: &str,
        wanted: &impl Fn(&str, Kind) -> bool,
        files: &mut Vec<Entry>,
        folders: &mut Vec<String>,
    ) -> io::Result<()> {
        // The part after the last slash is empty, so this is the folder itself.
        let (folder, _) = self.folder_of(prefix, Parents::Need).map_err(io::Error::other)?;
        for entry in folder.entries()? {
            let entry = entry?;
            let Ok(part) = entry.file_name().into_string() else {
                continue;
            };
            let name = format!("{prefix}{part}");
            // Of the entry itself, not of what a link points to. Fails when it has gone meanwhile.
            let Ok(metadata) = folder.symlink_metadata(&part) else {
                continue;
            };
            if check_name(&name).is_err() {
                continue;
            }
            if metadata.is_dir() && wanted(&name, Kind::Folder) {
                folders.push(name + "/");
            } else if check_plain(&name, &metadata).is_ok() && wanted(&name, Kind::File) {
                files.push(Entry { name, bytes: metadata.len() });
            }
        }
        Ok(())
    }

    /// Puts `bytes` under `name`, making folders on the way; a plain file of that name is replaced.
    ///
    /// After `Ok` the file is there with these bytes, also after a loss of power. After an error or
    /// a crash it is as it was before; a crash can leave a temporary file `.lodestep-….tmp` next to
    /// it.
    ///
    /// # Errors
    ///
    /// See [`RootedError`]; what is there under that name and is not a plain file is left alone.
    pub fn write_atomically(&self, name: &str, bytes: &[u8]) -> Result<(), RootedError> {
        check_name(name)?;
        let (folder, last) = self.folder_of(name, Parents::Make)?;
        match folder.symlink_metadata(last) {
            Ok(metadata) => check_plain(name, &metadata)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(name, "write", source)),
        }
        let number = getrandom::u64().map_err(|error| failed(name, "write", io::Error::other(error)))?;
        let temporary = format!(".lodestep-{number:016x}.tmp");
        // A link that came after the look is replaced by the rename and not followed.
        let written = write_new(&folder, &temporary, bytes)
            .and_then(|()| folder.rename(&temporary, &folder, last))
            .and_then(|()| sync_folder(&folder));
        written.map_err(|source| {
            // There is none when the rename has been done.
            let _ = folder.remove_file(&temporary);
            failed(name, "write", source)
        })
    }

    /// Walks to the folder of the file `name`; returns it and the last part.
    fn folder_of<'a>(&self, name: &'a str, parents: Parents) -> Result<(Dir, &'a str), RootedError> {
        let mut folder = self.root.try_clone().map_err(|source| failed(name, "open", source))?;
        let Some((path, last)) = name.rsplit_once('/') else {
            return Ok((folder, name));
        };
        for part in path.split('/') {
            if parents == Parents::Make {
                make_folder(&folder, part).map_err(|source| failed(name, "make the folder of", source))?;
            }
            let flags = PLAIN | OFlags::RDONLY | OFlags::DIRECTORY;
            let next: OwnedFd = openat(&folder, part, flags, Mode::empty())
                .map_err(|errno| refused_folder(&folder, part, name, errno))?;
            folder = Dir::from(next);
        }
        Ok((folder, last))
    }
}

fn make_folder(parent: &Dir, part: &str) -> io::Result<()> {
    match parent.create_dir(part) {
        Ok(()) => sync_folder(parent),
        // Also when it is a link or a file; opening it tells.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn write_new(folder: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let flags = PLAIN | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    // Everyone's umask decides, as for any file of theirs.
    let mode = Mode::from_raw_mode(0o666);
    let mut file = File::from(openat(folder, name, flags, mode)?);
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the names in a folder last.
fn sync_folder(folder: &Dir) -> io::Result<()> {
    Ok(rustix::fs::fsync(folder)?)
}

/// Refuses what is not a file with this one name.
fn check_plain(name: &str, metadata: &Metadata) -> Result<(), RootedError> {
    if metadata.is_symlink() {
        return Err(RootedError::Link(name.to_string()));
    }
    if !metadata.is_file() {
        return Err(RootedError::NotAFile(name.to_string()));
    }
    if metadata.nlink() > 1 {
        return Err(RootedError::HardLink(name.to_string()));
    }
    Ok(())
}

fn failed(name: &str, action: &'static str, source: io::Error) -> RootedError {
    RootedError::Io { name: name.to_string(), action, source }
}

fn refused(name: &str, action: &'static str, errno: Errno) -> RootedError {
    match errno {
        // LOOP is what an open without following says of a link.
        Errno::LOOP => RootedError::Link(name.to_string()),
        Errno::NOENT => RootedError::Missing(name.to_string()),
        // NXIO is what a socket says.
        Errno::ISDIR | Errno::NXIO => RootedError::NotAFile(name.to_string()),
        errno => failed(name, action, errno.into()),
    }
}

/// A link and a file are both "not a folder" to the system; a look at what is there now tells them
/// apart.
fn refused_folder(parent: &Dir, part: &str, name: &str, errno: Errno) -> RootedError {
    match errno {
        Errno::NOTDIR if parent.symlink_metadata(part).is_ok_and(|metadata| metadata.is_symlink()) => {
            RootedError::Link(name.to_string())
        }
        Errno::NOTDIR => RootedError::NotAFolder(name.to_string()),
        errno => refused(name, "open", errno),
    }
}
