//! A full disk, as whoever lists runs can see it: a worker that can't write its store says so to its own terminal alone.

use lodestep::store::sqlite::{Reserved, ground};

use crate::app::App;
use crate::text::bytes;

/// A commit that writes a snapshot takes less; so little is no room for work.
const NO_ROOM: u64 = 256 * 1024;

/// Says that the disk of the store is full, if it is.
pub fn tell(app: &App) {
    let path = app.store_path();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    let Ok(disk) = rustix::fs::statvfs(folder) else { return };
    if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        // Nothing is free there, and nobody writes.
        return;
    }
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let is_spent = ground(&path).reserve == Reserved::Spent;
    if free < NO_ROOM || is_spent {
        let store = path.display();
        let kept = if is_spent { ", and only for outcomes" } else { "" };
        lodestep::note!(
            "warning: {} are free on the disk of {store}{kept}: a worker that can't write it waits,",
            bytes(free)
        );
        lodestep::note!("  and goes on by itself once there is room");
    }
}
