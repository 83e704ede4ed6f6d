//! How the connections are set up. Each number was measured; see the comments.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// "Lode" in the header, so that `file` and this build know a store from another program's database.
pub const APPLICATION_ID: i32 = 0x4c6f_6465;

/// Versions from 3.7.0 up to the one before this could damage a write-ahead log with several connections.
pub(super) const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a busy handler sleeps between two tries. 300 µs is fair between two processes; the default of up
/// to 100 ms starves one of them, 50 µs burns the core that the other needs.
const BUSY_SLEEP: Duration = Duration::from_micros(300);

/// How many statements a connection keeps compiled.
const STATEMENTS: usize = 96;

/// How often a connection tries again when another process holds a lock. One handler serves the impatient caller
/// on its own thread and the patient writer.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience(Arc<AtomicU32>);

impl Patience {
    /// Not at all: the caller hands over instead.
    pub(super) const NONE: u32 = 0;
    /// About 100 ms.
    pub(super) const SHORT: u32 = 330;
    /// About 30 s.
    pub(super) const LONG: u32 = 100_000;

    pub(super) fn set(&self, tries: u32) {
        self.0.store(tries, Ordering::Relaxed);
    }

    fn allows(&self, tries: i32) -> bool {
        u32::try_from(tries).is_ok_and(|tries| tries < self.0.load(Ordering::Relaxed))
    }
}

/// The writing connection. `pages` follows the length of the write-ahead log.
pub(super) fn writer(path: &Path, patience: Patience, pages: Arc<AtomicI32>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_handler(Some(move |tries| {
        let again = patience.allows(tries);
        if again {
            std::thread::sleep(BUSY_SLEEP);
        }
        again
    }))?;
    both(&db)?;
    db.pragma_update(None, "page_size", 4096)?;
    // Outside of a test there is no reason to find another mode: the header keeps it.
    let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("its journal mode stays {mode}")),
        ));
    }
    durable(&db)?;
    // 0 would cut the log at each restart and grow it again, for a third of the speed.
    db.query_row("PRAGMA journal_size_limit = 8388608", [], |_| Ok(()))?;
    // 16 MiB: the heads of about 100,000 runs stay in memory.
    db.pragma_update(None, "cache_size", -16_384)?;
    // Checkpoints are taken when the writer is idle, not in the middle of somebody's commit. Before the hook: this
    // setting is one itself.
    db.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, length: i32| {
        pages.store(length, Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(db)
}

/// A connection that only moves pages from the log into the database.
pub(super) fn cleaner(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Duration::ZERO)?;
    both(&db)?;
    durable(&db)?;
    Ok(db)
}

fn durable(db: &Connection) -> rusqlite::Result<()> {
    // FULL: what is acknowledged survives a power loss. NORMAL would lose the last commits.
    db.pragma_update(None, "synchronous", "FULL")?;
    if cfg!(target_os = "macos") {
        // There a plain fsync leaves the bytes in the drive's cache.
        db.pragma_update(None, "fullfsync", 1)?;
        db.pragma_update(None, "checkpoint_fullfsync", 1)?;
    }
    Ok(())
}

/// Makes a reading connection.
pub(super) type Reader = fn(&Path) -> rusqlite::Result<Connection>;

/// A reading connection: it can't change anything, whatever it is told.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    set_reader(Connection::open_with_flags(path, flags)?)
}

/// A reading connection that makes no file beside the database, and looks at none: for one that nobody can change.
pub(super) fn still_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    set_reader(Connection::open_with_flags(still_uri(path), flags)?)
}

/// The path as a URI, byte for byte; what could mean something in one is escaped.
fn still_uri(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match plain(*byte) {
            true => uri.push(char::from(*byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

fn set_reader(db: Connection) -> rusqlite::Result<Connection> {
    db.busy_timeout(Duration::from_secs(5))?;
    both(&db)?;
    Ok(db)
}

/// What all connections have in common.
fn both(db: &Connection) -> rusqlite::Result<()> {
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without it a statement is parsed and planned anew whenever another value is bound that its plan looked at.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A page that another process cuts off under a mapping would be a signal, not an error.
    db.query_row("PRAGMA mmap_size = 0", [], |_| Ok(()))?;
    // Every row's parent was checked by the statement before it in the same transaction.
    db.pragma_update(None, "foreign_keys", 0)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    // A damaged row is found when it is read, not used.
    db.pragma_update(None, "cell_size_check", 1)?;
    db.pragma_update(None, "trusted_schema", 0)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(db: &Connection, name: &str) -> String {
        let value = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0));
        match value.expect("a setting") {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_written_is_synced_and_checkpoints_are_our_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.db");
        std::fs::write(&path, "").expect("made");
        let pages = Arc::new(AtomicI32::new(0));
        let writer = writer(&path, Patience::default(), Arc::clone(&pages)).expect("opened");
        writer.execute_batch("CREATE TABLE x (y)").expect("made");
        assert!(pages.load(Ordering::Relaxed) > 0, "the log's length is not told");
        for db in [&writer, &cleaner(&path).expect("opened")] {
            // 2 is FULL.
            assert_eq!(setting(db, "synchronous"), "2");
            assert_eq!(setting(db, "journal_mode"), "wal");
            assert_eq!(setting(db, "mmap_size"), "0");
        }
        assert_eq!(setting(&writer, "wal_autocheckpoint"), "0");
        assert_eq!(setting(&writer, "page_size"), "4096");
        let reader = reader(&path).expect("opened");
        assert!(reader.execute("INSERT INTO x VALUES (1)", []).is_err(), "a reading connection writes");
    }
}
