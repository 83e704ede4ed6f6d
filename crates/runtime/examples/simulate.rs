//! Plays many simulations, one for each seed, on every core: `cargo xtask simulate --seeds 1000`.
//!
//! `--from SEED` begins there; `--seed SEED` plays that one alone and tells its story. Exits with 1 when a story did
//! not come right, and names the seeds: each plays the same again.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lodestep::testing::{Outcome, Plan, simulate};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Failing seeds that are shown in full.
const SHOWN: usize = 10;

/// What all stories came to.
#[derive(Default)]
struct Total {
    processes: u64,
    polls: u64,
    writes: u64,
    applied: u64,
    failed: Vec<Outcome>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(seed) = number("--seed") {
        let outcome = simulate(Plan { seed, tells: true, ..Plan::default() });
        outcome.story.iter().for_each(|line| println!("{line}"));
        outcome.faults.iter().for_each(|fault| println!("fault: {fault}"));
        return if outcome.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let (from, count) = (number("--from").unwrap_or(0), number("--seeds").unwrap_or(1_000));
    let (next, total) = (AtomicU64::new(from), Mutex::new(Total::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    let outcome = play(seed);
                    total.lock().expect("no panic while it was held").add(outcome);
                }
            });
        }
    });
    let mut total = total.into_inner().expect("no panic while it was held");
    total.failed.sort_by_key(|outcome| outcome.seed);
    for outcome in total.failed.iter().take(SHOWN) {
        println!("seed {}:", outcome.seed);
        outcome.faults.iter().for_each(|fault| println!("  {fault}"));
    }
    println!(
        "{count} seeds from {from}: {} failed; {} processes, {} polls, {} writes, {} effects applied, in {:.1} s",
        total.failed.len(),
        total.processes,
        total.polls,
        total.writes,
        total.applied,
        started.elapsed().as_secs_f64()
    );
    if total.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn play(seed: u64) -> Outcome {
    simulate(Plan { seed, ..Plan::default() })
}

impl Total {
    fn add(&mut self, outcome: Outcome) {
        self.processes += outcome.polls.len() as u64;
        self.polls += outcome.polls.iter().sum::<u64>();
        self.writes += outcome.writes.iter().sum::<u64>();
        self.applied += outcome.applied;
        if !outcome.faults.is_empty() {
            self.failed.push(outcome);
        }
    }
}
