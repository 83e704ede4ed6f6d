//! Reminders: which one of a request is due follows from the state and the time.

mod support;

use lodestep_core::definition::{Decide, Definition, OnExpiry, Questions, Rule};
use lodestep_core::rules::inbox::Word;
use lodestep_core::rules::remind::{due, next};
use serde_json::json;
use support::{Bench, call, definition, rule};

/// An approval with these times, and a question that is reminded of every three seconds.
fn asked(expires_ms: Option<u64>, remind_ms: Option<u64>) -> Bench {
    let asks = Rule { expires_ms, remind_ms, on_expiry: OnExpiry::Pause, ..rule(&[], &[], Decide::Ask) };
    let questions = Questions { remind_ms: Some(3_000), ..Questions::default() };
    let mut bench = Bench::new(Definition { policy: vec![asks], questions, ..definition() });
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("ask", &json!({"question": "why?"}))]);
    bench
}

/// Actions and numbers of what is due, and when the next one is, in milliseconds from the asking.
fn reminders(bench: &Bench, after_ms: u64) -> (Vec<(u32, u64)>, Option<u64>) {
    let asked_at = bench.checkpoint.at;
    let now = asked_at.plus_ms(after_ms);
    let due = due(&bench.checkpoint, now).iter().map(|reminder| (reminder.action.0, reminder.number)).collect();
    (due, next(&bench.checkpoint, now).map(|at| at.ms_since(asked_at)))
}

#[test]
fn tim_01_the_newest_reminder_is_due_and_not_one_for_each_that_was_missed() {
    let bench = asked(None, Some(1_000));
    for (after_ms, expected, at_ms) in [
        (0, vec![], 1_000),
        (999, vec![], 1_000),
        (1_000, vec![(1, 1)], 2_000),
        (3_500, vec![(1, 3), (2, 1)], 4_000),
        (86_400_000, vec![(1, 86_400), (2, 28_800)], 86_401_000),
    ] {
        assert_eq!(reminders(&bench, after_ms), (expected, Some(at_ms)), "{after_ms}");
    }
}

#[test]
fn none_without_a_word_in_the_definition() {
    let bench = asked(None, None);
    assert_eq!(reminders(&bench, 2_999), (vec![], Some(3_000)), "the question has one, the approval none");
    assert_eq!(reminders(&bench, 3_000), (vec![(2, 1)], Some(6_000)));
}

#[test]
fn none_from_the_expiry_on_and_they_begin_anew_when_it_is_asked_again() {
    let mut bench = asked(Some(2_500), Some(1_000));
    let since = bench.checkpoint.at;
    assert_eq!(reminders(&bench, 2_000).1, Some(3_000), "the question's: the approval has expired by then");
    bench.wait_ms(2_500);
    bench.owed();
    assert_eq!(reminders(&bench, 9_000), (vec![], None), "a stopped run is told of as one that stopped");
    bench.wait_ms(60_000);
    bench.say("ann", Word::Resume);
    let now = bench.checkpoint.at;
    assert_eq!(next(&bench.checkpoint, now), Some(now.plus_ms(500).min(now.plus_ms(1_000))), "the question's");
    let again = due(&bench.checkpoint, now.plus_ms(1_000));
    assert_eq!((again[0].action.0, again[0].number, again[0].since), (1, 1, now));
    assert_eq!((again[1].action.0, again[1].since), (2, since), "the question did not expire");
}

#[test]
fn none_once_it_is_answered() {
    let mut bench = asked(None, Some(1_000));
    let (approval, question) = (bench.request(1), bench.request(2));
    bench.say("ann", Word::Deny { request: approval, reason: String::new() });
    assert_eq!(reminders(&bench, 5_000), (vec![(2, 1)], Some(6_000)));
    bench.say("ann", Word::Answer { request: question, value: "because".to_owned() });
    assert_eq!(reminders(&bench, 5_000), (vec![], None));
}

#[test]
fn a_question_expires_as_the_definition_says() {
    let questions = Questions { expires_ms: Some(4_000), ..Questions::default() };
    let mut bench = Bench::new(Definition { questions, ..definition() });
    bench.calls(vec![call("ask", &json!({"question": "why?"}))]);
    bench.wait_ms(4_000);
    bench.owed();
    assert_eq!(bench.told(1), "denied: nobody answered in time");
}
