//! The people of a simulation: they approve, answer, resolve doubts as the world tells them, and let stopped runs go on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lodestep_core::checkpoint::{ActionState, Phase};
use lodestep_core::event::{Gate, Request};
use lodestep_core::rules::inbox::{Became, Verdict, Word};
use lodestep_core::rules::standing::Status;
use lodestep_core::{Checkpoint, Error, Result, RunKey, Timestamp};
use lodestep_store::Hold;

use super::chance::Chance;
use super::clock::SimClock;
use super::disk::Opened;
use super::faults::Faults;
use super::outside::{Outside, SETTLES_AFTER_MS};
use super::witness::Witness;
use crate::runtime::Runtime;

/// How long a call to a store that fails is tried again.
const TRIES: u32 = 1_000;

/// The furthest that the wall clock is from the true time, in seconds.
const JUMP_S: usize = 7_200;

/// The ids of the words that were accepted, by run.
pub(super) type Accepted = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

/// Whoever looks after the runs, from a program of their own.
pub(super) struct Person {
    pub runtime: Runtime,
    /// The store itself: what is looked at is the truth, so that a person never acts on nothing.
    pub store: Arc<Opened>,
    pub outside: Arc<Outside>,
    pub witness: Arc<Witness>,
    pub chance: Arc<Chance>,
    pub clock: Arc<SimClock>,
    pub faults: Faults,
    pub accepted: Accepted,
}

impl Person {
    /// Looks at each run until all are over or `deadline` has come; true when all are over.
    pub(super) async fn look_after(&self, runs: &[RunKey], deadline: tokio::time::Instant) -> Result<bool> {
        loop {
            let mut are_over = true;
            for run in runs {
                are_over &= self.look_at(run).await?;
            }
            if are_over || tokio::time::Instant::now() >= deadline {
                return Ok(are_over);
            }
            if self.chance.permille(self.faults.jump) {
                let to_s = self.chance.below(2 * JUMP_S) as i64 - JUMP_S as i64;
                self.clock.jump(to_s * 1_000_000);
            }
            tokio::time::sleep(Duration::from_millis(500) + self.chance.ms_below(2_000)).await;
        }
    }

    /// Does what a run needs; true when it is over and nothing of it is in doubt.
    async fn look_at(&self, run: &RunKey) -> Result<bool> {
        let loaded = self.store.store().load(run).await?;
        if loaded.row.status == Status::Quarantined || loaded.row.hold == Some(Hold::Undecodable) {
            self.say(run, Word::Release).await?;
            return Ok(false);
        }
        let state = loaded.checkpoint()?;
        let mut words = Vec::new();
        match &state.phase {
            Phase::Stopped { .. } => words.push(Word::Resume),
            Phase::Active if self.chance.permille(self.faults.cancel) => {
                words.push(Word::Cancel { reason: "by chance".to_owned() });
            }
            _ => {}
        }
        words.extend(state.pending.values().filter_map(|action| self.word_for(&state, action.ordinal.0)));
        let needs_nothing = words.is_empty();
        for word in words {
            self.say(run, word).await?;
        }
        Ok(needs_nothing && state.is_over() && state.pending.is_empty())
    }

    fn word_for(&self, state: &Checkpoint, action: u32) -> Option<Word> {
        let action = state.pending.values().find(|known| known.ordinal.0 == action)?;
        match &action.state {
            ActionState::Gated { gate: Gate::Approval(request) } => Some(self.judge(request)),
            ActionState::Gated { gate: Gate::Answer(request) } => {
                Some(Word::Answer { request: request.name, value: String::new() })
            }
            ActionState::Doubt { since, attempt, .. } => {
                let settles = since.plus_ms(TIMEOUT_AND_LEASE_MS + SETTLES_AFTER_MS);
                let result = format!("done by a person's word, action {}", action.ordinal);
                let became = match self.outside.truth(state.run.as_str(), action.ordinal.0) {
                    Some(true) => Became::Happened(result.into_bytes()),
                    Some(false) if self.now() >= settles && !state.is_over() => Became::SendAgain,
                    Some(false) if self.now() >= settles => Became::Abandoned("it did not happen".to_owned()),
                    _ => return None,
                };
                Some(Word::Resolve { ordinal: action.ordinal, became, attempt: Some(*attempt) })
            }
            _ => None,
        }
    }

    fn judge(&self, request: &Request) -> Word {
        match self.chance.permille(self.faults.deny) {
            true => Word::Deny { request: request.name, reason: "no".to_owned() },
            false => Word::Approve { request: request.name },
        }
    }

    fn now(&self) -> Timestamp {
        self.store.store().now()
    }

    /// Says a word until it is known what became of it, under one id.
    async fn say(&self, run: &RunKey, word: Word) -> Result<()> {
        self.witness.tell(|| format!("{} is told {word:?}", run.run));
        let id = format!("word-{}", self.chance.below(usize::MAX));
        let times = if self.chance.permille(self.faults.twice) { 2 } else { 1 };
        for _ in 0..times {
            match patiently(|| self.runtime.send_as(run, &id, "a person", word.clone())).await? {
                Verdict::Accepted => {
                    let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
                    accepted.entry(run.run.to_string()).or_default().push(id.clone());
                }
                // The run went on meanwhile.
                Verdict::AlreadyGiven(_) | Verdict::Refused(_) => {}
            }
        }
        Ok(())
    }
}

/// What was sent can be under way for so long at most after its worker died: a lease, and the attempt's time.
const TIMEOUT_AND_LEASE_MS: u64 = 60_000;

/// Makes a call again for as long as the store is unavailable.
pub(super) async fn patiently<T, F: Future<Output = Result<T>>>(mut call: impl FnMut() -> F) -> Result<T> {
    for _ in 0..TRIES {
        match call().await {
            Err(error) if error.code() == "store.unavailable" => tokio::time::sleep(Duration::from_millis(100)).await,
            said => return said,
        }
    }
    Err(Error::new("store.unavailable", "simulated: the store never came back", "this is a fault of the simulation"))
}
