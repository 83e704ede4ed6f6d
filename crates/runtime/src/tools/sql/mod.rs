//! Tools that are one statement of a SQLite database.
//!
//! An effect's statement and its key are committed there in one transaction, so that the database itself says whether it
//! happened: exactly once, whoever dies when. Nothing here knows of runs or journals.

mod applied;
mod database;
mod parameters;
#[cfg(test)]
mod tests;
mod values;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use lodestep_core::effect::Seen;
use lodestep_core::rules::settle::LookedUp;
use rusqlite::Connection;
use serde_json::{Value, json};

pub(crate) use applied::Key;
pub(crate) use parameters::parameters;

use crate::tools::Sight;
use applied::Known;
use database::{Brake, Mode, Undone};

/// The most bytes of a result; a statement that would give more changes nothing.
pub const RESULT_LIMIT: usize = 64 * 1024 * 1024;

/// One statement to be performed, or looked up.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// The database.
    pub database: PathBuf,
    /// The statement.
    pub text: String,
    /// Its parameters' values, by name.
    pub arguments: Value,
    /// Whose effect it is; `None` only reads.
    pub key: Option<Key>,
    /// How long it may take.
    pub timeout: Duration,
}

impl Statement {
    /// Performs it. It ends within the timeout and the wait for another writer, and then it is known what came of it.
    pub async fn attempt(self, stop: impl Future<Output = ()>) -> Sight {
        let (brake, timeout) = (Brake::default(), self.timeout);
        let pulled = brake.clone();
        let mut performed = tokio::task::spawn_blocking(move || self.perform(&pulled));
        let ended = tokio::select! {
            biased;
            ended = &mut performed => ended,
            () = tokio::time::sleep(timeout) => { brake.pull(); performed.await }
            () = stop => { brake.pull(); performed.await }
        };
        ended.unwrap_or_else(|_| Sight::new(Seen::Interrupted, "the sql tool panicked"))
    }

    /// Asks the database whether the effect happened. When it says no, attempts of older epochs can't happen any more.
    pub async fn look_up(self) -> LookedUp {
        let asked = tokio::task::spawn_blocking(move || self.ask());
        asked.await.unwrap_or_else(|_| LookedUp::Unknown("the sql tool panicked".to_owned()))
    }

    fn perform(&self, brake: &Brake) -> Sight {
        let performed = match &self.key {
            None => self.read(brake),
            Some(key) => self.apply(key, brake),
        };
        match performed {
            Ok(result) => Sight::new(Seen::Done, result),
            Err(_) if brake.is_pulled() => Sight::new(
                Seen::NotStarted,
                format!("it was ended after {} s at most, and rolled back", self.timeout.as_secs_f32()),
            ),
            Err(undone) => Sight::new(undone.seen, undone.why),
        }
    }

    fn read(&self, brake: &Brake) -> Result<Vec<u8>, Undone> {
        let mut db = database::open(&self.database, Mode::Read, self.timeout, brake)?;
        database::confine(&mut db).map_err(|error| self.fault(&error))?;
        self.result(&db)
    }

    fn apply(&self, key: &Key, brake: &Brake) -> Result<Vec<u8>, Undone> {
        let mut db = database::open(&self.database, Mode::Write, self.timeout, brake)?;
        let fault = |error| self.fault(&error);
        db.execute_batch("BEGIN IMMEDIATE").map_err(fault)?;
        match applied::known(&db, key).map_err(fault)? {
            Known::Applied(result) => return Ok(result),
            Known::Fenced => {
                return Err(Undone::new(Seen::NotStarted, "a later worker has the run; nothing was changed"));
            }
            Known::Absent => {}
        }
        database::confine(&mut db).map_err(fault)?;
        let result = self.result(&db)?;
        database::free(&mut db).map_err(fault)?;
        if db.is_autocommit() {
            // A trigger or a conflict clause ended the transaction: nothing of it is left.
            return Err(Undone::new(Seen::Refused, "the statement rolled its transaction back; nothing was changed"));
        }
        applied::note(&db, key, Some(&result)).map_err(fault)?;
        match db.execute_batch("COMMIT") {
            Ok(()) => Ok(result),
            Err(error) => self.after_failed_commit(db, key, &error),
        }
    }

    /// A commit that failed in an open transaction did nothing. One that SQLite ended itself may have become durable all the
    /// same: the table says which.
    fn after_failed_commit(&self, db: Connection, key: &Key, error: &rusqlite::Error) -> Result<Vec<u8>, Undone> {
        if !db.is_autocommit() && db.execute_batch("ROLLBACK").is_ok() {
            return Err(self.fault(error));
        }
        drop(db);
        match self.look(key) {
            Ok(Known::Applied(result)) => Ok(result),
            Ok(_) => Err(self.fault(error)),
            Err(_) => Err(Undone::new(Seen::Interrupted, format!("{}: the commit: {error}", self.database.display()))),
        }
    }

    fn ask(&self) -> LookedUp {
        let Some(key) = &self.key else {
            return LookedUp::Unknown("it only reads".to_owned());
        };
        match self.look(key) {
            Ok(Known::Applied(result)) => LookedUp::Done(result),
            Ok(_) => LookedUp::Absent,
            Err(undone) => LookedUp::NotNow(undone.why),
        }
    }

    fn look(&self, key: &Key) -> Result<Known, Undone> {
        let db = database::open(&self.database, Mode::Write, self.timeout, &Brake::default())?;
        let look = || {
            db.execute_batch("BEGIN IMMEDIATE")?;
            let known = applied::known(&db, key)?;
            if let Known::Absent = known {
                applied::note(&db, key, None)?;
            }
            db.execute_batch("COMMIT")?;
            Ok(known)
        };
        look().map_err(|error| self.fault(&error))
    }

    /// Runs the statement to its end: its rows as a JSON list, or how many rows it changed.
    fn result(&self, db: &Connection) -> Result<Vec<u8>, Undone> {
        let fault = |error| self.fault(&error);
        let mut statement = db.prepare(&self.text).map_err(fault)?;
        if self.key.is_none() && !statement.readonly() {
            return Err(refused("it would change the database, and the tool is declared to read"));
        }
        for at in 1..=statement.parameter_count() {
            let name = statement.parameter_name(at).unwrap_or_default().trim_start_matches(':').to_owned();
            statement.raw_bind_parameter(at, values::bound(self.arguments.get(&name))).map_err(fault)?;
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        if let Some(name) = values::named_twice(&columns) {
            return Err(refused(&format!("two columns of its result are named `{name}`; name one otherwise with AS")));
        }
        let mut text = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(fault)? {
            text.push(if text.is_empty() { b'[' } else { b',' });
            let row = values::row(&columns, row).map_err(fault)?;
            text.extend(row.to_string().into_bytes());
            if text.len() > RESULT_LIMIT {
                return Err(refused(&format!("its result has over {RESULT_LIMIT} bytes; ask for less with LIMIT")));
            }
        }
        match (columns.is_empty(), text.is_empty()) {
            (true, _) => Ok(json!({ "changed": db.changes() }).to_string().into_bytes()),
            (false, true) => Ok(b"[]".to_vec()),
            (false, false) => Ok([text.as_slice(), b"]"].concat()),
        }
    }

    fn fault(&self, error: &rusqlite::Error) -> Undone {
        database::undone(&self.database, error)
    }
}

fn refused(why: &str) -> Undone {
    Undone::new(Seen::Refused, format!("{why}; nothing was changed"))
}
