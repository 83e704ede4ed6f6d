//! A run as it is read back: the newest snapshot, the transitions after it, and what is unread.

use lodestep_core::rules::inbox::Message;
use lodestep_core::{Checkpoint, Error, Result, fold};

use crate::store::RunRow;

/// A run, read at one moment.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its row.
    pub row: RunRow,
    /// The newest snapshot's bytes.
    pub snapshot: Option<Vec<u8>>,
    /// The envelopes after it, oldest first.
    pub tail: Vec<Vec<u8>>,
    /// The messages that no transition has read, oldest first.
    pub unread: Vec<(u64, Message)>,
}

impl Loaded {
    /// The state: the snapshot, and the tail folded into it, checked against the head's number and digest.
    ///
    /// # Errors
    ///
    /// `store.undecodable`, `store.newer_format` or `run.illegal_event` for the bytes; `store.corrupt` when the chain
    /// does not end where the head says: the state is never taken from an older point in silence.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let (mut checkpoint, rest) = match (&self.snapshot, self.tail.split_first()) {
            (Some(bytes), _) => (Checkpoint::from_bytes(bytes)?, self.tail.as_slice()),
            (None, Some((first, rest))) => (fold::fold_first(first)?.0, rest),
            (None, None) => return Err(self.broken("it has no transition")),
        };
        for envelope in rest {
            fold::fold(&mut checkpoint, envelope)?;
        }
        if checkpoint.seq != self.row.seq || checkpoint.head != self.row.head {
            return Err(self.broken("its journal does not end where its head says"));
        }
        Ok(checkpoint)
    }

    fn broken(&self, how: &str) -> Error {
        let run = &self.row.run.key.run;
        Error::new(
            "store.corrupt",
            format!("run {run} is damaged: {how}"),
            format!("`lodestep verify {run}` says where"),
        )
    }
}
