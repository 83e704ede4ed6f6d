//! The schema's versions: each migration once, in one transaction, forward only.

use std::path::Path;

use lodestep_core::{Error, Result};
use rusqlite::Connection;

use super::failure::{explain, unavailable, unreadable};
use super::settings::APPLICATION_ID;

/// Every migration, in order; the schema's version is how many there are. One that was released never changes.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001-first.sql"),
    include_str!("migrations/0002-dedupe.sql"),
    include_str!("migrations/0003-garbage.sql"),
    include_str!("migrations/0004-kin.sql"),
    include_str!("migrations/0005-piece.sql"),
    include_str!("migrations/0006-rate-limit.sql"),
];

/// Brings an empty or older database to this build's schema, and refuses any other.
///
/// # Errors
///
/// `store.newer_format` names both versions; `store.corrupt` for another program's database.
pub(super) fn migrate(db: &Connection, path: &Path) -> Result<()> {
    let broken = |error: rusqlite::Error| explain(&error, path);
    let version = version(db).map_err(broken)?;
    let is_empty = version == 0 && count_tables(db).map_err(broken)? == 0;
    if !is_empty {
        check_kind(db, version, path)?;
    }
    let Some(due) = MIGRATIONS.get(version..).filter(|due| !due.is_empty()) else { return Ok(()) };
    db.execute_batch("BEGIN IMMEDIATE").map_err(broken)?;
    let done = apply(db, due).and_then(|()| db.execute_batch("COMMIT"));
    if done.is_err() && !db.is_autocommit() {
        // The first error says more than what a rollback could.
        let _ = db.execute_batch("ROLLBACK");
    }
    done.map_err(broken)
}

/// Refuses any schema but this build's: for a database that can't be migrated where it is.
///
/// # Errors
///
/// As [`migrate`], and `store.unavailable` for an older schema.
pub(super) fn check(db: &Connection, path: &Path) -> Result<()> {
    let version = version(db).map_err(|error| explain(&error, path))?;
    check_kind(db, version, path)?;
    if version == MIGRATIONS.len() {
        return Ok(());
    }
    let what =
        format!("{} has format {version}, and it can't be written to bring it to {}", path.display(), MIGRATIONS.len());
    Err(unavailable(what, "open it once where it can be written"))
}

fn apply(db: &Connection, due: &[&str]) -> rusqlite::Result<()> {
    for migration in due {
        db.execute_batch(migration)?;
    }
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))
}

fn check_kind(db: &Connection, version: usize, path: &Path) -> Result<()> {
    let id: i32 = db.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(|error| explain(&error, path))?;
    if id != APPLICATION_ID {
        return Err(unreadable(path, "it is a database of another program"));
    }
    if version <= MIGRATIONS.len() {
        return Ok(());
    }
    Err(Error::new(
        "store.newer_format",
        format!("{} has format {version}; this build reads up to {}", path.display(), MIGRATIONS.len()),
        "use a newer lodestep",
    ))
}

fn version(db: &Connection) -> rusqlite::Result<usize> {
    db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
        .map(|version| usize::try_from(version).unwrap_or(usize::MAX))
}

fn count_tables(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::*;

    fn shape(script: &[&str]) -> Vec<(String, String)> {
        let db = Connection::open_in_memory().expect("opened");
        for part in script {
            db.execute_batch(part).expect("sound");
        }
        let mut rows =
            db.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").expect("prepared");
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("queried");
        let rows = rows.map(|row| row.expect("read"));
        // A column that was added stands right before the end, whatever the lines.
        let plain = |sql: String| {
            sql.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace(" ,", ",")
                .replace("( ", "(")
                .replace(" )", ")")
        };
        rows.map(|(name, sql): (String, String)| (name, plain(sql))).collect()
    }

    #[test]
    fn the_schema_is_the_sum_of_the_migrations() {
        assert_eq!(shape(&[include_str!("schema.sql")]), shape(MIGRATIONS));
    }

    #[test]
    fn lineages_of_an_older_format_are_known() {
        let db = Connection::open_in_memory().expect("opened");
        for migration in &MIGRATIONS[..3] {
            db.execute_batch(migration).expect("sound");
        }
        let runs = [
            (1, "a", "one", None),
            (2, "a", "two", Some("one")),
            (3, "b", "one", None),
            (4, "a", "four", Some("gone")),
        ];
        for (number, namespace, id, root) in runs {
            let backwards: String = id.chars().rev().collect();
            let run = "INSERT INTO run VALUES (?, ?, ?, ?, '', x'', x'', 0, '', ?)";
            db.execute(run, params![number, namespace, id, backwards, root]).expect("inserted");
            let head = "INSERT INTO head (run, namespace, epoch, seq, digest, status, why, crashes, inbox, inbox_read,
                 updated_at) VALUES (?, ?, 0, 1, x'', 0, '', 0, 0, 0, 0)";
            db.execute(head, params![number, namespace]).expect("inserted");
        }
        db.execute_batch(MIGRATIONS[3]).expect("sound");
        let mut marked = db.prepare("SELECT run FROM head WHERE has_kin ORDER BY run").expect("prepared");
        let marked = marked.query_map([], |row| row.get::<_, i64>(0)).expect("queried");
        assert_eq!(marked.map(|run| run.expect("read")).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn a_plain_step_names_no_indexed_column() {
        let db = Connection::open_in_memory().expect("opened");
        db.execute_batch(include_str!("schema.sql")).expect("sound");
        let explain = format!("EXPLAIN {}", super::super::commit::LEAN);
        let mut statement = db.prepare(&explain).expect("prepared");
        let mut rows = statement.raw_query();
        let mut opcodes = Vec::new();
        while let Some(row) = rows.next().expect("explained") {
            opcodes.push(row.get::<_, String>(1).expect("an opcode"));
        }
        assert!(opcodes.iter().any(|opcode| opcode == "Insert"), "{opcodes:?}");
        assert!(!opcodes.iter().any(|opcode| opcode.starts_with("Idx")), "{opcodes:?}");
    }
}
