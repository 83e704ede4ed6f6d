//! Everything that is known, as a draft: the words from outside, what came back, and what is owed next.

use lodestep_core::checkpoint::Phase;
use lodestep_core::event::{CallLost, Event};
use lodestep_core::rules::ask;
use lodestep_core::rules::decide::{Question, decide};
use lodestep_core::rules::inbox::{self, Message};
use lodestep_core::rules::owed::{Hands, owed};
use lodestep_core::rules::recover;
use lodestep_core::{Checkpoint, Draft, Result, ValueRef};
use lodestep_model::Request;

use super::lineage::{self, Equal};
use super::quarantine::{give_up, is_damage};
use super::{Drive, dedupe};
use crate::worker::done::{Answered, Done, fail};
use crate::worker::pinned::Pinned;
use crate::worker::request::prepare;

/// For so long what a commit said of a run's kin is taken as it is.
const KIN_AGE_US: u64 = 100_000;

impl Drive {
    /// Everything that is known, as events: the words from outside, what a dead worker left, what was seen, what is owed.
    pub(super) async fn draft(
        &mut self,
        checkpoint: Checkpoint,
        run: &Pinned,
        seen: &[Done],
        unread: &[(u64, Message)],
    ) -> Result<(Draft, Option<(u64, Request)>)> {
        let now = self.runtime.store.now();
        let worked = self.runtime.clock.boot_us().saturating_sub(self.worked_until_us);
        let mut draft = Draft::next(checkpoint, now, self.claim.epoch, worked);
        recover::recover(&mut draft)?;
        for (position, message) in unread {
            inbox::read(&mut draft, *position, message)?;
        }
        self.stop_a_crasher(&mut draft)?;
        for done in seen {
            self.take_in(&mut draft, run, done).await?;
        }
        self.drop_call_after_cancel(&mut draft)?;
        let stopping = self.shutdown.is_begun();
        let busy = self.under_way.len() as u32;
        let parallel = draft.checkpoint().limits.parallel.max(1);
        let free = if stopping || self.lease.is_too_late() { 0 } else { parallel.saturating_sub(busy) };
        let keys = dedupe::known(&self.runtime, &self.claim.run, draft.checkpoint()).await?;
        let (busy, held) = (&self.under_way, &self.holds.held);
        let hands = Hands { free, send_by: self.lease.send_by(), busy, held, dedupe: &keys };
        owed(&mut draft, &run.definition, hands)?;
        let mut request = None;
        if !stopping && self.wants_model(draft.checkpoint(), draft.now()) && self.asking.is_none() {
            let store = self.runtime.store.clone();
            let (definition, inputs) = (run.definition.clone(), run.inputs.clone());
            let (cache, memo) = (&mut self.cache, &mut self.memo);
            let prepared =
                prepare(&mut draft, cache, memo, store.as_ref(), &self.claim.run, &definition, &inputs).await;
            request = match prepared {
                Ok(request) => request,
                Err(error) if is_damage(&error) => {
                    // The outcomes in this draft are kept, and the run says what is wrong: it is no worker's crash.
                    give_up(&mut draft, None, &error)?;
                    None
                }
                Err(error) => return Err(error),
            };
        }
        Ok((draft, request))
    }

    async fn take_in(&mut self, draft: &mut Draft, run: &Pinned, done: &Done) -> Result<()> {
        done.note_removed(draft)?;
        match done {
            Done::Attempt { .. } | Done::Lookup { .. } => done.settle(draft),
            Done::Reply { call, reply, .. } => {
                let call = *call;
                if draft.checkpoint().model.open.is_none_or(|open| open.call != call) {
                    // The state was read again and has the reply, or a cancel dropped it.
                    return Ok(());
                }
                match reply {
                    Ok(answered) => self.decide(draft, run, call, answered).await,
                    Err(error) => fail(draft, &run.definition, call, error),
                }
            }
        }
    }

    async fn decide(&mut self, draft: &mut Draft, run: &Pinned, call: u64, answered: &Answered) -> Result<()> {
        if matches!(draft.checkpoint().phase, Phase::Cancelling { .. }) {
            return ask::give_up(draft, &run.definition, call, answered.reply.usage.unwrap_or_default());
        }
        // A run that stopped meanwhile takes the reply all the same: what it decides is begun after a resume.
        let Answered { reply, transcript } = answered;
        let found = self.index.priors(&self.runtime, &self.claim.run, draft.checkpoint(), run, reply).await;
        let priors = match found {
            Err(error) if is_damage(&error) => return give_up(draft, Some(call), &error),
            found => found?,
        };
        let found = match self.may_have_kin() {
            true => lineage::equal(&self.runtime, &self.claim.run, draft.checkpoint(), run, reply).await,
            false => Ok(Equal::default()),
        };
        let Equal { priors: before, apart } = match found {
            Err(error) if is_damage(&error) => return give_up(draft, Some(call), &error),
            found => found?,
        };
        // What the run itself did stands before what it began with.
        let priors = before.into_iter().chain(priors).collect();
        let question = Question {
            definition: &run.definition,
            call,
            reply,
            transcript: ValueRef::of(transcript),
            check: &|tool, arguments| run.schemas.check(tool, arguments),
            priors: &priors,
            apart: &apart,
        };
        decide(draft, &question)
    }

    /// May there be equal effects in other runs? What the newest commit says of it ages while the model thinks: a fork
    /// that was made meanwhile would be found before the dispatch, but only after the call was decided.
    fn may_have_kin(&self) -> bool {
        let age = self.runtime.clock.boot_us().saturating_sub(self.worked_until_us);
        self.has_kin || age > KIN_AGE_US
    }

    /// A cancel drops a call that is under way: its whole reservation is charged.
    fn drop_call_after_cancel(&mut self, draft: &mut Draft) -> Result<()> {
        if !matches!(draft.checkpoint().phase, Phase::Cancelling { .. }) {
            return Ok(());
        }
        if let Some((_, handle)) = self.asking.take() {
            handle.abort();
        }
        match draft.checkpoint().model.open {
            Some(open) => draft.push(Event::CallLost(CallLost { call: open.call, charged: None })),
            None => Ok(()),
        }
    }
}
