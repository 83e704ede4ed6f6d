//! The room that removed rows left in the file, given back to the system.
//!
//! SQLite uses free pages again by itself, so that a store which is swept regularly stays as large as it needs to be. To
//! cut the file short every page is written anew, through the log: that takes as long as writing the whole file, needs as
//! much room again, and no one else writes meanwhile. It is done when asked for, and not while a worker lives, whose
//! leases would run out.

use std::path::Path;

use lodestep_core::{Error, Result};
use rusqlite::Connection;

use super::failure::{Done, explain};
use super::row::unsigned;
use super::settings;
use super::worker::Workers;

/// The bytes of free pages.
pub(super) fn free_bytes(db: &Connection) -> Done<u64> {
    let pragma = |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| unsigned(row, 0));
    Ok(pragma("freelist_count")? * pragma("page_size")?)
}

/// Writes the file anew without its free pages; how many bytes that gave back.
///
/// # Errors
///
/// `store.in_use` while a worker lives.
pub(super) fn compact(path: &Path, workers: &Workers) -> Result<u64> {
    let broken = |error: rusqlite::Error| explain(&error, path);
    let db = settings::cleaner(path).map_err(broken)?;
    db.busy_timeout(std::time::Duration::from_secs(5)).map_err(broken)?;
    let living = workers.living(&db).map_err(|failure| failure.explain(path))?;
    if let Some(worker) = living.first() {
        let what = format!("worker {worker} works in {}: it would have to wait too long", path.display());
        return Err(Error::new("store.in_use", what, "end the store's workers, then try again; nothing was lost"));
    }
    let free = free_bytes(&db).map_err(|failure| failure.explain(path))?;
    db.execute_batch("VACUUM").map_err(broken)?;
    // The whole file went through the log: it is cut short, too, unless somebody reads it.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(broken)?;
    let left = free_bytes(&db).map_err(|failure| failure.explain(path))?;
    Ok(free.saturating_sub(left))
}
