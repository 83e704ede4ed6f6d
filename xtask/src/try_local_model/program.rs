//! Calls of the built `lodestep`, each with a limit.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::{child, workspace};

/// What the agent file's `base_url` refers to.
const URL_VARIABLE: &str = "LODESTEP_TRY_URL";
/// How long a run may take: its calls of the model have limits of their own, and a wait that the model wants has none.
const RUN: Duration = Duration::from_secs(1_200);
/// From the request to hand over to the end of patience.
const HAND_OVER: Duration = Duration::from_secs(15);
/// How long any other command may take.
const LOOK_UP: Duration = Duration::from_secs(60);
/// `verify` says that a store is not sound by this status, and then still says what it found.
const UNSOUND: i32 = 7;

/// The program with a store of its own and the model's place.
pub struct Program {
    runs: PathBuf,
    base_url: String,
}

/// How a run's process ended, and how the run stands.
pub struct Ended {
    /// The run, if it came to be.
    pub run: Option<String>,
    /// The process's exit code, if no signal ended it.
    pub code: Option<i32>,
    /// True when it was asked to hand over, since it had taken so long.
    pub handed_over: bool,
    /// How long it took.
    pub seconds: f64,
    /// What it said beside its output.
    pub said: String,
    /// The output of `show`; null without a run.
    pub shown: Value,
}

impl Program {
    /// The release build, to keep all it makes in `runs`.
    pub fn new(runs: &Path, base_url: String) -> Program {
        Program { runs: runs.to_owned(), base_url }
    }

    /// Runs an agent file to its run's end, or to the limit.
    ///
    /// # Errors
    ///
    /// If it can't be started, or the store not be read. How the run ended is no error here.
    pub fn run(&self, name: &str, file: &Path, topic: &str) -> Result<Ended> {
        let root = workspace::root();
        let inputs = [
            format!("topic={topic}"),
            format!("folder={}", root.join("docs").display()),
            format!("tools={}", root.join("examples/research/tools").display()),
            format!("out={}", self.runs.join("out").display()),
        ];
        let mut command = self.command();
        command.args(["run", "--new", "--json", "--label", &format!("trial={name}")]).arg(file);
        for input in &inputs {
            command.args(["-i", input]);
        }
        let said = self.runs.join(format!("{name}.err"));
        command.stdout(create(&self.runs.join(format!("{name}.json")))?).stderr(create(&said)?);
        eprintln!("{name}: {}", file.display());
        let began = Instant::now();
        let (status, handed_over) = run_to_its_end(&mut command)?;
        let seconds = began.elapsed().as_secs_f64();
        let run = self.run_of(name)?;
        let shown = run.as_ref().map_or(Ok(Value::Null), |run| self.json(&["show", run, "--json"]))?;
        Ok(Ended {
            run,
            code: status.code(),
            handed_over,
            seconds,
            said: String::from_utf8_lossy(&fs::read(&said)?).into_owned(),
            shown,
        })
    }

    /// A run's events, in order.
    pub fn log(&self, run: &str) -> Result<Vec<Value>> {
        let lines = self.output(&["log", run, "--json", "--limit", "100000"], None)?;
        lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// What `verify` finds wrong in the store.
    pub fn verify(&self) -> Result<Vec<String>> {
        let found: Value = serde_json::from_str(&self.output(&["verify", "--json"], Some(UNSOUND))?)?;
        let parts = found.as_array().context("`verify` gave no list")?;
        let faults = parts.iter().flat_map(|part| part["faults"].as_array().into_iter().flatten());
        let errors = parts.iter().map(|part| &part["error"]).filter(|error| !error.is_null());
        Ok(faults.chain(errors).map(Value::to_string).collect())
    }

    fn run_of(&self, name: &str) -> Result<Option<String>> {
        let rows = self.json(&["ls", "--json", "--label", &format!("trial={name}")])?;
        Ok(rows[0]["run"].as_str().map(str::to_owned))
    }

    fn json(&self, words: &[&str]) -> Result<Value> {
        let output = self.output(words, None)?;
        serde_json::from_str(&output).with_context(|| format!("`lodestep {}` gave no JSON", words.join(" ")))
    }

    fn output(&self, words: &[&str], also: Option<i32>) -> Result<String> {
        let out = self.runs.join("last.out");
        let mut command = self.command();
        command.args(words).stdout(create(&out)?);
        let shown = format!("lodestep {}", words.join(" "));
        let status = finish(&mut start(&mut command)?, LOOK_UP)?.ok_or_else(|| anyhow!("`{shown}` did not end"))?;
        ensure!(status.success() || (also.is_some() && status.code() == also), "`{shown}` failed: {status}");
        fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))
    }

    fn command(&self) -> Command {
        let name = format!("release/lodestep{}", std::env::consts::EXE_SUFFIX);
        let mut command = Command::new(workspace::target().join(name));
        command.current_dir(&self.runs).stdin(Stdio::null());
        command.env("LODESTEP_STORE", self.runs.join("lodestep.db")).env(URL_VARIABLE, &self.base_url);
        command
    }
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot create {}", path.display()))
}

fn start(command: &mut Command) -> Result<Child> {
    command.spawn().context("cannot start lodestep")
}

/// The status, or nothing if the process had to be ended. In both cases it is gone.
fn finish(started: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let status = child::wait(started, limit)?;
    if status.is_none() {
        started.kill().context("cannot end lodestep")?;
        started.wait()?;
    }
    Ok(status)
}

/// The status, and whether the process had to be asked to hand its run over.
fn run_to_its_end(command: &mut Command) -> Result<(ExitStatus, bool)> {
    let mut started = start(command)?;
    if let Some(status) = child::wait(&mut started, RUN)? {
        return Ok((status, false));
    }
    child::terminate(&started)?;
    let status = finish(&mut started, HAND_OVER)?;
    Ok((status.ok_or_else(|| anyhow!("lodestep did not hand over in {} s", HAND_OVER.as_secs()))?, true))
}
