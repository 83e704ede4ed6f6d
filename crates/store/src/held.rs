//! Words to a run of which the store knows what its journal does not say: the same for every store.

use lodestep_core::event::StopReason;
use lodestep_core::rules::inbox::{Message, Verdict, Word, judge};
use lodestep_core::rules::quarantine::{REWOUND, quarantine};
use lodestep_core::rules::standing::{Standing, standing};
use lodestep_core::{Checkpoint, Draft, Error, Result, RunKey, Timestamp};

use crate::loaded::Loaded;
use crate::store::Hold;

/// The run's next transition, as far as the store knows what it begins with.
pub(crate) fn next(loaded: &Loaded, checkpoint: Checkpoint, now: Timestamp) -> Result<Draft> {
    let mut draft = Draft::next(checkpoint, now, loaded.row.epoch, 0);
    if loaded.row.hold == Some(Hold::Rewound) {
        quarantine(&mut draft, StopReason::Rewound, REWOUND)?;
    }
    Ok(draft)
}

/// Judges a message against a run with all that is unread.
pub(crate) fn judged(loaded: &Loaded, now: Timestamp, message: &Message) -> Result<Verdict> {
    judge(next(loaded, loaded.checkpoint()?, now)?, &loaded.unread, message)
}

/// What a word means to a run that could not be read.
pub(crate) enum Heard {
    /// It is refused; the run stays held.
    Refused(Error),
    /// The run can be read again and is free from now on. A cancel is then judged as any other word.
    Freed(Standing),
}

/// What a word means to a run that could not be read: now that it was read anew, with this result.
pub(crate) fn heard(run: &RunKey, read: Result<Checkpoint>, message: &Message) -> Heard {
    let refused = |what: String, next: &str| Heard::Refused(Error::new("run.quarantined", what, next));
    match (read, &message.word) {
        (Err(fault), _) => refused(
            format!("run {} is quarantined, and it still can't be read: {}", run.run, fault.what()),
            "`lodestep verify` says what is damaged; put that back from a copy, then `lodestep release RUN`",
        ),
        (Ok(checkpoint), Word::Release | Word::Cancel { .. }) => Heard::Freed(standing(&checkpoint)),
        (Ok(_), _) => refused(
            format!("run {} is quarantined: it could not be read", run.run),
            "it can be read again: `lodestep release RUN` first",
        ),
    }
}
