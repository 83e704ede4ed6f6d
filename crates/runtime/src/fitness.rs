//! Can this program go on with runs that another one, or an older one, has begun? Asked when a program starts, so that a run
//! that waits for a person is not found unfit only after the answer.
//!
//! Nothing is stopped here: another program on the same store may be the one that can. A worker that has to go on with such a
//! run stops it as `version`.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestep_core::checkpoint::Phase;
use lodestep_core::event::StopReason;
use lodestep_core::rules::standing::Status;
use lodestep_core::{Checkpoint, Definition, Digest, Error, Result, RunKey, Stored};
use lodestep_store::{RunRef, RunRow};

use crate::runtime::Runtime;

/// Runs that this program can't go on with, all for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The reason, and what to do.
    pub error: Error,
    /// The runs, in the order in which they were given.
    pub runs: Vec<Arc<RunKey>>,
}

impl Runtime {
    /// Which of these runs this program can't go on with: their model's provider is unknown to it, their definition or
    /// their state is unreadable. Each run is loaded, each distinct definition is read once. Left out are runs that are
    /// over, that are quarantined, or that have stopped as `version` already: they say so themselves.
    ///
    /// # Errors
    ///
    /// `store.unavailable`.
    pub async fn unfit(&self, rows: &[RunRow]) -> Result<Vec<Unfit>> {
        let (mut definitions, mut unfit) = (BTreeMap::new(), Vec::<Unfit>::new());
        for row in rows.iter().filter(|row| !row.status.is_terminal() && row.status != Status::Quarantined) {
            let error = match self.fits(&row.run, &mut definitions).await {
                Ok(()) => continue,
                Err(error) if error.code() == "store.unavailable" => return Err(error),
                // Removed since it was listed.
                Err(error) if error.code() == "run.not_found" => continue,
                Err(error) => error,
            };
            match unfit.iter_mut().find(|known| known.error == error) {
                Some(known) => known.runs.push(row.run.key.clone()),
                None => unfit.push(Unfit { error, runs: vec![row.run.key.clone()] }),
            }
            // Whoever works on this thread goes first.
            tokio::task::yield_now().await;
        }
        Ok(unfit)
    }

    async fn fits(&self, run: &RunRef, definitions: &mut BTreeMap<Digest, Result<()>>) -> Result<()> {
        let checkpoint = self.store.load(&run.key).await?.checkpoint()?;
        if checkpoint.is_over() || is_known_unfit(&checkpoint) {
            return Ok(());
        }
        let pinned = checkpoint.definition;
        if let Some(known) = definitions.get(&pinned.digest) {
            return known.clone();
        }
        let found = self.can_read(run, pinned).await;
        definitions.insert(pinned.digest, found.clone());
        found
    }

    async fn can_read(&self, run: &RunRef, definition: Stored) -> Result<()> {
        let definition = Definition::from_bytes(&self.value(run, definition).await?)?;
        self.model_of(&definition).map(drop)
    }
}

fn is_known_unfit(checkpoint: &Checkpoint) -> bool {
    matches!(checkpoint.phase, Phase::Stopped { reason: StopReason::Version, .. })
}
