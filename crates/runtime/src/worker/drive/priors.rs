//! Equal effects that have left the checkpoint: what came of them, found by an index that is not believed blindly.
//!
//! A damaged row of the index could hide an effect, and it would be sent again. So the index is compared with the tally
//! that the checkpoint keeps of it, once for each claim, and the journal is asked when the two differ.

use std::collections::BTreeMap;

use lodestep_core::json::parse_strict;
use lodestep_core::rules::decide::Prior;
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
    /// It agrees with the checkpoint.
    Sound,
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
            let Some(tool) = pinned.definition.tool(&call.name).filter(|tool| !tool.class.is_repeatable()) else {
                continue;
            };
            let Ok(arguments) = parse_strict(&call.arguments) else { continue };
            let same = lodestep_core::effect::sameness(&tool.name, &arguments, tool.same_by.as_deref());
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
        let store = runtime.store.as_ref();
        if matches!(self, Self::Unknown) {
            *self = match inspect::index_is_sound(store, run, &checkpoint.effect_log, ROWS_COMPARED).await? {
                true => Self::Sound,
                false => {
                    eprintln!("run {}: its index of effects is damaged; the journal is asked instead", run.key.run);
                    Self::Damaged(inspect::replay(store, run, checkpoint.seq).await?.tables.effects)
                }
            };
        }
        match self {
            // Nothing was lost since: every intent of this claim is this worker's own.
            Self::Damaged(rows) => Ok(rows.iter().filter(|row| row.same == *same).cloned().collect()),
            _ => store.effects(run, Some(same)).await,
        }
    }
}
