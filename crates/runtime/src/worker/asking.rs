//! A model asked once, by a worker that may, and not before a time that its service stated to any run of the store.

use lodestep_model::{Model, ModelError, Progress, Reply, Request};
use lodestep_store::Store;

use crate::worker::lease::Shared;

/// Who asks whom.
pub(super) struct Asking<'a> {
    pub store: &'a dyn Store,
    pub model: &'a dyn Model,
    pub lease: &'a Shared,
}

impl Asking<'_> {
    /// The model's answer.
    ///
    /// # Errors
    ///
    /// The model's own; without a request `NotSent` where the lease is about to end, and `Busy` where a limit that another
    /// run was told has not passed.
    pub async fn ask(
        &self,
        request: &Request,
        watch: &(dyn Fn(Progress<'_>) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let service = self.model.shares_limits_as();
        if let Some(limited) = self.limited(service.as_deref()).await {
            return Err(limited);
        }
        // A worker that stood still may have been replaced, and the reply be stored already.
        if self.lease.is_too_late() {
            return Err(ModelError::NotSent("the worker's lease is about to end".to_owned()));
        }
        let reply = self.model.ask_watched(request, watch).await;
        if let (Some(service), Err(ModelError::Busy { retry_after_ms: Some(wait_ms @ 1..), .. })) = (&service, &reply) {
            // It spares the others a request; this run keeps the time itself.
            let _ = self.store.limit(service, self.store.now().plus_ms(*wait_ms)).await;
        }
        reply
    }

    /// A limit that has not passed. A store that can't say so now has the service say it again.
    async fn limited(&self, service: Option<&str>) -> Option<ModelError> {
        let until = self.store.limited_until(service?).await.ok().flatten()?;
        let message = "it told another run; nothing was sent".to_owned();
        Some(ModelError::Busy { message, retry_after_ms: Some(until.ms_since(self.store.now())) })
    }
}
