//! What was committed, sent as far as hands are free, and what comes back of it.

use std::sync::Arc;

use futures_util::future::abortable;
use lodestep_core::checkpoint::{Action, ActionState};
use lodestep_core::{Checkpoint, Definition};
use lodestep_model::{Progress, Request};

use super::Drive;
use crate::fault::{self, Point};
use crate::secrets::{Secrets, scrub_reply};
use crate::worker::asking::Asking;
use crate::worker::dispatch::Dispatch;
use crate::worker::done::{Answered, Done};
use crate::worker::pinned::Pinned;

impl Drive {
    /// Sends what was committed, as far as hands are free.
    pub(super) fn dispatch(&mut self, checkpoint: &Checkpoint, run: &Arc<Pinned>, request: Option<(u64, Request)>) {
        if let Some((call, request)) = request {
            let (model, secrets, lease) = (run.model.clone(), self.renewed_secrets(run), self.lease.clone());
            let (observer, key) = (self.observer.clone(), self.claim.run.key.clone());
            let (definition, store) = (run.definition.clone(), self.runtime.store.clone());
            let (asked, handle) = abortable(async move {
                let watch = |piece: Progress<'_>| observer.streamed(&key, of_tools(&definition, piece));
                let asking = Asking { store: &*store, model: &*model, lease: &lease };
                let mut reply = asking.ask(&request, &watch).await;
                fault::reach("model", Point::Reply);
                let removed = scrub_reply(&secrets.scrubber, &mut reply);
                Done::Reply { call, reply: reply.map(Answered::new), removed }
            });
            self.tasks.push(Box::pin(async { asked.await.ok() }));
            self.asking = Some((call, handle));
        }
        let now = self.runtime.store.now();
        let parallel = checkpoint.limits.parallel.max(1) as usize;
        for ordinal in self.dispatchable(checkpoint, now) {
            if self.under_way.len() >= parallel {
                return;
            }
            if self.under_way.contains(&ordinal) {
                continue;
            }
            if let Some(action) = checkpoint.pending.get(&ordinal) {
                self.under_way.insert(ordinal);
                self.send_off(checkpoint, run, action.clone());
            }
        }
    }

    fn send_off(&mut self, checkpoint: &Checkpoint, run: &Arc<Pinned>, action: Action) {
        let ordinal = action.ordinal;
        let pinned = self.pinned_for(checkpoint, run, ordinal);
        let is_lookup = matches!(action.state, ActionState::LookUp { .. });
        let attempt = match action.state {
            ActionState::Open { attempt, .. } | ActionState::LookUp { attempt, .. } => attempt,
            _ => action.attempts + 1,
        };
        let dispatch = Dispatch {
            runtime: self.runtime.clone(),
            lease: self.lease.clone(),
            run: self.claim.run.clone(),
            epoch: self.claim.epoch,
            lineage: checkpoint.lineage.clone(),
            has_kin: self.has_kin,
            arguments: self.cache.get(&action.arguments).map(<[u8]>::to_vec),
            artifacts: checkpoint.artifacts.iter().map(|(name, kept)| (name.clone(), kept.content)).collect(),
            action,
            attempt,
            stop: self.stop.clone(),
            secrets: self.renewed_secrets(&pinned),
            pinned,
        };
        self.tasks.push(Box::pin(async move {
            Some(match is_lookup {
                true => {
                    let (said, removed) = dispatch.look_up().await;
                    Done::Lookup { ordinal, said, removed }
                }
                false => {
                    let (sight, removed) = dispatch.attempt().await;
                    Done::Attempt { ordinal, attempt, sight, removed }
                }
            })
        }));
    }

    /// What is sent now is sent with these values, so that they are what is looked for in its answer.
    pub(super) fn renewed_secrets(&mut self, run: &Pinned) -> Arc<Secrets> {
        self.secrets = self.secrets.renewed(&run.definition, &self.runtime.environment);
        self.secrets.clone()
    }

    /// `None` is a call of the model that was given up.
    pub(super) fn came_back(&mut self, done: Option<Done>) -> Option<Done> {
        let done = done?;
        match &done {
            Done::Attempt { ordinal, .. } | Done::Lookup { ordinal, .. } => {
                self.under_way.remove(ordinal);
            }
            Done::Reply { .. } => self.asking = None,
        }
        Some(done)
    }
}

/// A name that the model makes up may be anything, a secret too, and is looked at when the reply is whole.
fn of_tools<'a>(definition: &Definition, piece: Progress<'a>) -> Progress<'a> {
    match piece {
        Progress::Call(name) if definition.tool(name).is_none() => Progress::Call("a tool that is not there"),
        piece => piece,
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use lodestep_core::definition::Limits;

    use super::*;
    use crate::testing::Script;

    #[test]
    fn g12_only_names_of_tools_that_are_there_are_told_of_a_reply_that_is_coming() {
        let definition = Script::of_each_class().definition("run", Limits::default());
        let known = definition.tools[0].name.clone();
        assert_eq!(of_tools(&definition, Progress::Call(&known)), Progress::Call(&known));
        assert_eq!(of_tools(&definition, Progress::Call("sk-secret")), Progress::Call("a tool that is not there"));
        assert_eq!(of_tools(&definition, Progress::Text("t")), Progress::Text("t"));
    }
}
