//! `cargo xtask fuzz [TARGET...] [--seconds N] [--seed S]`: gives what is read from outside what nobody meant.
//!
//! The driver is the `lodestep-fuzz` program: it depends on the product, which xtask must not. It is built with every check
//! of a debug build, and quick. What it found lies in crates/fuzz/regressions.

use anyhow::Result;

use crate::workspace;

/// What it takes.
pub const HELP: &str = "\
cargo xtask fuzz [TARGET...] [OPTIONS]

  TARGET          what is to be hunted; without one all targets, one after the other
  --seconds N     each for so long; 60 without it
  --inputs N      at most so many inputs of each
  --seed S        the seed of the inputs; 1 without it
  --into FOLDER   where inputs that fail are written; crates/fuzz/regressions/TARGET without it";

/// Hunts; `args` are the driver's.
pub fn run(args: &[String]) -> Result<()> {
    let driver = ["run", "--profile", "fuzz", "--package", "lodestep-fuzz", "--"];
    workspace::run(workspace::cargo().args(driver).args(args))
}
