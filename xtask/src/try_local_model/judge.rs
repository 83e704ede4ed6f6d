//! What must not be, whatever a model answers.

use serde_json::Value;

use super::program::Ended;
use super::tally::Tally;

/// What `run` exits with when a run ended, waits for someone, is stopped or is in doubt.
const STATED: [i32; 6] = [0, 1, 3, 4, 5, 6];
/// What it exits with when it was asked to hand over.
const HANDED_OVER: i32 = 130;

/// The faults of one run, in words.
pub fn faults(ended: &Ended, tally: &Tally) -> Vec<String> {
    let mut faults = Vec::new();
    match ended.code {
        None => faults.push("a signal ended it".to_owned()),
        Some(HANDED_OVER) if ended.handed_over => {}
        Some(code) if STATED.contains(&code) => {}
        Some(code) => faults.push(format!("it exited with {code}")),
    }
    if ended.said.contains("panicked at") {
        faults.push("it panicked".to_owned());
    }
    if ended.run.is_none() {
        faults.push("there is no run".to_owned());
        return faults;
    }
    if !has_reason(&ended.shown) {
        faults.push(format!("{} without a reason", ended.shown["status"]));
    }
    let settled = tally.replies + tally.calls_failed.values().sum::<u64>();
    if !ended.handed_over && settled != tally.calls {
        faults.push(format!("of {} calls of the model {settled} were settled", tally.calls));
    }
    faults.extend(passed_quotas(&ended.shown["checkpoint"]["quota"]));
    faults
}

/// A run that goes on by itself has none, and one that ended well needs none.
fn has_reason(shown: &Value) -> bool {
    let said = shown["text"].as_str().is_some_and(|text| !text.trim().is_empty());
    let named = shown["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty());
    match shown["status"].as_str() {
        Some("completed") => true,
        Some("stopped" | "failed" | "cancelled") => said,
        Some("waiting" | "in_doubt" | "quarantined") => named,
        _ => false,
    }
}

/// Each quota of which more is used and held back than its limit and what replies had beyond what was held back for them.
fn passed_quotas(quota: &Value) -> Vec<String> {
    let tokens = ["input_tokens", "output_tokens"];
    let counted = [("model_calls", &["model_calls"][..]), ("total_tokens", &tokens[..])];
    let sum = |of: &str, parts: &[&str]| parts.iter().filter_map(|part| quota[of][*part].as_u64()).sum::<u64>();
    let passed = counted.into_iter().filter_map(|(name, parts)| {
        let limit = quota["limits"][name].as_u64()?;
        let spent = sum("used", parts) + sum("reserved", parts);
        let overrun = sum("overrun", parts);
        (spent > limit + overrun).then(|| format!("{name}: {spent} of {limit}, with an overrun of {overrun}"))
    });
    passed.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(shown: Value) -> Ended {
        let said = String::new();
        Ended { run: Some("r".to_owned()), code: Some(6), handed_over: false, seconds: 1.0, said, shown }
    }

    fn stopped() -> Value {
        json!({ "status": "stopped", "reasons": [{ "reason": "stopped", "why": "quota" }], "text": "no room", "checkpoint": {
            "quota": { "limits": { "model_calls": 2, "total_tokens": 100 },
                "used": { "model_calls": 2, "input_tokens": 80, "output_tokens": 30 },
                "reserved": { "model_calls": 0, "input_tokens": 0, "output_tokens": 0 },
                "overrun": { "model_calls": 0, "input_tokens": 0, "output_tokens": 10 } } } })
    }

    #[test]
    fn an_end_with_a_reason_and_within_its_quotas_is_no_fault() {
        assert_eq!(faults(&ended(stopped()), &Tally::default()), [""; 0]);
    }

    #[test]
    fn each_thing_that_must_not_be_is_told() {
        let mut silent = ended(stopped());
        silent.shown["text"] = "".into();
        let mut passed = ended(stopped());
        passed.shown["checkpoint"]["quota"]["overrun"]["output_tokens"] = 9.into();
        let killed = Ended { code: None, ..ended(stopped()) };
        let panicked = Ended { code: Some(101), said: "thread main panicked at x.rs".to_owned(), ..ended(stopped()) };
        let stuck = Ended { code: Some(130), handed_over: true, ..ended(json!({ "status": "ready", "reasons": [] })) };
        for (ended, told) in [
            (silent, vec!["\"stopped\" without a reason"]),
            (passed, vec!["total_tokens: 110 of 100, with an overrun of 9"]),
            (killed, vec!["a signal ended it"]),
            (panicked, vec!["it exited with 101", "it panicked"]),
            (stuck, vec!["\"ready\" without a reason"]),
        ] {
            assert_eq!(faults(&ended, &Tally::default()), told);
        }
        let open = Tally { calls: 1, ..Tally::default() };
        assert_eq!(faults(&ended(stopped()), &open), ["of 1 calls of the model 0 were settled"]);
    }
}
