//! Snapshots: the newest is what a load begins with, and a few older ones stay for looking back.

use std::path::Path;

use lodestep_core::{Checkpoint, Digest};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::{Done, corrupt};
use super::pack::{pack, unpack};
use super::row::{digest, signed, unsigned};
use crate::retention::superfluous;

/// A snapshot, packed.
pub(super) struct Snapshot {
    packed: Vec<u8>,
    digest: Digest,
}

impl Snapshot {
    pub(super) fn of(checkpoint: &Checkpoint) -> Self {
        let plain = checkpoint.to_bytes();
        Self { digest: Digest::of(&plain), packed: pack(&plain) }
    }
}

/// Stores it and deletes those that it makes superfluous.
pub(super) fn insert(db: &Connection, run: i64, seq: i64, snapshot: &Snapshot) -> Done<()> {
    db.prepare_cached("INSERT INTO snapshot (run, seq, bytes, digest) VALUES (?, ?, ?, ?)")?.execute(params![
        run,
        seq,
        snapshot.packed,
        snapshot.digest.as_bytes()
    ])?;
    let mut statement = db.prepare_cached("SELECT seq FROM snapshot WHERE run = ? ORDER BY seq")?;
    let seqs = statement.query_map([run], |row| unsigned(row, 0))?.collect::<Result<Vec<_>, _>>()?;
    for seq in superfluous(&seqs) {
        db.prepare_cached("DELETE FROM snapshot WHERE run = ? AND seq = ?")?.execute(params![run, signed(seq)])?;
    }
    Ok(())
}

/// The newest: its transition's number and its plain bytes.
pub(super) fn newest(db: &Connection, run: i64, path: &Path) -> Done<Option<(u64, Vec<u8>)>> {
    let found = db
        .prepare_cached("SELECT seq, bytes, digest FROM snapshot WHERE run = ? ORDER BY seq DESC LIMIT 1")?
        .query_row([run], |row| Ok(read(row, path)))
        .optional()?;
    found.transpose()
}

/// All that are kept, oldest first.
pub(super) fn all(db: &Connection, run: i64, path: &Path) -> Done<Vec<(u64, Vec<u8>)>> {
    let mut statement = db.prepare_cached("SELECT seq, bytes, digest FROM snapshot WHERE run = ? ORDER BY seq")?;
    let rows = statement.query_map([run], |row| Ok(read(row, path)))?;
    rows.map(|row| row?).collect()
}

fn read(row: &Row<'_>, path: &Path) -> Done<(u64, Vec<u8>)> {
    let seq = unsigned(row, 0)?;
    let packed = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
    let damaged = |how: &str| corrupt(path, &format!("a snapshot at transition {seq} is damaged: {how}"));
    let plain = unpack(packed).map_err(damaged)?;
    if Digest::of(&plain) != digest(row, 2)? {
        return Err(damaged("its bytes are not what they were").into());
    }
    Ok((seq, plain))
}
