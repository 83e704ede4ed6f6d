//! The equal effects that the other branches of a lineage have, for the calls of a reply.

use std::collections::BTreeMap;

use lodestep_core::rules::decide::{Apart, Prior, same_of};
use lodestep_core::{Checkpoint, Digest, Result};
use lodestep_model::Reply;
use lodestep_store::RunRef;

use crate::inspect;
use crate::runtime::Runtime;
use crate::worker::pinned::Pinned;

/// Equal effects, by sameness.
#[derive(Default)]
pub(super) struct Equal {
    /// Those that are this run's own past.
    pub priors: BTreeMap<Digest, Prior>,
    /// Those of other branches.
    pub apart: BTreeMap<Digest, Apart>,
}

/// Looks for the effects of a reply's calls in the other runs of the lineage.
pub(super) async fn equal(
    runtime: &Runtime,
    run: &RunRef,
    checkpoint: &Checkpoint,
    pinned: &Pinned,
    reply: &Reply,
) -> Result<Equal> {
    let mut equal = Equal::default();
    for call in &reply.calls {
        let Some(same) = same_of(checkpoint, &pinned.definition, call) else { continue };
        let kin = inspect::kin(runtime, run, &checkpoint.lineage, &same).await?;
        equal.priors.extend(kin.prior.map(|prior| (same, prior)));
        equal.apart.extend(kin.apart.map(|apart| (same, apart)));
    }
    Ok(equal)
}
