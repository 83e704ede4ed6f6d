//! The raw limit: single-row commits by SQLite, with the store's own settings.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// A table to insert into.
pub struct Raw {
    connection: Connection,
}

impl Raw {
    /// A warm one: its write-ahead log has been filled once, as the store's has.
    pub fn warm(path: &Path) -> Self {
        let connection = Connection::open(path).expect("opened");
        connection
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=2000;
                 CREATE TABLE row(id INTEGER PRIMARY KEY, data BLOB);",
            )
            .expect("made");
        let raw = Self { connection };
        raw.block(3_000);
        raw
    }

    /// How long so many commits take.
    pub fn block(&self, commits: usize) -> Duration {
        let data = [7_u8; 200];
        let started = Instant::now();
        for _ in 0..commits {
            let mut insert = self.connection.prepare_cached("INSERT INTO row(data) VALUES (?1)").expect("prepared");
            insert.execute([&data[..]]).expect("committed");
        }
        started.elapsed()
    }
}
