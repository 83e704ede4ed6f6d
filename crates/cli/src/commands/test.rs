//! `test`: does this agent survive? It is run once, then once per fault point with a crash there, then with kills at
//! random moments; after each the very same command is given again. Effects are counted by a ledger that stands outside the runtime.

mod ledger;
mod tally;
mod trial;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lodestep::agent::AgentFile;
use lodestep::core::effect::Class;
use lodestep::core::{Error, Result};

use crate::app::App;
use crate::args::TestArgs;
use crate::commands::run::stop_signal;
use crate::commands::test::tally::Tally;
use crate::commands::test::trial::{Passed, Trial};

/// A point that one trial can't reach is tried so often: how many transitions a run takes may differ by its timing.
const TRIES: u32 = 3;

/// So many trials in a row that no kill hits are enough: the agent is too fast for them.
const MISSES: u32 = 20;

/// Tests an agent file.
pub async fn test(app: &App, args: TestArgs) -> Result<u8> {
    let file = AgentFile::load(&args.file).map_err(Error::from)?;
    let folder = Folder::make(args.keep.clone())?;
    let setting = Setting::of(&file, &args, folder.path.clone())?;
    lodestep::note!("each trial runs the agent for real: what its tools touch is the file's to say, by [test] inputs");
    let tested = tokio::select! {
        tested = trials(app, &args, &setting) => tested,
        () = stop_signal() => {
            lodestep::note!("\nstopped: the trial under way was ended");
            return Ok(130);
        }
    };
    if !matches!(tested, Ok(0)) {
        lodestep::note!("the trials' folders are kept: {}", folder.keep().display());
    }
    tested
}

/// The baseline, a trial for each of its fault points, and the random kills; 0 when nothing is at fault.
async fn trials(app: &App, args: &TestArgs, setting: &Setting) -> Result<u8> {
    let baseline = Trial::new(setting, "baseline", None).run().await?;
    if !baseline.completed {
        let what = format!("the agent does not complete without a crash: {}", baseline.why);
        let log = setting.folder.join("baseline/log");
        return Err(Error::new("test.baseline", what, format!("look at {}", log.display())));
    }
    lodestep::note!(
        "baseline: completed in {} ms, {} fault points, effects {}",
        baseline.millis,
        baseline.points.len(),
        tally::counts(&baseline)
    );
    let mut tally = Tally::new(&baseline, app.json);
    for (nth, point) in baseline.points.iter().enumerate().step_by(args.every.max(1)) {
        at_point(setting, &mut tally, nth + 1, point).await?;
    }
    random_kills(args, setting, &mut tally, &baseline.spans).await?;
    app.say(&tally.summary(args.kills), &tally.as_json());
    Ok(u8::from(!tally.faults.is_empty()))
}

/// Kills at random moments, until as many as are wanted have hit. A trial that was over before its moment shows nothing.
async fn random_kills(args: &TestArgs, setting: &Setting, tally: &mut Tally, spans: &[Duration]) -> Result<()> {
    let mut chance = Chance(args.seed);
    let (mut round, mut missed) = (0, 0);
    while tally.kills < args.kills && missed < MISSES {
        round += 1;
        let kills = (args.kills - tally.kills).min(4);
        let trial = Trial::new(setting, &format!("kills-{round}"), None).with_kills(kills, spans, chance.next());
        let ended = trial.run().await?;
        let name = format!("random kills {round} (seed {})", args.seed);
        if ended.kills > 0 || !ended.completed {
            missed = 0;
            tally.take_in(&name, ended);
        } else {
            missed += 1;
            tally.miss(&name);
        }
    }
    Ok(())
}

/// A crash at one point. A trial that did not crash there shows nothing of it.
async fn at_point(setting: &Setting, tally: &mut Tally, nth: usize, point: &Passed) -> Result<()> {
    let name = format!("#{nth} {point}");
    for attempt in 1..=TRIES {
        let folder = if attempt == 1 { format!("point-{nth}") } else { format!("point-{nth}-{attempt}") };
        let ended = Trial::new(setting, &folder, Some(point.clone())).run().await?;
        if ended.crashes > 0 {
            tally.take_in(&name, ended);
            return Ok(());
        }
    }
    tally.pass_over(&name, point.is_transition());
    Ok(())
}

/// What all trials share.
pub struct Setting {
    file: PathBuf,
    inputs: Vec<(String, String)>,
    folder: PathBuf,
    approve: bool,
    answer: String,
    ledger: Option<Vec<String>>,
    agent_folder: PathBuf,
    /// Tools whose receiver applies a key once: sent twice under one key is applied once.
    keyed: Vec<String>,
}

impl Setting {
    fn of(file: &AgentFile, args: &TestArgs, folder: PathBuf) -> Result<Self> {
        let path = args.file.canonicalize().unwrap_or_else(|_| args.file.clone());
        let mut inputs = args.input.clone();
        let test = file.test.clone();
        for (name, value) in test.iter().flat_map(|test| test.inputs.clone()) {
            if !inputs.iter().any(|(given, _)| *given == name) {
                inputs.push((name, value));
            }
        }
        let keyed = file.definition.tools.iter().filter(|tool| tool.class == Class::Keyed);
        Ok(Self {
            file: path,
            inputs,
            folder,
            approve: test.as_ref().is_none_or(|test| test.approve),
            answer: test.as_ref().map(|test| test.answer.clone()).unwrap_or_default(),
            ledger: test.and_then(|test| test.ledger),
            agent_folder: file.folder.clone(),
            keyed: keyed.map(|tool| tool.name.clone()).collect(),
        })
    }
}

/// Where the trials are; removed at the end unless it is wanted.
struct Folder {
    path: PathBuf,
    kept: std::cell::Cell<bool>,
}

impl Folder {
    fn make(keep: Option<PathBuf>) -> Result<Self> {
        let kept = keep.is_some();
        let path = keep.unwrap_or_else(|| std::env::temp_dir().join(format!("lodestep-test-{}", std::process::id())));
        std::fs::create_dir_all(&path).map_err(|error| {
            Error::new(
                "test.folder",
                format!("{} can't be made: {error}", path.display()),
                "`--keep FOLDER` names another",
            )
        })?;
        let path = path.canonicalize().unwrap_or(path);
        Ok(Self { path, kept: std::cell::Cell::new(kept) })
    }

    fn keep(&self) -> &Path {
        self.kept.set(true);
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept.get() {
            // What can't be removed is in the temporary folder and harms nobody.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Numbers from a seed, after Steele, Lea and Flood's SplitMix64.
pub struct Chance(u64);

impl Chance {
    /// A sequence from this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
