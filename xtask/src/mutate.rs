//! `cargo xtask mutate [G4|NAME|--all]`: breaks the product on purpose and sees that the named test notices.
//!
//! A test that cannot fail proves nothing. Each `mutations/*.patch` breaks one guarantee and names the test that
//! must notice. The working tree is copied into the target folder; there the test must pass as the tree is, and
//! must fail with the patch applied. A mutation that does not compile, whose test does not run or that no longer
//! applies proves nothing either: it is an error, told apart from a failing test by building first and by
//! counting what ran.
//!
//! # Layout
//!
//! `mutation` reads a patch's header; `scratch` is the copy of the tree; `trial` runs a test there and judges.

mod mutation;
mod scratch;
mod trial;

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use crate::workspace;

pub use mutation::{FOLDER, Mutation};
use scratch::Scratch;
use trial::Verdict;

/// What it takes.
pub const HELP: &str = "\
cargo xtask mutate [G4|NAME|--all]

  G4       the mutations of this guarantee
  NAME     the one of this name: mutations/NAME.patch without its ending
  --all    all of them, as without a word";

/// Tries the mutations that `which` selects: a guarantee's id, a patch's name or `--all`.
///
/// # Errors
///
/// If one survives, cannot be tried, or none is selected.
pub fn run(which: &str) -> Result<()> {
    let mutations = select(which)?;
    let scratch = Scratch::create()?;
    // All tests on the sound tree first: it is then built once, not once a mutation.
    let mut sound = BTreeMap::new();
    for mutation in &mutations {
        if !sound.contains_key(&mutation.test) {
            eprintln!("sound tree: {}", mutation.test.command.join(" "));
            sound.insert(mutation.test.clone(), trial::run(&scratch, &mutation.test)?);
        }
    }
    let mut rows = Vec::new();
    for mutation in &mutations {
        eprintln!("{}: {}", mutation.name, mutation.sentence);
        let verdict = match sound.get(&mutation.test) {
            Some(trial::Outcome::Passed) => mutated(&scratch, mutation)?,
            Some(other) => Verdict::Error(format!("without the patch, {other}")),
            None => Verdict::Error("its test was not tried without the patch".to_owned()),
        };
        rows.push((mutation, verdict));
    }
    print(&rows);
    let missed = rows.iter().filter(|(_, verdict)| *verdict != Verdict::Caught).count();
    ensure!(missed == 0, "{missed} of {} mutations were not caught", rows.len());
    Ok(())
}

fn mutated(scratch: &Scratch, mutation: &Mutation) -> Result<Verdict> {
    let verdict = match scratch.apply(&mutation.path) {
        Ok(()) => trial::run(scratch, &mutation.test)?.into(),
        Err(reason) => Verdict::Error(format!("it no longer applies: {reason:#}")),
    };
    scratch.restore()?;
    Ok(verdict)
}

fn select(which: &str) -> Result<Vec<Mutation>> {
    let mut all = Vec::new();
    for path in workspace::files()?.iter().filter(|path| path.starts_with(FOLDER) && path.ends_with(".patch")) {
        all.push(Mutation::parse(path, &std::fs::read_to_string(workspace::root().join(path))?)?);
    }
    if all.is_empty() {
        bail!("there are no mutations yet; {FOLDER}README.md says how to write one");
    }
    let known: Vec<_> = all.iter().map(|mutation| mutation.name.clone()).collect();
    all.retain(|mutation| which == "--all" || mutation.breaks == which || mutation.name == which);
    if all.is_empty() {
        bail!("no mutation is called `{which}` or breaks it; there are: {}", known.join(", "));
    }
    Ok(all)
}

fn print(rows: &[(&Mutation, Verdict)]) {
    let width = rows.iter().map(|(mutation, _)| mutation.name.len()).max().unwrap_or_default();
    for (mutation, verdict) in rows {
        println!("{:6} {:width$}  {verdict}", mutation.breaks, mutation.name);
    }
}
