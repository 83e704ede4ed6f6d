//! Equal effects that have left the checkpoint: what came of them, found by an index that is not believed blindly.
//!
//! A damaged row of the index could hide an effect, and it would be sent again. So the index is compared with the tally
//! that the checkpoint keeps of it, once for each claim, and the journal is asked when the two differ.

use std::collections::{BTreeMap, BTreeSet};

use lodestep_core::event::Event;
use lodestep_core::rules::decide::{Prior, same_of};
use lodestep_core::{Checkpoint, Digest, Result};
use lodestep_model::Reply;
use lodestep_store::{EffectRow, RunRef};

use crate::inspect;
use crate::runtime::Runtime;
use crate::worker::pinned::Pinned;

/// An index of more rows is believed: to read it whole would take longer than a step may. `verify` compares it.
const ROWS_COMPARED: u64 = 10_000;

/// What is known of a run's index of effects.
#[derive(Default)]
pub(super) enum Index {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It agrees with the checkpoint. An effect that is none of these has no equal, and the store is not asked.
    Sound(BTreeSet<Digest>),
    /// It is too long to be known by heart.
    Believed,
    /// It does not; this is what the journal gives.
    Damaged(Vec<EffectRow>),
}

impl Index {
    /// The equal effects of a reply's calls. They are looked for only when the run has some.
    pub async fn priors(
        &mut self,
        runtime: &Runtime,
        run: &RunRef,
        checkpoint: &Checkpoint,
        pinned: &Pinned,
        reply: &Reply,
    ) -> Result<BTreeMap<Digest, Prior>> {
        let mut priors = BTreeMap::new();
        let kept = checkpoint.recent.iter().filter(|settled| settled.same.is_some()).count() as u64;
        if checkpoint.effect_log.count <= kept {
            return Ok(priors);
        }
        for call in &reply.calls {
            let Some(same) = same_of(checkpoint, &pinned.definition, call) else { continue };
            let rows = self.rows(runtime, run, checkpoint, &same).await?;
            if let Some(prior) = inspect::prior(runtime, run, rows).await? {
                priors.insert(same, prior);
            }
        }
        Ok(priors)
    }

    async fn rows(
        &mut self,
        runtime: &Runtime,
        run: &RunRef,
        checkpoint: &Checkpoint,
        same: &Digest,
    ) -> Result<Vec<EffectRow>> {
        if matches!(self, Self::Unknown) {
            *self = Self::read(runtime, run, checkpoint).await?;
        }
        match self {
            // Nothing was lost since: every intent of this claim is this worker's own.
            Self::Damaged(rows) => Ok(rows.iter().filter(|row| row.same == *same).cloned().collect()),
            Self::Sound(known) if !known.contains(same) => Ok(Vec::new()),
            _ => runtime.store.effects(run, Some(same)).await,
        }
    }

    /// These events were committed: their intents are effects from now on.
    pub fn learn(&mut self, events: &[Event], after: &Checkpoint) {
        let Self::Sound(known) = self else { return };
        for event in events {
            if let Event::AttemptStarted(started) = event {
                // Whatever is settled in the same transition is no longer pending; it is among the recent ones then.
                let pending = after.pending.get(&started.ordinal).and_then(|action| action.same);
                known.extend(pending.or_else(|| after.settled(started.ordinal)?.same));
            }
        }
        if known.len() as u64 > ROWS_COMPARED {
            *self = Self::Believed;
        }
    }

    async fn read(runtime: &Runtime, run: &RunRef, checkpoint: &Checkpoint) -> Result<Self> {
        if checkpoint.effect_log.count > ROWS_COMPARED {
            return Ok(Self::Believed);
        }
        Ok(match inspect::sound_index(runtime.store.as_ref(), run, &checkpoint.effect_log).await? {
            Some(rows) => Self::Sound(rows.into_iter().map(|row| row.same).collect()),
            None => {
                eprintln!("run {}: its index of effects is damaged; the journal is asked instead", run.key.run);
                Self::Damaged(inspect::replay(runtime.store.as_ref(), run, checkpoint.seq).await?.tables.effects)
            }
        })
    }
}
