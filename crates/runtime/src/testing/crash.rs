//! A program of one's own, crashed everywhere: once undisturbed, then once for every poll of its tasks, with a crash before
//! it and a new process that goes on. The world has to be the same each time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lodestep_core::checkpoint::{Action, ActionState};
use lodestep_core::event::Gate;
use lodestep_core::rules::inbox::{Became, Word};
use lodestep_core::rules::standing::{Status, standing};
use lodestep_core::{Checkpoint, Error, Result, RunKey};
use lodestep_store::{Started, Store as _};
use tokio::time::Instant;

use super::faults::Faults;
use super::machine::{Machine, Program};
use super::process::Kill;
use crate::runtime::{Runtime, RuntimeBuilder, Start};
use crate::worker::Shutdown;

/// How long a run may take, in simulated time.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How long a doubt rests before somebody looks: what was sent may still be on its way.
const RESTS_MS: u64 = 120_000;

/// A program to be crashed, and the world that it acts on.
///
/// Time is simulated: what the program does has to wait by tokio's timers, on no other thread and for nothing outside of
/// it. A model may be asked again after a crash, and should say the same for the same turn.
pub trait App {
    /// Puts the program together: its tools and its model. Called for each of its processes.
    fn program(&self, builder: RuntimeBuilder) -> RuntimeBuilder;

    /// What is started.
    fn start(&self) -> Start;

    /// Makes the world as it was in the beginning. Called before each story.
    fn reset(&self);

    /// What the world has really applied, by a name, and how often. Asked of the world, not of the program.
    fn applied(&self) -> BTreeMap<String, u64>;

    /// Did this effect happen? A person would look; this looks for them.
    fn happened(&self, effect: &InDoubt) -> bool;
}

/// An effect of which nobody knows whether it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InDoubt {
    /// The tool.
    pub tool: String,
    /// The idempotency key that the tool was called with.
    pub key: String,
}

/// What the crashes came to. Each entry names the poll before which the process was killed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// How many stories were played: the undisturbed one, and one for each poll of it.
    pub stories: u64,
    /// Effects that were applied less often than without a crash.
    pub lost: Vec<String>,
    /// Effects that were applied more often.
    pub doubled: Vec<String>,
    /// Runs that ended otherwise, or with other artifacts.
    pub different: Vec<String>,
    /// Runs that came to no end, and what else went wrong.
    pub broken: Vec<String>,
}

impl Crashes {
    /// Was every story the same?
    pub fn are_survived(&self) -> bool {
        [&self.lost, &self.doubled, &self.different, &self.broken].iter().all(|found| found.is_empty())
    }
}

/// How a story ended.
#[derive(PartialEq, Eq)]
struct End {
    applied: BTreeMap<String, u64>,
    status: &'static str,
    artifacts: Vec<(String, String)>,
    polls: u64,
}

/// Plays the program once undisturbed and once for each poll, killed before it. Approvals are given, questions get an empty
/// answer, and doubts are settled as the app says.
///
/// # Panics
///
/// When no runtime can be built on this thread, as inside another one.
pub fn crash_everywhere(app: &(impl App + ?Sized)) -> Crashes {
    let mut crashes = Crashes { stories: 1, ..Crashes::default() };
    let wanted = match story(app, None) {
        Ok(end) => end,
        Err(error) => {
            crashes.broken.push(format!("without a crash: {error}"));
            return crashes;
        }
    };
    for poll in 1..=wanted.polls {
        crashes.stories += 1;
        let at = format!("killed before poll {poll}");
        match story(app, Some(Kill::Poll(poll))) {
            Ok(end) => crashes.compare(&at, &wanted, &end),
            Err(error) => crashes.broken.push(format!("{at}: {error}")),
        }
    }
    crashes
}

impl Crashes {
    fn compare(&mut self, at: &str, wanted: &End, end: &End) {
        let names: BTreeSet<&String> = wanted.applied.keys().chain(end.applied.keys()).collect();
        for name in names {
            let times = |end: &End| end.applied.get(name).copied().unwrap_or(0);
            let (before, after) = (times(wanted), times(end));
            let what = format!("{at}: {name} {after} times instead of {before}");
            match after.cmp(&before) {
                std::cmp::Ordering::Less => self.lost.push(what),
                std::cmp::Ordering::Greater => self.doubled.push(what),
                std::cmp::Ordering::Equal => {}
            }
        }
        if end.status != wanted.status {
            self.different.push(format!("{at}: {} instead of {}", end.status, wanted.status));
        } else if end.artifacts != wanted.artifacts {
            self.different.push(format!("{at}: its artifacts are others"));
        }
    }
}

fn story(app: &(impl App + ?Sized), kill: Option<Kill>) -> Result<End> {
    app.reset();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(play(app, kill)),
        Err(error) => panic!("no runtime to simulate in: {error}"),
    }
}

/// An app on a machine.
struct Staged<'a, A: ?Sized> {
    app: &'a A,
    machine: Machine,
}

impl<A: App + ?Sized> Staged<'_, A> {
    fn program(&self, kill: Option<Kill>) -> Program {
        self.machine.start(Faults::NONE, kill, |builder| self.app.program(builder))
    }

    /// Works until the process dies, then by another; never ends.
    async fn work(&self, mut kill: Option<Kill>) {
        loop {
            let program = self.program(kill.take());
            self.machine.work(program, &Shutdown::default(), std::future::pending()).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Says what a run waits for, until it is over or stands still.
    async fn look_after(&self, runtime: &Runtime, run: &RunKey) -> Result<Checkpoint> {
        let until = Instant::now() + LONGEST;
        loop {
            let state = self.machine.store.load(run).await?.checkpoint()?;
            let stands = standing(&state);
            let is_over = state.is_over() && state.pending.is_empty();
            if is_over || matches!(stands.status, Status::Stopped | Status::Quarantined) {
                return Ok(state);
            }
            if Instant::now() >= until {
                let what = format!("the run came to no end: {:?}", stands.reasons);
                return Err(Error::new("simulation.stuck", what, "see what it waits for"));
            }
            for word in state.pending.values().filter_map(|action| self.word_for(action)) {
                runtime.send(run, "a person", word).await?;
            }
            // Nothing hurries: time passes only when every task waits.
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    }

    fn word_for(&self, action: &Action) -> Option<Word> {
        match &action.state {
            ActionState::Gated { gate: Gate::Approval(request) } => Some(Word::Approve { request: request.name }),
            ActionState::Gated { gate: Gate::Answer(request) } => {
                Some(Word::Answer { request: request.name, value: String::new() })
            }
            ActionState::Doubt { since, attempt, .. } if self.machine.store.now() >= since.plus_ms(RESTS_MS) => {
                let key = action.key.clone().unwrap_or_default();
                let happened = self.app.happened(&InDoubt { tool: action.tool.clone(), key });
                let became = if happened { Became::Happened(Vec::new()) } else { Became::SendAgain };
                Some(Word::Resolve { ordinal: action.ordinal, became, attempt: Some(*attempt) })
            }
            _ => None,
        }
    }
}

async fn play(app: &(impl App + ?Sized), kill: Option<Kill>) -> Result<End> {
    let staged = Staged { app, machine: Machine::new(0, false) };
    let client = staged.program(None).runtime;
    let run = match client.start(app.start()).await? {
        Started::New(run) => RunKey::clone(&run.key),
        _ => return Err(Error::new("simulation.joined", "the start joined another run", "start a new one")),
    };
    let state = tokio::select! {
        biased;
        state = staged.look_after(&client, &run) => state?,
        () = staged.work(kill) => return Err(Error::new("simulation.broken", "work ended", "")),
    };
    let artifacts = state.artifacts.iter().map(|(name, kept)| (name.clone(), kept.content.digest.to_string()));
    let polls = staged.machine.workers().first().map_or(0, |worker| worker.process.polls());
    Ok(End { applied: app.applied(), status: standing(&state).status.as_str(), artifacts: artifacts.collect(), polls })
}
