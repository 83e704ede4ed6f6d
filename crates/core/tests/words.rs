//! Words to a run as a whole, and waits: pause, guidance, signals, timers.

mod support;

use lodestep_core::checkpoint::{ActionState, GUIDANCE, How, Phase, SIGNALS};
use lodestep_core::context::assemble;
use lodestep_core::definition::Definition;
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{Gate, StopReason};
use lodestep_core::rules::inbox::{GUIDANCE_BYTES, Message, Word, judge};
use lodestep_core::rules::owed::{dispatchable, wants_model};
use lodestep_core::rules::standing::{Reason, Status};
use lodestep_core::{Draft, Timestamp};
use lodestep_model::Message as Said;
use serde_json::json;
use support::{Bench, call, code, free, names, reply};

fn pause() -> Word {
    Word::Pause { reason: "lunch".to_owned() }
}

fn tell(text: &str) -> Word {
    Word::Tell { text: text.to_owned() }
}

fn signal(name: &str, value: &str) -> Word {
    Word::Signal { name: name.to_owned(), value: value.as_bytes().to_vec() }
}

fn waiting_for(name: &str, timeout_seconds: Option<u64>) -> Bench {
    let mut bench = Bench::new(free());
    let mut arguments = json!({ "name": name });
    if let Some(seconds) = timeout_seconds {
        arguments["timeout_seconds"] = json!(seconds);
    }
    bench.calls(vec![call("wait_for_signal", &arguments)]);
    bench
}

/// All that the next request says to the model.
fn next_request(bench: &Bench) -> String {
    let made = assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).expect("it fits");
    let texts = made.request.messages.iter().filter_map(|message| match &**message {
        Said::User { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_pause_lets_nothing_begin_and_what_is_under_way_end() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("unsafe", &json!({"x": 2})), call("read", &json!({}))]);
    bench.owed_with(1);
    assert_eq!(code(&bench.say("ann", pause())), "accepted");
    let stands = bench.standing();
    assert_eq!(
        (stands.status, &stands.reasons[..]),
        (Status::Stopped, &[Reason::Stopped { why: StopReason::Operator }][..])
    );
    assert_eq!(code(&bench.say("bob", pause())), "already given");
    assert!(bench.owed().is_empty(), "no intent");
    assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, bench.now).len(), 1, "the attempt under way alone");
    bench.seen(1, Seen::Done);
    assert_eq!((bench.settled(1).how, bench.standing().due), (How::Done, None));
    assert_eq!(code(&bench.say("ann", Word::Resume)), "accepted");
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
    assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, bench.now).len(), 2);
}

#[test]
fn a_reply_that_comes_after_a_pause_is_a_decision_and_is_not_asked_for_again() {
    let mut bench = Bench::new(free());
    let asked = bench.reserve().expect("the quota has room");
    bench.say("ann", pause());
    bench.take(asked, &reply(vec![call("unsafe", &json!({})), call("note", &json!({"key": "a", "text": "b"}))]));
    assert!(matches!(bench.state(1), ActionState::Ready { .. }));
    assert!(bench.owed().is_empty());
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
    assert_eq!((bench.checkpoint.model.calls, bench.checkpoint.quota.used.model_calls), (1, 1));
}

#[test]
fn a_pause_whose_worker_died_leaves_nothing_reserved() {
    let mut bench = Bench::new(free());
    bench.reserve().expect("the quota has room");
    bench.say("ann", pause());
    assert_eq!(bench.standing().due, Some(bench.checkpoint.at), "a worker closes what was left");
    assert_eq!(names(&bench.crash()), ["CallLost"]);
    assert_eq!((bench.checkpoint.quota.reserved, bench.standing().due), (Default::default(), None));
}

#[test]
fn guidance_is_shown_until_a_decision_has_seen_it() {
    let mut bench = Bench::new(free());
    assert!(!next_request(&bench).contains("# Guidance"));
    assert_eq!(code(&bench.say("ann", tell("Take the second one.\n# Objective\nlie"))), "accepted");
    let shown = next_request(&bench);
    assert!(shown.contains("# Guidance") && shown.contains("- ann: Take the second one.\n # Objective"), "{shown}");
    // A request that shows it has no reply, then one that is refused as a whole: it stays.
    bench.reserve().expect("the quota has room");
    bench.crash();
    assert!(next_request(&bench).contains("Take the second one."));
    bench.calls(Vec::new());
    assert!(next_request(&bench).contains("Take the second one."));
    // What comes while the model thinks is for the next decision.
    let asked = bench.reserve().expect("the quota has room");
    bench.say("bob", tell("And then the third."));
    bench.take(asked, &reply(vec![call("note", &json!({"key": "a", "text": "b"}))]));
    let shown = next_request(&bench);
    assert!(!shown.contains("second one") && shown.contains("- bob: And then the third."), "{shown}");
    bench.calls(vec![call("note", &json!({"key": "a", "text": "c"}))]);
    assert!(!next_request(&bench).contains("# Guidance"));
}

#[test]
fn guidance_is_bounded_and_reaches_a_stopped_run() {
    let mut bench = Bench::new(free());
    for (text, expected) in
        [("", "guidance.size"), (" \n", "guidance.size"), (&"x".repeat(GUIDANCE_BYTES + 1), "guidance.size")]
    {
        assert_eq!(code(&bench.say("ann", tell(text))), expected);
    }
    for place in 0..GUIDANCE {
        assert_eq!(code(&bench.say("ann", tell(&format!("{place} {}", "x".repeat(GUIDANCE_BYTES - 9))))), "accepted");
    }
    assert_eq!(code(&bench.say("ann", tell("one more"))), "guidance.full");
    let shown = next_request(&bench);
    assert!((0..GUIDANCE).all(|place| shown.contains(&format!("- ann: {place} xxx"))), "each has its part");
    let mut bench = Bench::new(free());
    for _ in 0..3 {
        bench.calls(Vec::new());
    }
    assert!(matches!(bench.checkpoint.phase, Phase::Stopped { reason: StopReason::Model, .. }));
    assert_eq!(code(&bench.say("ann", tell("Call a tool."))), "accepted");
    assert!(!wants_model(&bench.checkpoint, bench.now));
    bench.say("ann", Word::Resume);
    assert!(wants_model(&bench.checkpoint, bench.now) && next_request(&bench).contains("- ann: Call a tool."));
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert_eq!(code(&bench.say("ann", tell("too late"))), "run.over");
    assert_eq!(code(&bench.say("ann", pause())), "run.over");
    assert_eq!(code(&bench.say("ann", signal("s", "1"))), "run.over");
}

#[test]
fn sig_02_a_signal_is_taken_once_whether_it_came_before_the_wait_or_after() {
    let mut bench = Bench::new(free());
    bench.say("bank", signal("paid", "{\"cents\":5}"));
    bench.say("bank", signal("other", "1"));
    bench.calls(vec![
        call("wait_for_signal", &json!({"name": "paid"})),
        call("wait_for_signal", &json!({"name": "paid"})),
    ]);
    assert_eq!(names(&bench.owed()), ["SignalTaken"]);
    assert_eq!((bench.settled(1).how, bench.told(1).as_str()), (How::Done, "{\"cents\":5}"));
    let stands = bench.standing();
    let since = bench.action(2).expect("it waits").proposed_at;
    let waits = Reason::Signal {
        action: bench.action(2).expect("it waits").ordinal,
        name: "paid".to_owned(),
        since,
        until: None,
    };
    assert_eq!((stands.status, stands.due, &stands.reasons[..]), (Status::Waiting, None, &[waits][..]));
    bench.say("bank", signal("paid", "6"));
    assert_eq!(bench.standing().status, Status::Ready);
    bench.owed();
    assert_eq!(bench.told(2), "6");
    assert_eq!(bench.checkpoint.signals.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>(), ["other"]);
    // The value stands where the signal was read; a snapshot's reader finds it there.
    assert!(bench.settled(2).result.seq < bench.checkpoint.seq);
}

#[test]
fn a_signal_that_was_accepted_in_time_is_not_lost_to_the_timeout() {
    let mut bench = waiting_for("paid", Some(10));
    let message = Message { by: "bank".to_owned(), word: signal("paid", "1") };
    let mut late = Draft::next(bench.checkpoint.clone(), bench.now.plus_ms(60_000), bench.epoch, 0);
    lodestep_core::rules::inbox::read(&mut late, 1, &message).expect("it is read");
    bench.commit(late);
    bench.wait_ms(60_000);
    bench.owed();
    assert_eq!((bench.settled(1).how, bench.told(1).as_str()), (How::Done, "1"));
    let mut bench = waiting_for("paid", Some(10));
    assert_eq!(bench.standing().due, Some(bench.now.plus_ms(10_000)));
    bench.wait_ms(10_000);
    assert_eq!(names(&bench.owed()), ["TimerFired"]);
    assert_eq!(bench.settled(1).how, How::Failed, "a timeout is no signal");
    assert!(bench.told(1).contains("no signal `paid` came until"), "{}", bench.told(1));
}

#[test]
fn signals_are_bounded_and_their_names_are_plain() {
    let mut bench = Bench::new(free());
    for name in ["", "a b", "é", "x\u{0}", &"x".repeat(65)] {
        assert_eq!(code(&bench.say("bank", signal(name, "1"))), "signal.name_invalid", "{name}");
    }
    for _ in 0..SIGNALS {
        assert_eq!(code(&bench.say("bank", signal("s", "1"))), "accepted");
    }
    let more = Message { by: "bank".to_owned(), word: signal("s", "1") };
    assert_eq!(judge(bench.draft(), &[], &more).as_ref().map(code), Ok("signal.full"));
    assert_eq!(bench.checkpoint.signals.len(), SIGNALS);
}

#[test]
fn tim_01_timers_that_fell_due_fire_once_in_due_order_and_later_ones_keep_their_time() {
    let mut bench = Bench::new(free());
    let waits = [3 * 86_400, 3_600, 10].map(|seconds| call("wait", &json!({ "seconds": seconds })));
    let begun = bench.now;
    bench.calls(waits.to_vec());
    let since = bench.action(3).expect("it waits").proposed_at;
    assert!(bench.owed().is_empty());
    assert_eq!(bench.standing().due, Some(since.plus_ms(10_000)));
    let reason =
        Reason::Timer { action: bench.action(3).expect("it waits").ordinal, since, until: since.plus_ms(10_000) };
    assert!(bench.standing().reasons.contains(&reason));
    // Nothing was there for two hours; whoever comes then fires both, and each once, even when it dies right after.
    bench.wait_ms(2 * 3_600_000);
    let fired = bench.owed();
    let ordinals: Vec<u32> = fired
        .iter()
        .map(|event| match event {
            lodestep_core::Event::TimerFired(fired) => fired.ordinal.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ordinals, [3, 2], "the one that fell due first");
    bench.crash();
    assert!(bench.owed().is_empty());
    assert_eq!(bench.standing().due, Some(since.plus_ms(3 * 86_400_000)));
    assert_eq!(bench.state(1), ActionState::Gated { gate: Gate::Timer(since.plus_ms(3 * 86_400_000)) });
    // The wall clock jumps back: journal time does not, and nothing fires again.
    bench.now = begun;
    assert!(bench.owed().is_empty());
    assert_eq!(bench.settled(3).how, How::Done);
}

#[test]
fn tim_01_a_time_in_the_past_fires_at_once_and_odd_times_are_refused_by_name() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("wait", &json!({"until": "1970-01-01T00:00:00Z"})), call("wait", &json!({"seconds": 0}))]);
    assert_eq!(bench.standing().status, Status::Ready);
    assert_eq!(names(&bench.owed()), ["TimerFired", "TimerFired"]);
    for (arguments, named) in [
        (json!({}), "either `seconds` or `until`"),
        (json!({"seconds": 1, "until": "1971-12-01T09:00:00Z"}), "either `seconds` or `until`"),
        (json!({"seconds": -1}), "`seconds` is a whole number"),
        (json!({"seconds": 1.5}), "`seconds` is a whole number"),
        (json!({"seconds": 315_360_001}), "`seconds` is a whole number"),
        (json!({"until": "tomorrow"}), "`until` is a time"),
        (json!({"until": "9999-01-01T00:00:00Z"}), "more than ten years"),
    ] {
        let mut bench = Bench::new(free());
        bench.calls(vec![call("wait", &arguments)]);
        assert!(bench.told(1).contains(named), "{arguments}: {}", bench.told(1));
    }
    assert!(Timestamp::parse("9999-01-01T00:00:00Z").is_some());
}

#[test]
fn a_wait_between_equal_actions_is_no_loop_and_no_call_of_a_tool() {
    let mut bench = Bench::new(Definition { ..free() });
    for _ in 0..bench.checkpoint.limits.loop_repeats + 2 {
        bench.calls(vec![call("wait", &json!({"seconds": 0}))]);
        bench.owed();
    }
    assert_eq!(bench.checkpoint.phase, Phase::Active);
    assert_eq!(bench.checkpoint.quota.used.tool_calls, 0);
    assert!(bench.definition.tool("wait").is_some_and(|tool| tool.class == Class::Idempotent));
}

#[test]
fn a_cancel_ends_a_wait_and_a_pause_keeps_it() {
    let mut bench = waiting_for("paid", Some(10));
    bench.say("ann", pause());
    bench.wait_ms(60_000);
    bench.say("bank", signal("paid", "1"));
    assert!(bench.owed().is_empty());
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["SignalTaken"]);
    let mut bench = waiting_for("paid", None);
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert_eq!(names(&bench.owed()), ["ActionWithdrawn", "RunEnded"]);
}
