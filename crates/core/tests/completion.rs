//! The completion gate with a check: the program judges only when the rest holds, and its word is final.

mod support;

use lodestep_core::Ordinal;
use lodestep_core::checkpoint::{ActionState, Phase};
use lodestep_core::definition::{Check, Done};
use lodestep_core::effect::Seen;
use lodestep_core::event::{Ending, StopReason};
use lodestep_core::rules::inbox::Word;
use lodestep_core::rules::owed::{dispatchable, wants_model};
use serde_json::json;
use support::*;

fn checked(artifacts: &[&str]) -> Bench {
    let check = Check { argv: vec!["sh".to_owned(), "check.sh".to_owned()], folder: ".".to_owned() };
    let artifacts = artifacts.iter().map(|name| (*name).to_owned()).collect();
    Bench::new(lodestep_core::Definition { done: Done { artifacts, check: Some(check), ..Done::default() }, ..free() })
}

/// The model finishes, and what is owed is drawn.
fn finish(bench: &mut Bench) -> Vec<&'static str> {
    bench.calls(vec![call("finish", &json!({"summary": "done"}))]);
    names(&bench.owed())
}

/// A worker saw this of the check; what is owed comes in the same transition.
fn check_said(bench: &mut Bench, ordinal: u32, seen: Seen) -> Vec<&'static str> {
    use lodestep_core::rules::owed::{Hands, owed};
    use lodestep_core::rules::settle::{Attempt, settle};
    let attempt = bench.action(ordinal).map_or(1, |action| action.attempts + 1);
    let text = format!("{seen:?}").into_bytes();
    let attempt = Attempt { ordinal: Ordinal(ordinal), attempt, seen, text, artifact: None, retry_after_ms: None };
    let busy = Default::default();
    let hands = Hands {
        free: 8,
        send_by: bench.send_by(),
        busy: &busy,
        held: &Default::default(),
        dedupe: &Default::default(),
    };
    let events = bench.step(|draft, definition| {
        settle(draft, attempt)?;
        owed(draft, definition, hands)
    });
    names(&events)
}

fn waiting_checks(bench: &Bench) -> Vec<u32> {
    dispatchable(&bench.checkpoint, bench.epoch, bench.now).into_iter().map(|ordinal| ordinal.0).collect()
}

#[test]
fn what_the_state_lacks_is_told_without_the_check() {
    let mut bench = checked(&["report.md"]);
    assert_eq!(finish(&mut bench), ["ActionFinished", "FinishRefused"]);
    assert!(bench.told(1).contains("artifact report.md"));
    assert!(waiting_checks(&bench).is_empty());
}

#[test]
fn a_check_that_holds_ends_the_run() {
    let mut bench = checked(&[]);
    assert_eq!(finish(&mut bench), ["CheckStarted"]);
    assert_eq!(waiting_checks(&bench), [1], "it is performed as what may be repeated: without an intent");
    assert!(bench.owed().is_empty(), "it is judged once");
    assert!(!wants_model(&bench.checkpoint, bench.now), "the decision is open until the check has spoken");
    assert_eq!(check_said(&mut bench, 1, Seen::Done), ["ActionFinished", "RunEnded"]);
    assert!(matches!(bench.checkpoint.phase, Phase::Ended { ending: Ending::Completed, .. }));
}

#[test]
fn a_check_that_does_not_hold_is_told_and_three_stop_the_run() {
    let mut bench = checked(&[]);
    for refused in 1..=3 {
        assert_eq!(bench.checkpoint.phase, Phase::Active);
        assert_eq!(finish(&mut bench), ["CheckStarted"]);
        let said = check_said(&mut bench, refused, Seen::Refused);
        assert_eq!(said[..2], ["ActionFinished", "FinishRefused"]);
        assert_eq!(bench.told(refused), "Refused");
    }
    let Phase::Stopped { reason, .. } = bench.checkpoint.phase else { panic!("{:?}", bench.checkpoint.phase) };
    assert_eq!(reason, StopReason::Completion);
    bench.say("ann", Word::Resume);
    assert_eq!(finish(&mut bench), ["CheckStarted"]);
    assert_eq!(check_said(&mut bench, 4, Seen::Done), ["ActionFinished", "RunEnded"]);
}

#[test]
fn a_check_whose_worker_died_or_that_gave_no_answer_is_run_again() {
    let mut bench = checked(&[]);
    finish(&mut bench);
    bench.crash();
    assert_eq!(waiting_checks(&bench), [1]);
    assert_eq!(check_said(&mut bench, 1, Seen::TimedOut), ["AttemptUnknown"]);
    assert!(matches!(bench.state(1), ActionState::Ready { .. }));
    bench.wait_ms(600_000);
    assert_eq!(waiting_checks(&bench), [1]);
    assert_eq!(check_said(&mut bench, 1, Seen::Done), ["ActionFinished", "RunEnded"]);
}

#[test]
fn a_second_finish_beside_the_first_is_checked_too() {
    let mut bench = checked(&[]);
    bench.calls(vec![call("finish", &json!({})), call("finish", &json!({}))]);
    assert_eq!(names(&bench.owed()), ["CheckStarted"]);
    assert_eq!(waiting_checks(&bench), [1]);
    assert_eq!(check_said(&mut bench, 1, Seen::Done), ["ActionFinished", "CheckStarted"]);
    assert_eq!(check_said(&mut bench, 2, Seen::Done), ["ActionFinished", "RunEnded"]);
}

#[test]
fn a_cancel_takes_the_check_back() {
    let mut bench = checked(&[]);
    finish(&mut bench);
    bench.say("ann", Word::Cancel { reason: "no".to_owned() });
    assert_eq!(names(&bench.owed()), ["ActionWithdrawn", "RunEnded"]);
    assert!(matches!(bench.checkpoint.phase, Phase::Ended { ending: Ending::Cancelled, .. }));
}
