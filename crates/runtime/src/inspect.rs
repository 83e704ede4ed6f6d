//! What people ask about a run. Reads only; nothing here moves a run.
//!
//! - `asked_model`: which model is asked, and where.
//! - `opened`: a run with its definition and texts, now or after any past transition.
//! - `lineage`: what the other branches of a run's lineage did.
//! - [`mod@diff`]: what changed between two states, in words.
//! - [`mod@request`]: what the model was asked, rebuilt.
//! - [`effects`]: every effect, its attempts and what is known of it.
//! - [`mod@verify`]: do the journal and the tables beside it still say what they said?

mod asked_model;
pub mod diff;
mod effects;
mod lineage;
mod opened;
pub mod request;
pub mod verify;

use lodestep_core::checkpoint::Tally;
use lodestep_core::event::{Event, Resolution};
use lodestep_core::rules::decide::Prior;
use lodestep_core::{Error, Ordinal, Result, Stored};
use lodestep_store::{EffectRow, JournalRow, Replay, RunRef, Store};

pub use asked_model::AskedModel;
pub use diff::{Change, diff};
pub use effects::{Effect, EffectAttempt, KnownBy, effects};
pub(crate) use lineage::kin;
pub use opened::{Opened, open, open_at};
pub use request::{Asked, Which, request};
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

/// A journal folded again, up to a transition.
pub(crate) async fn replay(store: &dyn Store, run: &RunRef, until: u64) -> Result<Replay> {
    let mut replay = Replay::default();
    walk(store, run, 1, |row| {
        let goes_on = row.seq <= until;
        if goes_on {
            replay.take_in(&row.envelope)?;
        }
        Ok(goes_on)
    })
    .await?;
    Ok(replay)
}

/// A run's index of effects, if it agrees with the tally that the checkpoint keeps of it.
pub(crate) async fn sound_index(store: &dyn Store, run: &RunRef, log: &Tally) -> Result<Option<Vec<EffectRow>>> {
    let rows = store.effects(run, None).await?;
    let mut found = Tally::default();
    for row in &rows {
        found.add_effect(row.ordinal, &row.same, row.seq);
    }
    Ok((found == *log).then_some(rows))
}

/// The outcome of the newest of these effects, which have left the checkpoint, that was done.
pub(crate) async fn prior(runtime: &Runtime, run: &RunRef, effects: Vec<EffectRow>) -> Result<Option<Prior>> {
    let store = runtime.store.as_ref();
    for effect in effects.into_iter().rev() {
        let (mut done, mut began): (Option<Stored>, bool) = (None, false);
        walk(store, run, effect.seq, |row| {
            let envelope = lodestep_core::event::Envelope::from_bytes(&row.envelope)?;
            began |= row.seq == effect.seq && envelope.events.iter().any(|event| begins(event, effect.ordinal));
            if !began {
                return Err(misled(run, &effect));
            }
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
        if !began {
            return Err(misled(run, &effect));
        }
        if let Some(stored) = done {
            let result = runtime.value(run, stored).await?;
            return Ok(Some(Prior { ordinal: effect.ordinal, result }));
        }
    }
    Ok(None)
}

/// Is this the first intent of that action?
fn begins(event: &Event, ordinal: Ordinal) -> bool {
    matches!(event, Event::AttemptStarted(started) if started.ordinal == ordinal && started.attempt == 1)
}

fn misled(run: &RunRef, effect: &EffectRow) -> Error {
    let run = &run.key.run;
    Error::new(
        "store.corrupt",
        format!(
            "run {run} is damaged: its index of effects says that action {} began with transition {}, and it did not",
            effect.ordinal, effect.seq
        ),
        format!("`lodestep verify {run}` says what is damaged"),
    )
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
            Resolution::Abandoned(_) | Resolution::DidNotHappen(_) => Outcome::NotDone,
            Resolution::SendAgain => Outcome::Other,
        },
        Event::ActionWithdrawn(event) if event.ordinal == ordinal => Outcome::NotDone,
        Event::DeadlinePassed(event) if event.ordinal == ordinal => Outcome::NotDone,
        _ => Outcome::Other,
    }
}
