//! A transition being made: rules push events, each is folded at once, and the whole is sealed for one commit.
//!
//! Because a rule can only change the state through [`Draft::push`], what it decided and what a later fold
//! of the journal gives are the same by construction.

use crate::checkpoint::Checkpoint;
use crate::digest::Digest;
use crate::error::Result;
use crate::event::{Envelope, Event, FORMAT, RunForked, RunStarted};
use crate::fold;
use crate::ids::RunKey;
use crate::time::Timestamp;
use crate::value::{ValueRef, Values};

/// A transition that is not committed yet.
#[derive(Clone, Debug)]
pub struct Draft {
    checkpoint: Checkpoint,
    events: Vec<Event>,
    values: Values,
    at: Timestamp,
    epoch: u64,
    active_us: u64,
}

/// A sealed transition: what a store commits.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The state after it.
    pub checkpoint: Checkpoint,
    /// The envelope's bytes.
    pub envelope: Vec<u8>,
    /// The events, for whoever reports on them.
    pub events: Vec<Event>,
    /// The values that its events name and that are new.
    pub values: Vec<Vec<u8>>,
}

/// The head of a run's chain before its first transition.
pub fn root_digest(run: &RunKey) -> Digest {
    Digest::over("lodestep run 1", &[run.namespace.as_bytes(), run.run.as_str().as_bytes()])
}

impl Draft {
    /// The next transition of a run, written in `epoch` at `at` (never before the last one), after `active_us` of work.
    pub fn next(checkpoint: Checkpoint, at: Timestamp, epoch: u64, active_us: u64) -> Self {
        let at = at.max(checkpoint.at);
        Self { checkpoint, events: Vec::new(), values: Values::new(), at, epoch, active_us }
    }

    /// The first transition of a run.
    ///
    /// # Errors
    ///
    /// `run.illegal_event` when the start contradicts itself.
    pub fn start(started: RunStarted, values: Values, at: Timestamp) -> Result<Self> {
        let checkpoint = fold::begin(&started, at)?;
        Ok(Self { checkpoint, events: vec![Event::RunStarted(started)], values, at, epoch: 0, active_us: 0 })
    }

    /// The first transition of a fork.
    ///
    /// # Errors
    ///
    /// `run.illegal_event` when the start contradicts itself.
    pub fn fork(forked: RunForked, values: Values, at: Timestamp) -> Result<Self> {
        let checkpoint = fold::begin_fork(&forked, at)?;
        Ok(Self { checkpoint, events: vec![Event::RunForked(forked)], values, at, epoch: 0, active_us: 0 })
    }

    /// The state after the events so far.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The journal time of the transition.
    pub fn now(&self) -> Timestamp {
        self.at
    }

    /// The epoch of its writer.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Have events been pushed?
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Stores bytes with the transition and gives their name.
    pub fn put(&mut self, bytes: impl Into<Vec<u8>>) -> ValueRef {
        self.values.put(bytes)
    }

    /// The bytes put so far.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Adds an event and folds it.
    ///
    /// # Errors
    ///
    /// `run.illegal_event` when the event does not fit the state; the draft is then of no use.
    pub fn push(&mut self, event: Event) -> Result<()> {
        if self.events.is_empty() {
            fold::open_transition(&mut self.checkpoint, self.at, self.active_us);
        }
        let seq = self.checkpoint.seq.saturating_add(1);
        fold::apply(&mut self.checkpoint, seq, self.epoch, &event)?;
        self.events.push(event);
        Ok(())
    }

    /// Closes the transition.
    pub fn seal(mut self) -> Transition {
        if self.events.is_empty() {
            // A transition without events moves the journal's time all the same: so does its fold.
            fold::open_transition(&mut self.checkpoint, self.at, self.active_us);
        }
        let envelope = Envelope {
            format: FORMAT,
            seq: self.checkpoint.seq.saturating_add(1),
            at: self.at,
            epoch: self.epoch,
            active_us: self.active_us,
            events: self.events,
        };
        let bytes = envelope.to_bytes();
        fold::close_transition(&mut self.checkpoint, envelope.seq, &bytes);
        Transition {
            checkpoint: self.checkpoint,
            envelope: bytes,
            events: envelope.events,
            values: self.values.into_vec(),
        }
    }

    /// Gives the state back when no event was pushed.
    pub fn into_checkpoint(self) -> Checkpoint {
        self.checkpoint
    }
}
