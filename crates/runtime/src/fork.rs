//! Forks: a new run that begins with the state of another one, as it was after one of its transitions.
//!
//! No transaction spans the two. First the origin is told, by a message with an id of the fork's, what of its quotas the
//! fork may spend; then the fork is started. A crash between the two leaves a grant without its fork: the same command
//! with the same id finds the grant and goes on.

use lodestep_core::checkpoint::Checkpoint;
use lodestep_core::definition::QuotaLimits;
use lodestep_core::event::{Origin, RunForked};
use lodestep_core::fold::fork::{FORK_DEPTH, inherited};
use lodestep_core::json::canonical;
use lodestep_core::quota::Remaining;
use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::value::Values;
use lodestep_core::{Draft, Error, INLINE_VALUE_BYTES, Result, RunId, RunKey, ValueRef};
use lodestep_store::{RunRef, RunRow, StartRun, Started};
use serde_json::Value;

use crate::inspect;
use crate::runtime::{Runtime, exact};

/// What is told of an action that the origin had not sent.
const WITHDRAWN: &str = "not done: the run was forked before it was sent. Call the tool again if it is still wanted";

/// What is told of an action that the origin may have sent.
const LEFT: &str = "it was under way in the run that this one was forked from, and only that run knows what came of it. \
                    If it is wanted here, call the tool again: a person decides";

/// A fork to be made.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The run to begin from.
    pub origin: RunRow,
    /// After which of its transitions; the last one when `None`.
    pub at: Option<u64>,
    /// The fork's id; a new one is made when `None`.
    pub id: Option<RunId>,
    /// Other inputs, whole; the origin's when `None`.
    pub inputs: Option<Value>,
    /// How much of the origin's quotas the fork gets, where another amount than the usual one is wanted.
    pub grant: QuotaLimits,
    /// Who makes it.
    pub by: String,
}

/// A fork that was made.
#[derive(Clone, Debug)]
pub struct Forked {
    /// The new run.
    pub run: RunRef,
    /// Its first state.
    pub state: Checkpoint,
    /// True when it was there already, made by the same command.
    pub existed: bool,
}

impl Runtime {
    /// Makes a fork. After Ok it is durable, and what it may spend is no longer the origin's to spend.
    ///
    /// Without a wish a fork gets all that an origin has left that is over, and half of what one has left that goes on.
    ///
    /// # Errors
    ///
    /// `run.no_such_step`, `run.id_taken`, `input.invalid` for a number that can't be held exactly, `quota.not_enough`, `fork.values_erased` when the state needs a value that was
    /// erased, `fork.too_deep`.
    pub async fn fork(&self, fork: Fork) -> Result<Forked> {
        let origin = &fork.origin;
        let key = RunKey {
            namespace: origin.run.key.namespace.clone(),
            run: fork.id.clone().unwrap_or_else(|| RunId::from_uuid((self.ids)())),
        };
        let at = fork.at.unwrap_or(origin.seq);
        let opened = inspect::open_at(self.store(), origin, at).await?;
        if let Some(made) = self.made_before(&key, &fork, &opened.checkpoint).await? {
            return Ok(made);
        }
        if opened.checkpoint.lineage.len() >= FORK_DEPTH {
            let what = format!("run {} is the {FORK_DEPTH}th fork of a fork", origin.run.key.run);
            return Err(Error::new("fork.too_deep", what, "fork one of its origins"));
        }
        let mut values = self.taken_along(&origin.run, &opened.checkpoint).await?;
        let inputs = exact(fork.inputs.as_ref().unwrap_or(&opened.inputs))?;
        let inputs = self.keep_value(&mut values, inputs).await?;
        let quota = self.granted(&fork, &key.run).await?;
        let forked = RunForked {
            run: key.run.clone(),
            origin: Origin { run: origin.run.key.run.clone(), seq: at, head: opened.checkpoint.head },
            state: Box::new(opened.checkpoint),
            inputs,
            quota,
            by: fork.by.clone(),
            withdrawn: values.put(WITHDRAWN),
            left: values.put(LEFT),
            labels: Some(origin.labels.clone()).filter(|labels| !labels.is_empty()),
        };
        let draft = Draft::fork(forked, values, self.store.now())?;
        let state = draft.checkpoint();
        let start = StartRun {
            key: key.clone(),
            agent: state.agent.clone(),
            definition: state.definition.digest,
            inputs: state.inputs.digest,
            transition: draft.seal(),
            join_unfinished: false,
        };
        let state = start.transition.checkpoint.clone();
        match self.store.start(start).await? {
            Started::New(run) => Ok(Forked { run, state, existed: false }),
            Started::Existing(_) | Started::Unfinished(_) => Err(taken(&key.run)),
        }
    }

    /// The fork, when the same command made it before.
    async fn made_before(&self, key: &RunKey, fork: &Fork, state: &Checkpoint) -> Result<Option<Forked>> {
        let Some(id) = &fork.id else { return Ok(None) };
        let found = self.store.find(&key.namespace, id.as_str(), 2).await?;
        let Some(row) = found.into_iter().find(|row| *row.run.key == *key) else { return Ok(None) };
        let first = inspect::replay(self.store(), &row.run, 1).await?.checkpoint;
        let Some(first) = first.filter(|first| is_of(first, state)) else { return Err(taken(id)) };
        let other_inputs =
            fork.inputs.as_ref().is_some_and(|inputs| ValueRef::of(&canonical(inputs)).digest != first.inputs.digest);
        if other_inputs {
            return Err(taken(id));
        }
        Ok(Some(Forked { run: row.run, state: first, existed: true }))
    }

    /// The bytes of what the fork's state names and that stands in the origin's rows.
    async fn taken_along(&self, origin: &RunRef, state: &Checkpoint) -> Result<Values> {
        let wanted = inherited(state);
        let blobs = self.store.values(origin, &wanted).await?;
        let erased = wanted.iter().filter(|stored| !blobs.contains_key(&stored.digest)).count();
        if erased > 0 {
            let what = format!("{erased} of the values that step {} of run {} names were erased", state.seq, state.run);
            return Err(Error::new("fork.values_erased", what, "fork from a later step"));
        }
        let mut values = Values::new();
        for bytes in blobs.into_values().filter(|bytes| bytes.len() <= INLINE_VALUE_BYTES) {
            values.put(bytes);
        }
        Ok(values)
    }

    /// Has the origin give up what the fork may spend.
    async fn granted(&self, fork: &Fork, to: &RunId) -> Result<QuotaLimits> {
        let origin = &fork.origin.run;
        let id = format!("grant-{to}");
        // A grant whose fork was not started: it is the one that counts.
        let letters = self.store.beside(origin).await?.letters;
        let given = letters.into_iter().find(|letter| letter.id == id).and_then(|letter| letter.message.ok());
        // An origin that is over reads nothing any more: what it gave away before is in its inbox.
        let now = inspect::open(self.store(), &origin.key).await?.ahead;
        let limits = now.quota.limits;
        let amounts = match given.map(|message| message.word) {
            Some(Word::Grant { amounts, .. }) => return Ok(QuotaLimits { deadline_ms: limits.deadline_ms, ..amounts }),
            _ => share(&now, &fork.grant)?,
        };
        if amounts.amounts().iter().any(|(_, amount)| amount.is_some()) {
            let word = Word::Grant { to: to.clone(), amounts };
            let message = Message { by: fork.by.clone(), word };
            if let Verdict::Refused(error) = self.store.send(&origin.key, &id, &message).await? {
                return Err(error);
            }
        }
        Ok(QuotaLimits { deadline_ms: limits.deadline_ms, ..amounts })
    }
}

/// Was this run forked from that state?
fn is_of(first: &Checkpoint, state: &Checkpoint) -> bool {
    let origin = first.lineage.first();
    origin.is_some_and(|origin| (&origin.run, origin.seq, origin.head) == (&state.run, state.seq, state.head))
}

/// What a fork gets of each limited quota: as wished, else all of what is left or half of it.
fn share(origin: &Checkpoint, wished: &QuotaLimits) -> Result<QuotaLimits> {
    let mut amounts = QuotaLimits::default();
    let wishes = wished.amounts();
    for (name, wish) in wishes {
        // The names of amounts say their unit.
        let named = |row: &Remaining| name.trim_end_matches("_micro").trim_end_matches("_ms") == row.quota.as_str();
        let left = origin.remaining().into_iter().find(named).map(|row| row.left);
        let Some(left) = left else {
            if wish.is_some() {
                let what = format!("run {} has no limit of {name}", origin.run);
                return Err(Error::new("quota.not_limited", what, "leave it out: its fork has none either"));
            }
            continue;
        };
        let usual = if origin.is_over() { left } else { left / 2 };
        if let Some(amount) = amounts.amount_mut(name) {
            *amount = Some(wish.unwrap_or(usual));
        }
    }
    Ok(amounts)
}

fn taken(id: &RunId) -> Error {
    let what = format!("run {id} exists and is not this fork");
    Error::new("run.id_taken", what, "choose another id, or leave it out; nothing changed")
}
