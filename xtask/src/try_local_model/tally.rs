//! What a run's events come to.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// How often something came, by its name.
pub type Counts = BTreeMap<String, u64>;

/// Counts of one run, or of several.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Calls of the model that were begun.
    pub calls: u64,
    /// Replies that came.
    pub replies: u64,
    /// Replies that became a decision.
    pub decisions: u64,
    /// Replies that became no decision: cut, or without a call.
    pub replies_refused: Counts,
    /// Calls of tools that were refused, by the kind of their fault.
    pub calls_refused: Counts,
    /// Calls of the model that brought no reply, by why.
    pub calls_failed: Counts,
    /// Actions by tool and outcome.
    pub actions: Counts,
    /// Finishes that were refused, since the run was not complete.
    pub finishes_refused: u64,
    /// Tokens of replies with which the server reported them.
    pub reported_tokens: u64,
    /// Tokens of replies with which it reported none, and of calls whose reply was lost.
    pub estimated_tokens: u64,
    /// Of each request whose tokens were reported, the estimate over the report.
    pub ratios: Vec<f64>,
    /// Of each reply, seconds from the reservation.
    pub waits: Vec<f64>,
}

impl Tally {
    /// Of a run's whole journal, as `log --json` prints it.
    ///
    /// # Errors
    ///
    /// If an event is not what the documents say.
    pub fn of(events: &[Value]) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut reserved = &Value::Null;
        let mut tools = BTreeMap::new();
        for (at, event) in events.iter().enumerate() {
            let fields = &event["fields"];
            match event["event"].as_str().context("an event without a name")? {
                "CallReserved" => {
                    tally.calls += 1;
                    reserved = event;
                }
                "CallAnswered" => {
                    let is_decision = events.get(at + 1).is_some_and(|next| next["event"] == "DecisionOpened");
                    tally.answered(reserved, event, is_decision)?;
                }
                "CallFailed" => tally.failed(reserved, word(&fields["why"])),
                "CallLost" => tally.failed(reserved, "lost with its worker"),
                "DecisionOpened" => tally.decisions += 1,
                "ActionRefused" => count(&mut tally.calls_refused, word(&fields["kind"])),
                "ActionProposed" => {
                    tools.insert(fields["ordinal"].as_u64(), word(&fields["tool"]));
                }
                "ActionFinished" => {
                    let tool = tools.get(&fields["ordinal"].as_u64()).copied().unwrap_or("an unknown tool");
                    let outcome = if fields["ok"] == true { "done" } else { "failed" };
                    count(&mut tally.actions, &format!("{tool} {outcome}"));
                }
                "FinishRefused" => tally.finishes_refused += 1,
                _ => {}
            }
        }
        Ok(tally)
    }

    fn answered(&mut self, reserved: &Value, event: &Value, is_decision: bool) -> Result<()> {
        let fields = &event["fields"];
        let used = &fields["used"];
        self.replies += 1;
        self.waits.push(seconds_between(reserved, event)?);
        if !is_decision {
            let why = if fields["about"]["cut"] == true { "cut" } else { "without a call" };
            count(&mut self.replies_refused, why);
        }
        if fields["reported"] == true {
            self.reported_tokens += tokens(used);
            let estimate = reserved["fields"]["amounts"]["input_tokens"].as_f64().unwrap_or_default();
            self.ratios
                .extend(used["input_tokens"].as_f64().filter(|count| *count > 0.0).map(|count| estimate / count));
        } else {
            self.estimated_tokens += tokens(used);
        }
        Ok(())
    }

    fn failed(&mut self, reserved: &Value, why: &str) {
        count(&mut self.calls_failed, why);
        if why.starts_with("lost") {
            self.estimated_tokens += tokens(&reserved["fields"]["amounts"]);
        }
    }

    /// Takes another run's counts in.
    pub fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.replies += other.replies;
        self.decisions += other.decisions;
        self.finishes_refused += other.finishes_refused;
        self.reported_tokens += other.reported_tokens;
        self.estimated_tokens += other.estimated_tokens;
        self.ratios.extend(&other.ratios);
        self.waits.extend(&other.waits);
        for (into, from) in [
            (&mut self.replies_refused, &other.replies_refused),
            (&mut self.calls_refused, &other.calls_refused),
            (&mut self.calls_failed, &other.calls_failed),
            (&mut self.actions, &other.actions),
        ] {
            for (name, number) in from {
                *into.entry(name.clone()).or_default() += number;
            }
        }
    }

    /// All of it.
    pub fn json(&self) -> Value {
        json!({
            "calls": self.calls, "replies": self.replies, "decisions": self.decisions,
            "replies_refused": self.replies_refused, "calls_refused": self.calls_refused,
            "calls_failed": self.calls_failed, "actions": self.actions, "finishes_refused": self.finishes_refused,
            "reported_tokens": self.reported_tokens, "estimated_tokens": self.estimated_tokens,
            "estimate_over_report": spread(&self.ratios), "seconds_a_reply": spread(&self.waits),
        })
    }
}

/// The least, the middle and the most; nothing of nothing.
pub fn spread(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some([*sorted.first()?, *sorted.get(sorted.len() / 2)?, *sorted.last()?])
}

fn count(counts: &mut Counts, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("something else")
}

fn tokens(amounts: &Value) -> u64 {
    let part = |name: &str| amounts[name].as_u64().unwrap_or_default();
    part("input_tokens") + part("output_tokens")
}

/// Times are whole seconds in the log; no reply takes a day.
fn seconds_between(before: &Value, after: &Value) -> Result<f64> {
    let (before, after) = (second_of_day(before)?, second_of_day(after)?);
    Ok(f64::from((after + 86_400 - before) % 86_400))
}

fn second_of_day(event: &Value) -> Result<u32> {
    let at = event["at"].as_str().context("an event without a time")?;
    let time = at.split_once('T').context("a time without a day")?.1.trim_end_matches('Z');
    let parts: Vec<u32> = time.split(':').map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok(parts.iter().fold(0, |sum, part| sum * 60 + part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: &str, name: &str, fields: Value) -> Value {
        json!({ "at": format!("2026-11-30T{at}Z"), "event": name, "fields": fields })
    }

    #[test]
    fn a_journal_is_counted_by_what_became_of_each_call() {
        let reserve =
            |at| event(at, "CallReserved", json!({ "amounts": { "input_tokens": 300, "output_tokens": 100 } }));
        let used = json!({ "input_tokens": 200, "output_tokens": 20 });
        let events = [
            reserve("23:59:58"),
            event("00:00:03", "CallAnswered", json!({ "used": used, "reported": true, "faulty": false })),
            event("00:00:03", "DecisionOpened", json!({})),
            event("00:00:03", "ActionProposed", json!({ "ordinal": 1, "tool": "note" })),
            event("00:00:03", "ActionFinished", json!({ "ordinal": 1, "ok": true })),
            reserve("00:00:03"),
            event("00:00:04", "CallFailed", json!({ "why": "lost" })),
            reserve("00:00:04"),
            event("00:00:05", "CallFailed", json!({ "why": "too_long" })),
            reserve("00:00:05"),
            event(
                "00:00:06",
                "CallAnswered",
                json!({ "used": used, "reported": false, "faulty": true, "about": { "cut": true } }),
            ),
            reserve("00:00:06"),
            event("00:00:07", "CallAnswered", json!({ "used": used, "reported": true, "faulty": true })),
        ];
        let tally = Tally::of(&events).unwrap();
        assert_eq!((tally.calls, tally.replies, tally.decisions), (5, 3, 1));
        assert_eq!(tally.actions, Counts::from([("note done".to_owned(), 1)]));
        assert_eq!(tally.calls_failed, Counts::from([("lost".to_owned(), 1), ("too_long".to_owned(), 1)]));
        let refused = Counts::from([("cut".to_owned(), 1), ("without a call".to_owned(), 1)]);
        assert_eq!(tally.replies_refused, refused);
        // A lost call is charged as reserved, a request that is too long is not charged.
        assert_eq!((tally.reported_tokens, tally.estimated_tokens), (440, 620));
        assert_eq!((tally.ratios, tally.waits), (vec![1.5, 1.5], vec![5.0, 1.0, 1.0]));
    }
}
