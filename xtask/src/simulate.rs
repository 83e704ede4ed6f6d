//! `cargo xtask simulate --seeds N`: builds the simulator in release, and plays a story for each seed.
//!
//! The simulator is the product's own, `lodestep::testing`; how it reports is said in its `simulate` example.

use anyhow::Result;

use crate::workspace;

/// What it takes.
pub const HELP: &str = "\
cargo xtask simulate [OPTIONS]

  --seeds N       so many simulations, one for each seed; 1,000 without it
  --from SEED     the first of these seeds; 0 without it
  --seed SEED     this one alone, with its story
  --store STORE   memory, sqlite or mixed; mixed, without it, is as each seed draws it
  --exhaustive    no seeds: small agents are killed before every poll, and after every pair of writes";

/// Plays simulations; `args` are theirs.
pub fn run(args: &[String]) -> Result<()> {
    let simulate =
        ["run", "--release", "--package", "lodestep", "--features", "testing", "--example", "simulate", "--"];
    workspace::run(workspace::cargo().args(simulate).args(args))
}
