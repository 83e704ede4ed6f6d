//! Is the file itself sound? SQLite's own check of every page, row and index. What the rows mean is refolded elsewhere.

use std::path::Path;

use lodestep_core::Result;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _};

use super::failure::explain;
use super::settings::Reader;

/// So many faults are named at most; a file with one is damaged already.
const MOST: usize = 20;

/// Checks the database at a path; what is wrong with it, in words.
///
/// It has a connection of its own: nothing that was read before hides what stands on the disk now, and no reader waits
/// for it. `quick_check` would be faster and leave the indexes out. But a run that its index has lost is never due, and
/// an effect that its index has lost is sent again. There are no foreign keys to check.
pub(super) fn check(path: &Path, reader: Reader) -> Result<Vec<String>> {
    let db = reader(path).map_err(|error| explain(&error, path))?;
    match faults(&db, &format!("PRAGMA integrity_check({MOST})")) {
        Ok(faults) => Ok(faults),
        // A page that can't be taken in ends the check: then each table by itself tells which one has it.
        Err(error) if is_damage(&error) => {
            let mut faults = by_table(&db).unwrap_or_default();
            faults.truncate(MOST);
            Ok(if faults.is_empty() { vec![error.to_string()] } else { faults })
        }
        Err(error) => Err(explain(&error, path)),
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt))
}

fn by_table(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let checked = names.iter().flat_map(|name| {
        let found = faults(db, &format!("PRAGMA integrity_check({name})"));
        found.unwrap_or_else(|error| vec![format!("table {name} or one of its indexes: {error}")])
    });
    Ok(checked.collect())
}

fn faults(db: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare(check)?;
    let said = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    if said == ["ok"] {
        return Ok(Vec::new());
    }
    // The first fault brings a line with it that names only the schema.
    let lines = said.iter().flat_map(|said| said.lines()).filter(|line| !line.starts_with("*** in database"));
    Ok(lines.map(|line| with_its_table(db, line)).collect())
}

/// SQLite names a tree by the page of its root; people know it by its table or index.
fn with_its_table(db: &Connection, fault: &str) -> String {
    let root = fault.strip_prefix("Tree ").and_then(|rest| rest.split(' ').next()?.parse::<i64>().ok());
    let name = root.and_then(|root| {
        let found = db.query_row("SELECT type || ' ' || name FROM sqlite_schema WHERE rootpage = ?", [root], |row| {
            row.get::<_, String>(0)
        });
        found.optional().ok().flatten()
    });
    name.map_or_else(|| fault.to_owned(), |name| format!("{name}: {fault}"))
}
