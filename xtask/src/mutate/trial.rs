//! One test, run in the scratch tree, and what its outcome means for a mutation.

use std::fmt;
use std::fs::File;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::mutation::NamedTest;
use super::scratch::Scratch;
use crate::{child, workspace};

/// A broken product may wait for ever; a named test that is sound takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// What a test said.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Passed,
    Failed,
    DoesNotCompile,
    /// No test has the name.
    RanNothing,
    /// Ended from outside after [`LIMIT`].
    Hung,
}

/// What that means with the patch applied.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// The test noticed.
    Caught,
    /// The test passed all the same.
    Survived,
    /// The mutation proves nothing, for this reason.
    Error(String),
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Verdict {
        match outcome {
            Outcome::Failed => Verdict::Caught,
            Outcome::Passed => Verdict::Survived,
            other => Verdict::Error(other.to_string()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => write!(out, "the test passes"),
            Outcome::Failed => write!(out, "the test fails"),
            Outcome::DoesNotCompile => write!(out, "it does not compile"),
            Outcome::RanNothing => write!(out, "no test has the name that it gives"),
            Outcome::Hung => write!(out, "the test did not end in {} s: it must fail by itself", LIMIT.as_secs()),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Caught => write!(out, "caught"),
            Verdict::Survived => write!(out, "SURVIVED: the test passes with it"),
            Verdict::Error(reason) => write!(out, "ERROR: {reason}"),
        }
    }
}

/// Builds and runs a test in the scratch tree. Its output goes to the scratch log.
///
/// # Errors
///
/// If cargo cannot be started or the log not be written: nothing was learnt.
pub fn run(scratch: &Scratch, test: &NamedTest) -> Result<Outcome> {
    // Of an earlier trial: a test that starts it unannounced must fail on the sound tree, not test that one.
    if scratch.program().exists() {
        std::fs::remove_file(scratch.program()).context("cannot remove the last trial's program")?;
    }
    let words = || test.command.iter().map(String::as_str);
    let build_test = words().take(1).chain(["--no-run"]).chain(words().skip(1)).collect();
    let build_program = ["build", "--package", "lodestep-cli", "--bin", "lodestep"].to_vec();
    let program = test.starts_program.then_some(build_program);
    for build in std::iter::once(build_test).chain(program) {
        // Cargo's builds end by themselves, and a first one takes as long as it takes.
        if !start(scratch, &build)?.wait()?.success() {
            return Ok(Outcome::DoesNotCompile);
        }
    }
    let mut started = start(scratch, &words().collect::<Vec<_>>())?;
    let Some(status) = child::wait(&mut started, LIMIT)? else {
        child::kill_group(&mut started)?;
        return Ok(Outcome::Hung);
    };
    let output = std::fs::read(scratch.log()).context("cannot read the trial's log")?;
    Ok(judge(status.success(), &String::from_utf8_lossy(&output)))
}

fn start(scratch: &Scratch, arguments: &[&str]) -> Result<Child> {
    let log = File::create(scratch.log()).context("cannot create the trial's log")?;
    let mut cargo = workspace::cargo();
    cargo
        .args(arguments)
        .current_dir(scratch.tree())
        .env("CARGO_TARGET_DIR", scratch.build())
        .env("LODESTEP_BIN", scratch.program());
    cargo.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A group of its own: ending cargo alone would leave the test program behind.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut cargo, 0);
    cargo.spawn().context("cannot start cargo")
}

/// Counts the runners' "running 1 test" lines: a test program that aborts prints no result, but did run.
fn judge(has_passed: bool, output: &str) -> Outcome {
    let counts =
        output.lines().filter_map(|line| line.strip_prefix("running ")?.split_once(" test")?.0.parse::<u32>().ok());
    match (has_passed, counts.sum::<u32>()) {
        (_, 0) => Outcome::RanNothing,
        (true, _) => Outcome::Passed,
        (false, _) => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_judged_by_status_and_count() {
        let nothing = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out\n";
        let one = format!("{nothing}\nrunning 1 test\ntest a ... ");
        assert_eq!(judge(true, nothing), Outcome::RanNothing);
        assert_eq!(judge(false, ""), Outcome::RanNothing);
        assert_eq!(judge(true, &one), Outcome::Passed);
        assert_eq!(judge(false, &one), Outcome::Failed);
    }

    #[test]
    fn only_a_test_that_ran_and_failed_has_caught_a_mutation() {
        assert_eq!(Verdict::from(Outcome::Failed), Verdict::Caught);
        assert_eq!(Verdict::from(Outcome::Passed), Verdict::Survived);
        for outcome in [Outcome::DoesNotCompile, Outcome::RanNothing, Outcome::Hung] {
            assert!(matches!(Verdict::from(outcome), Verdict::Error(_)));
        }
    }
}
