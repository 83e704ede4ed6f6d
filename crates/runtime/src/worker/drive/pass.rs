//! One pass: drafts are made, committed and dispatched until there is nothing more to commit.
//!
//! While the store can't take a commit nothing is dispatched. What was seen is kept, what is under way goes on and adds
//! to it, and the commit is drafted anew over the state as it is stored: if the one before had succeeded and only its
//! answer was lost, the state has the outcome already. There is no last try of it while the worker lives.

use std::sync::Arc;

use futures_util::StreamExt as _;
use lodestep_core::{Checkpoint, Result};

use super::{Drive, pins};
use crate::fault::{self, Point};
use crate::worker::done::{Done, tool_of};
use crate::worker::pinned::Pinned;
use crate::worker::trouble::{Tries, will_pass};

/// What one step of a pass came to.
enum Step {
    /// There may be more to commit.
    Further(Checkpoint),
    /// Nothing more is to be committed now.
    Rests(Checkpoint),
    /// The claim was given back.
    GivenBack,
}

impl Drive {
    /// Ends also when the state is pinned to another definition; `None` when the claim was given back with the last commit.
    pub(super) async fn pass(
        &mut self,
        mut checkpoint: Checkpoint,
        run: &Arc<Pinned>,
        seen: &mut Vec<Done>,
    ) -> Result<Option<Checkpoint>> {
        let mut tries = Tries::new(&self.lease.trouble);
        loop {
            match self.step(checkpoint, run, seen).await {
                Ok(step) => {
                    tries.taken();
                    match step {
                        Step::Further(after) => checkpoint = after,
                        Step::Rests(after) => return Ok(Some(after)),
                        Step::GivenBack => return Ok(None),
                    }
                }
                Err(error) if matches!(error.code(), "run.cancel_unread" | "run.hold_unknown" | "effect.held") => {
                    self.forget_holds();
                    checkpoint = self.load_again(seen, &mut tries).await?;
                }
                Err(error) if tries.allow(&error) && !self.shutdown.is_begun() => {
                    tries.refused(&error);
                    if will_pass(&error) {
                        self.store_outcomes(seen).await;
                    }
                    self.pause(seen, &tries).await;
                    checkpoint = self.load_again(seen, &mut tries).await?;
                    self.end_grace(&checkpoint);
                }
                Err(error) => {
                    if error.code() == "lease.lost" {
                        self.report_late(seen).await;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// One draft, committed and dispatched. After an error nothing of it was dispatched and `seen` is as it was.
    async fn step(&mut self, checkpoint: Checkpoint, run: &Arc<Pinned>, seen: &mut Vec<Done>) -> Result<Step> {
        if !run.is_of(&checkpoint) {
            return Ok(Step::Rests(checkpoint));
        }
        self.learn_holds(&run.definition).await?;
        let unread = self.unread(&checkpoint).await?;
        if pins::is_among(&unread) {
            // What was seen is settled under the definition that the run is pinned to by then.
            let draft = self.words(checkpoint, &unread)?;
            return Ok(Step::Further(self.commit(draft, &[], false).await?));
        }
        let outcomes: Vec<String> = seen.iter().filter_map(|done| tool_of(&checkpoint, done)).collect();
        let (draft, request) = self.draft(checkpoint, run, seen, &unread).await?;
        let idle = request.is_none() && self.can_let_go(draft.checkpoint());
        let parks = idle && !self.waits_under(draft.checkpoint()).is_empty();
        let release = idle && !parks;
        if draft.is_empty() {
            self.remind(draft.checkpoint());
        }
        if draft.is_empty() && !idle {
            let checkpoint = draft.into_checkpoint();
            self.dispatch(&checkpoint, run, None);
            return Ok(Step::Rests(checkpoint));
        }
        if draft.is_empty() {
            self.give_back(draft.checkpoint()).await?;
            return Ok(Step::GivenBack);
        }
        let after = self.commit(draft, seen, release).await?;
        self.remind(&after);
        seen.clear();
        outcomes.iter().for_each(|tool| fault::reach(tool, Point::Outcome));
        fault::reach("run", Point::Checkpoint);
        if release {
            return Ok(Step::GivenBack);
        }
        self.dispatch(&after, run, request);
        let rests = self.inbox == after.inbox && !parks;
        Ok(if rests { Step::Rests(after) } else { Step::Further(after) })
    }

    /// What became of actions, without anything that follows from it: for that alone a store without room has a reserve.
    /// What it does not take stays in `seen`.
    async fn store_outcomes(&mut self, seen: &mut Vec<Done>) {
        let (actions, replies): (Vec<Done>, Vec<Done>) =
            std::mem::take(seen).into_iter().partition(|done| !matches!(done, Done::Reply { .. }));
        *seen = replies;
        // A failure is the one that the pass meets again.
        if actions.is_empty() || self.try_store_outcomes(&actions).await.is_err() {
            seen.extend(actions);
        }
    }

    async fn try_store_outcomes(&mut self, actions: &[Done]) -> Result<()> {
        let checkpoint = self.load().await?;
        let outcomes: Vec<String> = actions.iter().filter_map(|done| tool_of(&checkpoint, done)).collect();
        let draft = self.words_and_outcomes(checkpoint, &[], actions)?;
        if draft.is_empty() {
            return Ok(());
        }
        self.cache.keep(draft.values());
        // Large values stay in it: the store knows then what they are for.
        self.store(draft.seal(), &[], false).await?;
        outcomes.iter().for_each(|tool| fault::reach(tool, Point::Outcome));
        Ok(())
    }

    /// Reads the state again; as often as it takes while it can't be read for now.
    async fn load_again(&mut self, seen: &mut Vec<Done>, tries: &mut Tries) -> Result<Checkpoint> {
        loop {
            match self.load().await {
                Err(error) if will_pass(&error) && !self.shutdown.is_begun() => {
                    tries.refused(&error);
                    self.pause(seen, tries).await;
                }
                loaded => return loaded,
            }
        }
    }

    /// A pause, in which what is under way goes on. The stop of the worker ends it.
    async fn pause(&mut self, seen: &mut Vec<Done>, tries: &Tries) {
        let shutdown = self.shutdown.clone();
        let over = async {
            tokio::select! {
                biased;
                () = tries.pause() => {}
                () = shutdown.begun() => {}
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                Some(done) = self.tasks.next() => seen.extend(self.came_back(done)),
                () = &mut over => return,
            }
        }
    }
}
