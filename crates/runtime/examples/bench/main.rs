//! The benchmark: what a step costs against the raw limit of the same disk, in one run, interleaved.
//!
//! `cargo xtask bench` runs it. Each figure is the median of several rounds, with the range. The raw limit is a single-row
//! commit of 200 bytes by SQLite with the same settings (WAL, synchronous=FULL) in the same folder.

mod agents;
mod flat;
mod long;
mod million;
mod programs;
mod raw;
mod resume;
mod size;
mod steps;
mod syncs;

use std::path::PathBuf;

use serde_json::json;

/// One measured row.
pub struct Row {
    /// What was measured.
    pub name: &'static str,
    /// Its values, one a round.
    pub values: Vec<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// What it should reach, in words.
    pub target: &'static str,
}

impl Row {
    fn sorted(&self) -> Vec<f64> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn print(&self) {
        let sorted = self.sorted();
        let (low, high) = (sorted.first().copied().unwrap_or(f64::NAN), sorted.last().copied().unwrap_or(f64::NAN));
        let range = format!("{low:.2} to {high:.2}");
        println!("{:<46} {:>10.2} {:<6} {range:<22} {}", self.name, self.median(), self.unit, self.target);
    }
}

/// Is this row wanted? The first argument is a part of the names of those that are; all without one.
pub fn is_wanted(name: &str) -> bool {
    std::env::args().nth(1).is_none_or(|part| name.contains(&part))
}

/// A step makes some hundreds of small allocations on two threads; this allocator takes half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    if let Some(code) = lodestep::process::hidden_main() {
        std::process::exit(i32::from(code == std::process::ExitCode::FAILURE));
    }
    let rounds = std::env::var("LODESTEP_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let folder = std::env::var_os("LODESTEP_BENCH_FOLDER").map_or_else(|| PathBuf::from("target/bench"), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().expect("threads");
    if runtime.block_on(async { syncs::counted_main().await || resume::child_main().await }) {
        return;
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder to work in");
    let mut rows = Vec::new();
    println!("{:<46} {:>10} {:<6} {:<22} target", "what", "median", "", "range");
    let mut report = |row: Row| {
        row.print();
        rows.push(row);
    };
    runtime.block_on(steps::measure(&folder, rounds, &mut report));
    runtime.block_on(resume::measure(&folder, rounds, &mut report));
    runtime.block_on(size::measure(&folder, rounds, &mut report));
    runtime.block_on(flat::measure(&folder, rounds, &mut report));
    runtime.block_on(long::measure(&folder, rounds, &mut report));
    runtime.block_on(million::measure(&folder, rounds, &mut report));
    syncs::measure(&folder, rounds, &mut report);
    programs::measure(&folder, rounds, &mut report);
    let json: Vec<_> = rows
        .iter()
        .map(|row| json!({"what": row.name, "median": row.median(), "values": row.values, "unit": row.unit, "target": row.target}))
        .collect();
    let path = folder.join("bench.json");
    std::fs::write(&path, format!("{}\n", serde_json::Value::Array(json))).expect("written");
    println!("as JSON: {}", path.display());
}
