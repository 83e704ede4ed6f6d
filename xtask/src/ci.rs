//! `cargo xtask ci`: everything that a change must pass, in the order of what is quickest to know.
//!
//! Each step is titled and timed; the first that fails ends the run. Cargo may not change the lock file here.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::workspace::{self, cargo};
use crate::{licences, test, tidy};

type Step = (&'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("fmt", fmt),
    ("clippy", clippy),
    ("doc", doc),
    ("tidy", tidy::run),
    ("licences", licences::run),
    ("test", || test::run(&[])),
];

/// Runs every step.
///
/// # Errors
///
/// That of the first step that fails, with its name.
pub fn run() -> Result<()> {
    let began = Instant::now();
    for (name, step) in STEPS {
        let step_began = Instant::now();
        println!("== {name}");
        step().with_context(|| format!("step `{name}` failed after {:.1} s", step_began.elapsed().as_secs_f64()))?;
        println!("== {name}: ok in {:.1} s", step_began.elapsed().as_secs_f64());
    }
    println!("xtask ci: passed in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn fmt() -> Result<()> {
    workspace::run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    workspace::run(cargo().args(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Programs and libraries apart: the program `lodestep` and the library `lodestep` would write their pages to
/// one folder. Libraries last, so that theirs are the pages that stay.
fn doc() -> Result<()> {
    for kind in ["--bins", "--lib"] {
        let doc = ["doc", "--locked", "--workspace", "--no-deps", kind];
        workspace::run(cargo().args(doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}
