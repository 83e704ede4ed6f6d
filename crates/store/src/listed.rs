//! What a store lists: runs, transitions, requests, effects, keys, artifacts; and which runs are wanted.

use lodestep_core::rules::standing::Status;
use lodestep_core::{Digest, Labels, Ordinal, Stored, Timestamp};

use crate::rows::KeyRow;
use crate::store::{Hold, RunRef, WorkerId};

/// One run, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunRef,
    /// The agent's name.
    pub agent: String,
    /// The digest of its definition.
    pub definition: Digest,
    /// The digest of its inputs.
    pub inputs: Digest,
    /// What people find it by.
    pub labels: Labels,
    /// Its status at the last commit.
    pub status: Status,
    /// Why, in a few words; empty when it is ready or over.
    pub why: String,
    /// When a worker is due for it; `None` while one holds it or only a message can move it.
    pub due: Option<Timestamp>,
    /// The worker that holds it.
    pub holder: Option<WorkerId>,
    /// The last transition.
    pub seq: u64,
    /// The head of its chain.
    pub head: Digest,
    /// The last claim's epoch.
    pub epoch: u64,
    /// Claims since the last committed outcome that did not end in a release.
    pub crashes: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was last committed.
    pub updated_at: Timestamp,
    /// The position of the newest message in the inbox.
    pub inbox: u64,
    /// What its journal does not say yet.
    pub hold: Option<Hold>,
}

impl RunRow {
    /// Does nobody know what became of one of its actions? A run that is over gives no other reason.
    pub fn has_doubt(&self) -> bool {
        self.status == Status::InDoubt || (self.status.is_terminal() && !self.why.is_empty())
    }
}

/// Which runs a listing shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these statuses; all when empty.
    pub statuses: Vec<Status>,
    /// Only this agent's.
    pub agent: Option<String>,
    /// Only runs with each of these labels, name and value.
    pub labels: Vec<(String, String)>,
    /// Only runs that began then or later.
    pub since: Option<Timestamp>,
    /// Only runs whose last transition is older.
    pub still_since: Option<Timestamp>,
    /// Only runs with an action in doubt, also those that are over.
    pub in_doubt: bool,
    /// At most so many; newest first.
    pub limit: Option<usize>,
}

impl Filter {
    /// Does it show this run? The limit is another matter.
    pub fn takes(&self, row: &RunRow) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.agent.as_ref().is_none_or(|agent| *agent == row.agent)
            && self.labels.iter().all(|(name, value)| row.labels.get(name) == Some(value))
            && self.since.is_none_or(|since| row.started_at >= since)
            && self.still_since.is_none_or(|still_since| row.updated_at < still_since)
            && (!self.in_doubt || row.has_doubt())
    }
}

/// One transition, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    /// Its number.
    pub seq: u64,
    /// The envelope's bytes.
    pub envelope: Vec<u8>,
    /// The values that stand in its row; `None` when they were erased.
    pub values: Option<Vec<Vec<u8>>>,
    /// The raw reply, unless it was emptied or there was none.
    pub transcript: Option<Vec<u8>>,
}

/// A request to a person, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Its name.
    pub name: Digest,
    /// The run that asks.
    pub run: RunRef,
    /// The action.
    pub ordinal: Ordinal,
    /// Is it open?
    pub open: bool,
}

/// An effect that had an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRow {
    /// What makes it the same as another.
    pub same: Digest,
    /// The action.
    pub ordinal: Ordinal,
    /// The transition with its first intent.
    pub seq: u64,
}

/// The action that has a dedupe key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHolder {
    /// Its run.
    pub run: RunRef,
    /// The key, the action, and what is known of its effect.
    pub row: KeyRow,
}

/// One version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRow {
    /// Its name.
    pub name: String,
    /// Its version, from 1.
    pub version: u32,
    /// Its bytes, and where they stand.
    pub content: Stored,
}
