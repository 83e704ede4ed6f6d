//! Was the database put back to an older copy of itself? A small file beside it knows how far it had come.
//!
//! The database counts for free: each transition and each message has a number in order of arrival, and no number is
//! used twice. The witness is written and synced at opening, when a worker renews its lease, when one retires and at
//! closing; beside it a record that is not synced is written at each commit, see `newest`. Both are written after what
//! they name is durable: they lag behind the database, and are never ahead of it. So they are read before the database
//! is. One that is behind either of them is an older copy. Its runs are held, and its timeline begins anew, so that it is
//! told once, and told again when a copy from before is put back later.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::rules::standing::Status;
use lodestep_core::{Digest, Result};
use rusqlite::{Connection, params};

use super::failure::explain;
use super::newest::{self, Newest};
use super::place::Place;
use super::row::{signed, unsigned};
use super::value::{sync_folder, write_new};

/// How far a database has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The store's name, made with it.
    pub(super) store: Arc<str>,
    /// Raised whenever the store was found put back.
    pub(super) timeline: u64,
    /// The number of the newest transition of any run.
    pub(super) transitions: u64,
    /// The number of the newest message to any run.
    pub(super) messages: u64,
}

impl Mark {
    /// How far it has come; within a write transaction, once that is committed.
    pub(super) fn of(db: &Connection) -> rusqlite::Result<Self> {
        let store: String = db.prepare_cached("SELECT name FROM store")?.query_row([], |row| row.get(0))?;
        Self::of_store(db, &Arc::from(store))
    }

    /// The same for one whose name is known: each commit asks.
    pub(super) fn of_store(db: &Connection, store: &Arc<str>) -> rusqlite::Result<Self> {
        let counted = "SELECT timeline, (SELECT coalesce(max(n), 0) FROM journal),
             (SELECT coalesce(max(n), 0) FROM message) FROM store";
        db.prepare_cached(counted)?.query_row([], |row| {
            Ok(Self {
                store: Arc::clone(store),
                timeline: unsigned(row, 0)?,
                transitions: unsigned(row, 1)?,
                messages: unsigned(row, 2)?,
            })
        })
    }

    /// Is this a copy from before `seen` was, or another store? A lower timeline than this one's was written before
    /// the store was found put back: it says nothing.
    pub(super) fn is_older_than(&self, seen: &Self) -> bool {
        let is_behind = self.transitions < seen.transitions || self.messages < seen.messages;
        self.store != seen.store || self.timeline < seen.timeline || (self.timeline == seen.timeline && is_behind)
    }

    fn words(&self) -> String {
        format!("1 {} {} {} {}", self.store, self.timeline, self.transitions, self.messages)
    }
}

fn check_of(words: &str) -> String {
    Digest::over("lodestep witness 1", &[words.as_bytes()]).to_hex()[..16].to_owned()
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words();
        write!(f, "{words} {}", check_of(&words))
    }
}

impl FromStr for Mark {
    type Err = ();

    /// Anything but a whole line of a format that this build knows is no witness.
    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let ["1", store, timeline, transitions, messages, check] = parts[..] else { return Err(()) };
        let number = |text: &str| text.parse::<u64>().map_err(drop);
        let mark = Self {
            store: Arc::from(store),
            timeline: number(timeline)?,
            transitions: number(transitions)?,
            messages: number(messages)?,
        };
        if check_of(&mark.words()) == check { Ok(mark) } else { Err(()) }
    }
}

/// The witness of a store that is open.
pub(super) struct Witness {
    path: PathBuf,
    /// What it was last seen to know.
    known: Mutex<Option<Mark>>,
}

impl Witness {
    pub(super) fn at(path: PathBuf) -> Self {
        let known = Mutex::new(read(&path));
        Self { path, known }
    }

    /// Writes down how far the database has come, if that is further than it knows. A failure leaves it behind.
    pub(super) fn note(&self, db: &Connection) -> rusqlite::Result<()> {
        let mark = Mark::of(db)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A store that was only read may have been put back and not be held yet: the witness keeps what it knows.
        let is_news = known.as_ref().is_none_or(|seen| *seen != mark && !mark.is_older_than(seen));
        if is_news && write(&self.path, &mark).is_ok() {
            *known = Some(mark);
        }
        Ok(())
    }
}

pub(super) fn read(path: &Path) -> Option<Mark> {
    fs::read_to_string(path).ok()?.parse().ok()
}

pub(super) fn write(path: &Path, mark: &Mark) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = path.with_extension(format!("{}-{number}", std::process::id()));
    write_new(&draft, format!("{mark}\n").as_bytes())?;
    fs::rename(&draft, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// What a witness says of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testimony {
    /// The database is as far as it was seen, or further.
    Fits,
    /// There is no witness, or none that can be read.
    Missing,
    /// The database is behind what was seen: it is an older copy, or another store's.
    Older,
}

/// What is known beside the database: by the witness, and by the records of the last commits.
struct Known(Vec<Mark>);

impl Known {
    /// Read before the database is: what is read of that later is at least as new. The records first: one that is freed
    /// meanwhile is in the witness.
    fn read(place: &Place) -> Self {
        let mut marks = newest::read(place);
        marks.extend(read(&place.witness()));
        Self(marks)
    }

    fn is_ahead_of(&self, found: &Mark) -> bool {
        self.0.iter().any(|seen| found.is_older_than(seen))
    }
}

/// Asks the witness and holds nothing.
pub(super) fn testimony(db: &Connection, place: &Place) -> rusqlite::Result<Testimony> {
    let known = Known::read(place);
    let found = Mark::of(db)?;
    Ok(match &known.0[..] {
        [] => Testimony::Missing,
        _ if known.is_ahead_of(&found) => Testimony::Older,
        _ => Testimony::Fits,
    })
}

/// Asks the witness while nobody else opens the store. Runs of a database that was put back are held, durably, before
/// anybody can claim one. Gives the record that each commit is noted in, where there can
/// be one.
pub(super) fn question(db: &Connection, place: &Place) -> Result<Option<Newest>> {
    let path = &place.database;
    let broken = |error: rusqlite::Error| explain(&error, path);
    let known = Known::read(place);
    let found = match Mark::of(db).map_err(broken) {
        Ok(found) => found,
        // How far it has come can't be read. It is opened all the same: what is damaged is named by whoever reads it.
        Err(error) if error.code() == "store.corrupt" => return Ok(None),
        Err(error) => return Err(error),
    };
    if known.is_ahead_of(&found) {
        let timeline = known.0.iter().map(|seen| seen.timeline).fold(found.timeline, u64::max) + 1;
        hold_all(db, timeline).map_err(broken)?;
    }
    let found = Mark::of(db).map_err(broken)?;
    if read(&place.witness()).as_ref() != Some(&found) {
        // It lags behind until the next time.
        let _ = write(&place.witness(), &found);
    }
    // Without one the witness alone counts: that holds nothing up.
    Ok(Newest::begin(place, &found).ok())
}

/// Holds every run that is not over, and begins a timeline, in one transaction.
fn hold_all(db: &Connection, timeline: u64) -> rusqlite::Result<()> {
    let all = db.unchecked_transaction()?;
    all.execute("UPDATE store SET timeline = ?", [signed(timeline)])?;
    // Due at once: whoever takes such a run writes into its journal why it stops.
    all.execute(
        "UPDATE head SET rewound = 1, status = ?1, why = 'rewound', holder = NULL,
             due_at = CASE WHEN undecodable THEN NULL ELSE updated_at END
         WHERE status < ?2",
        params![Status::Quarantined.to_number(), Status::Completed.to_number()],
    )?;
    all.commit()
}
