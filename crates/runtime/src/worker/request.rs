//! What the model is asked: the values that the context wants, assembled.

use lodestep_core::context::{Blobs, Manifest, assemble, wants};
use lodestep_core::definition::Definition;
use lodestep_core::event::{Event, RunStopped, StopReason};
use lodestep_core::rules::ask::reserve;
use lodestep_core::value::Values;
use lodestep_core::{Checkpoint, Draft, Result, Stored};
use lodestep_model::Request;
use lodestep_store::{RunRef, Store};
use serde_json::Value;

/// Values read before, so that a step reads only what is new. Bounded: it is emptied when it has grown too large.
#[derive(Default)]
pub(super) struct Cache {
    blobs: Blobs,
    bytes: usize,
}

/// A run's cache is emptied beyond so many bytes. The next request reads what it wants again.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

impl Cache {
    /// Keeps values that are about to be stored.
    pub fn keep(&mut self, values: &Values) {
        for bytes in values.iter() {
            self.insert(bytes.to_vec());
        }
    }

    /// The value, if it is here.
    pub fn get(&self, stored: &Stored) -> Option<&[u8]> {
        self.blobs.get(&stored.digest).map(Vec::as_slice)
    }

    fn insert(&mut self, bytes: Vec<u8>) {
        if self.bytes > CACHE_BYTES {
            self.blobs.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        self.blobs.insert(lodestep_core::Digest::of(&bytes), bytes);
    }

    /// Makes sure that the wanted values are here, as far as the store has them.
    pub async fn load(&mut self, store: &dyn Store, run: &RunRef, wanted: &[Stored]) -> Result<()> {
        if self.bytes > CACHE_BYTES {
            self.blobs.clear();
            self.bytes = 0;
        }
        let missing: Vec<Stored> =
            wanted.iter().filter(|stored| !self.blobs.contains_key(&stored.digest)).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        for (digest, bytes) in store.values(run, &missing).await? {
            self.bytes += bytes.len();
            self.blobs.insert(digest, bytes);
        }
        Ok(())
    }
}

/// Assembles the next request and reserves for it. `None` when the run stopped instead, which the draft then says.
pub(super) async fn prepare(
    draft: &mut Draft,
    cache: &mut Cache,
    store: &dyn Store,
    run: &RunRef,
    definition: &Definition,
    inputs: &Value,
) -> Result<Option<(u64, Request)>> {
    cache.keep(draft.values());
    let wanted = wants(draft.checkpoint(), definition);
    cache.load(store, run, &wanted).await?;
    match assembled(draft.checkpoint(), definition, inputs, cache) {
        Ok((request, manifest)) => {
            let call = reserve(draft, definition, &request, &manifest)?;
            Ok(call.map(|call| (call, request)))
        }
        Err(why) => {
            let text = draft.put(why);
            draft.push(Event::RunStopped(RunStopped { reason: StopReason::Context, text }))?;
            Ok(None)
        }
    }
}

fn assembled(
    checkpoint: &Checkpoint,
    definition: &Definition,
    inputs: &Value,
    cache: &Cache,
) -> std::result::Result<(Request, Manifest), String> {
    assemble(checkpoint, definition, inputs, &cache.blobs).map_err(|large| {
        format!(
            "the context needs at least {} tokens and has {}: shorten the instructions, the tools or the objective, or take a \
             model with a larger context_window",
            large.needed, large.budget
        )
    })
}
