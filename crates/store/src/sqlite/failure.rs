//! What an error of SQLite means to a caller: a stable code, what happened, and what to do.

use std::path::Path;

use lodestep_core::Error;
use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why a piece of work did not go through.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was refused before it changed anything; whatever shares its transaction stands.
    Refused(Error),
    /// The database failed: the whole transaction is rolled back.
    Broken(rusqlite::Error),
}

/// The result of work in a transaction or on a reading connection.
pub(super) type Done<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

impl Failure {
    pub(super) fn explain(self, path: &Path) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Broken(error) => explain(&error, path),
        }
    }
}

/// Is the database locked by somebody else?
pub(super) fn is_locked(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Is there no room for it? What a quota or a limit refuses comes as a write that failed.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || matches!(extended, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE)
}

/// An error of SQLite on the store at `path`.
pub(super) fn explain(error: &rusqlite::Error, path: &Path) -> Error {
    let Some(code) = error.sqlite_error_code() else {
        // A column that does not hold what the schema says, or a statement that this build got wrong.
        return corrupt(path, &format!("a row can't be read: {error}"));
    };
    let shown = path.display();
    let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
    match code {
        ErrorCode::NotADatabase => unreadable(path, &error.to_string()),
        ErrorCode::DatabaseCorrupt => corrupt(path, &error.to_string()),
        ErrorCode::SystemIoFailure if extended == ffi::SQLITE_IOERR_CORRUPTFS => corrupt(path, &error.to_string()),
        _ if is_full(error) => {
            unavailable(format!("no room to write {shown}: {error}"), "make room on its disk, then try again")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => unavailable(
            format!("{shown} can't be written: {error}"),
            "check the permissions of the file, of its folder and of its disk, then try again",
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            unavailable(format!("another process keeps {shown} locked"), "let it finish or end it, then try again")
        }
        ErrorCode::CannotOpen => {
            unavailable(format!("{shown} can't be opened: {error}"), "check that its folder exists and may be written")
        }
        // Every statement fits the tables that were made, and looks before it inserts. They are not what they were, and
        // trying again changes nothing.
        ErrorCode::ConstraintViolation => corrupt(path, &error.to_string()),
        ErrorCode::Unknown if is_of_other_tables(&error.to_string()) => corrupt(path, &error.to_string()),
        _ => unavailable(format!("{shown} can't be used: {error}"), "check its disk, then try again"),
    }
}

/// Does a statement name a table or a column that is not there?
fn is_of_other_tables(message: &str) -> bool {
    ["no such table", "no such column", "has no column named"].iter().any(|words| message.contains(words))
}

/// Nothing of the call is stored; the same call may be made again.
pub(super) fn unavailable(what: impl Into<String>, next: impl Into<String>) -> Error {
    Error::new("store.unavailable", what, next)
}

/// Nothing of the file can be read as a store.
pub(super) fn unreadable(path: &Path, how: &str) -> Error {
    Error::new(
        "store.corrupt",
        format!("{} is no sound store: {how}", path.display()),
        "nothing of it can be read: keep it as it is, with its -wal, and put back a copy that verifies",
    )
}

/// The bytes are not what they were.
pub(super) fn corrupt(path: &Path, how: &str) -> Error {
    Error::new(
        "store.corrupt",
        format!("{} is no sound store: {how}", path.display()),
        "keep a copy of it as it is, then `lodestep verify` lists what can still be read",
    )
}
