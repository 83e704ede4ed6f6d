//! One connection to a target database, opened for one attempt: what a statement may do there, and what a fault of SQLite
//! proves.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lodestep_core::effect::Seen;
use lodestep_store::APPLICATION_ID;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::applied::NAME;
/// How long another writer is waited for at most; then the attempt is one that was not sent, and is made again later.
const BUSY: Duration = Duration::from_secs(5);

/// The steps of SQLite's machine between two looks at the brake.
const STEPS: i32 = 1_000;

/// Why a statement has no result. Everything that it did is rolled back.
#[derive(Debug)]
pub(super) struct Undone {
    pub seen: Seen,
    pub why: String,
}

impl Undone {
    pub fn new(seen: Seen, why: impl Into<String>) -> Self {
        Self { seen, why: why.into() }
    }
}

/// Ends a statement that takes too long: what it did is rolled back.
#[derive(Clone, Default)]
pub(super) struct Brake(Arc<AtomicBool>);

impl Brake {
    pub fn pull(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_pulled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// How a database is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
}

/// Opens a database that exists. A Lodestep store is refused, under whatever name it is reached: its tables are the
/// runtime's alone.
pub(super) fn open(path: &Path, mode: Mode, patience: Duration, brake: &Brake) -> Result<Connection, Undone> {
    let access = match mode {
        Mode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Mode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let opened = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let mut db = opened.map_err(|error| undone(path, &error))?;
    let brake = brake.clone();
    let prepared = (|| {
        db.busy_timeout(patience.min(BUSY))?;
        db.progress_handler(STEPS, Some(move || brake.is_pulled()))?;
        let kind: i32 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        // What the outcome rests on is durable before the outcome is.
        db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")?;
        Ok(kind)
    })();
    match prepared {
        Ok(APPLICATION_ID) => Err(Undone::new(
            Seen::Refused,
            format!("tool.own_store: {} is a store of Lodestep; its tables are the runtime's alone", path.display()),
        )),
        Ok(_) => Ok(db),
        Err(error) => Err(undone(path, &error)),
    }
}

/// Confines what the next statements may do: to rows and tables of this database, within the open transaction.
pub(super) fn confine(db: &mut Connection) -> rusqlite::Result<()> {
    db.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Pragma { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. } => Authorization::Deny,
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::DropTable { table_name }
        | AuthAction::AlterTable { table_name, .. }
        | AuthAction::CreateTrigger { table_name, .. }
        | AuthAction::CreateTempTrigger { table_name, .. }
            if table_name.eq_ignore_ascii_case(NAME) =>
        {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    }))
}

/// Lets the runtime's own statements be prepared again.
pub(super) fn free(db: &mut Connection) -> rusqlite::Result<()> {
    db.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
}

/// What a fault proves: whatever failed was rolled back, so that it was not applied. A fault of the place (locked, full,
/// unreadable) may pass; one of the statement or of the data will not.
pub(super) fn undone(path: &Path, error: &rusqlite::Error) -> Undone {
    let passing = matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::DiskFull
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::NotADatabase
                | ErrorCode::OperationInterrupted
                | ErrorCode::OutOfMemory
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::SchemaChanged
                | ErrorCode::SystemIoFailure
        )
    );
    let seen = if passing { Seen::NotStarted } else { Seen::Refused };
    Undone::new(seen, format!("{}: {error}; nothing was changed", path.display()))
}
