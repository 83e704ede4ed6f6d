//! What a run is pinned to, compiled: its definition, inputs, schemas and model. Many runs share one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::{Checkpoint, Definition, Digest, Error, Result, Stored};
use lodestep_model::Model;
use lodestep_store::RunRef;
use serde_json::Value;

use crate::runtime::Runtime;
use crate::tools::schema::Schemas;

/// A definition and inputs, compiled.
pub(crate) struct Pinned {
    digest: Digest,
    pub definition: Arc<Definition>,
    pub inputs: Arc<Value>,
    pub schemas: Schemas,
    pub model: Arc<dyn Model>,
}

/// Compiled ones by the digests of definition and inputs. It is emptied when it has grown too large.
#[derive(Clone, Default)]
pub(crate) struct Compiled(Arc<Mutex<Known>>);

type Known = BTreeMap<(Digest, Digest), Arc<Pinned>>;

/// More than this many are not kept.
const KEPT: usize = 64;

impl Pinned {
    /// What this run is pinned to.
    ///
    /// # Errors
    ///
    /// `store.value_missing` when definition or inputs are gone, and the model's own.
    pub async fn of(runtime: &Runtime, run: &RunRef, checkpoint: &Checkpoint) -> Result<Arc<Self>> {
        let key = (checkpoint.definition.digest, checkpoint.inputs.digest);
        if let Some(known) = runtime.compiled.get(&key) {
            return Ok(known);
        }
        let blobs = runtime.store.values(run, &[checkpoint.definition, checkpoint.inputs]).await?;
        let missing = |what: &str| {
            let what = format!("run {}: its {what} is gone", run.key.run);
            Error::new("store.value_missing", what, "`lodestep verify` says what else is missing")
        };
        let definition = blobs.get(&key.0).ok_or_else(|| missing("definition"))?;
        let inputs = blobs.get(&key.1).ok_or_else(|| missing("inputs"))?;
        let definition = Definition::from_bytes(definition)?;
        let inputs = serde_json::from_slice(inputs).map_err(|_| missing("inputs"))?;
        let pinned = Arc::new(Self {
            digest: key.0,
            schemas: Schemas::of(&definition),
            model: runtime.model_of(&definition)?,
            definition: Arc::new(definition),
            inputs: Arc::new(inputs),
        });
        runtime.compiled.keep(key, pinned.clone());
        Ok(pinned)
    }

    /// What some actions of a run go by that may have begun before an upgrade moved it to `now`. No model is asked by it.
    ///
    /// # Errors
    ///
    /// As [`Self::of`], but for the model's.
    pub async fn earlier(runtime: &Runtime, run: &RunRef, definition: Stored, now: &Self) -> Result<Arc<Self>> {
        let bytes = runtime.value(run, definition).await?;
        let definition = Definition::from_bytes(&bytes)?;
        Ok(Arc::new(Self {
            digest: Digest::of(&bytes),
            schemas: Schemas::of(&definition),
            model: now.model.clone(),
            definition: Arc::new(definition),
            inputs: now.inputs.clone(),
        }))
    }

    /// Is that state pinned to it?
    pub fn is_of(&self, checkpoint: &Checkpoint) -> bool {
        self.digest == checkpoint.definition.digest
    }
}

impl Compiled {
    fn get(&self, key: &(Digest, Digest)) -> Option<Arc<Pinned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn keep(&self, key: (Digest, Digest), pinned: Arc<Pinned>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(key, pinned);
    }
}
