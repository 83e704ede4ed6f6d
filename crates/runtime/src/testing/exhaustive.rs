//! A small agent, killed everywhere: before each poll of its first process, and after each pair of writes of the first two.
//!
//! Nothing else goes wrong, so that every story has to come to the same end as the undisturbed one.

use super::agent::Script;
use super::disk::StoreKind;
use super::faults::Faults;
use super::process::Kill;
use super::{Outcome, Plan, simulate};

/// An agent, a store, and how its story goes when nobody dies.
#[derive(Clone, Debug)]
pub struct Exhaustive {
    script: Script,
    store: StoreKind,
    undisturbed: Outcome,
}

impl Exhaustive {
    /// Plays the undisturbed story.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub fn of(script: Script, store: StoreKind) -> Result<Self, String> {
        let mut all = Self { script, store, undisturbed: Outcome::default() };
        all.undisturbed = all.play(&[]);
        let are_complete = all.undisturbed.results.values().all(|result| result.starts_with("completed"));
        match all.undisturbed.faults.is_empty() && are_complete {
            true => Ok(all),
            false => Err(format!("without a crash: {:?}, {:?}", all.undisturbed.faults, all.undisturbed.results)),
        }
    }

    /// How often the undisturbed process was polled.
    pub fn polls(&self) -> u64 {
        self.undisturbed.polls.first().copied().unwrap_or(0)
    }

    /// How often the undisturbed process wrote to the store.
    pub fn writes(&self) -> u64 {
        self.undisturbed.writes.first().copied().unwrap_or(0)
    }

    /// Kills the process before this poll of its, counted from 1; what is wrong then.
    pub fn killed_before(&self, poll: u64) -> Vec<String> {
        self.compare(&self.play(&[Kill::Poll(poll)]), &format!("killed before poll {poll}"))
    }

    /// Kills the process after this write of its, counted from 1, and the one that goes on after each write of its own.
    /// How many pairs there are, and what is wrong.
    pub fn killed_after(&self, first: u64) -> (u64, Vec<String>) {
        let once = self.play(&[Kill::Write(first)]);
        let mut wrong = self.compare(&once, &format!("killed after write {first}"));
        let seconds = once.writes.get(1).copied().unwrap_or(0);
        for second in 1..=seconds {
            let twice = self.play(&[Kill::Write(first), Kill::Write(second)]);
            wrong.extend(self.compare(&twice, &format!("killed after writes {first} and {second}")));
        }
        (seconds, wrong)
    }

    fn play(&self, kills: &[Kill]) -> Outcome {
        let (store, scripts) = (Some(self.store), Some(vec![self.script.clone()]));
        simulate(Plan { seed: 7, store, faults: Some(Faults::NONE), scripts, kills: kills.to_vec(), tells: false })
    }

    fn compare(&self, outcome: &Outcome, what: &str) -> Vec<String> {
        let mut wrong: Vec<String> = outcome.faults.iter().map(|fault| format!("{what}: {fault}")).collect();
        let wanted = &self.undisturbed;
        if (&outcome.results, outcome.applied) != (&wanted.results, wanted.applied) {
            let (found, applied) = (&outcome.results, outcome.applied);
            wrong.push(format!(
                "{what}: {found:?} and {applied} effects, not {:?} and {}",
                wanted.results, wanted.applied
            ));
        }
        wrong
    }
}
