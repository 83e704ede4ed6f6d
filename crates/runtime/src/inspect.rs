//! What people ask about a run. Reads only; nothing here moves a run.
//!
//! - `opened`: a run with its definition and texts.
//! - [`effects`]: every effect, its attempts and what is known of it.
//! - [`mod@verify`]: does the journal still say what it said?

mod effects;
mod opened;
pub mod verify;

use lodestep_core::event::{Event, Resolution};
use lodestep_core::rules::decide::Prior;
use lodestep_core::{Digest, Ordinal, Result, Stored};
use lodestep_store::{JournalRow, RunRef, Store};

pub use effects::{Effect, EffectAttempt, effects};
pub use opened::{Opened, open};
pub use verify::{Report, verify};

use crate::runtime::Runtime;

/// How many transitions are read at once.
const PAGE: usize = 512;

/// Calls `each` with every transition of a run from a number on, oldest first, until it says stop.
pub(crate) async fn walk(
    store: &dyn Store,
    run: &RunRef,
    from: u64,
    mut each: impl FnMut(JournalRow) -> Result<bool>,
) -> Result<()> {
    let mut next = from;
    loop {
        let rows = store.journal(run, next, PAGE).await?;
        let Some(last) = rows.last().map(|row| row.seq) else { return Ok(()) };
        for row in rows {
            if !each(row)? {
                return Ok(());
            }
        }
        next = last + 1;
    }
}

/// The outcome of a finished effect that has left the checkpoint, if it was done.
pub(crate) async fn prior(runtime: &Runtime, run: &RunRef, same: &Digest) -> Result<Option<Prior>> {
    let store = runtime.store.as_ref();
    for effect in store.effects(run, same).await?.into_iter().rev() {
        let mut done: Option<Stored> = None;
        walk(store, run, effect.seq, |row| {
            let envelope = lodestep_core::event::Envelope::from_bytes(&row.envelope)?;
            for event in &envelope.events {
                match outcome_in(event, effect.ordinal) {
                    Outcome::Done(result) => done = Some(Stored::at(result, row.seq)),
                    Outcome::NotDone => return Ok(false),
                    Outcome::Other => {}
                }
            }
            Ok(done.is_none())
        })
        .await?;
        if let Some(stored) = done {
            let result = runtime.value(run, stored).await?;
            return Ok(Some(Prior { ordinal: effect.ordinal, result }));
        }
    }
    Ok(None)
}

enum Outcome {
    Done(lodestep_core::ValueRef),
    NotDone,
    Other,
}

fn outcome_in(event: &Event, ordinal: Ordinal) -> Outcome {
    match event {
        Event::ActionFinished(event) if event.ordinal == ordinal => {
            if event.ok {
                Outcome::Done(event.result)
            } else {
                Outcome::NotDone
            }
        }
        Event::DoubtResolved(event) if event.ordinal == ordinal => match &event.resolution {
            Resolution::Happened(result) => Outcome::Done(*result),
            Resolution::Abandoned(_) => Outcome::NotDone,
            Resolution::SendAgain => Outcome::Other,
        },
        Event::ActionWithdrawn(event) if event.ordinal == ordinal => Outcome::NotDone,
        _ => Outcome::Other,
    }
}
