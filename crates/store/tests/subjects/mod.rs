//! The stores that the suite is put to, each with what it takes to damage it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lodestep_core::{Digest, Timestamp};
use lodestep_store::conformance::Subject;
use lodestep_store::{Clock, MemoryStore, RunRef, SettableClock, SqliteStore, Store, WorkerId};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// Some afternoon.
fn clock() -> Arc<SettableClock> {
    Arc::new(SettableClock::at(Timestamp::from_micros(1_796_000_000_000_000)))
}

/// The memory store. A handle is a clone.
pub struct InMemory {
    clock: Arc<SettableClock>,
    store: MemoryStore,
}

impl InMemory {
    pub fn new() -> Self {
        let clock = clock();
        Self { store: MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>), clock }
    }
}

impl Subject for InMemory {
    fn clock(&self) -> &SettableClock {
        &self.clock
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    fn reopen(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    fn kill(&self, worker: &WorkerId) {
        self.store.kill(worker);
    }

    fn damage_value(&self, _run: &RunRef, digest: &Digest) {
        assert!(self.store.damage_value(digest), "there is no such value");
    }

    fn erase_values(&self, run: &RunRef, seq: u64) {
        self.store.erase_values(run, seq);
    }
}

/// The SQLite store. A handle is a store opened on the same file.
pub struct InSqlite {
    clock: Arc<SettableClock>,
    handles: Mutex<Vec<Arc<SqliteStore>>>,
    path: PathBuf,
    _folder: TempDir,
}

impl InSqlite {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let subject =
            Self { clock: clock(), handles: Mutex::default(), path: folder.path().join("store.db"), _folder: folder };
        subject.open();
        subject
    }

    fn open(&self) -> Arc<SqliteStore> {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let store = Arc::new(SqliteStore::open(&self.path, clock).expect("opened"));
        self.handles.lock().expect("sound").push(Arc::clone(&store));
        store
    }

    /// Changes a byte in the middle of the packed values that hold the digest's, or of a piece of them.
    fn damage_row(&self, run: &RunRef, digest: &Digest) {
        let db = Connection::open(&self.path).expect("opened");
        let names = |envelope: &[u8]| envelope.windows(32).any(|window| window == digest.as_bytes());
        let mut rows = db.prepare("SELECT n, envelope, vals FROM journal WHERE run = ?").expect("prepared");
        let rows = rows.query_map([run.number], |row| <(i64, Vec<u8>, Vec<u8>)>::try_from(row)).expect("queried");
        let (number, _, mut packed) =
            rows.map(|row| row.expect("read")).find(|(_, envelope, _)| names(envelope)).expect("a row names it");
        let middle = "UPDATE piece SET bytes = CAST(substr(bytes, 1, 99) || x'5a' || substr(bytes, 101) AS BLOB)
             WHERE n = (SELECT min(n) FROM piece WHERE n >= ?1 * 128 AND n < ?1 * 128 + 64)";
        if db.execute(middle, [number]).expect("damaged") == 0 {
            let middle = packed.len() / 2;
            packed[middle] ^= 1;
            db.execute("UPDATE journal SET vals = ? WHERE n = ?", params![packed, number]).expect("damaged");
        }
    }
}

impl Subject for InSqlite {
    fn clock(&self) -> &SettableClock {
        &self.clock
    }

    fn store(&self) -> Arc<dyn Store> {
        self.handles.lock().expect("sound")[0].clone()
    }

    fn reopen(&self) -> Arc<dyn Store> {
        self.open()
    }

    fn kill(&self, worker: &WorkerId) {
        self.handles.lock().expect("sound").iter().for_each(|store| store.kill(worker));
    }

    fn damage_value(&self, run: &RunRef, digest: &Digest) {
        let hex = digest.to_hex();
        let files = format!("{}-files", self.path.display());
        let file = PathBuf::from(files).join("values").join(&hex[..2]).join(&hex);
        match fs::read(&file) {
            Ok(mut bytes) => {
                bytes[0] ^= 1;
                fs::write(file, bytes).expect("damaged");
            }
            Err(_) => self.damage_row(run, digest),
        }
    }

    fn erase_values(&self, run: &RunRef, seq: u64) {
        let db = Connection::open(&self.path).expect("opened");
        let seq = i64::try_from(seq).expect("small");
        let erased = "DELETE FROM piece WHERE n / 64 = (SELECT n * 2 FROM journal WHERE run = ? AND seq = ?)";
        db.execute(erased, params![run.number, seq]).expect("erased");
        db.execute("UPDATE journal SET vals = NULL WHERE run = ? AND seq = ?", params![run.number, seq])
            .expect("erased");
    }
}
