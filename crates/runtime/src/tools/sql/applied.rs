//! The table `lodestep_applied` of a target database: which keys were applied there, and what came of them.
//!
//! A row without a result is a lookup's: it found the key absent and fenced it, so that an attempt of an older epoch, which
//! a stalled worker might still make, does nothing.

use rusqlite::{Connection, OptionalExtension as _, params};

/// Not STRICT: other programs that open the database may have an older SQLite, which could then read none of its tables.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS lodestep_applied (
    key TEXT NOT NULL PRIMARY KEY,
    epoch INTEGER NOT NULL,
    result BLOB,
    tool TEXT NOT NULL,
    run TEXT NOT NULL,
    action INTEGER NOT NULL,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)";

/// Its name: a statement of a tool may read it, and never change it.
pub(super) const NAME: &str = "lodestep_applied";

/// Whose effect it is.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The action's key.
    pub key: String,
    /// The worker's fencing number.
    pub epoch: u64,
    /// The tool, for whoever reads the table.
    pub tool: String,
    /// The run.
    pub run: String,
    /// The action.
    pub action: u32,
}

/// What the table says of a key.
pub(super) enum Known {
    /// Nothing that stands against an attempt of this epoch.
    Absent,
    /// A later epoch has looked it up and found it absent: what this one would do comes too late.
    Fenced,
    /// It was applied, and this was its result.
    Applied(Vec<u8>),
}

/// Reads what is known of a key, in the open transaction; makes the table on first use.
pub(super) fn known(db: &Connection, key: &Key) -> rusqlite::Result<Known> {
    db.execute_batch(TABLE)?;
    let row: Option<(i64, Option<Vec<u8>>)> = db
        .query_row("SELECT epoch, result FROM lodestep_applied WHERE key = ?", [&key.key], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(match row {
        Some((_, Some(result))) => Known::Applied(result),
        Some((epoch, None)) if epoch > epoch_of(key) => Known::Fenced,
        _ => Known::Absent,
    })
}

/// Writes in the open transaction that the key was applied, or with `None` that it was found absent.
pub(super) fn note(db: &Connection, key: &Key, result: Option<&[u8]>) -> rusqlite::Result<()> {
    let mut statement = db.prepare(
        "INSERT INTO lodestep_applied (key, epoch, result, tool, run, action) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (key) DO UPDATE SET epoch = excluded.epoch, result = excluded.result, at = CURRENT_TIMESTAMP
         WHERE result IS NULL",
    )?;
    statement.execute(params![key.key, epoch_of(key), result, key.tool, key.run, key.action])?;
    Ok(())
}

fn epoch_of(key: &Key) -> i64 {
    i64::try_from(key.epoch).unwrap_or(i64::MAX)
}
