//! Words from outside: judged once, for good, and said a second time without effect.

mod support;

use lodestep_core::checkpoint::{ActionState, How, Phase};
use lodestep_core::definition::{Decide, Definition, OnExpiry};
use lodestep_core::digest::Digest;
use lodestep_core::event::{DeniedBy, Gate};
use lodestep_core::rules::inbox::{Message, Verdict, Word, judge, read};
use serde_json::json;
use support::{Bench, call, code, definition, names, rule};

/// A run that asks for an approval (action 1) and an answer (action 2), for so long.
fn asking(expires_ms: Option<u64>, on_expiry: OnExpiry) -> Bench {
    let mut asks = rule(&["unsafe"], &[], Decide::Ask);
    (asks.expires_ms, asks.on_expiry) = (expires_ms, on_expiry);
    let mut bench = Bench::new(Definition { policy: vec![asks], ..definition() });
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("ask", &json!({"question": "?"}))]);
    bench
}

fn approve(request: Digest) -> Word {
    Word::Approve { request }
}

fn deny(request: Digest, reason: &str) -> Word {
    Word::Deny { request, reason: reason.to_owned() }
}

fn edited(request: Digest, arguments: &str) -> Word {
    Word::ApproveEdited { request, arguments: arguments.as_bytes().to_vec(), same: None, dedupe: None }
}

#[test]
fn the_same_word_again_is_already_given_and_another_is_refused() {
    let words = |request| [approve(request), edited(request, "{\"x\":2}"), deny(request, "no")];
    for first in 0..3 {
        for second in 0..3 {
            let mut bench = asking(None, OnExpiry::Deny);
            let request = bench.request(1);
            assert_eq!(code(&bench.say("ann", words(request)[first].clone())), "accepted");
            let verdict = bench.say("bob", words(request)[second].clone());
            let expected = match (first, second) {
                (first, second) if first == second => "already given",
                (1, _) => "request.stale",
                _ => "request.decided",
            };
            assert_eq!(code(&verdict), expected, "{first} then {second}: {verdict:?}");
        }
    }
    let mut bench = asking(None, OnExpiry::Deny);
    let request = bench.request(1);
    bench.say("ann", edited(request, "{\"x\":2}"));
    assert_eq!(code(&bench.say("ann", edited(request, "{\"x\":3}"))), "request.stale", "another edit is another word");
    let mut bench = asking(None, OnExpiry::Deny);
    let request = bench.request(1);
    bench.say("ann", deny(request, "no"));
    assert_eq!(code(&bench.say("ann", deny(request, "never"))), "request.decided");
}

#[test]
fn an_edit_is_an_action_of_the_persons_own() {
    let mut bench = asking(None, OnExpiry::Deny);
    let (request, key) = (bench.request(1), bench.action(1).expect("pending").key.clone());
    bench.say("ann", edited(request, "{\"x\":2}"));
    assert_eq!(bench.settled(1).how, How::Denied(DeniedBy::Edit));
    let new = bench.action(3).expect("the edited action is pending").clone();
    assert!(matches!(new.state, ActionState::Ready { .. }));
    assert_eq!((new.proposed_by.as_deref(), new.approved_by.as_deref()), (Some("ann"), Some("ann")));
    assert!(new.key.is_some() && new.key != key);
    assert_eq!(bench.blobs[&new.arguments.digest], b"{\"x\":2}");
    let own = bench.checkpoint.closed_requests.back().expect("closed").name;
    assert_ne!(own, request);
    assert_eq!(code(&bench.say("ann", approve(own))), "already given");
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
    assert_eq!(bench.checkpoint.decision.as_ref().map(|decision| decision.actions.len()), Some(3));
}

#[test]
fn after_expiry_and_after_a_cancel_nothing_counts() {
    let mut bench = asking(Some(1_000), OnExpiry::Deny);
    let request = bench.request(1);
    bench.wait_ms(1_000);
    assert_eq!(code(&bench.say("ann", approve(request))), "request.expired", "before the worker noticed");
    bench.owed();
    assert_eq!(bench.settled(1).how, How::Denied(DeniedBy::Expiry));
    for word in [approve(request), deny(request, "no"), edited(request, "{}")] {
        assert_eq!(code(&bench.say("ann", word)), "request.expired");
    }
    let mut bench = asking(None, OnExpiry::Deny);
    let request = bench.request(1);
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert_eq!(code(&bench.say("bob", approve(request))), "request.withdrawn", "before the worker noticed");
    bench.owed();
    assert_eq!(code(&bench.say("bob", approve(request))), "request.withdrawn");
    assert_eq!(
        code(&bench.say("bob", Word::Cancel { reason: String::new() })),
        "already given",
        "as one that came a moment earlier"
    );
    assert_eq!(code(&bench.say("bob", approve(Digest::of(b"unknown")))), "request.over");
}

#[test]
fn a_pausing_expiry_asks_anew_after_a_resume() {
    let mut bench = asking(Some(1_000), OnExpiry::Pause);
    let request = bench.request(1);
    bench.wait_ms(1_000);
    assert_eq!(names(&bench.owed()), ["RunStopped"]);
    assert_eq!(code(&bench.say("ann", approve(request))), "request.expired");
    assert_eq!(code(&bench.say("ann", Word::Resume)), "accepted");
    assert_eq!(code(&bench.say("ann", approve(request))), "accepted");
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn g02_a_word_that_was_accepted_in_time_counts_however_late_it_is_read() {
    let mut bench = asking(Some(1_000), OnExpiry::Deny);
    let message = Message { by: "ann".to_owned(), word: deny(bench.request(1), "no") };
    assert_eq!(judge(bench.draft(), &[], &message), Ok(Verdict::Accepted));
    bench.wait_ms(60_000);
    let late = Message { by: "bob".to_owned(), word: approve(bench.request(1)) };
    let unread = [(1, message.clone())];
    assert_eq!(judge(bench.draft(), &unread, &late).as_ref().map(code), Ok("request.decided"));
    let mut draft = bench.draft();
    assert_eq!(read(&mut draft, 1, &message), Ok(Verdict::Accepted));
    bench.commit(draft);
    assert_eq!(bench.settled(1).how, How::Denied(DeniedBy::Person));
}

/// Approved in time, and no worker was there until the approval had expired.
fn lapsed(on_expiry: OnExpiry) -> Bench {
    let mut bench = asking(Some(1_000), on_expiry);
    let request = bench.request(1);
    assert_eq!(code(&bench.say("ann", approve(request))), "accepted");
    bench.wait_ms(1_000);
    bench
}

#[test]
fn an_approval_that_expires_before_the_first_intent_is_denied_when_the_rule_says_so() {
    let mut bench = lapsed(OnExpiry::Deny);
    let request = bench.checkpoint.closed_requests.back().expect("closed").name;
    assert_eq!(names(&bench.owed()), ["ApprovalLapsed", "ActionDenied"]);
    assert_eq!(bench.settled(1).how, How::Denied(DeniedBy::Expiry));
    assert!(bench.told(1).contains("ann approved it, but it could not be sent"), "{}", bench.told(1));
    assert_eq!(bench.checkpoint.quota.used.tool_calls, 0);
    assert_eq!(code(&bench.say("ann", approve(request))), "request.expired");
}

#[test]
fn an_approval_that_expires_before_the_first_intent_is_asked_for_again_when_the_rule_pauses() {
    let mut bench = lapsed(OnExpiry::Pause);
    assert_eq!(names(&bench.owed()), ["ApprovalLapsed", "RunStopped"]);
    let Phase::Stopped { reason, text, .. } = bench.checkpoint.phase.clone() else { panic!("it stops") };
    assert_eq!(reason, lodestep_core::event::StopReason::Operator);
    let said = String::from_utf8_lossy(&bench.blobs[&text.digest]).into_owned();
    assert!(said.contains("ann approved action 1") && said.contains("resume asks again"), "{said}");
    let request = bench.request(1);
    assert_eq!(code(&bench.say("ann", approve(request))), "request.expired");
    bench.say("ann", Word::Resume);
    assert_eq!(code(&bench.say("bob", approve(request))), "accepted", "the same request, with a new time");
    assert_eq!(bench.action(1).and_then(|action| action.approved_by.as_deref()), Some("bob"));
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn expiry_never_stops_the_settling_of_what_was_begun() {
    let mut bench = asking(Some(1_000), OnExpiry::Deny);
    let (first, second) = (bench.request(1), bench.request(2));
    bench.say("ann", approve(first));
    bench.say("ann", Word::Answer { request: second, value: "42".to_owned() });
    bench.owed();
    bench.wait_ms(60_000);
    bench.seen(1, lodestep_core::effect::Seen::NotStarted);
    bench.wait_ms(60_000);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"], "another attempt of the begun action");
}

#[test]
fn falsy_answers_count_and_kinds_of_request_are_told_apart() {
    for value in ["", "0", "false", "null", " "] {
        let mut bench = asking(None, OnExpiry::Deny);
        let (approval, question) = (bench.request(1), bench.request(2));
        assert_eq!(code(&bench.say("ann", approve(question))), "request.is_a_question");
        let answer = |request| Word::Answer { request, value: value.to_owned() };
        assert_eq!(code(&bench.say("ann", answer(approval))), "request.is_an_approval");
        assert_eq!(code(&bench.say("ann", answer(question))), "accepted", "{value:?}");
        assert_eq!(code(&bench.say("ann", answer(question))), "already given", "{value:?}");
        assert_eq!((bench.settled(2).how, bench.told(2).as_str()), (How::Done, value));
    }
}

#[test]
fn a_quarantined_run_is_released_not_resumed() {
    use lodestep_core::event::{Event, RunStopped, StopReason};
    let mut bench = asking(None, OnExpiry::Deny);
    assert_eq!(code(&bench.say("ann", Word::Resume)), "already given");
    let text = lodestep_core::ValueRef::of(b"crashes");
    bench.push(Event::RunStopped(RunStopped { reason: StopReason::Crashes, text })).expect("it is active");
    assert_eq!(code(&bench.say("ann", Word::Resume)), "run.quarantined");
    assert_eq!(code(&bench.say("ann", Word::Release)), "accepted");
    assert_eq!(bench.checkpoint.phase, Phase::Active);
    assert!(matches!(bench.state(1), ActionState::Gated { gate: Gate::Approval(_) }));
}
