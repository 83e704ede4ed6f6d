//! What other runs did under the dedupe keys that this run's actions need, asked of the store before anything is owed.

use lodestep_core::rules::dedupe::{DedupeKeys, Holder, KnownOfIt, wanted};
use lodestep_core::{Checkpoint, Result};
use lodestep_store::rows::KeyFate;
use lodestep_store::{KeyHolder, RunRef};

use super::quarantine::is_damage;
use crate::runtime::Runtime;

/// What is known of the keys that the state needs; costs nothing for a run that needs none.
pub(super) async fn known(runtime: &Runtime, run: &RunRef, checkpoint: &Checkpoint) -> Result<DedupeKeys> {
    let keys = wanted(checkpoint);
    if keys.is_empty() {
        return Ok(DedupeKeys::new());
    }
    let holders = runtime.store.dedupe_keys(&run.key.namespace, &keys).await?;
    let mut known: DedupeKeys = keys.into_iter().map(|key| (key, None)).collect();
    for holder in holders {
        let key = holder.row.key.clone();
        known.insert(key, Some(told(runtime, holder).await?));
    }
    Ok(known)
}

async fn told(runtime: &Runtime, holder: KeyHolder) -> Result<Holder> {
    let known = match holder.row.fate {
        KeyFate::Open => KnownOfIt::Open,
        KeyFate::Unknown => KnownOfIt::Unknown,
        KeyFate::Done(result) => match runtime.value(&holder.run, result).await {
            Ok(bytes) => KnownOfIt::Done(bytes),
            // That it was done is known all the same.
            Err(error) if is_damage(&error) => KnownOfIt::Done(
                format!("done by run {}; its result can't be read any more", holder.run.key.run).into_bytes(),
            ),
            Err(error) => return Err(error),
        },
    };
    Ok(Holder { run: holder.run.key.run.clone(), action: holder.row.ordinal, same: holder.row.same, known })
}
