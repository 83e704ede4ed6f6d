//! `cargo xtask simulate --seeds N`: builds the simulator in release, and plays a story for each seed.
//!
//! The simulator is the product's own, `lodestep::testing`; how it reports is said in its `simulate` example.

use anyhow::Result;

use crate::workspace;

/// Plays simulations; `args` are theirs.
pub fn run(args: &[String]) -> Result<()> {
    let simulate =
        ["run", "--release", "--package", "lodestep", "--features", "testing", "--example", "simulate", "--"];
    workspace::run(workspace::cargo().args(simulate).args(args))
}
