//! What came of all trials: a table for people, JSON for programs.

use std::fmt;

use anyhow::Result;
use serde_json::{Value, json};

use super::judge;
use super::program::Ended;
use super::tally::{Counts, Tally, spread};

/// One run.
pub struct Row {
    /// The trial and its round.
    pub name: String,
    /// How it ended.
    pub ended: Ended,
    /// What it came to.
    pub tally: Tally,
}

impl Row {
    /// The run's status, and its first reason.
    fn end(&self) -> String {
        let shown = &self.ended.shown;
        let status = shown["status"].as_str().unwrap_or("no run");
        let why = shown["reasons"][0]["why"].as_str().or_else(|| shown["reasons"][0]["reason"].as_str());
        why.map_or_else(|| status.to_owned(), |why| format!("{status}: {why}"))
    }

    fn json(&self) -> Value {
        let Ended { run, code, handed_over, seconds, shown, .. } = &self.ended;
        json!({
            "name": self.name, "run": run, "exit_code": code, "handed_over": handed_over, "seconds": seconds,
            "end": self.end(), "text": shown["text"], "quota": shown["checkpoint"]["quota"],
            "tally": self.tally.json(), "faults": judge::faults(&self.ended, &self.tally),
        })
    }
}

/// All runs.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    total: Tally,
    /// What `verify` found afterwards.
    pub store_faults: Vec<String>,
    /// How long all of it took.
    pub seconds: u64,
}

impl Report {
    /// Adds a run, and says in a line what became of it.
    pub fn add(&mut self, row: Row) {
        self.total.add(&row.tally);
        eprintln!("{}: {}; {} replies in all", row.name, row.end(), self.total.replies);
        self.rows.push(row);
    }

    /// How many replies came.
    pub fn replies(&self) -> u64 {
        self.total.replies
    }

    /// What must not be, each with its run.
    pub fn faults(&self) -> Vec<String> {
        let of_runs = self.rows.iter().flat_map(|row| {
            judge::faults(&row.ended, &row.tally).into_iter().map(move |fault| format!("{}: {fault}", row.name))
        });
        of_runs.chain(self.store_faults.iter().map(|fault| format!("verify: {fault}"))).collect()
    }

    /// The table and more, for programs.
    pub fn json(&self) -> Result<String> {
        let runs: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let (total, faults) = (self.total.json(), self.faults());
        let report =
            json!({ "seconds": self.seconds, "total": total, "ends": self.ends(), "faults": faults, "runs": runs });
        Ok(serde_json::to_string_pretty(&report)?)
    }

    fn ends(&self) -> Counts {
        let mut ends = Counts::new();
        for row in &self.rows {
            *ends.entry(row.end()).or_default() += 1;
        }
        ends
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| run | calls | replies | decisions | end | s |\n|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let Tally { calls, replies, decisions, .. } = &row.tally;
            let (name, end, seconds) = (&row.name, row.end(), row.ended.seconds);
            writeln!(out, "| {name} | {calls} | {replies} | {decisions} | {end} | {seconds:.0} |")?;
        }
        let total = &self.total;
        writeln!(out, "\n| what | how many |\n|---|---|")?;
        writeln!(out, "| runs by their end | {} |", listed(&self.ends()))?;
        writeln!(out, "| calls of the model | {} |", total.calls)?;
        writeln!(out, "| replies | {} |", total.replies)?;
        writeln!(out, "| replies that became a decision | {} |", total.decisions)?;
        writeln!(out, "| replies that became none | {} |", listed(&total.replies_refused))?;
        writeln!(out, "| calls of a tool that were refused | {} |", listed(&total.calls_refused))?;
        writeln!(out, "| calls of the model without a reply | {} |", listed(&total.calls_failed))?;
        writeln!(out, "| actions | {} |", listed(&total.actions))?;
        writeln!(out, "| finishes that were refused | {} |", total.finishes_refused)?;
        writeln!(out, "| tokens reported, estimated | {}, {} |", total.reported_tokens, total.estimated_tokens)?;
        writeln!(out, "| a request's estimate over its report | {} |", ranged(&total.ratios, 2))?;
        writeln!(out, "| seconds from the request to the reply | {} |", ranged(&total.waits, 0))?;
        write!(out, "| seconds in all | {} |", self.seconds)
    }
}

fn listed(counts: &Counts) -> String {
    let parts: Vec<String> = counts.iter().map(|(name, number)| format!("{number} {name}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn ranged(values: &[f64], decimals: usize) -> String {
    match spread(values) {
        Some([least, middle, most]) => format!("{middle:.decimals$} ({least:.decimals$} to {most:.decimals$})"),
        None => "none".to_owned(),
    }
}
