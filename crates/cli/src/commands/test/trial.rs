//! One trial: a store and a world of its own, the same command given again after every crash until the run is over.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestep::core::checkpoint::ActionState;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::inbox::{Became, Word};
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Result};
use lodestep::inspect::{self, Opened};
use lodestep::store::{Filter, SqliteStore, SystemClock};
use lodestep::{Runtime, fault, process};

use crate::commands::test::ledger::{self, Applied};
use crate::commands::test::{Chance, Setting};
use crate::people::open_requests;

/// A run that is not over after so many commands is stuck.
const COMMANDS: u32 = 40;

/// One command that takes longer than this is stuck.
const LONGEST: Duration = Duration::from_secs(120);

/// A trial to be run.
pub struct Trial<'a> {
    setting: &'a Setting,
    folder: PathBuf,
    crash_at: Option<Passed>,
    kills: u32,
    kill_within: Vec<Duration>,
    chance: Chance,
}

/// A fault point that was passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// By which of the trial's commands, from 0: between two of them a person was asked.
    command: u32,
    /// `TOOL:POINT`.
    name: String,
    /// The how manieth of that name in the command, from 1.
    nth: u32,
}

impl Passed {
    /// Is it a transition as such? How many a run takes may differ by its timing.
    pub fn is_transition(&self) -> bool {
        self.name == "run:checkpoint"
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nth = if self.nth > 1 { format!(":{}", self.nth) } else { String::new() };
        let command = if self.command > 0 { format!(", command {}", self.command + 1) } else { String::new() };
        write!(f, "{}{nth}{command}", self.name)
    }
}

/// What a trial came to.
pub struct Ended {
    /// Did the run complete?
    pub completed: bool,
    /// Why not.
    pub why: String,
    /// Aborts at a fault point.
    pub crashes: u32,
    /// Kills at a random moment.
    pub kills: u32,
    /// How often a doubt was settled from the ledger.
    pub asked: u32,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// How long each of its commands took.
    pub spans: Vec<Duration>,
    /// The fault points that were passed.
    pub points: Vec<Passed>,
    /// The newest version of each artifact, by digest.
    pub artifacts: BTreeMap<String, String>,
    applied: Vec<Applied>,
}

impl Ended {
    /// How often each tool's effects were applied.
    pub fn by_tool(&self) -> BTreeMap<String, usize> {
        self.applied.iter().fold(BTreeMap::new(), |mut counts, applied| {
            *counts.entry(applied.tool.clone()).or_default() += 1;
            counts
        })
    }
}

impl<'a> Trial<'a> {
    /// A trial in a folder of its own, with a crash at a point if one is given.
    pub fn new(setting: &'a Setting, name: &str, crash_at: Option<Passed>) -> Self {
        let folder = setting.folder.join(name);
        Self { setting, folder, crash_at, kills: 0, kill_within: Vec::new(), chance: Chance::new(0) }
    }

    /// With at most so many kills, each at a random moment within the time that the command takes otherwise. A command can
    /// end before its moment comes: what it had left to do took less.
    pub fn with_kills(self, kills: u32, spans: &[Duration], seed: u64) -> Self {
        Self { kills, kill_within: spans.to_vec(), chance: Chance::new(seed), ..self }
    }

    /// Runs it to its end.
    pub async fn run(mut self) -> Result<Ended> {
        let world = self.folder.join("world");
        std::fs::create_dir_all(&world).map_err(|error| folder_fault(&self.folder, &error))?;
        let started = Instant::now();
        let (mut crashes, mut killed, mut asked, mut why) = (0, 0, 0, String::new());
        let (mut completed, mut spans, mut answered) = (false, Vec::new(), 0);
        for command in 0..COMMANDS {
            let moment = (killed < self.kills).then(|| self.moment(answered));
            let begun = Instant::now();
            let status = self.command(command, moment).await?;
            spans.push(begun.elapsed());
            match status.map(|status| (status.code(), status)) {
                // Killed at a random moment. Who has seen the end does not type the command again.
                None => {
                    killed += 1;
                    if self.has_shown_the_end() {
                        completed = true;
                        break;
                    }
                }
                Some((None, _)) => crashes += 1,
                Some((Some(0), _)) => {
                    completed = true;
                    break;
                }
                Some((Some(3 | 5), _)) => {
                    answered += 1;
                    asked += self.answer().await?;
                }
                Some((Some(code), _)) => {
                    why = format!("the command ended with {code}; {}", self.last_line());
                    break;
                }
            }
            why = format!("not over after {} commands; {}", command + 1, self.last_line());
        }
        Ok(Ended {
            completed,
            why,
            crashes,
            kills: killed,
            asked,
            millis: started.elapsed().as_millis() as u64,
            spans,
            points: self.passed(),
            artifacts: self.artifacts().await?,
            applied: ledger::read(self.setting, &self.folder.join("world"), &self.folder.join("held")).await?,
        })
    }

    fn points_file(&self, command: u32) -> PathBuf {
        self.folder.join(format!("points-{command}"))
    }

    /// The fault points of all commands, in order.
    fn passed(&self) -> Vec<Passed> {
        let mut all = Vec::new();
        for command in 0..COMMANDS {
            let Ok(lines) = std::fs::read_to_string(self.points_file(command)) else { break };
            let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
            for (_, name) in lines.lines().filter_map(|line| line.split_once(' ')) {
                let nth = counts.entry(name).or_default();
                *nth += 1;
                all.push(Passed { command, name: name.to_owned(), nth: *nth });
            }
        }
        all
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    /// Gives the command once, and kills it after that time if one is given. `None` when it was killed.
    async fn command(&self, nth: u32, kill_after: Option<Duration>) -> Result<Option<ExitStatus>> {
        let program = std::env::current_exe().map_err(|error| folder_fault(&self.folder, &error))?;
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log"));
        let log = log.map_err(|error| folder_fault(&self.folder, &error))?;
        let mut command = tokio::process::Command::new(program);
        command.arg("--store").arg(self.store()).arg("run").arg(&self.setting.file);
        let world = self.folder.join("world");
        for (name, value) in &self.setting.inputs {
            command.arg("-i").arg(format!("{name}={}", value.replace("${test:folder}", &world.display().to_string())));
        }
        command.env("LODESTEP_TEST_FOLDER", &world).env(process::LEDGER, self.folder.join("held"));
        command.env_remove(fault::CRASH_AT).env_remove(fault::TRACE).env_remove("LODESTEP_STORE");
        command.env(fault::TRACE, self.points_file(nth));
        if let Some(point) = self.crash_at.as_ref().filter(|point| point.command == nth) {
            command.env(fault::CRASH_AT, format!("{}:{}", point.name, point.nth));
        }
        let shown =
            std::fs::File::create(self.folder.join("shown")).map_err(|error| folder_fault(&self.folder, &error))?;
        command.stdin(Stdio::null()).stdout(shown).stderr(log).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| folder_fault(&self.folder, &error))?;
        match tokio::time::timeout(kill_after.unwrap_or(LONGEST), child.wait()).await {
            Ok(status) => status.map(Some).map_err(|error| folder_fault(&self.folder, &error)),
            Err(_) if kill_after.is_some() => {
                child.kill().await.map_err(|error| folder_fault(&self.folder, &error))?;
                Ok(None)
            }
            Err(_) => {
                let what = format!("a command did not end within {} s: {}", LONGEST.as_secs(), self.last_line());
                Err(Error::new("test.stuck", what, format!("look at {}", self.folder.display())))
            }
        }
    }

    fn has_shown_the_end(&self) -> bool {
        let shown = std::fs::read_to_string(self.folder.join("shown")).unwrap_or_default();
        shown.lines().any(|line| line.starts_with("run ") && line.contains(" is completed"))
    }

    /// A moment of the command after so many answers.
    fn moment(&mut self, answered: usize) -> Duration {
        moment_in(&self.kill_within, answered, self.chance.next())
    }

    fn last_line(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        last.trim().to_owned()
    }

    fn runtime(&self) -> Result<Runtime> {
        Ok(Runtime::builder(Arc::new(SqliteStore::open(&self.store(), Arc::new(SystemClock))?)).build())
    }

    async fn runs(&self, runtime: &Runtime) -> Result<Vec<Opened>> {
        let mut opened = Vec::new();
        for row in runtime.store().list(DEFAULT_NAMESPACE, &Filter::default()).await? {
            opened.push(inspect::open(runtime.store(), &row.run.key).await?);
        }
        Ok(opened)
    }

    /// Answers what waits for a person. A doubt is settled by the ledger alone; how many were.
    async fn answer(&self) -> Result<u32> {
        let runtime = self.runtime()?;
        let mut asked = 0;
        for opened in self.runs(&runtime).await? {
            let key = opened.row.run.key.clone();
            for (_, request, approval) in open_requests(&opened) {
                let request = request.name;
                let word = match (approval, self.setting.approve) {
                    (true, true) => Word::Approve { request },
                    (true, false) => Word::Deny { request, reason: "the test denies".to_owned() },
                    (false, _) => Word::Answer { request, value: self.setting.answer.clone() },
                };
                runtime.send(&key, "test", word).await?;
            }
            if opened.standing.status != Status::InDoubt {
                continue;
            }
            let applied = ledger::read(self.setting, &self.folder.join("world"), &self.folder.join("held")).await?;
            for action in opened.checkpoint.pending.values() {
                if !matches!(action.state, ActionState::Doubt { .. }) {
                    continue;
                }
                let key_of = action.key.clone().unwrap_or_default();
                let happened = applied.iter().any(|applied| applied.key == key_of);
                let became = if happened { Became::Happened(Vec::new()) } else { Became::SendAgain };
                let word = Word::Resolve { ordinal: action.ordinal, became, attempt: Some(action.attempts) };
                runtime.send(&key, "test", word).await?;
                asked += 1;
            }
        }
        Ok(asked)
    }

    async fn artifacts(&self) -> Result<BTreeMap<String, String>> {
        if !self.store().exists() {
            return Ok(BTreeMap::new());
        }
        let runtime = self.runtime()?;
        let runs = self.runs(&runtime).await?;
        let newest = runs.iter().flat_map(|opened| opened.checkpoint.artifacts.iter());
        Ok(newest.map(|(name, artifact)| (name.clone(), artifact.content.digest.to_hex())).collect())
    }
}

/// A moment within what the command after so many answers took without a kill; the last one's where there were fewer.
fn moment_in(spans: &[Duration], answered: usize, drawn: u64) -> Duration {
    let within = spans.get(answered).or(spans.last()).copied().unwrap_or_default();
    Duration::from_micros(drawn % (within.as_micros().max(1) as u64))
}

fn folder_fault(folder: &std::path::Path, error: &std::io::Error) -> Error {
    Error::new("test.folder", format!("{}: {error}", folder.display()), "`--keep FOLDER` names another place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_comes_while_its_command_runs() {
        let spans = [Duration::from_millis(90), Duration::from_millis(4)];
        let mut chance = Chance::new(7);
        for (answered, most) in [(0, 90), (1, 4), (2, 4)] {
            let moments: Vec<Duration> = (0..100).map(|_| moment_in(&spans, answered, chance.next())).collect();
            assert!(moments.iter().all(|moment| *moment < Duration::from_millis(most)), "{answered}");
            assert!(moments.iter().any(|moment| *moment > Duration::from_millis(most / 2)), "{answered}");
        }
        assert_eq!(moment_in(&[], 0, 9), Duration::ZERO);
    }
}
