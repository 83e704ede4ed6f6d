//! Steps of one run and of many, against raw commits in the same minutes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use lodestep::core::definition::Limits;
use lodestep::core::effect::Class;
use lodestep::observe::Silent;
use lodestep::store::{SqliteStore, SystemClock};
use lodestep::tools::Functions;
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use crate::Row;
pub use crate::agents::functions;
use crate::agents::{Stepper, agent};
use crate::raw::Raw;

/// Steps, or raw commits, between two changes of turns.
const BLOCK: u64 = 250;

/// Blocks of each in a round.
const BLOCKS: u64 = 12;

/// Measures and reports each row.
pub async fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    let raw = Raw::warm(&folder.join("raw.db"));
    let cases = [
        ("W1 reads of one run, 50 a decision", Class::Read, 50, "≥ 0.80"),
        ("W1e keyed effects of one run, 50 a decision", Class::Keyed, 50, "≥ 0.43"),
        ("W1 reads of one run, one a decision", Class::Read, 1, ""),
        ("W1e keyed effects of one run, one a decision", Class::Keyed, 1, "≥ 0.43"),
    ];
    let mut limits = Vec::new();
    for (name, class, calls, target) in cases.into_iter().filter(|(name, ..)| crate::is_wanted(name)) {
        let mut values = Vec::new();
        for round in 0..rounds {
            let path = folder.join(format!("one-{}-{calls}-{round}.db", class.as_str()));
            let (steps, commits) = one_run(&path, class, calls, &raw).await;
            let total = (BLOCK * BLOCKS) as f64;
            limits.push(total / commits.as_secs_f64());
            values.push(commits.as_secs_f64() / steps.as_secs_f64());
        }
        report(Row { name, values, unit: "× raw", target });
    }
    let parallel = Limits::default().parallel;
    let many = [(MANY, parallel, 5, "≥ 15"), (MANY_ONE_BY_ONE, 1, 5, ""), (MANY_LONG, parallel, 50, "≥ 15")];
    for (name, parallel, calls, target) in many.into_iter().filter(|(name, ..)| crate::is_wanted(name)) {
        let mut values = Vec::new();
        for round in 0..rounds {
            let before = raw.block(1_000);
            let path = folder.join(format!("many-{parallel}-{calls}-{round}.db"));
            let steps = many_runs(&path, parallel, calls).await;
            let after = raw.block(1_000);
            let raw_rate = 2_000.0 / (before + after).as_secs_f64();
            limits.push(raw_rate);
            values.push(steps / raw_rate);
        }
        report(Row { name, values, unit: "× raw", target });
    }
    if limits.is_empty() {
        return;
    }
    report(Row { name: "raw single-row commits", values: limits, unit: "/s", target: "the limit" });
}

/// A model, its gate, and who hears that it arrived there.
pub fn stepper(calls: u64, turns: u64, turns_a_block: u64) -> (Stepper, Arc<Semaphore>, mpsc::UnboundedReceiver<()>) {
    let gate = Arc::new(Semaphore::new(0));
    let (arrived, arrivals) = mpsc::unbounded_channel();
    let stepper = Stepper { calls, turns, turns_a_block, gate: gate.clone(), arrived, next: AtomicU64::new(0) };
    (stepper, gate, arrivals)
}

/// A runtime over the store at a path, with the measured tool.
pub fn open(path: &Path, model: Stepper) -> Runtime {
    open_with(path, model, functions())
}

/// The same with other tools.
pub fn open_with(path: &Path, model: Stepper, functions: Functions) -> Runtime {
    let store = SqliteStore::open(path, Arc::new(SystemClock)).expect("opened");
    Runtime::builder(Arc::new(store)).functions(functions).model(Arc::new(model)).build()
}

/// Starts a run of the measured agent.
pub async fn start(runtime: &Runtime, class: Class, parallel: u32) {
    let start = Start {
        definition: agent(class, parallel),
        inputs: json!({}),
        id: None,
        labels: Default::default(),
        join_unfinished: false,
    };
    runtime.start(start).await.expect("started");
}

/// One run, its blocks of steps and blocks of raw commits in turn; how long each kind took.
async fn one_run(path: &Path, class: Class, calls: u64, raw: &Raw) -> (Duration, Duration) {
    let turns_a_block = BLOCK / calls;
    // One block more at the start warms the store's write-ahead log.
    let (model, gate, mut arrivals) = stepper(calls, turns_a_block * (BLOCKS + WARM_BLOCKS), turns_a_block);
    let runtime = open(path, model);
    start(&runtime, class, 1).await;
    let shutdown = Shutdown::default();
    let (worked, stop) = (runtime.clone(), shutdown.clone());
    let worker = tokio::spawn(async move { worked.work(Arc::new(Silent), &stop).await });
    let (mut steps, mut commits) = (Duration::ZERO, Duration::ZERO);
    arrivals.recv().await.expect("at the first gate");
    for block in 0..BLOCKS + WARM_BLOCKS {
        let raw_block = tokio::task::block_in_place(|| raw.block(BLOCK as usize));
        let started = Instant::now();
        gate.add_permits(1);
        arrivals.recv().await.expect("at the next gate");
        if block >= WARM_BLOCKS {
            commits += raw_block;
            steps += started.elapsed();
        }
    }
    gate.add_permits(1);
    shutdown.begin();
    worker.await.expect("joined").expect("worked");
    (steps, commits)
}

/// All steps of one run in one go, 50 a decision.
pub async fn all_steps_of_one_run(path: &Path, class: Class, steps: u64) {
    let (model, _gate, _arrivals) = stepper(50, steps / 50, 0);
    let runtime = open(path, model);
    start(&runtime, class, 1).await;
    runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
}

const MANY: &str = "W2 1,000 runs of 5 steps, as agents are by default";

const MANY_ONE_BY_ONE: &str = "W2 1,000 runs of 5 steps, one at a time";

const MANY_LONG: &str = "W2 1,000 runs of 50 steps, as agents are by default";

/// Blocks that are not measured.
const WARM_BLOCKS: u64 = 12;

/// 1,000 runs of so many steps at once, five a decision; steps a second.
pub async fn many_runs(path: &Path, parallel: u32, steps: u64) -> f64 {
    let (model, _gate, _arrivals) = stepper(5, steps / 5, 0);
    let runtime = open(path, model);
    let starts: Vec<_> = (0..1_000)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move { start(&runtime, Class::Read, parallel).await })
        })
        .collect();
    for start in starts {
        start.await.expect("started");
    }
    let started = Instant::now();
    runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
    1_000.0 * steps as f64 / started.elapsed().as_secs_f64()
}
