//! The job of the recovery scorecard on agentplane: one skill, one effect a step.
//!
//! Recovery as its documentation has it: the same request again under the same admission key, `once(key).settle()`,
//! which resumes a run whose holder is gone. A run in quarantine is answered with `reconcile_effect` and reopened.
//! It is built by `driver.py` beside it, outside of the project's workspace.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use agentplane::core::{Assertion, Effect, EffectDescriptor, EffectError, Operator, QuarantineDecision, Recovery};
use agentplane::prelude::*;
use serde_json::{Value, json};

/// What the scorer's exit code for "a person is asked" is.
const ASKS: u8 = 5;

/// The job of a trial, from `job.json`.
#[derive(Debug, Clone)]
struct Job {
    run: String,
    steps: u64,
    is_keyed: bool,
    effect: Vec<String>,
}

impl Job {
    fn read(trial: &Path) -> Result<Self, Box<dyn Error>> {
        let job: Value = serde_json::from_str(&std::fs::read_to_string(trial.join("job.json"))?)?;
        let words = job["effect"].as_array().ok_or("job.json names no effect")?;
        Ok(Self {
            run: job["run"].as_str().ok_or("job.json names no run")?.to_owned(),
            steps: job["steps"].as_u64().ok_or("job.json names no steps")?,
            is_keyed: job["receiver"] == "keyed",
            effect: words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect(),
        })
    }
}

/// One line in the ledger, by the program that the scorer gives.
#[derive(Debug, Clone)]
struct Append {
    job: Job,
    step: u64,
}

impl Append {
    fn key(&self) -> String {
        format!("{}:{}", self.job.run, self.step)
    }
}

#[async_trait::async_trait]
impl Effect for Append {
    type Output = Value;

    fn descriptor(&self) -> EffectDescriptor {
        EffectDescriptor::new(format!("append.{}", self.step), json!({ "step": self.step }))
    }

    fn mutates(&self) -> bool {
        true
    }

    fn recovery(&self) -> Recovery {
        if self.job.is_keyed { Recovery::Idempotent { key: self.key() } } else { Recovery::RequiresOperator }
    }

    async fn perform(&self) -> Result<Value, EffectError> {
        let (program, words) = self.job.effect.split_first().ok_or(EffectError::Rejected("no effect".into()))?;
        let output = tokio::process::Command::new(program)
            .args(words)
            .args([self.step.to_string(), self.key()])
            .output()
            .await
            .map_err(|error| EffectError::Rejected(error.to_string()))?;
        if output.status.success() {
            Ok(json!({ "applied": self.step }))
        } else {
            Err(EffectError::Rejected(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    }
}

#[derive(Debug)]
struct Steps(Job);

#[async_trait::async_trait]
impl Skill for Steps {
    fn descriptor(&self) -> SkillDescriptor {
        SkillDescriptor::new("recovery.steps").provides("recovery.steps")
    }

    async fn invoke(&self, cx: &mut StepCtx<'_>, input: Tainted<Value>) -> Result<Outcome, SkillError> {
        for step in 1..=self.0.steps {
            cx.effect(Append { job: self.0.clone(), step }).await?;
        }
        Ok(Outcome::done(input))
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, trial, rest @ ..] = words.as_slice() else {
        return Err("VERB TRIAL".into());
    };
    let trial = PathBuf::from(trial);
    let job = Job::read(&trial)?;
    let store: Arc<dyn JournalStore> = Arc::new(RedbStore::open(trial.join("agentplane.redb"))?);
    let runtime = Runtime::builder(store).owner("recovery").skill(Steps(job.clone())).build();
    let request = Tainted::trusted(json!({ "run": job.run }));
    let outcome = runtime.start("recovery.steps", request).once(format!("recovery:{}", job.run)).settle().await?;
    let status = match (verb.as_str(), rest) {
        ("work", []) => outcome.status,
        ("doubts", []) => {
            let doubts = runtime.undecided(outcome.run_id).await?;
            let step = |kind: &str| kind.rsplit('.').next().and_then(|step| step.parse::<u64>().ok());
            let listed =
                doubts.iter().map(|doubt| json!({ "id": doubt.effect.to_string(), "step": step(&doubt.kind) }));
            println!("{}", Value::from_iter(listed));
            return Ok(ExitCode::SUCCESS);
        }
        ("settle", [id, word]) => {
            let doubts = runtime.undecided(outcome.run_id).await?;
            let doubt = doubts.iter().find(|doubt| doubt.effect.to_string() == *id).ok_or("no such doubt")?;
            let assertion = match word.as_str() {
                "happened" => Assertion::Landed(json!({ "applied": true })),
                _ => Assertion::DidNotHappen,
            };
            let ledger = Operator::asserted("scorer")?;
            runtime.reconcile_effect(outcome.run_id, doubt.effect, assertion, &ledger, "read in the ledger").await?;
            let reopen = QuarantineDecision::Reopen;
            runtime.decide_quarantine(outcome.run_id, &ledger, "the ledger was read", reopen).await?.status
        }
        _ => return Err("work, doubts, or settle with a doubt and a word".into()),
    };
    Ok(match status {
        RunStatus::Succeeded => ExitCode::SUCCESS,
        RunStatus::Quarantined(_) => ExitCode::from(ASKS),
        other => {
            eprintln!("the run ended as {other:?}");
            ExitCode::FAILURE
        }
    })
}
