//! `cargo xtask try-local-model [--decisions N]`: runs of the built program with a real model, on this machine.
//!
//! The model has 135 million parameters and hardly follows what it is told. That is what it is for: it calls tools with odd
//! arguments, answers in words, goes on until it is cut, and its server refuses, sums and leaves out in ways of its own. Whatever
//! comes of it, no run may crash, get stuck, end without a stated reason or pass a quota, and the store has to be sound
//! afterwards. What was asked for, what came and what became of it is counted from the store.
//!
//! The first start installs the server and the model from PyPI, which takes ten minutes and builds C++. `LODESTEP_TRY_VENV` names
//! a virtual environment that has them already. It is no part of `test` or `ci`.
//!
//! # Layout
//!
//! `environment` is the Python that has the server and the model; `server` is the server while it runs; `trial` is a way to ask
//! the model, with the agent file for it; `program` calls `lodestep` with a limit; `tally` counts a run's events; `judge`
//! says what must not be; `report` is the table and the JSON.

mod environment;
mod judge;
mod program;
mod report;
mod server;
mod tally;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;
use program::Program;
use report::{Report, Row};
use server::Server;
use tally::Tally;
use trial::TRIALS;

/// Decisions that are wanted when nothing is said.
const DECISIONS: u64 = 100;
/// No trial begins after so long.
const LIMIT: Duration = Duration::from_secs(3600);

/// What it takes.
pub const HELP: &str = "\
cargo xtask try-local-model [OPTIONS]

  --decisions N         so many replies in all; 100 without it

  LODESTEP_TRY_VENV     a virtual environment that has the server and the model already";

/// Tries every way to ask, again and again until so many replies were had.
///
/// # Errors
///
/// If something can't be installed, built or started, if a run ended as none may, or if the replies are not had in time.
pub fn run(args: &[String]) -> Result<()> {
    let wanted = wanted(args)?;
    let folder = workspace::target().join("try-local-model");
    let environment = environment::ready(&folder)?;
    workspace::run(workspace::cargo().args(["build", "--release", "--package", "lodestep-cli"]))?;
    let runs = fresh(&folder.join("runs"))?;
    let mut server = Server::start(&environment, &folder)?;
    let program = Program::new(&runs, server.base_url());
    let report = try_all(&mut server, &program, &runs, wanted);
    // Before the report's own faults are told: nothing of ours runs on.
    drop(server);
    let report = report?;
    println!("{report}");
    let written = folder.join("report.json");
    fs::write(&written, report.json()?).with_context(|| format!("cannot write {}", written.display()))?;
    println!("{}", written.display());
    let faults = report.faults();
    ensure!(faults.is_empty(), "what must not be:\n  {}", faults.join("\n  "));
    ensure!(report.replies() >= wanted, "{} replies of {wanted} in {} s", report.replies(), LIMIT.as_secs());
    Ok(())
}

fn wanted(args: &[String]) -> Result<u64> {
    match args {
        [] => Ok(DECISIONS),
        [option, number] if option == "--decisions" => {
            number.parse().with_context(|| format!("`{number}` is no number of decisions"))
        }
        _ => bail!("`try-local-model` takes `--decisions N` and nothing else"),
    }
}

/// The folder, with nothing of an earlier time in it.
fn fresh(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder.to_owned())
}

fn try_all(server: &mut Server, program: &Program, runs: &Path, wanted: u64) -> Result<Report> {
    let began = Instant::now();
    let mut report = Report::default();
    'rounds: for round in 1.. {
        for trial in &TRIALS {
            // The first round is made whole: it has each way to ask once.
            if (round > 1 && report.replies() >= wanted) || began.elapsed() > LIMIT {
                break 'rounds;
            }
            let name = format!("{}-{round}", trial.name);
            let file = runs.join(format!("{name}.toml"));
            fs::write(&file, trial.agent_file()).with_context(|| format!("cannot write {}", file.display()))?;
            let ended = program.run(&name, &file, &trial.topic()?)?;
            let tally = match &ended.run {
                Some(run) => Tally::of(&program.log(run)?)?,
                None => Tally::default(),
            };
            server.still_there()?;
            report.add(Row { name, ended, tally });
        }
    }
    report.seconds = began.elapsed().as_secs();
    report.store_faults = program.verify()?;
    Ok(report)
}
