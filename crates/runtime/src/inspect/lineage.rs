//! What the other branches of a run's lineage did: equal effects, and whether they are this run's own past.

use lodestep_core::event::{Envelope, Event, Origin, Resolution};
use lodestep_core::rules::decide::{Apart, Prior};
use lodestep_core::{Digest, Ordinal, Result, Stored, ValueRef};
use lodestep_store::{EffectRow, RunRef};

use crate::inspect::walk;
use crate::runtime::Runtime;

/// Equal effects of other runs of the lineage.
#[derive(Default)]
pub(crate) struct Kin {
    /// Done before the fork: this run's own past.
    pub prior: Option<Prior>,
    /// Not its past: done, under way or in doubt in another branch.
    pub apart: Option<Apart>,
}

/// What became of an effect.
enum Became {
    Done(ValueRef, u64),
    NotDone,
    Unknown,
}

/// The equal effects of the other runs of the lineage. One that provably did not happen is none.
pub(crate) async fn kin(runtime: &Runtime, run: &RunRef, lineage: &[Origin], same: &Digest) -> Result<Kin> {
    let root = lineage.last().map_or(&run.key.run, |origin| &origin.run);
    let mut kin = Kin::default();
    for (other, effect) in runtime.store.kin_effects(run, root, same).await? {
        let shared = lineage.iter().find(|origin| origin.run == other.key.run).map_or(0, |origin| origin.seq);
        match became(runtime, &other, &effect).await? {
            Became::NotDone => {}
            Became::Done(result, seq) => {
                let result = outcome(runtime, &other, Stored::at(result, seq)).await?;
                if seq <= shared {
                    kin.prior = Some(Prior { ordinal: effect.ordinal, result });
                } else {
                    kin.apart = Some(apart(&other, effect.ordinal, Some(result)));
                }
            }
            Became::Unknown => {
                // An outcome that is known says more to a person than one that is not.
                kin.apart.get_or_insert_with(|| apart(&other, effect.ordinal, None));
            }
        }
    }
    Ok(kin)
}

fn apart(run: &RunRef, ordinal: Ordinal, result: Option<Vec<u8>>) -> Apart {
    Apart { run: run.key.run.clone(), ordinal, result }
}

/// The recorded outcome. That it was done is known without it.
async fn outcome(runtime: &Runtime, run: &RunRef, stored: Stored) -> Result<Vec<u8>> {
    match runtime.value(run, stored).await {
        Err(error) if error.code() == "store.value_missing" => Ok(b"done; what it said was erased".to_vec()),
        read => read,
    }
}

async fn became(runtime: &Runtime, run: &RunRef, effect: &EffectRow) -> Result<Became> {
    let mut found = Became::Unknown;
    walk(runtime.store.as_ref(), run, effect.seq, |row| {
        for event in &Envelope::from_bytes(&row.envelope)?.events {
            if let Some(became) = says(event, effect.ordinal, row.seq) {
                found = became;
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;
    Ok(found)
}

fn says(event: &Event, ordinal: Ordinal, seq: u64) -> Option<Became> {
    match event {
        Event::ActionFinished(event) if event.ordinal == ordinal => {
            Some(if event.ok { Became::Done(event.result, seq) } else { Became::NotDone })
        }
        Event::DoubtResolved(event) if event.ordinal == ordinal => match &event.resolution {
            Resolution::Happened(result) => Some(Became::Done(*result, seq)),
            Resolution::Abandoned(_) => Some(Became::Unknown),
            Resolution::DidNotHappen(_) => Some(Became::NotDone),
            Resolution::SendAgain => None,
        },
        Event::ActionWithdrawn(event) if event.ordinal == ordinal => Some(Became::NotDone),
        Event::DeadlinePassed(event) if event.ordinal == ordinal => Some(Became::NotDone),
        _ => None,
    }
}
