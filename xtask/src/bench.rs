//! `cargo xtask bench [ARGS]`: runs the benchmark program in release.
//!
//! The program itself is the `bench` example of the runtime crate: it depends on the product, which xtask must
//! not. What it measures and how it reports is said there.

use anyhow::Result;

use crate::workspace;

/// Runs the benchmarks; `args` are theirs.
pub fn run(args: &[String]) -> Result<()> {
    let program = ["run", "--release", "--package", "lodestep", "--example", "bench", "--"];
    workspace::run(workspace::cargo().args(program).args(args))
}
