//! What a step costs late in a long run, against what it costs early: each against raw commits of the same moment.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestep::core::effect::Class;
use lodestep::observe::Silent;
use lodestep::worker::Shutdown;

use crate::Row;
use crate::raw::Raw;
use crate::steps;

/// Actions before the steps that are measured.
const PLACES: [u64; 3] = [0, 1_000, 100_000];

/// Calls of a decision.
const CALLS: u64 = 50;

/// Steps, or raw commits, between two changes of turns.
const BLOCK: u64 = 250;

/// Blocks at each place.
const BLOCKS: u64 = 8;

const NAMES: [&str; 2] = ["W5 a step at 1,000 over one at 10", "W5 a step at 100,000 over one at 10"];

/// Measures and reports each row.
pub async fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    if !NAMES.iter().any(|name| crate::is_wanted(name)) {
        return;
    }
    let raw = Raw::warm(&folder.join("raw-flat.db"));
    let mut values = [const { Vec::new() }; 2];
    for round in 0..rounds {
        let [early, late, last] = costs(&folder.join(format!("flat-{round}.db")), &raw).await;
        values[0].push(late / early);
        values[1].push(last / early);
    }
    for (name, values) in NAMES.into_iter().zip(values) {
        report(Row { name, values, unit: "×", target: "≤ 1.2" });
    }
}

/// What a step of one run costs in raw commits at each of the places.
async fn costs(path: &Path, raw: &Raw) -> [f64; 3] {
    let (model, gate, mut arrivals) = steps::stepper(CALLS, u64::MAX, BLOCK / CALLS);
    let runtime = steps::open(path, model);
    steps::start(&runtime, Class::Read, 1).await;
    let shutdown = Shutdown::default();
    let (worked, stop) = (runtime.clone(), shutdown.clone());
    let worker = tokio::spawn(async move { worked.work(Arc::new(Silent), &stop).await });
    arrivals.recv().await.expect("at the first gate");
    let mut block = 0;
    let mut costs = [0.0; 3];
    for (cost, place) in costs.iter_mut().zip(PLACES) {
        // The first steps of all find a cold log: one block at each place is not measured.
        let skipped = (place / BLOCK).saturating_sub(block).max(1);
        for _ in 0..skipped {
            gate.add_permits(1);
            arrivals.recv().await.expect("at the next gate");
        }
        block += skipped + BLOCKS;
        let (mut steps, mut commits) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..BLOCKS {
            commits += tokio::task::block_in_place(|| raw.block(BLOCK as usize));
            let started = Instant::now();
            gate.add_permits(1);
            arrivals.recv().await.expect("at the next gate");
            steps += started.elapsed();
        }
        *cost = steps.as_secs_f64() / commits.as_secs_f64();
    }
    shutdown.begin();
    worker.await.expect("joined").expect("worked");
    costs
}
