//! `cargo xtask bench [ROWS]`: builds the program and the benchmark in release, and runs the benchmark.
//!
//! The benchmark itself is the `bench` example of the runtime crate: it depends on the product, which xtask must
//! not. What it measures and how it reports is said there. `ROWS` is a part of the names of the rows that are wanted.

use anyhow::Result;

use crate::workspace;

/// What it takes.
pub const HELP: &str = "\
cargo xtask bench [ROWS]

  ROWS                     only rows whose names have this part

  LODESTEP_BENCH_ROUNDS    rounds of each row; 3 without it
  LODESTEP_BENCH_FOLDER    where the stores are made; target/bench without it";

/// Runs the benchmarks; `args` are theirs.
pub fn run(args: &[String]) -> Result<()> {
    workspace::run(workspace::cargo().args(["build", "--release", "--package", "lodestep-cli"]))?;
    let program = workspace::target().join("release/lodestep");
    let bench = ["run", "--release", "--package", "lodestep", "--example", "bench", "--"];
    workspace::run(workspace::cargo().args(bench).args(args).env("LODESTEP_BIN", program))
}
