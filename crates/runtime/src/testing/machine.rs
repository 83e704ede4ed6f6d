//! The machine on which simulated programs run: its clocks, its disk with the one store on it, and their processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use lodestep_core::Result;
use lodestep_store::{Clock, Store};
use tokio::time::Instant;

use super::chance::Chance;
use super::clock::SimClock;
use super::disk::{Disk, Opened, StoreKind};
use super::faults::Faults;
use super::hints::Hints;
use super::process::{Kill, Process};
use super::store::SimStore;
use super::witness::Witness;
use crate::observe::Silent;
use crate::runtime::{Runtime, RuntimeBuilder};
use crate::worker::Shutdown;

/// What outlives every process.
pub(super) struct Machine {
    pub chance: Arc<Chance>,
    pub clock: Arc<SimClock>,
    pub witness: Arc<Witness>,
    disk: Disk,
    /// The store as those see it who stand outside of every process.
    seen: Mutex<Arc<Opened>>,
    hints: Arc<Hints>,
    full_until: Arc<Mutex<Option<Instant>>>,
    workers: Mutex<Vec<Program>>,
}

/// A program that runs: its runtime, its process, and its way to the store.
#[derive(Clone)]
pub(super) struct Program {
    pub runtime: Runtime,
    pub process: Arc<Process>,
    store: Arc<SimStore>,
}

impl Machine {
    /// A machine with an empty store. `tells`: the story is kept.
    pub(super) fn new(seed: u64, store: StoreKind, tells: bool) -> Result<Self> {
        let clock = Arc::new(SimClock::start());
        let disk = Disk::new(store, &clock)?;
        let machine = Self {
            chance: Arc::new(Chance::of_seed(seed)),
            witness: Arc::new(Witness::new(clock.clone(), tells)),
            hints: Arc::default(),
            clock,
            seen: Mutex::new(Arc::new(disk.open()?)),
            disk,
            full_until: Arc::default(),
            workers: Mutex::default(),
        };
        let changes = machine.store().store().changes();
        machine.hints.follow(changes);
        Ok(machine)
    }

    /// The store, seen from outside of every process.
    pub(super) fn store(&self) -> Arc<Opened> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What its store is.
    pub(super) fn kind(&self) -> StoreKind {
        match &self.disk {
            Disk::Memory(_) => StoreKind::Memory,
            Disk::Sqlite(_) => StoreKind::Sqlite,
        }
    }

    /// Ends every process, and the machine starts again: of its store nothing is left but what is in its files.
    pub(super) fn restart(&self) -> Result<()> {
        self.workers().iter().for_each(Program::kill);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Opened::Sqlite(store) = seen.as_ref() {
            store.die()?;
            self.disk.restart()?;
            *seen = Arc::new(self.disk.open()?);
        }
        Ok(())
    }

    /// Starts a program in a process of its own, put together by `build`.
    pub(super) fn start(
        &self,
        faults: Faults,
        kill: Option<Kill>,
        build: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Result<Program> {
        let process = Process::start(self.chance.clone(), faults, kill);
        let opened = self.disk.open()?;
        if let Opened::Sqlite(store) = &opened {
            self.hints.follow(store.changes());
        }
        let store = Arc::new(SimStore::new(
            opened,
            self.hints.clone(),
            process.clone(),
            self.witness.clone(),
            self.chance.clone(),
            faults,
            self.full_until.clone(),
        ));
        let (tasks, ids) = (process.clone(), self.chance.clone());
        let clock: Arc<dyn Clock> = self.clock.clone();
        let builder = Runtime::builder(store.clone())
            .clock(clock)
            .ids(move || u128::from(ids.below(usize::MAX) as u64))
            .tasks(move |task: BoxFuture<'static, ()>| tasks.task(task));
        Ok(Program { runtime: build(builder).build(), process, store })
    }

    /// Works as a worker until the process dies, the work ends, or `end` comes; the process is dead then.
    pub(super) async fn work(&self, program: Program, shutdown: &Shutdown, end: impl Future<Output = ()>) {
        self.workers().push(program.clone());
        let (runtime, stop) = (program.runtime.clone(), shutdown.clone());
        let work = async move {
            // What a worker ends with is its own matter: the store says what became of the runs.
            let _ = runtime.work(Arc::new(Silent), &stop).await;
        };
        tokio::select! {
            biased;
            () = program.process.death() => {}
            () = program.process.task(Box::pin(work)) => {}
            () = end => {}
        }
        program.kill();
    }

    /// Every worker that there was, in the order of their starts.
    pub(super) fn workers(&self) -> MutexGuard<'_, Vec<Program>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Program {
    /// Ends its process, and with it its leases.
    pub(super) fn kill(&self) {
        self.process.kill();
        self.store.bury();
    }
}
