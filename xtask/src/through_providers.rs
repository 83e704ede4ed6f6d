//! `cargo xtask through-providers`: the tests of the runtime and of the program once more, in which each question to a model
//! that is known by name goes through a provider and the strict model server, in both dialects, streamed and whole.
//!
//! No request may be refused, and each reply has to come back as it was said. What was asked is counted.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// So many of what went wrong are shown.
const SHOWN: usize = 20;

/// Runs the tests and counts.
///
/// # Errors
///
/// If a test fails, a request was refused, a reply differs, or nothing was asked.
pub fn run() -> Result<()> {
    let told = workspace::target().join("through-providers.txt");
    if told.exists() {
        std::fs::remove_file(&told)?;
    }
    let tests = [
        "test",
        "--package",
        "lodestep",
        "--package",
        "lodestep-cli",
        "--features",
        "lodestep/testing",
        "--no-fail-fast",
    ];
    let tested = workspace::run(workspace::cargo().args(tests).env("LODESTEP_MODELS_THROUGH", &told));
    let lines = std::fs::read_to_string(&told).context("no model was asked")?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let way = rest.split(':').next().unwrap_or_default();
        *counts.entry(format!("{way}: {what}")).or_default() += 1;
        if what != "fine" {
            wrong.push(line);
        }
    }
    for (what, count) in &counts {
        println!("{count:>8}  {what}");
    }
    println!("{:>8}  questions to models", lines.lines().count());
    for line in wrong.iter().take(SHOWN) {
        println!("{}", line.chars().take(600).collect::<String>());
    }
    if !wrong.is_empty() {
        bail!("{} questions were refused, differ, or were asked more than once", wrong.len());
    }
    tested
}
