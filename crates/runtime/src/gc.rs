//! Which runs that ended long ago may be removed: lineages, each of which goes whole or stays whole.

use std::collections::BTreeMap;

use lodestep_core::{Result, RunId};
use lodestep_store::garbage::{Kept, Mode, Removal};
use lodestep_store::{RunRef, RunRow};

use crate::runtime::Runtime;

/// Runs that are removed together, and what comes of it.
#[derive(Clone, Debug)]
pub struct Lineage {
    /// The runs of it that were meant.
    pub runs: Vec<RunRow>,
    /// What a removal would come to, or came to.
    pub removal: Removal,
}

impl Runtime {
    /// What it would come to if these runs were removed: each once, with those of them that belong to its lineage.
    /// Nothing changes.
    ///
    /// # Errors
    ///
    /// The store's errors.
    pub async fn removable(&self, rows: Vec<RunRow>) -> Result<Vec<Lineage>> {
        let mut left: BTreeMap<RunId, RunRow> = rows.iter().map(|row| (row.run.key.run.clone(), row.clone())).collect();
        let mut lineages = Vec::new();
        for row in rows {
            let Some(first) = left.remove(&row.run.key.run) else { continue };
            let mut runs = vec![first];
            let removal = loop {
                match self.store.remove(&refs(&runs), Mode::DryRun).await {
                    // One that is meant too goes with it.
                    Ok(Removal::Kept(Kept::Relative(run))) if left.contains_key(&run) => runs.extend(left.remove(&run)),
                    Ok(removal) => break removal,
                    // Somebody else removed it meanwhile.
                    Err(error) if error.code() == "run.not_found" => break Removal::Removed(Default::default()),
                    Err(error) => return Err(error),
                }
            };
            lineages.push(Lineage { runs, removal });
        }
        Ok(lineages)
    }

    /// Removes a lineage; what came of it, which may be another thing than was foretold.
    ///
    /// # Errors
    ///
    /// The store's errors.
    pub async fn remove(&self, lineage: Lineage) -> Result<Lineage> {
        match self.store.remove(&refs(&lineage.runs), Mode::Apply).await {
            Ok(removal) => Ok(Lineage { removal, ..lineage }),
            Err(error) if error.code() == "run.not_found" => {
                Ok(Lineage { removal: Removal::Removed(Default::default()), ..lineage })
            }
            Err(error) => Err(error),
        }
    }
}

fn refs(runs: &[RunRow]) -> Vec<RunRef> {
    runs.iter().map(|row| row.run.clone()).collect()
}
