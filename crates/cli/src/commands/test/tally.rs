//! What the trials came to, against the run without a crash. It runs none itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::app::print_out;
use crate::commands::test::trial::Ended;

/// How often each tool's effects were applied, in words.
pub fn counts(ended: &Ended) -> String {
    let counted: Vec<String> = ended.by_tool().into_iter().map(|(tool, count)| format!("{tool} {count}")).collect();
    if counted.is_empty() { "none".to_owned() } else { counted.join(", ") }
}

/// What the trials came to.
pub struct Tally {
    artifacts: BTreeMap<String, String>,
    effects: BTreeMap<String, usize>,
    trials: u32,
    crashes: u32,
    /// Kills at a random moment, so far.
    pub kills: u32,
    passed_over: u32,
    lost: usize,
    doubled: usize,
    different: u32,
    /// What is wrong, each with its trial.
    pub faults: Vec<String>,
    rows: Vec<Value>,
    quiet: bool,
}

impl Tally {
    /// Nothing yet; what a trial has to come to is what the baseline came to.
    pub fn new(baseline: &Ended, quiet: bool) -> Self {
        Self {
            artifacts: baseline.artifacts.clone(),
            effects: baseline.by_tool(),
            trials: 0,
            crashes: 0,
            kills: 0,
            passed_over: 0,
            lost: 0,
            doubled: 0,
            different: 0,
            faults: Vec::new(),
            rows: Vec::new(),
            quiet,
        }
    }

    /// Takes in a trial that crashed or was killed as it was meant to.
    pub fn take_in(&mut self, name: &str, ended: Ended) {
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
            print_out(&format!(
                "{name:<44} crashes {:<2} asked {:<2} effects {:<28} {verdict}\n",
                ended.crashes + ended.kills,
                ended.asked,
                counts(&ended)
            ));
        }
        self.rows.push(json!({"trial": name, "crashes": ended.crashes, "kills": ended.kills, "asked": ended.asked,
            "effects": now, "completed": ended.completed, "faults": faults}));
        self.faults.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    }

    /// Takes in a point that no trial reached: it shows nothing. A transition that this run did not need is passed over;
    /// any other point is at fault, as the agent then does not do the same again.
    pub fn pass_over(&mut self, name: &str, is_transition: bool) {
        let verdict = if is_transition { "passed over: not reached again" } else { "NOT REACHED" };
        if !self.quiet {
            print_out(&format!("{name:<44} {verdict}\n"));
        }
        self.passed_over += u32::from(is_transition);
        let faults = if is_transition { vec![] } else { vec![verdict.to_owned()] };
        self.rows.push(json!({"trial": name, "reached": false, "faults": faults}));
        self.faults.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    }

    /// Takes in a trial that was over before its kill came: it shows nothing, and is no trial.
    pub fn miss(&mut self, name: &str) {
        if !self.quiet {
            print_out(&format!("{name:<44} missed: the run was over before the kill\n"));
        }
        self.rows.push(json!({"trial": name, "reached": false, "faults": []}));
    }

    /// In a line.
    pub fn summary(&self, wanted_kills: u32) -> String {
        let kills =
            if wanted_kills > 0 { format!(", {} of {wanted_kills} random kills", self.kills) } else { String::new() };
        let over = match self.passed_over {
            0 => String::new(),
            over => format!(", {over} points passed over"),
        };
        format!(
            "{} trials, {} crashes{kills}{over}: {} effects lost, {} doubled, {} different results, {} faults\n",
            self.trials,
            self.crashes,
            self.lost,
            self.doubled,
            self.different,
            self.faults.len()
        )
    }

    /// As JSON.
    pub fn as_json(&self) -> Value {
        json!({"trials": self.rows, "crashes": self.crashes, "kills": self.kills, "passed_over": self.passed_over,
            "lost": self.lost, "doubled": self.doubled,
            "different": self.different, "faults": self.faults})
    }
}
