//! One simulation: a seed, a world, several workers that die, and what can be said of it at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use lodestep_core::definition::Limits;
use lodestep_core::rules::standing::standing;
use lodestep_core::{Error, Result, RunId, RunKey};
use lodestep_store::{Clock, MemoryStore, Started, Store};
use serde_json::json;
use tokio::time::Instant;

use super::agent::{Script, SimModel};
use super::chance::Chance;
use super::check::check;
use super::clock::SimClock;
use super::faults::Faults;
use super::hints::Hints;
use super::outside::Outside;
use super::person::{Accepted, Person, patiently};
use super::process::{Kill, Process};
use super::store::SimStore;
use super::witness::Witness;
use super::{Outcome, Plan};
use crate::observe::Silent;
use crate::runtime::{Runtime, Start};
use crate::worker::Shutdown;

/// How long things go wrong, in simulated time.
const CHAOS: Duration = Duration::from_secs(240);

/// How long they may take to come right afterwards: backs-off, leases and lookups included.
const CALM: Duration = Duration::from_secs(8 * 3_600);

/// Everything that outlives a process.
pub(super) struct World {
    pub plan: Plan,
    pub chance: Arc<Chance>,
    pub clock: Arc<SimClock>,
    pub store: MemoryStore,
    hints: Arc<Hints>,
    pub witness: Arc<Witness>,
    pub outside: Arc<Outside>,
    pub scripts: Arc<Vec<(String, Script)>>,
    pub full_until: Arc<Mutex<Option<Instant>>>,
    /// The ids of the words that were accepted, by run.
    accepted: Accepted,
    programs: Mutex<Vec<(Arc<Process>, Arc<SimStore>)>>,
}

impl World {
    fn new(plan: Plan) -> Self {
        let chance = Arc::new(Chance::of_seed(plan.seed));
        let clock = Arc::new(SimClock::start());
        let witness = Arc::new(Witness::new(clock.clone(), plan.tells));
        let scripts = match &plan.scripts {
            Some(scripts) => scripts.clone(),
            None => (0..1 + chance.below(3)).map(|_| Script::random(&chance)).collect(),
        };
        let scripts = scripts.into_iter().enumerate().map(|(at, script)| (id(at), script)).collect();
        let store = MemoryStore::new(clock.clone());
        Self {
            hints: Hints::of(&store),
            store,
            outside: Outside::new(chance.clone(), witness.clone()),
            plan,
            chance,
            clock,
            witness,
            scripts: Arc::new(scripts),
            full_until: Arc::default(),
            accepted: Accepted::default(),
            programs: Mutex::default(),
        }
    }

    /// A program of its own over the store, with its process.
    fn program(&self, faults: Faults, kill: Option<Kill>) -> (Runtime, Arc<Process>, Arc<SimStore>) {
        let process = Process::start(self.chance.clone(), faults, kill);
        let store = Arc::new(SimStore::new(
            self.store.clone(),
            self.hints.clone(),
            process.clone(),
            self.witness.clone(),
            self.chance.clone(),
            faults,
            self.full_until.clone(),
        ));
        let model = SimModel {
            scripts: self.scripts.clone(),
            witness: self.witness.clone(),
            chance: self.chance.clone(),
            fails: faults.model,
        };
        let (tasks, ids) = (process.clone(), self.chance.clone());
        let clock: Arc<dyn Clock> = self.clock.clone();
        let runtime = Runtime::builder(store.clone())
            .clock(clock)
            .functions(self.outside.functions(faults.tool))
            .model(Arc::new(model))
            .ids(move || u128::from(ids.below(usize::MAX) as u64))
            .tasks(move |task: BoxFuture<'static, ()>| tasks.task(task))
            .build();
        (runtime, process, store)
    }

    /// The words to a run that were accepted.
    pub(super) fn accepted(&self, run: &str) -> Vec<String> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned().unwrap_or_default()
    }

    fn programs(&self) -> MutexGuard<'_, Vec<(Arc<Process>, Arc<SimStore>)>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chaos, then calm: in the end every run is over.
    async fn play(&self) -> Result<Vec<RunKey>> {
        let faults = self.plan.faults.unwrap_or_else(|| Faults::random(&self.chance));
        let runs = self.start_runs(faults).await?;
        if faults != Faults::NONE {
            self.phase(&runs, faults, 1 + self.chance.below(3), CHAOS).await?;
        }
        if self.phase(&runs, Faults::NONE, 1, CALM).await? {
            return Ok(runs);
        }
        let mut stuck = Vec::new();
        for run in &runs {
            let state = self.store.load(run).await?.checkpoint()?;
            stuck.push(format!("{} {:?} {:?}", run.run, standing(&state), state.pending));
        }
        Err(fault(&format!("not every run came to its end: {}", stuck.join("; "))))
    }

    async fn start_runs(&self, faults: Faults) -> Result<Vec<RunKey>> {
        let (runtime, ..) = self.program(Faults { kill: 0, freeze: 0, ..faults }, None);
        let mut runs = Vec::new();
        for (run, script) in self.scripts.iter() {
            let limits = Limits { snapshot_every: 4, ..Limits::default() };
            let start = Start {
                definition: script.definition(run, limits),
                inputs: json!({}),
                id: Some(RunId::parse(run)?),
                labels: BTreeMap::default(),
                join_unfinished: false,
            };
            match patiently(|| runtime.start(start.clone())).await? {
                Started::New(run) => runs.push((*run.key).clone()),
                // The answer to the first try was lost.
                Started::Existing(row) => runs.push((*row.run.key).clone()),
                Started::Unfinished(_) => return Err(fault("a start joined another run")),
            }
        }
        Ok(runs)
    }

    /// One worker's place: whenever its process has died, another one begins. It never ends.
    async fn worker(&self, faults: Faults, mut kills: std::vec::IntoIter<Kill>) {
        loop {
            let (runtime, process, store) = self.program(faults, kills.next());
            self.programs().push((process.clone(), store.clone()));
            let shutdown = Shutdown::default();
            let stop = shutdown.clone();
            let work = async move {
                let _ = runtime.work(Arc::new(Silent), &stop).await;
            };
            let leaves_at = Instant::now() + Duration::from_secs(5) + self.chance.ms_below(60_000);
            tokio::select! {
                biased;
                () = process.death() => {}
                () = process.task(Box::pin(work)) => {}
                // Sometimes one is told to stop, and hands over.
                () = self.leaves(&shutdown, leaves_at) => {}
            }
            process.kill();
            store.bury();
            tokio::time::sleep(self.chance.ms_below(3_000)).await;
        }
    }

    /// Tells a worker to stop and gives it time to; never ends before that.
    async fn leaves(&self, shutdown: &Shutdown, at: Instant) {
        if self.plan.faults == Some(Faults::NONE) || !self.chance.permille(300) {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(at).await;
        shutdown.begin();
        tokio::time::sleep(Duration::from_secs(30)).await;
    }

    async fn phase(&self, runs: &[RunKey], faults: Faults, workers: usize, length: Duration) -> Result<bool> {
        let (runtime, ..) = self.program(Faults { kill: 0, freeze: 0, ..faults }, None);
        let person = Person {
            runtime,
            store: Arc::new(self.store.clone()),
            outside: self.outside.clone(),
            witness: self.witness.clone(),
            chance: self.chance.clone(),
            clock: self.clock.clone(),
            faults,
            accepted: self.accepted.clone(),
        };
        let deadline = Instant::now() + length;
        let mut places: FuturesUnordered<_> = (0..workers)
            .map(|place| {
                let kills = if place == 0 { self.plan.kills.clone() } else { Vec::new() };
                self.worker(faults, kills.into_iter())
            })
            .collect();
        tokio::select! {
            biased;
            are_over = person.look_after(runs, deadline) => {
                for (process, store) in self.programs().iter() {
                    process.kill();
                    store.bury();
                }
                are_over
            }
            _ = places.next() => Err(fault("a worker's place was given up")),
        }
    }
}

/// Plays one plan to its end.
pub(super) async fn play(plan: Plan) -> Outcome {
    let world = World::new(plan);
    let mut outcome = Outcome { seed: world.plan.seed, ..Outcome::default() };
    match world.play().await {
        Ok(runs) => check(&world, &runs, &mut outcome).await,
        Err(error) => outcome.faults.push(format!("the simulation broke: {error}")),
    }
    outcome.faults.extend(world.witness.faults());
    outcome.story = world.witness.story();
    outcome.polls = world.programs().iter().map(|(process, _)| process.polls()).collect();
    outcome.writes = world.programs().iter().map(|(process, _)| process.writes()).collect();
    outcome
}

fn fault(what: &str) -> Error {
    Error::new("simulation.broken", what, "this is a fault of the simulation, or of what it simulates")
}

fn id(at: usize) -> String {
    format!("sim{at}")
}
