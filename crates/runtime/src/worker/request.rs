//! What the model is asked: the values that the context wants, assembled.

use lodestep_core::context::memo::Memo;
use lodestep_core::context::{Blobs, TooLarge, assemble_from, wants};
use lodestep_core::definition::Definition;
use lodestep_core::event::{Event, RunStopped, StopReason};
use lodestep_core::rules::ask::reserve;
use lodestep_core::value::Values;
use lodestep_core::{Digest, Draft, Result, Stored};
use lodestep_model::Request;
use lodestep_store::{RunRef, Store};
use serde_json::Value;

/// Values read before, so that a step reads only what is new. What no request wants any more is dropped in time.
#[derive(Default)]
pub(super) struct Cache {
    blobs: Blobs,
    bytes: usize,
}

/// A run's cache is emptied beyond so many bytes. The next request reads what it wants again.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// So many values may be kept that the last request did not want: arguments and results of the actions under way.
const UNWANTED: usize = 64;

impl Cache {
    /// Keeps values that are about to be stored.
    pub fn keep(&mut self, values: &Values) {
        self.bound();
        for (digest, bytes) in values.iter() {
            if !self.blobs.contains_key(&digest) {
                self.insert(digest, bytes.to_vec());
            }
        }
    }

    /// The value, if it is here.
    pub fn get(&self, stored: &Stored) -> Option<&[u8]> {
        self.blobs.get(&stored.digest).map(Vec::as_slice)
    }

    fn insert(&mut self, digest: Digest, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.blobs.insert(digest, bytes);
    }

    fn bound(&mut self) {
        if self.bytes > CACHE_BYTES {
            self.blobs.clear();
            self.bytes = 0;
        }
    }

    /// Makes sure that the wanted values are here, as far as the store has them. `wanted` is in the order of the digests.
    ///
    /// What is wanted is never dropped here: of a draft that is not committed yet the store has nothing.
    pub async fn load(&mut self, store: &dyn Store, run: &RunRef, wanted: &[Stored]) -> Result<()> {
        let missing: Vec<Stored> =
            wanted.iter().filter(|stored| !self.blobs.contains_key(&stored.digest)).copied().collect();
        if !missing.is_empty() {
            for (digest, bytes) in store.values(run, &missing).await? {
                self.insert(digest, bytes);
            }
        }
        if self.blobs.len() > wanted.len() + UNWANTED || self.bytes > CACHE_BYTES {
            self.blobs.retain(|digest, _| wanted.binary_search_by_key(digest, |stored| stored.digest).is_ok());
            self.bytes = self.blobs.values().map(Vec::len).sum();
        }
        Ok(())
    }
}

/// Assembles the next request and reserves for it. `None` when the run stopped instead, which the draft then says.
pub(super) async fn prepare(
    draft: &mut Draft,
    cache: &mut Cache,
    memo: &mut Memo,
    store: &dyn Store,
    run: &RunRef,
    definition: &Definition,
    inputs: &Value,
) -> Result<Option<(u64, Request)>> {
    cache.keep(draft.values());
    let wanted = wants(draft.checkpoint(), definition);
    cache.load(store, run, &wanted).await?;
    match assemble_from(memo, &wanted, draft.checkpoint(), definition, inputs, &cache.blobs) {
        Ok(assembled) => {
            let call = reserve(draft, definition, &assembled)?;
            Ok(call.map(|call| (call, assembled.request)))
        }
        Err(large) => {
            let text = draft.put(too_large(large));
            draft.push(Event::RunStopped(RunStopped { reason: StopReason::Context, text }))?;
            Ok(None)
        }
    }
}

fn too_large(large: TooLarge) -> String {
    format!(
        "the context needs at least {} tokens and has {}: shorten the instructions, the tools or the objective, or take a \
         model with a larger context_window",
        large.needed, large.budget
    )
}

#[cfg(test)]
mod tests {
    use lodestep_core::{RunId, RunKey};
    use lodestep_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn what_a_draft_holds_is_there_however_much_it_is() {
        let (store, mut values) = (MemoryStore::default(), Values::new());
        let run = RunRef { number: 1, key: std::sync::Arc::new(RunKey::new(RunId::from_uuid(1))) };
        let large = Stored::at(values.put(vec![b'x'; CACHE_BYTES + 1]), 7);
        let small = Stored::at(values.put("small"), 7);
        let mut wanted = vec![large, small];
        wanted.sort_unstable();
        let mut cache = Cache::default();
        cache.keep(&values);
        cache.load(&store, &run, &wanted).await.expect("the store is not asked");
        assert!(wanted.iter().all(|stored| cache.get(stored).is_some()), "nothing of it is stored yet");
        cache.load(&store, &run, &[small]).await.expect("the store is not asked");
        assert!(
            cache.get(&large).is_none() && cache.get(&small).is_some(),
            "what is not wanted is dropped when it is much"
        );
    }
}
