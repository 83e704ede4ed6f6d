//! Syncs of the disk, counted by `strace` around this program started once more: one a transaction, whoever made it.
//!
//! A count and no time: tracing slows the program down and changes no number of syncs. Of one run each step is a
//! transaction; of many runs those that queue up while the disk syncs share one.

use std::path::Path;
use std::process::{Command, Stdio};

use lodestep::core::definition::Limits;
use lodestep::core::effect::Class;

use crate::Row;
use crate::steps;

/// Tells this program that it is the counted one: `one` or `many`, and the store's path.
const COUNTED: &str = "LODESTEP_BENCH_COUNTED";

/// Steps of one run; opening and closing the store are then less than a hundredth of the syncs.
const ONE_STEPS: u64 = 6_000;

/// Steps of many runs.
const MANY_STEPS: u64 = 5_000;

/// Does the counted steps when this program was started for that.
pub async fn counted_main() -> bool {
    let Ok(what) = std::env::var(COUNTED) else { return false };
    let (kind, path) = what.split_once(' ').expect("a kind and a path");
    match kind {
        "one" => steps::all_steps_of_one_run(Path::new(path), Class::Read, ONE_STEPS).await,
        _ => drop(steps::many_runs(Path::new(path), Limits::default().parallel, 5).await),
    }
    true
}

/// Counts and reports each row; says so when `strace` is not there.
pub fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    let cases = [
        ("syncs a step, one run", "one", ONE_STEPS, "1.02: one a transaction"),
        ("syncs a step, 1,000 runs of 5", "many", MANY_STEPS, "≤ 0.01"),
    ];
    for (name, kind, steps, target) in cases.into_iter().filter(|(name, ..)| crate::is_wanted(name)) {
        let values: Option<Vec<f64>> =
            (0..rounds).map(|round| Some(syncs(folder, kind, round)? as f64 / steps as f64)).collect();
        match values {
            Some(values) => report(Row { name, values, unit: "", target }),
            None => println!("{name}: not counted, strace is not installed or may not trace"),
        }
    }
}

/// The syncs of one counted program, the opening and the closing of its store included.
fn syncs(folder: &Path, kind: &str, round: usize) -> Option<usize> {
    let trace = folder.join(format!("syncs-{kind}-{round}.trace"));
    let store = folder.join(format!("syncs-{kind}-{round}.db"));
    let ended = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().ok()?)
        .env(COUNTED, format!("{kind} {}", store.display()))
        .stdout(Stdio::null())
        .status()
        .ok()?;
    let text = ended.success().then(|| std::fs::read_to_string(&trace).ok())??;
    // A call that another thread's line interrupts has a second line, which says that it was resumed.
    Some(text.lines().filter(|line| line.contains("sync(")).count())
}
