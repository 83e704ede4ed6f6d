//! What a run is pinned to, compiled: its definition, inputs, schemas and model. Many runs share one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::definition::ToolDefinition;
use lodestep_core::reference::{Piece, pieces};
use lodestep_core::{Checkpoint, Definition, Digest, Error, Result};
use lodestep_model::Model;
use lodestep_store::RunRef;
use serde_json::Value;

use crate::runtime::Runtime;
use crate::secrets::Environment;
use crate::tools::schema::Schemas;

/// A definition and inputs, compiled.
pub(crate) struct Pinned {
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
            schemas: Schemas::of(&definition),
            model: (runtime.models)(&definition)?,
            definition: Arc::new(definition),
            inputs: Arc::new(inputs),
        });
        runtime.compiled.keep(key, pinned.clone());
        Ok(pinned)
    }
}

impl Pinned {
    /// The environment variables that its tools need and that are not set, in words.
    pub fn missing_secrets(&self, environment: &Environment) -> Option<String> {
        let texts = self.definition.tools.iter().flat_map(ToolDefinition::environment_texts);
        let needed = texts.filter_map(|text| pieces(text).ok()).flatten();
        let missing = needed.filter_map(|piece| match piece {
            Piece::Environment(name, None) if environment.get(name).is_none() => Some(name.to_owned()),
            _ => None,
        });
        let missing: BTreeSet<String> = missing.collect();
        let names: Vec<String> = missing.into_iter().collect();
        (!names.is_empty()).then(|| format!("not set: {}; set it where the worker runs, then resume", names.join(", ")))
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
