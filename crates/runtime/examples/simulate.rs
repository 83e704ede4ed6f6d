//! Plays many simulations, one for each seed, on every core: `cargo xtask simulate --seeds 1000`.
//!
//! `--from SEED` begins there; `--seed SEED` plays that one alone and tells its story. `--store memory`, `sqlite` or
//! `mixed` says what the stores are: mixed, as each seed draws it, is what is played without a word. `--exhaustive` kills small
//! agents before every poll, and after every pair of writes. Exits with 1 when a story did
//! not come right, and names the seeds: each plays the same again.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lodestep::testing::{Exhaustive, Outcome, Plan, Script, StoreKind, simulate};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Failing seeds that are shown in full.
const SHOWN: usize = 10;

/// What all stories came to.
#[derive(Default)]
struct Total {
    in_files: u64,
    processes: u64,
    polls: u64,
    writes: u64,
    applied: u64,
    failed: Vec<Outcome>,
}

/// What is to be played.
struct Asked {
    seed: Option<u64>,
    from: u64,
    count: u64,
    store: Option<StoreKind>,
    exhaustive: bool,
}

impl Asked {
    /// Reads the command line; says what of it is not understood.
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self { seed: None, from: 0, count: 1_000, store: None, exhaustive: false };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--exhaustive" => asked.exhaustive = true,
                "--seed" => asked.seed = Some(number(&value()?)?),
                "--from" => asked.from = number(&value()?)?,
                "--seeds" => asked.count = number(&value()?)?,
                "--store" => asked.store = store(&value()?)?,
                other => return Err(format!("`{other}` is not understood; `--help` says what is")),
            }
        }
        Ok(asked)
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number from 0 to {}", u64::MAX))
}

fn store(word: &str) -> Result<Option<StoreKind>, String> {
    match word {
        "memory" => Ok(Some(StoreKind::Memory)),
        "sqlite" => Ok(Some(StoreKind::Sqlite)),
        "mixed" => Ok(None),
        other => Err(format!("`{other}` is no store; write --store with memory, sqlite or mixed")),
    }
}

fn main() -> ExitCode {
    let Asked { seed, from, count, store, exhaustive } = match Asked::of(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = seed {
        let outcome = simulate(Plan { seed, store, tells: true, ..Plan::default() });
        outcome.story.iter().for_each(|line| println!("{line}"));
        outcome.faults.iter().for_each(|fault| println!("fault: {fault}"));
        return if outcome.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if exhaustive {
        return exhaust(store);
    }
    let total = Mutex::new(Total::default());
    let started = Instant::now();
    on_every_core(count, |at| {
        let outcome = simulate(Plan { seed: from + at, store, ..Plan::default() });
        total.lock().expect("no panic while it was held").add(outcome);
    });
    let mut total = total.into_inner().expect("no panic while it was held");
    total.failed.sort_by_key(|outcome| outcome.seed);
    for outcome in total.failed.iter().take(SHOWN) {
        println!("seed {}:", outcome.seed);
        outcome.faults.iter().for_each(|fault| println!("  {fault}"));
    }
    println!(
        "{count} seeds from {from}, {} of them with SQLite: {} failed; {} processes, {} polls, {} writes, {} effects applied, in {:.1} s",
        total.in_files,
        total.failed.len(),
        total.processes,
        total.polls,
        total.writes,
        total.applied,
        started.elapsed().as_secs_f64()
    );
    if total.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does it for each number below `count`, in order of their beginnings.
fn on_every_core(count: u64, act: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count) {
                    act(at);
                }
            });
        }
    });
}

/// Kills each small agent everywhere, over this store or over both.
fn exhaust(store: Option<StoreKind>) -> ExitCode {
    let mut is_sound = true;
    for store in store.map_or_else(|| vec![StoreKind::Memory, StoreKind::Sqlite], |store| vec![store]) {
        for (name, script) in Script::small() {
            let started = Instant::now();
            let (pairs, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
            let agent = match Exhaustive::of(script, store) {
                Ok(agent) => agent,
                Err(error) => {
                    println!("{store:?}: {name}: {error}");
                    return ExitCode::FAILURE;
                }
            };
            let (polls, writes) = (agent.polls(), agent.writes());
            on_every_core(polls + writes, |at| {
                let found = if at < polls {
                    agent.killed_before(at + 1)
                } else {
                    let (count, found) = agent.killed_after(at - polls + 1);
                    pairs.fetch_add(count, Ordering::Relaxed);
                    found
                };
                wrong.lock().expect("no panic while it was held").extend(found);
            });
            let wrong = wrong.into_inner().expect("no panic while it was held");
            wrong.iter().take(SHOWN).for_each(|fault| println!("  {fault}"));
            is_sound &= wrong.is_empty();
            println!(
                "{store:?}: {name}: killed before each of {polls} polls, after each of {writes} writes, and after each of \
                 {} pairs of them: {} faults, in {:.1} s",
                pairs.into_inner(),
                wrong.len(),
                started.elapsed().as_secs_f64()
            );
        }
    }
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Total {
    fn add(&mut self, outcome: Outcome) {
        self.in_files += u64::from(outcome.store == StoreKind::Sqlite);
        self.processes += outcome.polls.len() as u64;
        self.polls += outcome.polls.iter().sum::<u64>();
        self.writes += outcome.writes.iter().sum::<u64>();
        self.applied += outcome.applied;
        if !outcome.faults.is_empty() {
            self.failed.push(outcome);
        }
    }
}
