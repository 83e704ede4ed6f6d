//! A program of one's own, crashed everywhere: once undisturbed, then once for every poll of its tasks, with a crash before
//! it and a new process that goes on; or once for every pair of writes of two processes. The world has to be the same each
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lodestep_core::checkpoint::{Action, ActionState};
use lodestep_core::event::Gate;
use lodestep_core::rules::inbox::{Became, Word};
use lodestep_core::rules::standing::{Status, standing};
use lodestep_core::{Checkpoint, Error, Result, RunKey};
use lodestep_store::Started;
use tokio::time::Instant;

use super::disk::StoreKind;
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

/// What the crashes came to. Each entry names the poll before which the process was killed, or the write after which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// How many stories were played: the undisturbed one, and one for each crash.
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
    /// Of each worker's process.
    writes: Vec<u64>,
}

/// Plays the program over a store in memory, once undisturbed and once for each poll, killed before it. Approvals are given,
/// questions get an empty answer, and doubts are settled as the app says.
///
/// # Panics
///
/// When no runtime can be built on this thread, as inside another one.
pub fn crash_everywhere(app: &(impl App + ?Sized)) -> Crashes {
    crash_everywhere_over(app, StoreKind::Memory)
}

/// As [`crash_everywhere`], over a store of this kind.
///
/// # Panics
///
/// As [`crash_everywhere`].
pub fn crash_everywhere_over(app: &(impl App + ?Sized), store: StoreKind) -> Crashes {
    Crashes::of(app, store, |crashes, wanted| {
        for poll in 1..=wanted.polls {
            crashes.play(app, store, wanted, &[Kill::Poll(poll)], &format!("killed before poll {poll}"));
        }
    })
}

/// As [`crash_everywhere_over`], but two processes die: the first after each of its writes to the store, and the one that
/// goes on after each of its own: so many stories as there are writes, squared. A process that dies right after a write has
/// not sent what the write allows it to send; for crashes in the middle of a call there is [`crash_everywhere`].
///
/// # Panics
///
/// As [`crash_everywhere`].
pub fn crash_twice_everywhere(app: &(impl App + ?Sized), store: StoreKind) -> Crashes {
    Crashes::of(app, store, |crashes, wanted| {
        for first in 1..=wanted.writes.first().copied().unwrap_or(0) {
            let at = format!("killed after write {first}");
            let once = crashes.play(app, store, wanted, &[Kill::Write(first)], &at);
            for second in 1..=once.and_then(|once| once.writes.get(1).copied()).unwrap_or(0) {
                let kills = [Kill::Write(first), Kill::Write(second)];
                crashes.play(app, store, wanted, &kills, &format!("killed after writes {first} and {second}"));
            }
        }
    })
}

impl Crashes {
    /// The undisturbed story, and those that `play` compares with it.
    fn of(app: &(impl App + ?Sized), store: StoreKind, play: impl FnOnce(&mut Self, &End)) -> Self {
        let mut crashes = Self { stories: 1, ..Self::default() };
        match story(app, store, &[]) {
            Ok(wanted) => play(&mut crashes, &wanted),
            Err(error) => crashes.broken.push(format!("without a crash: {error}")),
        }
        crashes
    }

    fn play(
        &mut self,
        app: &(impl App + ?Sized),
        store: StoreKind,
        wanted: &End,
        kills: &[Kill],
        at: &str,
    ) -> Option<End> {
        self.stories += 1;
        match story(app, store, kills) {
            Ok(end) => {
                self.compare(at, wanted, &end);
                Some(end)
            }
            Err(error) => {
                self.broken.push(format!("{at}: {error}"));
                None
            }
        }
    }

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

fn story(app: &(impl App + ?Sized), store: StoreKind, kills: &[Kill]) -> Result<End> {
    app.reset();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(play(app, store, kills)),
        Err(error) => panic!("no runtime to simulate in: {error}"),
    }
}

/// An app on a machine.
struct Staged<'a, A: ?Sized> {
    app: &'a A,
    machine: Machine,
}

impl<A: App + ?Sized> Staged<'_, A> {
    fn program(&self, kill: Option<Kill>) -> Result<Program> {
        self.machine.start(Faults::NONE, kill, |builder| self.app.program(builder))
    }

    /// Works until the process dies, then by another; ends when none can be started.
    async fn work(&self, kills: &[Kill]) -> Error {
        let mut kills = kills.iter();
        loop {
            let program = match self.program(kills.next().copied()) {
                Ok(program) => program,
                Err(error) => return error,
            };
            self.machine.work(program, &Shutdown::default(), std::future::pending()).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Says what a run waits for, until it is over or stands still.
    async fn look_after(&self, runtime: &Runtime, run: &RunKey) -> Result<Checkpoint> {
        let until = Instant::now() + LONGEST;
        loop {
            let state = self.machine.store().store().load(run).await?.checkpoint()?;
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
            ActionState::Doubt { since, attempt, .. }
                if self.machine.store().store().now() >= since.plus_ms(RESTS_MS) =>
            {
                let key = action.key.clone().unwrap_or_default();
                let happened = self.app.happened(&InDoubt { tool: action.tool.clone(), key });
                let became = if happened { Became::Happened(Vec::new()) } else { Became::SendAgain };
                Some(Word::Resolve { ordinal: action.ordinal, became, attempt: Some(*attempt) })
            }
            _ => None,
        }
    }
}

async fn play(app: &(impl App + ?Sized), store: StoreKind, kills: &[Kill]) -> Result<End> {
    let staged = Staged { app, machine: Machine::new(0, store, false)? };
    let client = staged.program(None)?.runtime;
    let run = match client.start(app.start()).await? {
        Started::New(run) => RunKey::clone(&run.key),
        _ => return Err(Error::new("simulation.joined", "the start joined another run", "start a new one")),
    };
    let state = tokio::select! {
        biased;
        state = staged.look_after(&client, &run) => state?,
        error = staged.work(kills) => return Err(error),
    };
    let artifacts = state.artifacts.iter().map(|(name, kept)| (name.clone(), kept.content.digest.to_string()));
    let workers: Vec<_> = staged.machine.workers().iter().map(|worker| worker.process.clone()).collect();
    Ok(End {
        applied: app.applied(),
        status: standing(&state).status.as_str(),
        artifacts: artifacts.collect(),
        polls: workers.first().map_or(0, |worker| worker.polls()),
        writes: workers.iter().map(|worker| worker.writes()).collect(),
    })
}
