//! One simulation: a seed, a world, several workers that die, and what can be said of it at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use lodestep_core::definition::Limits;
use lodestep_core::rules::standing::standing;
use lodestep_core::{Error, Result, RunId, RunKey};
use lodestep_store::Started;
use serde_json::json;
use tokio::time::Instant;

use super::agent::{Script, SimModel};
use super::chance::Chance;
use super::check::check;
use super::disk::StoreKind;
use super::faults::Faults;
use super::machine::{Machine, Program};
use super::outside::Outside;
use super::person::{Accepted, Person, patiently};
use super::process::Kill;
use super::{Outcome, Plan};
use crate::runtime::{Runtime, Start};
use crate::worker::Shutdown;

/// How long things go wrong, in simulated time.
const CHAOS: Duration = Duration::from_secs(240);

/// How long they may take to come right afterwards: backs-off, leases and lookups included.
const CALM: Duration = Duration::from_secs(8 * 3_600);

/// Makes of a seed the one of a stream of its own, so that what is drawn from it changes nothing else.
const SETTING: u64 = 0x9e37_79b9_7f4a_7c15;

/// One story in so many has its store in a file.
const ONE_IN: usize = 16;

/// The machine, and what is around it.
pub(super) struct World {
    pub plan: Plan,
    pub machine: Machine,
    pub outside: Arc<Outside>,
    scripts: Arc<Vec<(String, Script)>>,
    /// The ids of the words that were accepted, by run.
    accepted: Accepted,
    /// Does the machine start again between chaos and calm?
    restarts: bool,
}

impl World {
    fn new(plan: Plan) -> Result<Self> {
        let setting = Chance::of_seed(plan.seed ^ SETTING);
        let drawn = if setting.below(ONE_IN) == 0 { StoreKind::Sqlite } else { StoreKind::Memory };
        let store = plan.store.unwrap_or(drawn);
        let machine = Machine::new(plan.seed, store, plan.tells)?;
        let chance = &machine.chance;
        let scripts = match &plan.scripts {
            Some(scripts) => scripts.clone(),
            None => (0..1 + chance.below(3)).map(|_| Script::random(chance)).collect(),
        };
        let scripts = scripts.into_iter().enumerate().map(|(at, script)| (id(at), script)).collect();
        Ok(Self {
            outside: Outside::new(chance.clone(), machine.witness.clone()),
            // Memory does not outlive its machine.
            restarts: store == StoreKind::Sqlite && setting.permille(500),
            plan,
            machine,
            scripts: Arc::new(scripts),
            accepted: Accepted::default(),
        })
    }

    /// A program with the simulated tools and model.
    fn program(&self, faults: Faults, kill: Option<Kill>) -> Result<Program> {
        let model = SimModel {
            scripts: self.scripts.clone(),
            witness: self.machine.witness.clone(),
            chance: self.machine.chance.clone(),
            fails: faults.model,
        };
        let functions = self.outside.functions(faults.tool);
        self.machine.start(faults, kill, |builder| builder.functions(functions).model(Arc::new(model)))
    }

    /// A program of people: it does not die.
    fn client(&self, faults: Faults) -> Result<Runtime> {
        Ok(self.program(Faults { kill: 0, freeze: 0, ..faults }, None)?.runtime)
    }

    /// The words to a run that were accepted.
    pub(super) fn accepted(&self, run: &str) -> Vec<String> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned().unwrap_or_default()
    }

    /// Chaos, then calm: in the end every run is over.
    async fn play(&self) -> Result<Vec<RunKey>> {
        let faults = self.plan.faults.unwrap_or_else(|| Faults::random(&self.machine.chance));
        let runs = self.start_runs(faults).await?;
        if faults != Faults::NONE {
            self.phase(&runs, faults, 1 + self.machine.chance.below(3), CHAOS).await?;
            if self.restarts {
                self.machine.witness.tell(|| "the machine starts again".to_owned());
                self.machine.restart()?;
            }
        }
        if self.phase(&runs, Faults::NONE, 1, CALM).await? {
            return Ok(runs);
        }
        let mut stuck = Vec::new();
        for run in &runs {
            let state = self.machine.store().store().load(run).await?.checkpoint()?;
            stuck.push(format!("{} {:?} {:?}", run.run, standing(&state), state.pending));
        }
        Err(fault(&format!("not every run came to its end: {}", stuck.join("; "))))
    }

    async fn start_runs(&self, faults: Faults) -> Result<Vec<RunKey>> {
        let runtime = self.client(faults)?;
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

    /// One worker's place: whenever its process has died, another one begins. It ends when none can be started.
    async fn worker(&self, faults: Faults, mut kills: std::vec::IntoIter<Kill>) -> Error {
        loop {
            let program = match self.program(faults, kills.next()) {
                Ok(program) => program,
                Err(error) => return error,
            };
            let shutdown = Shutdown::default();
            let leaves_at = Instant::now() + Duration::from_secs(5) + self.machine.chance.ms_below(60_000);
            // Sometimes one is told to stop, and hands over.
            self.machine.work(program, &shutdown, self.leaves(&shutdown, leaves_at)).await;
            tokio::time::sleep(self.machine.chance.ms_below(3_000)).await;
        }
    }

    /// Tells a worker to stop and gives it time to; never ends before that.
    async fn leaves(&self, shutdown: &Shutdown, at: Instant) {
        if self.plan.faults == Some(Faults::NONE) || !self.machine.chance.permille(300) {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(at).await;
        shutdown.begin();
        tokio::time::sleep(Duration::from_secs(30)).await;
    }

    async fn phase(&self, runs: &[RunKey], faults: Faults, workers: usize, length: Duration) -> Result<bool> {
        let person = Person {
            runtime: self.client(faults)?,
            store: self.machine.store(),
            outside: self.outside.clone(),
            witness: self.machine.witness.clone(),
            chance: self.machine.chance.clone(),
            clock: self.machine.clock.clone(),
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
                self.machine.workers().iter().for_each(Program::kill);
                are_over
            }
            given_up = places.next() => Err(given_up.unwrap_or_else(|| fault("there was no worker"))),
        }
    }
}

/// Plays one plan to its end.
pub(super) async fn play(plan: Plan) -> Outcome {
    let mut outcome = Outcome { seed: plan.seed, ..Outcome::default() };
    let world = match World::new(plan) {
        Ok(world) => world,
        Err(error) => {
            outcome.faults.push(format!("there is no world: {error}"));
            return outcome;
        }
    };
    outcome.store = world.machine.kind();
    match world.play().await {
        Ok(runs) => check(&world, &runs, &mut outcome).await,
        Err(error) => outcome.faults.push(format!("the simulation broke: {error}")),
    }
    outcome.faults.extend(world.machine.witness.faults());
    outcome.story = world.machine.witness.story();
    let workers = world.machine.workers();
    outcome.polls = workers.iter().map(|worker| worker.process.polls()).collect();
    outcome.writes = workers.iter().map(|worker| worker.process.writes()).collect();
    drop(workers);
    outcome
}

fn fault(what: &str) -> Error {
    Error::new("simulation.broken", what, "this is a fault of the simulation, or of what it simulates")
}

fn id(at: usize) -> String {
    format!("sim{at}")
}
