//! What an attempt came to, by class: retried, settled, looked up or left to a person.

mod support;

use lodestep_core::checkpoint::{ActionState, How, Phase};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{Event, SettledBy, UnknownNext};
use lodestep_core::rules::inbox::{Became, Word, late_word};
use lodestep_core::rules::owed::dispatchable;
use lodestep_core::rules::settle::{Attempt, LookedUp, settle};
use lodestep_core::rules::standing::{Reason, Status, backoff_ms};
use lodestep_core::{Ordinal, Timestamp};
use serde_json::json;
use support::{Bench, call, code, free, names};

/// A run with one action of the class, its attempt under way.
fn under_way(class: Class) -> Bench {
    let mut bench = Bench::new(free());
    bench.calls(vec![call(class.as_str(), &json!({"x": 1}))]);
    bench.owed();
    bench
}

/// What became of action 1, in a word.
fn became(bench: &Bench) -> &'static str {
    let Some(action) = bench.action(1) else {
        return match bench.settled(1).how {
            How::Done => "done",
            How::Failed => "failed",
            _ => "other",
        };
    };
    match action.state {
        ActionState::Ready { .. } => "again",
        ActionState::LookUp { .. } => "look up",
        ActionState::Doubt { .. } => "doubt",
        _ => "open",
    }
}

#[test]
fn eff_02_every_sight_of_every_class() {
    let seen = [
        Seen::Done,
        Seen::NotStarted,
        Seen::AskedToWait,
        Seen::Refused,
        Seen::Interrupted,
        Seen::TimedOut,
        Seen::ServerFault,
        Seen::WorkerDied,
    ];
    for class in Class::ALL {
        let unknown = match class {
            Class::Read | Class::Idempotent | Class::Keyed => "again",
            Class::Checkable => "look up",
            Class::Unsafe => "doubt",
        };
        for (seen, expected) in
            seen.into_iter().zip(["done", "again", "again", "failed", unknown, unknown, unknown, unknown])
        {
            let mut bench = under_way(class);
            bench.seen(1, seen);
            assert_eq!(became(&bench), expected, "{class} {seen:?}");
        }
    }
}

#[test]
fn g05_a_worker_that_dies_leaves_what_its_class_allows() {
    for (class, expected) in [
        (Class::Read, "again"),
        (Class::Idempotent, "again"),
        (Class::Keyed, "again"),
        (Class::Checkable, "look up"),
        (Class::Unsafe, "doubt"),
    ] {
        let mut bench = under_way(class);
        bench.crash();
        assert_eq!(became(&bench), expected, "{class}");
        let again = bench.owed();
        let resent = again.iter().any(|event| matches!(event, Event::AttemptStarted(_)));
        assert_eq!(resent, class == Class::Keyed, "{class}: only a keyed one is sent again under an intent");
    }
}

#[test]
fn g05_a_keyed_effect_is_sent_again_under_the_same_key() {
    let mut bench = under_way(Class::Keyed);
    let key = bench.action(1).expect("pending").key.clone();
    bench.seen(1, Seen::TimedOut);
    bench.wait_ms(1_000);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
    assert_eq!(bench.action(1).expect("pending").key, key);
}

#[test]
fn g05_a_keyed_effect_is_never_sent_after_its_key_is_forgotten() {
    let mut bench = under_way(Class::Keyed);
    bench.wait_ms(3_599_900);
    bench.seen(1, Seen::TimedOut);
    assert_eq!(became(&bench), "again", "the key is valid for 100 ms more");
    bench.wait_ms(1_000);
    let events = bench.owed();
    assert_eq!(names(&events), ["AttemptUnknown"], "the retry waited longer than the key is valid");
    assert_eq!(became(&bench), "doubt");
}

#[test]
fn g05_a_keyed_retry_has_a_deadline_within_its_keys_validity() {
    let mut bench = under_way(Class::Keyed);
    let first = bench.now;
    bench.wait_ms(3_590_000);
    bench.seen(1, Seen::TimedOut);
    bench.wait_ms(1_000);
    bench.owed();
    let ActionState::Open { send_by, .. } = bench.state(1) else { panic!("it is sent again") };
    assert_eq!(send_by, first.plus_ms(3_600_000));
    bench.wait_ms(20_000);
    bench.seen(1, Seen::TimedOut);
    assert_eq!(became(&bench), "doubt");
}

#[test]
fn backoff_grows_and_is_bounded_and_the_same_each_time() {
    let mut longest = 0;
    for attempt in 1..40 {
        let (base, wait) = ((500_u64 << (attempt - 1).min(7)).min(60_000), backoff_ms("run", 4, attempt));
        assert!((base..=base + base / 2).contains(&wait), "attempt {attempt}: {wait}");
        assert_eq!(wait, backoff_ms("run", 4, attempt));
        longest = longest.max(wait);
    }
    assert!(longest <= 90_000);
    assert!(backoff_ms("run", u64::MAX, u32::MAX) <= 90_000);
    let spread: std::collections::BTreeSet<u64> = (0..50).map(|run| backoff_ms(&format!("run-{run}"), 1, 5)).collect();
    assert!(spread.len() > 25, "many runs do not come back at once");
}

#[test]
fn attempts_are_counted_and_used_up() {
    for class in Class::ALL {
        let mut bench = under_way(class);
        for attempt in 1..=3 {
            assert_eq!(became(&bench), if class.is_repeatable() { "again" } else { "open" }, "{class} {attempt}");
            bench.seen(1, Seen::NotStarted);
            bench.wait_ms(100_000);
            bench.owed();
        }
        assert_eq!(became(&bench), "failed", "{class}");
        assert!(bench.told(1).contains("could not be sent in 3 attempts"), "{}", bench.told(1));
        assert_eq!(bench.settled(1).attempts, 3);
    }
}

#[test]
fn timeouts_use_up_the_attempts_of_a_repeatable_and_a_keyed_one() {
    for (class, end) in [(Class::Read, "failed"), (Class::Idempotent, "failed"), (Class::Keyed, "doubt")] {
        let mut bench = under_way(class);
        for _ in 1..=3 {
            bench.seen(1, Seen::TimedOut);
            bench.wait_ms(100_000);
            bench.owed();
        }
        assert_eq!(became(&bench), end, "{class}");
    }
}

#[test]
fn g05_nothing_is_called_failed_while_an_earlier_attempt_may_have_happened() {
    let mut bench = under_way(Class::Keyed);
    bench.seen(1, Seen::TimedOut);
    for _ in 2..=3 {
        bench.wait_ms(100_000);
        bench.owed();
        bench.seen(1, Seen::NotStarted);
    }
    assert_eq!(became(&bench), "doubt", "the first attempt may have been applied");
}

#[test]
fn an_attempt_that_was_not_sent_counts_one_effect_and_keeps_its_approval() {
    let mut definition = support::definition();
    let mut asks = support::rule(&[], &[Class::Unsafe], lodestep_core::definition::Decide::Ask);
    asks.expires_ms = Some(10_000);
    definition.policy.push(asks);
    let mut bench = Bench::new(definition);
    bench.calls(vec![call("unsafe", &json!({}))]);
    let request = bench.request(1);
    bench.say("ann", Word::Approve { request });
    bench.owed();
    assert_eq!(became(&bench), "open");
    assert_eq!(bench.checkpoint.effect_log.count, 1);
    bench.seen(1, Seen::NotStarted);
    assert_eq!(bench.action(1).expect("pending").first_sent, None, "nothing was sent");
    bench.wait_ms(60_000);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"], "the first intent consumed the approval");
    assert_eq!(bench.checkpoint.effect_log.count, 1, "one action, one effect");
}

#[test]
fn lookups_settle_wait_resend_or_ask() {
    let looking = || {
        let mut bench = under_way(Class::Checkable);
        bench.seen(1, Seen::TimedOut);
        bench
    };
    let mut bench = looking();
    let ActionState::LookUp { not_before, .. } = bench.state(1) else { panic!("it is looked up") };
    assert_eq!(not_before, bench.now.plus_ms(30_000), "not before it has settled");
    assert!(dispatchable(&bench.checkpoint, bench.epoch, bench.now).is_empty());
    assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, not_before).len(), 1);
    bench.looked_up(1, LookedUp::Done(b"receipt".to_vec()));
    assert_eq!((became(&bench), bench.settled(1).by), ("done", Some(SettledBy::Lookup)));
    let mut bench = looking();
    bench.looked_up(1, LookedUp::Running);
    assert_eq!(became(&bench), "look up");
    bench.looked_up(1, LookedUp::Absent);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
    let mut bench = looking();
    bench.looked_up(1, LookedUp::Unknown("no access".to_owned()));
    assert_eq!(became(&bench), "doubt");
    assert!(bench.looked_up(1, LookedUp::Absent).is_empty(), "no lookup is due any more");
}

#[test]
fn a_lookup_that_is_always_absent_ends_the_attempts() {
    let mut bench = under_way(Class::Checkable);
    let mut sent = 1;
    while bench.action(1).is_some() {
        bench.seen(1, Seen::TimedOut);
        bench.wait_ms(60_000);
        bench.looked_up(1, LookedUp::Absent);
        sent += bench.owed().len();
        assert!(sent < 50, "it would be sent for ever");
    }
    assert_eq!((became(&bench), sent), ("failed", 8), "three of its own and five that crashes may have taken");
}

#[test]
fn a_stale_attempts_end_moves_nothing() {
    let mut bench = under_way(Class::Keyed);
    bench.seen(1, Seen::TimedOut);
    bench.wait_ms(1_000);
    bench.owed();
    for seen in [Seen::NotStarted, Seen::TimedOut, Seen::Refused] {
        assert!(bench.seen_of(1, 1, seen).is_empty(), "{seen:?} of the first attempt while the second is under way");
    }
    bench.seen_of(1, 1, Seen::Done);
    assert_eq!(became(&bench), "done", "that it happened is the truth about the effect");
    assert!(bench.seen_of(1, 2, Seen::Done).is_empty(), "a settled action takes no outcome");
    let mut bench = under_way(Class::Unsafe);
    bench.seen(1, Seen::TimedOut);
    assert!(bench.seen_of(1, 1, Seen::NotStarted).is_empty(), "a doubt is not undone by a worker's second word");
    assert_eq!(became(&bench), "doubt");
}

#[test]
fn late_reports_settle_what_is_open_and_nothing_else() {
    for class in [Class::Keyed, Class::Checkable, Class::Unsafe] {
        let mut bench = under_way(class);
        let word = |ok| {
            let seen = if ok { Seen::Done } else { Seen::Refused };
            late_word(lodestep_core::Ordinal(1), 1, seen, b"late".to_vec()).expect("it proves something")
        };
        assert_eq!(code(&bench.say("w1", word(true))), "already given", "{class}: its own worker will say");
        bench.crash();
        assert_eq!(code(&bench.say("w1", word(true))), "accepted", "{class}");
        assert_eq!((became(&bench), bench.settled(1).by), ("done", Some(SettledBy::LateReport)));
        assert_eq!(code(&bench.say("w1", word(false))), "already given", "{class}");
    }
    assert_eq!(late_word(lodestep_core::Ordinal(1), 1, Seen::TimedOut, Vec::new()), None);
}

#[test]
fn a_late_truth_comes_before_a_persons_resend() {
    let mut bench = under_way(Class::Unsafe);
    bench.crash();
    let ordinal = lodestep_core::Ordinal(1);
    bench.say("ann", Word::Resolve { ordinal, became: Became::SendAgain, attempt: None });
    let late = late_word(ordinal, 1, Seen::Done, Vec::new()).expect("it proves something");
    assert_eq!(code(&bench.say("w1", late)), "accepted");
    assert!(bench.owed().is_empty(), "it is not sent a second time");
    assert_eq!(became(&bench), "done");
}

#[test]
fn a_cancel_sends_nothing_and_tells_the_truth_about_each() {
    for class in Class::ALL {
        for state in ["ready", "open", "unknown"] {
            let mut bench = Bench::new(free());
            bench.calls(vec![call(class.as_str(), &json!({}))]);
            if state != "ready" {
                bench.owed();
            }
            if state == "unknown" {
                bench.seen(1, Seen::TimedOut);
            }
            assert_eq!(code(&bench.say("ann", Word::Cancel { reason: "enough".to_owned() })), "accepted");
            let events = bench.owed();
            assert!(!names(&events).contains(&"AttemptStarted"));
            if bench.action(1).is_some_and(|action| matches!(action.state, ActionState::Open { .. })) {
                bench.seen(1, Seen::TimedOut);
                bench.owed();
            }
            if became(&bench) == "look up" {
                bench.wait_ms(60_000);
                bench.looked_up(1, LookedUp::Running);
                bench.owed();
            }
            assert!(bench.checkpoint.is_over(), "{class} {state}: {:?}", bench.checkpoint.phase);
            let expected = match (class.is_repeatable(), state) {
                (true, _) | (_, "ready") => "other",
                _ => "doubt",
            };
            assert_eq!(became(&bench), expected, "{class} {state}");
        }
    }
}

#[test]
fn a_cancel_waits_for_a_lookup_without_spinning_and_keeps_its_reason() {
    let mut bench = under_way(Class::Checkable);
    bench.seen(1, Seen::TimedOut);
    let due = bench.now.plus_ms(30_000);
    bench.say("ann", Word::Cancel { reason: "enough".to_owned() });
    let cancelled_in = bench.checkpoint.seq;
    bench.owed();
    let standing = bench.standing();
    assert_eq!((standing.status, standing.due), (Status::Waiting, Some(due)));
    assert_eq!(standing.reasons, [Reason::Cancelling]);
    bench.now = due;
    bench.looked_up(1, LookedUp::Absent);
    bench.owed();
    assert_eq!(became(&bench), "failed");
    let Phase::Ended { text, .. } = bench.checkpoint.phase else { panic!("it ended") };
    assert_eq!(text.seq, cancelled_in, "the reason's bytes stand in the transition that stored them");
}

#[test]
fn doubts_and_future_retries_show_both() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({})), call("keyed", &json!({}))]);
    bench.owed();
    bench.seen(1, Seen::TimedOut);
    bench.seen(2, Seen::TimedOut);
    let standing = bench.standing();
    assert_eq!(standing.status, Status::InDoubt);
    assert_eq!(standing.reasons.len(), 2);
    let ActionState::Ready { not_before } = bench.state(2) else { panic!("it is tried again") };
    assert_eq!(standing.due, Some(not_before), "the sibling goes on while the doubt stands");
    bench.now = not_before;
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn resolving_a_doubt() {
    for (became_, expected, again) in [
        (Became::Happened(b"seen it".to_vec()), "done", "already given"),
        (Became::Happened(Vec::new()), "done", "already given"),
        (Became::SendAgain, "again", "action.not_in_doubt"),
        (Became::Abandoned("gone".to_owned()), "other", "already given"),
    ] {
        let mut bench = under_way(Class::Unsafe);
        bench.crash();
        let word = Word::Resolve { ordinal: lodestep_core::Ordinal(1), became: became_, attempt: None };
        assert_eq!(code(&bench.say("ann", word.clone())), "accepted");
        assert_eq!(became(&bench), expected);
        assert_eq!(code(&bench.say("ann", word)), again);
        let another = Became::Happened(b"another result".to_vec());
        let word = Word::Resolve { ordinal: lodestep_core::Ordinal(1), became: another, attempt: None };
        assert_eq!(code(&bench.say("ann", word)), "action.not_in_doubt", "another word is not the same");
        bench.owed();
    }
    let mut bench = under_way(Class::Unsafe);
    let word = Word::Resolve { ordinal: lodestep_core::Ordinal(9), became: Became::SendAgain, attempt: None };
    assert_eq!(code(&bench.say("ann", word)), "action.not_found");
}

#[test]
fn a_word_on_an_attempt_says_nothing_of_a_later_one() {
    let ordinal = lodestep_core::Ordinal(1);
    let first = |became| Word::Resolve { ordinal, became, attempt: Some(1) };
    let mut bench = under_way(Class::Unsafe);
    bench.crash();
    assert_eq!(code(&bench.say("ann", first(Became::SendAgain))), "accepted");
    bench.owed();
    bench.crash();
    assert!(matches!(bench.action(1).expect("pending").state, ActionState::Doubt { attempt: 2, .. }));
    // Two people looked at the first doubt, and the word of one comes late.
    for became in [Became::SendAgain, Became::DidNotHappen, Became::Abandoned(String::new())] {
        assert_eq!(code(&bench.say("bob", first(became))), "action.not_in_doubt");
    }
    let second = Word::Resolve { ordinal, became: Became::SendAgain, attempt: Some(2) };
    assert_eq!(code(&bench.clone().say("bob", second)), "accepted");
    assert_eq!(code(&bench.say("bob", first(Became::Happened(Vec::new())))), "accepted", "the effect is there");
    assert_eq!(became(&bench), "done");
}

#[test]
fn an_unknown_next_names_its_time() {
    let mut bench = under_way(Class::Keyed);
    let events = bench.seen(1, Seen::ServerFault);
    let [Event::AttemptUnknown(unknown)] = events.as_slice() else { panic!("{events:?}") };
    let UnknownNext::Again(at) = unknown.next else { panic!("{unknown:?}") };
    assert!(at > bench.now && at <= bench.now.plus_ms(750), "half a second and jitter");
    assert_ne!(at, Timestamp::default());
}

#[test]
fn g14_a_transition_without_events_has_the_state_of_its_bytes() {
    let mut bench = Bench::new(free());
    bench.wait_ms(5_000);
    let sealed = bench.draft().seal();
    let mut folded = bench.checkpoint.clone();
    lodestep_core::fold::fold(&mut folded, &sealed.envelope).expect("it folds");
    assert_eq!(folded, sealed.checkpoint);
    assert_eq!(bench.draft().seal(), sealed, "the same again has the same digest");
}

#[test]
fn g11_what_waits_for_a_settled_action_is_due_at_once() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({})), call("unsafe", &json!({}))]);
    bench.owed();
    bench.seen(1, Seen::Done);
    let standing = bench.standing();
    assert_eq!((standing.status, standing.due), (Status::Ready, Some(bench.checkpoint.at)));
    let mut bench = Bench::new(free());
    bench.calls(vec![call("finish", &json!({}))]);
    assert_eq!(bench.standing().due, Some(bench.checkpoint.at), "a finish without siblings can be judged");
}

#[test]
fn a_lookup_without_an_answer_is_asked_again_for_an_hour_and_then_a_person_is() {
    let mut bench = under_way(Class::Checkable);
    bench.seen(1, Seen::TimedOut);
    let mut asked = 0;
    while became(&bench) == "look up" {
        bench.wait_ms(60_000);
        bench.looked_up(1, LookedUp::NoAnswer("HTTP 503".to_owned()));
        asked += 1;
        assert!(asked < 100, "it would be asked for ever");
    }
    assert_eq!((became(&bench), asked), ("doubt", 60));
}

#[test]
fn a_wait_that_a_receiver_asks_for_is_kept_and_bounded() {
    const DAY_MS: u64 = 86_400_000;
    for (asked_ms, waits_ms) in [(DAY_MS, DAY_MS), (u64::MAX, 30 * DAY_MS)] {
        let mut bench = under_way(Class::Keyed);
        let (text, retry_after_ms) = (b"HTTP 429".to_vec(), Some(asked_ms));
        let asked =
            Attempt { ordinal: Ordinal(1), attempt: 1, seen: Seen::AskedToWait, text, artifact: None, retry_after_ms };
        bench.step(|draft, _| settle(draft, asked));
        let ActionState::Ready { not_before } = bench.state(1) else { panic!("it is tried again") };
        assert_eq!(not_before, bench.now.plus_ms(waits_ms));
    }
}

#[test]
fn g11_a_cancel_that_waits_for_a_lookup_is_due_when_the_lookup_is() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("checkable", &json!({}))]);
    bench.owed();
    bench.seen(1, Seen::TimedOut);
    let ActionState::LookUp { not_before, .. } = bench.state(1) else { panic!("{:?}", bench.state(1)) };
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert!(bench.owed().is_empty() && !bench.checkpoint.is_over(), "the lookup is waited for");
    let due = bench.standing().due.expect("it is due some time");
    assert!(due > bench.checkpoint.at && due <= not_before, "{due} of {not_before}");
}
