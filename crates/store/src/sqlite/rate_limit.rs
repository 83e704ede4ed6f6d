//! Until when services are not to be asked. Rows are few, and go when their time is past and another one comes.

use lodestep_core::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Done;
use super::row::time;

/// Notes a limit. A later one that is there stands.
pub(super) fn set(db: &Connection, service: &str, until: Timestamp, now: Timestamp) -> Done<()> {
    db.prepare_cached("DELETE FROM rate_limit WHERE until <= ?")?.execute([now.as_micros()])?;
    db.prepare_cached(
        "INSERT INTO rate_limit (service, until) VALUES (?, ?)
             ON CONFLICT (service) DO UPDATE SET until = max(until, excluded.until)",
    )?
    .execute(params![service, until.as_micros()])?;
    Ok(())
}

/// The limit of a service, if it lies ahead.
pub(super) fn get(db: &Connection, service: &str, now: Timestamp) -> Done<Option<Timestamp>> {
    let mut statement = db.prepare_cached("SELECT until FROM rate_limit WHERE service = ? AND until > ?")?;
    Ok(statement.query_row(params![service, now.as_micros()], |row| time(row, 0)).optional()?)
}
