//! A journal folded again, with what a store would have written beside it.
//!
//! It uses what a commit uses: [`fold`] for the state, [`Rows`] and [`Tables`] for the rows. It reads no store.

use lodestep_core::event::Envelope;
use lodestep_core::rules::standing::standing;
use lodestep_core::{Checkpoint, Digest, Error, Labels, Result, fold};

use crate::rows::{Head, Rows, Tables, labels_in};

/// A journal, as far as it was folded.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The state; `None` before the first transition.
    pub checkpoint: Option<Checkpoint>,
    /// The definition that the run began with; `None` before the first transition.
    pub definition: Option<Digest>,
    /// The rows beside the journal.
    pub tables: Tables,
    /// The labels that its first transition gives.
    pub labels: Labels,
    /// The epoch of the last transition.
    pub epoch: u64,
    /// The epoch of the last transition with an outcome, 0 before there was one.
    pub outcome_epoch: u64,
}

impl Replay {
    /// Folds the next envelope. After an error the state is that before it, or of no use when the error is
    /// `run.illegal_event`.
    ///
    /// # Errors
    ///
    /// As [`fold::fold`].
    pub fn take_in(&mut self, envelope: &[u8]) -> Result<Envelope> {
        let envelope = match &mut self.checkpoint {
            None => {
                let (checkpoint, envelope) = fold::fold_first(envelope)?;
                self.definition = Some(checkpoint.definition.digest);
                self.checkpoint = Some(checkpoint);
                self.labels = labels_in(&envelope.events);
                envelope
            }
            Some(checkpoint) => fold::fold(checkpoint, envelope)?,
        };
        let after = self.checkpoint.as_ref().ok_or_else(nothing)?;
        let rows = Rows::of(&envelope.events, after);
        self.epoch = envelope.epoch;
        if rows.clears_crashes {
            self.outcome_epoch = envelope.epoch;
        }
        self.tables.take_in(rows);
        Ok(envelope)
    }

    /// What the head says after the last transition; `None` before the first.
    pub fn head(&self) -> Option<Head> {
        self.checkpoint.as_ref().map(|checkpoint| Head::of(checkpoint, &standing(checkpoint)))
    }
}

fn nothing() -> Error {
    Error::new("run.illegal_event", "a journal without a transition has no state", "this is a fault in lodestep")
}
