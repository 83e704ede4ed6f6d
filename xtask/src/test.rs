//! `cargo xtask test [ARGS]`: every test of the workspace, as a user of the sources runs them.
//!
//! The `lodestep` program is built first: black-box tests in other packages start it, and cargo builds a
//! package's program only for that package's own tests. They find it by the variable `LODESTEP_BIN`.
//!
//! The runners' output is passed on as it is. The exit status is the truth; the last line only adds the time.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::workspace::{self, cargo};

/// What it takes.
pub const HELP: &str = "\
cargo xtask test [ARGS]

  ARGS     go to `cargo test --workspace`, those after `--` to the tests' runner: `-- NAME` runs one";

/// Builds the program and runs all tests. `args` go to `cargo test`, those after `--` to the tests' runner.
///
/// # Errors
///
/// If something does not build or a test fails.
pub fn run(args: &[String]) -> Result<()> {
    let began = Instant::now();
    let seconds = || format!("{:.1} s", began.elapsed().as_secs_f64());
    build_and_test(args).with_context(|| format!("test: FAILED in {}", seconds()))?;
    println!("xtask test: passed in {}", seconds());
    Ok(())
}

fn build_and_test(args: &[String]) -> Result<()> {
    workspace::run(cargo().args(["build", "--package", "lodestep-cli", "--bin", "lodestep"]))?;
    let program = workspace::target().join("debug").join(format!("lodestep{}", std::env::consts::EXE_SUFFIX));
    // One failing test program must not hide what the others have to say.
    let test = ["test", "--workspace", "--no-fail-fast"];
    workspace::run(cargo().args(test).args(args).env("LODESTEP_BIN", program))
}
