//! Who sees every commit that took effect, and holds what is sent against it. It stands outside of every process, and
//! knows nothing of what the runtime believes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestep_core::checkpoint::{ActionState, How};
use lodestep_core::effect::Class;
use lodestep_core::event::SettledBy;
use lodestep_core::{Checkpoint, Ordinal, RunKey, Transition};
use lodestep_store::Clock as _;

use super::clock::SimClock;
use crate::tools::ToolCall;

/// What was committed, by run, and what should not have been done.
pub(super) struct Witness {
    clock: Arc<SimClock>,
    /// Is the story kept as it goes?
    tells: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    runs: BTreeMap<String, Run>,
    faults: Vec<String>,
    story: Vec<String>,
}

#[derive(Default)]
struct Run {
    state: Option<Checkpoint>,
    epoch: u64,
    settled: BTreeMap<Ordinal, How>,
    /// Settled by the late word of a worker before, while this one may have handed it out already.
    late: BTreeSet<Ordinal>,
}

impl Witness {
    pub(super) fn new(clock: Arc<SimClock>, tells: bool) -> Self {
        Self { clock, tells, seen: Mutex::default() }
    }

    /// Something happened that a reader of the story wants to know.
    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        if self.tells {
            let line = format!("{:>9.3} s  {}", self.clock.boot_us() as f64 / 1e6 - 3_600.0, what());
            self.lock().story.push(line);
        }
    }

    /// What happened, in order; empty unless it was kept.
    pub(super) fn story(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().story)
    }

    /// A transition took effect: a start's, or one that was committed under this epoch.
    pub(super) fn committed(&self, run: &RunKey, epoch: Option<u64>, transition: &Transition) {
        let checkpoint = &transition.checkpoint;
        self.tell(|| format!("{} {} {:?}", run.run, checkpoint.seq, transition.events));
        let mut seen = self.lock();
        let of_run = seen.runs.get(run.run.as_str()).map_or(0, |run| run.epoch);
        if let Some(epoch) = epoch.filter(|epoch| *epoch != of_run) {
            let seq = checkpoint.seq;
            seen.faults.push(format!("run {}: epoch {epoch} committed {seq}, and the run's is {of_run}", run.run));
        }
        let run = seen.runs.entry(run.run.to_string()).or_default();
        run.settled.extend(checkpoint.recent.iter().map(|settled| (settled.ordinal, settled.how)));
        let late = checkpoint.recent.iter().filter(|settled| settled.by == Some(SettledBy::LateReport));
        run.late.extend(late.map(|settled| settled.ordinal));
        run.state = Some(checkpoint.clone());
    }

    /// A claim took effect.
    pub(super) fn claimed(&self, run: &RunKey, epoch: u64) {
        self.tell(|| format!("{} claimed, epoch {epoch}", run.run));
        self.lock().runs.entry(run.run.to_string()).or_default().epoch = epoch;
    }

    /// A tool is called: is this attempt of this action durable, is it still to be done, and is it this worker's?
    pub(super) fn calls_tool(&self, class: Class, call: &ToolCall) {
        self.tell(|| {
            let ToolCall { run, action, attempt, epoch, .. } = call;
            format!("{run} calls action {action}, attempt {attempt}, epoch {epoch}")
        });
        let mut seen = self.lock();
        let run = seen.runs.entry(call.run.clone()).or_default();
        let ordinal = Ordinal(call.action);
        let fault = if class.is_repeatable() && run.late.contains(&ordinal) {
            None
        } else if let Some(how) = run.settled.get(&ordinal) {
            Some(format!("it was settled before: {how:?}"))
        } else if call.epoch != run.epoch {
            Some(format!("its worker's epoch {} is not the run's, {}", call.epoch, run.epoch))
        } else {
            match run.state.as_ref().and_then(|state| state.pending.get(&ordinal)).map(|action| &action.state) {
                None => Some("no commit names it".to_owned()),
                Some(ActionState::Open { attempt, epoch, .. }) if *attempt == call.attempt && *epoch == call.epoch => {
                    None
                }
                Some(_) if class.is_repeatable() => None,
                Some(state) => Some(format!("attempt {} has no intent: {state:?}", call.attempt)),
            }
        };
        if let Some(fault) = fault {
            seen.faults.push(format!("run {} called action {}, though {fault}", call.run, call.action));
        }
    }

    /// The model is asked: is the call reserved, and its reply not stored yet?
    pub(super) fn asks_model(&self, run: &str, turn: u64) {
        let mut seen = self.lock();
        let state = seen.runs.entry(run.to_owned()).or_default().state.as_ref();
        let fault = match state {
            None => Some("it was not accepted".to_owned()),
            Some(state) if state.model.open.is_none() => Some("nothing is reserved for it".to_owned()),
            Some(state) if state.model.answered != turn => {
                Some(format!("its state has {} replies", state.model.answered))
            }
            Some(_) => None,
        };
        if let Some(fault) = fault {
            seen.faults.push(format!("run {run} asked its model for reply {turn}, though {fault}"));
        }
    }

    /// How an action was settled, as far as a commit said so.
    pub(super) fn settled(&self, run: &str) -> BTreeMap<Ordinal, How> {
        self.lock().runs.get(run).map(|run| run.settled.clone()).unwrap_or_default()
    }

    /// What should not have been done, in words.
    pub(super) fn faults(&self) -> Vec<String> {
        self.lock().faults.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
