//! A view of the files of the tool's own, in which empty folders and files lie over the store's.
//!
//! See mount_namespaces(7). Who may not make one makes a user namespace first, which any user may on most systems: the
//! tool then is who it was, but sees files of other users as nobody's. What lies over the store can't be taken away: the
//! Landlock domain that is closed afterwards allows no change of the view.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount};
use rustix::thread::UnshareFlags;

/// What lies over a folder or a file: nothing to be read in it, nothing to be run, nothing to be changed.
const INERT: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// Covers places that exist; from here on this process sees them empty.
///
/// # Errors
///
/// Text on which step the machine refuses. Systems and containers may forbid such views.
pub(super) fn cover(keep_out: &[PathBuf]) -> Result<(), String> {
    let (folders, files): (Vec<_>, Vec<_>) = keep_out.iter().partition(|path| path.is_dir());
    let Some(first) = folders.first() else {
        return Err("no folder is to be covered, and a file needs one to take an empty file from".to_owned());
    };
    own_view().map_err(|error| format!("no view of the files of its own: {error}"))?;
    let fault = |path: &Path, error: io::Error| format!("{} can't be covered: {error}", path.display());
    for folder in &folders {
        // An empty folder that can be listed disturbs no program that walks the tree.
        mount("lodestep", *folder, "tmpfs", INERT, c"mode=0555,size=4k,nr_inodes=2")
            .map_err(|error| fault(folder, error.into()))?;
    }
    let empty = first.join("empty");
    if !files.is_empty() {
        fs::write(&empty, "").map_err(|error| fault(first, error))?;
    }
    for file in &files {
        mount_bind(&empty, *file).map_err(|error| fault(file, error.into()))?;
    }
    // What was bound stays, also without its first name.
    let _ = fs::remove_file(&empty);
    // Each cover for itself: a file system whose files have lost their names can't be made unchangeable as a whole.
    for place in keep_out {
        mount_remount(place, INERT.union(MountFlags::BIND).union(MountFlags::RDONLY), c"")
            .map_err(|error| fault(place, error.into()))?;
    }
    Ok(())
}

/// Leaves the view that is shared with the rest of the system.
fn own_view() -> io::Result<()> {
    if unshare(UnshareFlags::NEWNS).is_err() {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        // Without it a group can't be named, see user_namespaces(7).
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    // What is covered here must not be covered elsewhere; what is mounted elsewhere later is to be seen here.
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// The name is deprecated because one flag of the call is unsafe, the one about open files.
#[allow(deprecated, reason = "its successor is unsafe for a flag that is not used here")]
fn unshare(spaces: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(spaces)?)
}
