//! A store as it is stored, for whoever compares it with what the journals give or saves what can be read.

use lodestep_core::rules::inbox::Message;
use lodestep_core::{Labels, Result};

use crate::rows::Tables;
use crate::store::{RunRef, RunRow};

/// Everything that stands beside a run's journal, as it was stored: to be compared with what the journal gives.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its row.
    pub row: RunRow,
    /// The id by which it is found.
    pub found_as: String,
    /// The namespace under which it is listed.
    pub listed_in: String,
    /// The position of the last message that was read.
    pub inbox_read: u64,
    /// The position of the newest cancel.
    pub cancel_at: Option<u64>,
    /// The labels by which it is found.
    pub found_by: Labels,
    /// The id of its lineage's root, of a fork.
    pub root: Option<String>,
    /// The numbers of the open holds under which it is parked.
    pub parked_under: Vec<u64>,
    /// Is its holder, if it has one, a worker that the store knows?
    pub holder_is_known: bool,
    /// Effects and artifacts. Requests are found by their names.
    pub tables: Tables,
    /// Every message that it was ever sent, oldest first.
    pub letters: Vec<Letter>,
}

/// A message, as it is stored.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Its place in the inbox.
    pub position: u64,
    /// Its id.
    pub id: String,
    /// What it says, if that can be read.
    pub message: Result<Message>,
}

/// The runs of a store that may be damaged.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those whose rows could be read; oldest first.
    pub runs: Vec<RunRef>,
    /// What could not, in words.
    pub lost: Vec<String>,
}

/// Every run, and what belongs to none.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Every run of every namespace, whether or not a listing shows it; oldest first.
    pub runs: Vec<RunRef>,
    /// Rows that belong to no run, or that hide one, in words.
    pub strays: Vec<String>,
}
