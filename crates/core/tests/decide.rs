//! A reply becomes a decision: what is refused and how it is named, sameness, quotas, policy, state acts, finish.

mod support;

use std::collections::BTreeMap;

use lodestep_core::checkpoint::{ActionState, How, Phase};
use lodestep_core::definition::{Decide, Definition, Done, Limits, MilestoneDefinition, Price, QuotaLimits};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{
    ArtifactSaved, CallFailure, Ending, ErrorKind, Event, Evidence, Gate, RefusalKind, StopReason,
};
use lodestep_core::quota::Amounts;
use lodestep_core::rules::ask::{fail, give_up, lose};
use lodestep_core::rules::decide::{CALLS_PER_REPLY, CALLS_READ, Prior};
use lodestep_core::rules::inbox::Word;
use lodestep_core::rules::owed::dispatchable;
use lodestep_core::{Checkpoint, Ordinal, ValueRef};
use lodestep_model::{Call, StopReason as ModelStop, Usage};
use serde_json::{Value, json};
use support::{Bench, call, definition, free, names, raw_call, reply, rule};

fn how(bench: &Bench, ordinal: u32) -> How {
    bench.settled(ordinal).how
}

fn stopped(checkpoint: &Checkpoint) -> Option<StopReason> {
    match checkpoint.phase {
        Phase::Stopped { reason, .. } => Some(reason),
        _ => None,
    }
}

#[test]
fn tol_02_each_invalid_call_is_refused_by_name_and_the_valid_one_is_proposed_once() {
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(5 << 20));
    for (arguments, named) in [
        ("{\"x\":", "not valid JSON"),
        ("{\"x\":1,}", "not valid JSON"),
        ("Sure! {\"x\":1}", "not valid JSON"),
        ("[1]", "not an array"),
        ("null", "not null"),
        ("\"{}\"", "not a string"),
        ("7", "not a number"),
        ("true", "not a boolean"),
        ("", "not valid JSON"),
        ("{\"x\":1,\"x\":2}", "stands twice"),
        ("{\"x\":12345678901234567890}", "can't be held exactly"),
        ("{\"bad\":1}", "`bad` is not allowed"),
        (&deep, "nested deeper"),
        (&long, "at most 1048576"),
    ] {
        let mut bench = Bench::new(free());
        let calls = vec![raw_call("read", arguments), call("build", &json!({})), call("read", &json!({"x": 1}))];
        bench.calls(calls);
        let short = &arguments[..arguments.len().min(30)];
        assert_eq!(how(&bench, 1), How::Refused(RefusalKind::InvalidArguments), "{short}");
        assert!(bench.told(1).contains(named), "{short}: {}", bench.told(1));
        assert_eq!(how(&bench, 2), How::Refused(RefusalKind::UnknownTool));
        assert!(matches!(bench.state(3), ActionState::Ready { .. }), "{short}");
        assert_eq!(bench.checkpoint.pending.len(), 1);
        assert_eq!(bench.checkpoint.model.faulty_in_row, 0, "something of it could be done");
        let stored = &bench.blobs[&bench.settled(1).arguments.digest];
        assert!(serde_json::from_slice::<Value>(stored).is_ok_and(|value| value.is_object()), "{short}");
    }
}

#[test]
fn tol_02_the_limit_of_faulty_replies_counts_those_in_a_row_and_persists() {
    let mut bench = Bench::new(free());
    for _ in 0..2 {
        bench.calls(vec![raw_call("read", "{")]);
        bench.checkpoint = Checkpoint::from_bytes(&bench.checkpoint.to_bytes()).expect("it round-trips");
    }
    assert_eq!(bench.checkpoint.model.faulty_in_row, 2);
    bench.calls(vec![call("note", &json!({"key": "a", "text": "b"}))]);
    assert_eq!(bench.checkpoint.model.faulty_in_row, 0, "a sound reply ends the row");
    for faulty in 1..=3 {
        assert_eq!(stopped(&bench.checkpoint), None);
        bench.calls(vec![raw_call("read", "null"), call("Read", &json!({}))]);
        assert_eq!(bench.checkpoint.model.faulty_in_row, faulty);
    }
    assert_eq!(stopped(&bench.checkpoint), Some(StopReason::Model));
    bench.say("ann", Word::Resume);
    assert_eq!(bench.checkpoint.model.faulty_in_row, 0);
}

#[test]
fn tol_04_names_that_are_no_tools() {
    for name in ["reed", "Read", "READ", " read", "read ", "", "delete_all", "réad"] {
        let mut bench = Bench::new(free());
        bench.calls(vec![call(name, &json!({"x": 1})), call("read", &json!({"x": 1}))]);
        assert_eq!(how(&bench, 1), How::Refused(RefusalKind::UnknownTool), "{name:?}");
        let told = bench.told(1);
        assert!(told.contains("there is no tool") && told.contains("read, idempotent"), "{told}");
        assert!(!told.contains("not permitted"));
        assert_eq!(bench.checkpoint.pending.len(), 1, "{name:?}: the known one runs once");
        assert_eq!(bench.checkpoint.quota.reserved.tool_calls, 1, "{name:?}: an unknown one costs nothing");
    }
}

#[test]
fn cut_refused_and_empty_replies_do_nothing() {
    let sound = || vec![call("unsafe", &json!({}))];
    for (stop, calls, named) in [
        (ModelStop::OutputLimit, sound(), "cut off"),
        (ModelStop::Refused, sound(), "refused"),
        (ModelStop::End, Vec::new(), "no tool call"),
        (ModelStop::ToolCalls, Vec::new(), "no tool call"),
        (ModelStop::ToolCalls, vec![call("read", &json!({})); CALLS_READ + 1], "257 tool calls"),
    ] {
        let mut bench = Bench::new(free());
        bench.answer(&lodestep_model::Reply { stop, ..reply(calls) });
        assert_eq!((bench.checkpoint.last_ordinal, bench.checkpoint.decision.is_none()), (0, true));
        assert_eq!(bench.checkpoint.error_counts[&ErrorKind::Reply], 1);
        let text = &bench.blobs[&bench.checkpoint.errors[0].text.digest];
        assert!(String::from_utf8_lossy(text).contains(named), "{stop:?}");
        assert_eq!(bench.checkpoint.model.faulty_in_row, 1);
    }
}

#[test]
fn too_many_calls_are_refused_one_by_one_and_made_up_names_share_a_row() {
    let mut bench = Bench::new(Definition { limits: Limits { recent_actions: 4, ..Limits::default() }, ..free() });
    let made_up = |n: usize| call(&format!("made_up_{n}"), &json!({}));
    bench.calls((0..CALLS_READ).map(made_up).collect());
    assert_eq!(bench.checkpoint.recent.len(), CALLS_READ, "the next request needs them all");
    bench.calls(vec![call("note", &json!({"key": "a", "text": "b"}))]);
    assert_eq!(bench.checkpoint.recent.len(), 4);
    assert_eq!(bench.checkpoint.older.len(), 1, "{:?}", bench.checkpoint.older.keys());
    bench.calls((0..=CALLS_PER_REPLY).map(|n| call("read", &json!({ "x": n }))).collect());
    assert_eq!(bench.checkpoint.pending.len(), CALLS_PER_REPLY);
}

#[test]
fn the_second_equal_effect_takes_the_firsts_outcome() {
    for class in [Class::Keyed, Class::Checkable, Class::Unsafe] {
        let mut bench = Bench::new(free());
        let wanted = || call(class.as_str(), &json!({"x": {"b": 1, "a": 2}}));
        let respelled = raw_call(class.as_str(), "{ \"x\": {\"a\": 2.0, \"b\": 1} }");
        bench.calls(vec![wanted(), respelled.clone()]);
        assert_eq!(bench.state(2), ActionState::Gated { gate: Gate::Same(Ordinal(1)) });
        assert_eq!(names(&bench.owed()), ["AttemptStarted"], "{class}: only the first is sent");
        bench.seen(1, Seen::Done);
        assert_eq!(names(&bench.owed()), ["ActionFinished"]);
        assert_eq!(bench.told(2), bench.told(1));
        bench.calls(vec![respelled]);
        assert_eq!((how(&bench, 3), bench.told(3)), (How::Done, bench.told(1)));
        assert_eq!(bench.checkpoint.quota.used.tool_calls, 1, "{class}: what was not sent is not charged");
        let mut again = json!({"x": {"b": 1, "a": 2}});
        again["repeat_reason"] = json!("a second one is wanted");
        bench.calls(vec![call(class.as_str(), &again)]);
        assert!(matches!(bench.state(4), ActionState::Ready { .. }), "{class}: it is a new action");
        assert_eq!(bench.action(4).expect("pending").arguments.digest, bench.settled(1).arguments.digest);
        assert_ne!(bench.action(4).expect("pending").key, bench.settled(1).key);
    }
}

#[test]
fn an_empty_repeat_reason_is_none_and_reads_have_no_sameness() {
    for reason in [json!(""), json!("  "), json!(null), json!(1)] {
        let mut bench = Bench::new(free());
        bench.calls(vec![call("unsafe", &json!({})), call("unsafe", &json!({ "repeat_reason": reason }))]);
        assert!(matches!(bench.state(2), ActionState::Gated { gate: Gate::Same(_) }), "{reason}");
    }
    let mut bench = Bench::new(free());
    bench.calls(vec![call("read", &json!({})), call("read", &json!({}))]);
    assert!(matches!(bench.state(2), ActionState::Ready { .. }));
}

#[test]
fn failed_and_denied_effects_do_not_block_and_a_doubt_is_waited_for() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({})), call("unsafe", &json!({}))]);
    bench.owed();
    bench.seen(1, Seen::Refused);
    bench.owed();
    assert_eq!((how(&bench, 1), how(&bench, 2)), (How::Failed, How::Failed));
    assert!(bench.told(2).contains("same call as action 1"), "{}", bench.told(2));
    bench.calls(vec![call("unsafe", &json!({})), call("unsafe", &json!({}))]);
    assert!(matches!(bench.state(3), ActionState::Ready { .. }), "it did not happen and may be wanted anew");
    bench.owed();
    bench.seen(3, Seen::TimedOut);
    assert!(bench.owed().is_empty(), "what is equal to a doubt waits for it");
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({}))]);
    bench.say("ann", Word::Deny { request: bench.request(1), reason: String::new() });
    bench.calls(vec![call("unsafe", &json!({}))]);
    assert!(matches!(bench.state(2), ActionState::Gated { gate: Gate::Approval(_) }));
}

#[test]
fn a_prior_that_left_the_checkpoint_still_counts() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("keyed", &json!({"x": 1}))]);
    let same = bench.action(1).and_then(|action| action.same).expect("effects have one");
    let mut bench = Bench::new(free());
    bench.priors = BTreeMap::from([(same, Prior { ordinal: Ordinal(1), result: b"receipt 7".to_vec() })]);
    bench.calls(vec![call("keyed", &json!({"x": 1})), call("keyed", &json!({"x": 2}))]);
    assert_eq!((how(&bench, 1), bench.told(1).as_str()), (How::Done, "receipt 7"));
    assert!(matches!(bench.state(2), ActionState::Ready { .. }));
}

#[test]
fn g09_with_six_calls_left_and_eight_wanted_exactly_six_run() {
    let limits = QuotaLimits { tool_calls: Some(6), ..QuotaLimits::default() };
    let mut bench = Bench::new(Definition { quota: limits, ..free() });
    bench.calls((0..8).map(|n| call("read", &json!({ "x": n }))).collect());
    bench.owed();
    let waits = |bench: &Bench, ordinal| bench.state(ordinal) == ActionState::Gated { gate: Gate::Quota };
    assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, bench.now).len(), 6);
    assert!(waits(&bench, 7) && waits(&bench, 8));
    assert_eq!(stopped(&bench.checkpoint), None, "the six go on");
    for ordinal in 1..=6 {
        bench.seen(ordinal, Seen::Done);
    }
    let quota = bench.checkpoint.quota;
    assert_eq!((quota.used.tool_calls, quota.reserved.tool_calls, quota.remaining(0)[0].left), (6, 0, 0));
    assert_eq!(names(&bench.owed()), ["RunStopped"]);
    assert_eq!(stopped(&bench.checkpoint), Some(StopReason::Quota), "the two wait for a top-up");
    assert!(waits(&bench, 7) && waits(&bench, 8), "and are not lost");
}

#[test]
fn g09_an_exhausted_model_quota_stops_and_an_unreported_use_is_estimated() {
    let limits = QuotaLimits { model_calls: Some(1), ..QuotaLimits::default() };
    let mut bench = Bench::new(Definition { quota: limits, ..free() });
    bench.answer(&lodestep_model::Reply { usage: None, ..reply(vec![call("note", &json!({"key": "a"}))]) });
    assert!(bench.checkpoint.quota.used.output_tokens > 0);
    assert!(bench.checkpoint.quota.used.input_tokens > 0);
    assert_eq!(bench.reserve(), None);
    assert_eq!(stopped(&bench.checkpoint), Some(StopReason::Quota));
}

#[test]
fn g10_policy_by_tool_and_class() {
    let deny_reads = rule(&[], &[Class::Read], Decide::Deny);
    let allow_effects = rule(&["unsafe", "keyed"], &[], Decide::Allow);
    let ask_all = rule(&["*"], &[], Decide::Ask);
    for (policy, class, expected) in [
        (vec![], Class::Read, "ready"),
        (vec![], Class::Idempotent, "ready"),
        (vec![], Class::Keyed, "asked"),
        (vec![], Class::Checkable, "asked"),
        (vec![], Class::Unsafe, "asked"),
        (vec![deny_reads.clone(), ask_all.clone()], Class::Read, "denied"),
        (vec![ask_all.clone(), deny_reads], Class::Read, "asked"),
        (vec![allow_effects.clone(), ask_all.clone()], Class::Unsafe, "ready"),
        (vec![allow_effects, ask_all], Class::Checkable, "asked"),
    ] {
        let mut bench = Bench::new(Definition { policy, ..definition() });
        bench.calls(vec![call(class.as_str(), &json!({})), call("note", &json!({"key": "a", "text": "b"}))]);
        let found = match bench.action(1).map(|action| &action.state) {
            Some(ActionState::Ready { .. }) => "ready",
            Some(ActionState::Gated { gate: Gate::Approval(_) }) => "asked",
            None if how(&bench, 1) == How::Refused(RefusalKind::Denied) => "denied",
            _ => "other",
        };
        assert_eq!(found, expected, "{class}");
        assert_eq!(how(&bench, 2), How::Done, "state acts pass");
    }
}

#[test]
fn g10_what_the_policy_forbids_by_then_is_taken_back_at_dispatch() {
    for class in Class::ALL {
        let mut bench = Bench::new(free());
        bench.calls(vec![call(class.as_str(), &json!({})), call(class.as_str(), &json!({}))]);
        bench.definition.policy = vec![rule(&[], &[], Decide::Deny)];
        let events = names(&bench.owed_with(0));
        assert!(events.iter().all(|name| matches!(*name, "ActionWithdrawn" | "ActionFinished")), "{events:?}");
        assert!(bench.checkpoint.pending.is_empty(), "{class}: nothing is left waiting for what was taken back");
        assert!(bench.told(1).contains("policy"), "{}", bench.told(1));
    }
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({}))]);
    bench.definition.policy = Vec::new();
    bench.owed();
    assert!(bench.told(1).contains("there is none"), "an approval that was never given: {}", bench.told(1));
}

#[test]
fn notes_are_bounded() {
    let limits = Limits { note_bytes: 10, notes_bytes: 15, ..Limits::default() };
    let mut bench = Bench::new(Definition { limits, ..free() });
    for (arguments, ok) in [
        (json!({"key": "a", "text": "0123456789"}), true),
        (json!({"key": "b", "text": "01234567890"}), false),
        (json!({"key": "b", "text": "012345"}), false),
        (json!({"key": "b", "text": "01234"}), true),
        (json!({"key": "a", "text": "9876543210"}), true),
        (json!({"key": "a", "text": ""}), true),
        (json!({"key": "c", "text": "0123456789"}), true),
        (json!({"key": "Odd Key", "text": "x"}), false),
        (json!({"key": "", "text": "x"}), false),
        (json!({"text": "x"}), false),
    ] {
        bench.calls(vec![call("note", &arguments)]);
        let last = bench.checkpoint.last_ordinal;
        assert_eq!(how(&bench, last) == How::Done, ok, "{arguments}: {}", bench.told(last));
    }
    assert_eq!(bench.checkpoint.notes.keys().collect::<Vec<_>>(), ["b", "c"]);
    let mut bench = Bench::new(free());
    for n in 0..200 {
        bench.calls(vec![call("note", &json!({"key": format!("n{n}"), "text": "x"}))]);
    }
    assert_eq!(bench.checkpoint.notes.len(), lodestep_core::checkpoint::NOTES);
}

fn save(bench: &mut Bench, name: &str, bytes: &[u8]) {
    let version = bench.checkpoint.artifacts.get(name).map_or(1, |artifact| artifact.version + 1);
    let content = ValueRef::of(bytes);
    bench.blobs.insert(content.digest, bytes.to_vec());
    bench.push(Event::ArtifactSaved(ArtifactSaved { name: name.to_owned(), version, content })).expect("it follows");
}

#[test]
fn plan_takes_evidence_that_exists() {
    let fixed = |id: &str, tool: Option<&str>| MilestoneDefinition {
        id: id.to_owned(),
        title: id.to_owned(),
        requires_action: tool.map(str::to_owned),
    };
    let milestones = vec![fixed("free", None), fixed("built", Some("idempotent"))];
    let mut bench = Bench::new(Definition { milestones, ..free() });
    save(&mut bench, "report.md", b"# Report");
    for (arguments, told) in [
        (json!({"milestone": "free", "status": "reached", "evidence": "action 9"}), "has no outcome"),
        (json!({"milestone": "free", "status": "reached", "evidence": "none.md"}), "no artifact"),
        (json!({"milestone": "built", "status": "reached"}), "marked by the runtime"),
        (json!({"milestone": "", "status": "open"}), "1 to 64 bytes"),
        (json!({"milestone": "free", "status": "reached", "evidence": "artifact report.md"}), "is reached"),
        (json!({"milestone": "own", "status": "open", "title": "My own"}), "is open"),
        (json!({"milestone": "long", "status": "open", "title": "x".repeat(501)}), "at most 500 bytes"),
    ] {
        bench.calls(vec![call("plan", &arguments)]);
        let said = bench.told(bench.checkpoint.last_ordinal);
        assert!(said.contains(told), "{arguments}: {said}");
    }
    assert_eq!(bench.checkpoint.plan[0].reached, Some(Evidence::Artifact("report.md".to_owned(), 1)));
    bench.calls(vec![call("idempotent", &json!({}))]);
    let built = bench.checkpoint.last_ordinal;
    bench.seen(built, Seen::Done);
    assert_eq!(bench.checkpoint.plan[1].reached, Some(Evidence::Action(Ordinal(built))));
}

#[test]
fn artifacts_are_opened_and_closed_by_name() {
    let mut bench = Bench::new(Definition { limits: Limits { open_artifacts: 2, ..Limits::default() }, ..free() });
    for name in ["a", "b", "c"] {
        save(&mut bench, name, name.as_bytes());
        bench.calls(vec![call("open_artifact", &json!({ "name": name }))]);
    }
    assert_eq!(bench.checkpoint.open_artifacts, ["b", "c"]);
    bench.calls(vec![call("close_artifact", &json!({"name": "b"})), call("open_artifact", &json!({"name": "nope"}))]);
    assert_eq!(bench.checkpoint.open_artifacts, ["c"]);
    assert!(bench.told(5).contains("no artifact `nope`"));
}

fn gated(done: Done) -> Bench {
    Bench::new(Definition { done, ..free() })
}

#[test]
fn a_finish_is_judged_after_its_siblings() {
    let mut bench = gated(Done::default());
    bench.calls(vec![call("finish", &json!({})), call("read", &json!({})), call("ask", &json!({"question": "ok?"}))]);
    assert!(bench.owed().is_empty());
    bench.seen(2, Seen::Done);
    assert!(bench.owed().is_empty(), "a question beside it is waited for");
    bench.say("ann", Word::Answer { request: bench.request(3), value: String::new() });
    assert_eq!(names(&bench.owed()), ["ActionFinished", "RunEnded"]);
    assert!(matches!(bench.checkpoint.phase, Phase::Ended { ending: Ending::Completed, .. }));
    assert!(bench.checkpoint.pending.is_empty());
}

#[test]
fn what_is_missing_is_told_and_three_refusals_stop() {
    let mut bench = gated(Done { artifacts: vec!["report.md".to_owned()], ..Done::default() });
    for refused in 1..=3 {
        assert_eq!(stopped(&bench.checkpoint), None);
        bench.calls(vec![call("finish", &json!({ "summary": refused }))]);
        bench.owed();
        assert!(bench.told(refused).contains("artifact report.md"), "{}", bench.told(refused));
    }
    assert_eq!(stopped(&bench.checkpoint), Some(StopReason::Completion));
    bench.say("ann", Word::Resume);
    save(&mut bench, "report.md", b"x");
    bench.calls(vec![call("finish", &json!({})), call("finish", &json!({}))]);
    bench.owed();
    assert!(bench.checkpoint.is_over() && bench.checkpoint.pending.is_empty(), "both finishes are settled");
}

#[test]
fn the_same_thing_over_and_over_is_a_loop() {
    let mut bench = Bench::new(free());
    for n in 1..=6 {
        assert_eq!(stopped(&bench.checkpoint), None, "{n}");
        let read: Vec<Call> = vec![call("read", &json!({}))];
        bench.calls(read);
        let attempt = lodestep_core::rules::settle::Attempt {
            ordinal: Ordinal(n),
            attempt: 1,
            seen: Seen::Done,
            text: b"the same".to_vec(),
            artifact: None,
            retry_after_ms: None,
        };
        bench.step(|draft, _| lodestep_core::rules::settle::settle(draft, attempt));
        bench.owed();
    }
    assert_eq!(stopped(&bench.checkpoint), Some(StopReason::Loop));
}

#[test]
fn a_reply_that_comes_after_a_stop_or_a_cancel_contradicts_nothing() {
    let mut bench = Bench::new(free());
    for _ in 0..2 {
        bench.calls(vec![raw_call("read", "{")]);
    }
    let call = bench.reserve().expect("the quota has room");
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert!(bench.owed().is_empty(), "the reply under way is waited for");
    bench.take(call, &reply(vec![raw_call("read", "{")]));
    bench.owed();
    assert!(bench.checkpoint.is_over(), "the third faulty reply does not stop a cancelled run");
    let mut bench = Bench::new(free());
    let call = bench.reserve().expect("the quota has room");
    bench.say("ann", Word::Cancel { reason: String::new() });
    bench.step(|draft, definition| fail(draft, definition, call, CallFailure::Rejected, "no", None));
    bench.owed();
    assert!(bench.checkpoint.is_over());
}

#[test]
fn a_too_long_request_is_tried_once_smaller_also_after_a_busy_provider() {
    let mut bench = Bench::new(free());
    for (why, stop) in
        [(CallFailure::Busy, None), (CallFailure::TooLong, None), (CallFailure::TooLong, Some(StopReason::Context))]
    {
        bench.wait_ms(100_000);
        let call = bench.reserve().expect("the quota has room");
        bench.step(|draft, definition| fail(draft, definition, call, why, "said", None));
        assert_eq!(stopped(&bench.checkpoint), stop, "{why:?}");
    }
    assert!(bench.checkpoint.model.estimate_permille > 1_250);
    assert_eq!(bench.checkpoint.quota.used.model_calls, 0, "nothing is charged");
}

#[test]
fn g06_a_lost_reply_is_charged_in_full_and_one_that_was_not_sent_costs_nothing() {
    let mut bench = Bench::new(free());
    bench.reserve().expect("the quota has room");
    let reserved = bench.checkpoint.model.open.expect("a call is open").amounts;
    assert_eq!(names(&bench.crash()), ["CallLost"]);
    assert_eq!((bench.checkpoint.quota.used, bench.checkpoint.quota.reserved), (reserved, Default::default()));
    assert_eq!(bench.checkpoint.quota.unconfirmed, Some(reserved), "nobody has reported it");
    let call = bench.reserve().expect("the quota has room");
    assert_eq!(call, 2, "it is another call");
    bench.step(|draft, definition| fail(draft, definition, call, CallFailure::NotSent, "no route", None));
    assert_eq!((bench.checkpoint.quota.used, bench.checkpoint.quota.reserved), (reserved, Default::default()));
}

#[test]
fn g06_a_lost_reply_of_which_more_was_reported_than_was_held_back_is_charged_that_much() {
    let mut definition = free();
    definition.model.price =
        Some(Price { input_micro_usd: 1_000_000, output_micro_usd: 2_000_000, ..Price::default() });
    let losing = |given_up: bool, more: fn(Amounts) -> (u64, u64)| {
        let mut bench = Bench::new(definition.clone());
        let call = bench.reserve().expect("the quota has room");
        let held = bench.checkpoint.quota.reserved;
        let (input_tokens, output_tokens) = more(held);
        let reported = Usage { input_tokens, output_tokens, ..Usage::default() };
        bench.step(|draft, definition| match given_up {
            true => give_up(draft, definition, call, reported),
            false => lose(draft, definition, call, "reset", reported),
        });
        (held, bench.checkpoint.quota)
    };
    for given_up in [false, true] {
        let (held, quota) = losing(given_up, |held| (held.input_tokens - 1, held.output_tokens - 1));
        assert_eq!((quota.used, quota.unconfirmed, quota.overrun), (held, Some(held), Amounts::default()));
        let (held, quota) = losing(given_up, |held| (held.input_tokens + 500, 1));
        let charged = Amounts { input_tokens: held.input_tokens + 500, usd_micro: held.usd_micro + 500, ..held };
        let overrun = Amounts { input_tokens: 500, usd_micro: 500, ..Amounts::default() };
        assert_eq!((quota.used, quota.unconfirmed, quota.overrun), (charged, Some(charged), overrun));
        assert_eq!(quota.reserved, Amounts::default());
        let (held, quota) = losing(given_up, |held| (0, held.output_tokens + 7));
        let charged = Amounts { output_tokens: held.output_tokens + 7, usd_micro: held.usd_micro + 14, ..held };
        assert_eq!((quota.used, quota.unconfirmed), (charged, Some(charged)));
    }
}
