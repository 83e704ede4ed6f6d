//! `test`: does this agent survive? It is run once, then once per fault point with a crash there, then with kills at
//! random moments; after each the very same command is given again. Effects are counted by a ledger that stands outside the runtime.

mod ledger;
mod trial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lodestep::agent::AgentFile;
use lodestep::core::effect::Class;
use lodestep::core::{Error, Result};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::TestArgs;
use crate::commands::test::trial::{Ended, Trial};

/// Tests an agent file.
pub async fn test(app: &App, args: TestArgs) -> Result<u8> {
    let file = AgentFile::load(&args.file).map_err(Error::from)?;
    let folder = Folder::make(args.keep.clone())?;
    let setting = Setting::of(&file, &args, folder.path.clone())?;
    let baseline = Trial::new(&setting, "baseline", None).run().await?;
    if !baseline.completed {
        let what = format!("the agent does not complete without a crash: {}", baseline.why);
        return Err(Error::new("test.baseline", what, format!("look at {}", folder.keep().display())));
    }
    let points = baseline.points.clone();
    eprintln!(
        "baseline: completed in {} ms, {} fault points, effects {}",
        baseline.millis,
        points.len(),
        counts(&baseline)
    );
    let mut tally = Tally::new(&baseline, app.json);
    for (nth, point) in points.iter().enumerate().step_by(args.every.max(1)) {
        let name = format!("#{} {point}", nth + 1);
        let trial = Trial::new(&setting, &format!("point-{}", nth + 1), Some(format!("#{}", nth + 1)));
        tally.take_in(&name, trial.run().await?);
    }
    let mut chance = Chance(args.seed);
    let mut round = 0;
    while tally.kills < args.kills {
        round += 1;
        let most = Duration::from_millis(baseline.millis.max(50));
        let kills = (args.kills - tally.kills).min(4);
        let trial = Trial::new(&setting, &format!("kills-{round}"), None).with_kills(kills, most, chance.next());
        tally.take_in(&format!("random kills {round} (seed {})", args.seed), trial.run().await?);
    }
    let sound = tally.faults.is_empty();
    app.say(&tally.summary(args.kills), &tally.as_json());
    if !sound {
        eprintln!("the trials' folders: {}", folder.keep().display());
    }
    Ok(u8::from(!sound))
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

fn counts(ended: &Ended) -> String {
    let counted: Vec<String> = ended.by_tool().into_iter().map(|(tool, count)| format!("{tool} {count}")).collect();
    if counted.is_empty() { "none".to_owned() } else { counted.join(", ") }
}

/// What the trials came to.
struct Tally {
    artifacts: BTreeMap<String, String>,
    effects: BTreeMap<String, usize>,
    trials: u32,
    crashes: u32,
    kills: u32,
    lost: usize,
    doubled: usize,
    different: u32,
    faults: Vec<String>,
    rows: Vec<Value>,
    quiet: bool,
}

impl Tally {
    fn new(baseline: &Ended, quiet: bool) -> Self {
        Self {
            artifacts: baseline.artifacts.clone(),
            effects: baseline.by_tool(),
            trials: 0,
            crashes: 0,
            kills: 0,
            lost: 0,
            doubled: 0,
            different: 0,
            faults: Vec::new(),
            rows: Vec::new(),
            quiet,
        }
    }

    fn take_in(&mut self, name: &str, ended: Ended) {
        self.trials += 1;
        self.crashes += ended.crashes;
        self.kills += ended.kills;
        let mut faults = Vec::new();
        if !ended.completed {
            faults.push(format!("did not complete: {}", ended.why));
        }
        let now = ended.by_tool();
        for (tool, wanted) in &self.effects {
            let count = now.get(tool).copied().unwrap_or(0);
            self.lost += wanted.saturating_sub(count);
            if count < *wanted {
                faults.push(format!("{tool} was applied {count} times, not {wanted}"));
            }
        }
        for (tool, count) in &now {
            let wanted = self.effects.get(tool).copied().unwrap_or(0);
            self.doubled += count.saturating_sub(wanted);
            if *count > wanted {
                faults.push(format!("{tool} was applied {count} times, not {wanted}"));
            }
        }
        if ended.completed && ended.artifacts != self.artifacts {
            self.different += 1;
            faults.push("its artifacts differ from the baseline's".to_owned());
        }
        let verdict = if faults.is_empty() { "ok".to_owned() } else { faults.join("; ") };
        if !self.quiet {
            println!(
                "{name:<44} crashes {:<2} asked {:<2} effects {:<28} {verdict}",
                ended.crashes + ended.kills,
                ended.asked,
                counts(&ended)
            );
        }
        self.rows.push(json!({"trial": name, "crashes": ended.crashes, "kills": ended.kills, "asked": ended.asked,
            "effects": now, "completed": ended.completed, "faults": faults}));
        self.faults.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    }

    fn summary(&self, wanted_kills: u32) -> String {
        let kills = if wanted_kills > 0 { format!(", {} random kills", self.kills) } else { String::new() };
        format!(
            "{} trials, {} crashes{kills}: {} effects lost, {} doubled, {} different results, {} faults\n",
            self.trials,
            self.crashes,
            self.lost,
            self.doubled,
            self.different,
            self.faults.len()
        )
    }

    fn as_json(&self) -> Value {
        json!({"trials": self.rows, "crashes": self.crashes, "kills": self.kills, "lost": self.lost, "doubled": self.doubled,
            "different": self.different, "faults": self.faults})
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
