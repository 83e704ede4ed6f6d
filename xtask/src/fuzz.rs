//! `cargo xtask fuzz [TARGET...] [--seconds N] [--seed S]`: gives what is read from outside what nobody meant.
//!
//! The driver is the `lodestep-fuzz` program: it depends on the product, which xtask must not. It is built with every check
//! of a debug build, and quick. What it found lies in crates/fuzz/regressions.

use anyhow::Result;

use crate::workspace;

/// Hunts; `args` are the driver's.
pub fn run(args: &[String]) -> Result<()> {
    let driver = ["run", "--profile", "fuzz", "--package", "lodestep-fuzz", "--"];
    workspace::run(workspace::cargo().args(driver).args(args))
}
