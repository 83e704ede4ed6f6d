//! A run as it is read back: the newest snapshot, the transitions after it, and what is unread.

use lodestep_core::event::StopReason;
use lodestep_core::rules::inbox::Message;
use lodestep_core::rules::standing::{Reason, Standing, Status, standing};
use lodestep_core::{Checkpoint, Error, Result, fold};

use crate::held;
use crate::store::{Hold, RunRow};

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
    /// `store.newer_format` for bytes that a newer build wrote; `store.corrupt` when they can't be read or don't fit
    /// together, or when the chain does not end where the head says: the state is never taken from an older point in
    /// silence.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let (mut checkpoint, rest) = match (&self.snapshot, self.tail.split_first()) {
            (Some(bytes), _) => {
                let read = Checkpoint::from_bytes(bytes)
                    .map_err(|error| self.broken(&format!("its snapshot: {}", error.what())));
                (read?, self.tail.as_slice())
            }
            (None, Some((first, rest))) => {
                (fold::fold_first(first).map_err(|error| self.unreadable(1, &error))?.0, rest)
            }
            (None, None) => return Err(self.broken("it has no transition")),
        };
        for envelope in rest {
            let next = checkpoint.seq.saturating_add(1);
            fold::fold(&mut checkpoint, envelope).map_err(|error| self.unreadable(next, &error))?;
        }
        if checkpoint.seq != self.row.seq || checkpoint.head != self.row.head {
            return Err(self.broken("its journal does not end where its head says"));
        }
        Ok(checkpoint)
    }

    /// Where the run stands, with what the store knows and its journal does not say yet.
    ///
    /// # Errors
    ///
    /// As [`Self::checkpoint`], but for a run that is held because it can't be read.
    pub fn standing(&self) -> Result<Standing> {
        if self.row.hold == Some(Hold::Undecodable) {
            return Ok(undecodable());
        }
        let checkpoint = self.checkpoint()?;
        let now = checkpoint.at;
        Ok(standing(held::next(self, checkpoint, now)?.checkpoint()))
    }

    /// A transition that can't be read, by its number.
    fn unreadable(&self, seq: u64, error: &Error) -> Error {
        match error.code() {
            "store.newer_format" => error.clone(),
            _ => self.broken(&format!("transition {seq}: {}", error.what())),
        }
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

/// Where a run stands that no worker gets because it can't be read.
pub fn undecodable() -> Standing {
    let reasons = vec![Reason::Stopped { why: StopReason::Undecodable }];
    Standing { status: Status::Quarantined, reasons, due: None }
}
