//! A run moved to another definition: what is asked anew, what ends as it began, what stays.

mod support;

use lodestep_core::checkpoint::{ActionState, How, Phase};
use lodestep_core::definition::{
    Check, Decide, Definition, Done, MilestoneDefinition, OnExpiry, QuotaLimits, Rule, ToolDefinition,
};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{Event, Evidence, Gate, RunStopped, StopReason};
use lodestep_core::quota::Quota;
use lodestep_core::rules::inbox::{Became, Verdict, Word};
use lodestep_core::rules::owed::dispatchable;
use lodestep_core::rules::settle::LookedUp;
use lodestep_core::{Ordinal, ValueRef};
use serde_json::json;
use support::{Bench, call, code, definition, free, names, rule, tool};

/// The same agent with one of its tools changed.
fn with(before: &Definition, name: &str, change: impl FnOnce(&mut ToolDefinition)) -> Definition {
    let mut after = changed(before);
    change(after.tools.iter_mut().find(|tool| tool.name == name).expect("it is there"));
    after
}

/// The same agent without one of its tools.
fn without(before: &Definition, name: &str) -> Definition {
    let mut after = changed(before);
    after.tools.retain(|tool| tool.name != name);
    after
}

fn changed(before: &Definition) -> Definition {
    Definition { memo: Default::default(), ..before.clone() }
}

fn upgrade(bench: &mut Bench, to: &Definition) -> Verdict {
    let word = bench.upgrade_to(to);
    bench.say("ann", word)
}

fn milestone(id: &str, requires_action: Option<&str>) -> MilestoneDefinition {
    MilestoneDefinition { id: id.to_owned(), title: id.to_owned(), requires_action: requires_action.map(str::to_owned) }
}

#[test]
fn the_pin_moves_and_what_was_done_stays() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("keyed", &json!({"x": 1}))]);
    bench.owed();
    bench.seen(1, Seen::Done);
    let before = bench.checkpoint.clone();
    // One tool before the one that was used, one removed, one renamed, other instructions.
    let mut after = without(&free(), "checkable");
    after.tools.insert(0, tool("first", Class::Read));
    after.tools.iter_mut().find(|tool| tool.name == "keyed").expect("it is there").name = "renamed".to_owned();
    after.instructions = "Work better.".to_owned();
    assert_eq!(code(&upgrade(&mut bench, &after)), "accepted");
    assert_eq!(bench.checkpoint.definition.digest, after.digest());
    assert_eq!(bench.checkpoint.definition.seq, bench.checkpoint.seq);
    assert_eq!(bench.blobs[&after.digest()], after.to_bytes(), "its bytes are kept with the transition");
    let stays = |checkpoint: &lodestep_core::Checkpoint| {
        (checkpoint.recent.clone(), checkpoint.inputs, checkpoint.quota.used, checkpoint.effect_log)
    };
    assert_eq!(stays(&bench.checkpoint), stays(&before));
    assert!(bench.owed().is_empty(), "nothing is done again under another name");
}

#[test]
fn the_same_definition_again_is_already_given() {
    let mut bench = Bench::new(free());
    let after = without(&free(), "read");
    assert_eq!(code(&upgrade(&mut bench, &after)), "accepted");
    assert_eq!(code(&upgrade(&mut bench, &after)), "already given");
}

#[test]
fn one_that_was_drawn_up_against_another_definition_is_refused() {
    let mut bench = Bench::new(free());
    let drawn_up = bench.upgrade_to(&without(&free(), "read"));
    assert_eq!(code(&upgrade(&mut bench, &without(&free(), "keyed"))), "accepted");
    assert_eq!(code(&bench.say("bob", drawn_up)), "upgrade.stale");
}

#[test]
fn another_agent_and_what_is_no_definition_are_refused() {
    let mut bench = Bench::new(free());
    let other = Definition { name: "other".to_owned(), ..changed(&free()) };
    assert_eq!(code(&upgrade(&mut bench, &other)), "upgrade.other_agent");
    let Word::Upgrade(mut word) = bench.upgrade_to(&other) else { panic!("it is an upgrade") };
    word.definition = b"{}".to_vec();
    assert_eq!(code(&bench.say("ann", Word::Upgrade(word))), "run.definition_unreadable");
}

#[test]
fn a_run_that_is_cancelled_or_over_keeps_its_definition() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({}))]);
    bench.owed();
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert_eq!(code(&upgrade(&mut bench, &without(&free(), "read"))), "run.over");
    bench.seen(1, Seen::Done);
    bench.owed();
    assert!(bench.checkpoint.is_over());
    assert_eq!(code(&upgrade(&mut bench, &without(&free(), "read"))), "run.over");
}

#[test]
fn a_changed_tool_is_asked_anew_and_the_old_request_takes_no_answer() {
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    let (old, arguments) = (bench.request(1), bench.action(1).expect("pending").arguments);
    upgrade(&mut bench, &with(&definition(), "unsafe", |tool| tool.timeout_ms = 1));
    let new = bench.request(1);
    assert_ne!(old, new, "a request names the tool that was seen");
    assert_eq!(bench.action(1).expect("pending").arguments, arguments, "and the same arguments");
    assert_eq!(code(&bench.say("ann", Word::Approve { request: old })), "request.stale");
    assert_eq!(code(&bench.say("ann", Word::Approve { request: new })), "accepted");
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn the_time_of_the_tool_after_counts_from_the_proposal() {
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    assert_eq!(bench.action(1).expect("pending").deadline, None);
    upgrade(&mut bench, &with(&definition(), "unsafe", |tool| tool.deadline_ms = Some(5_000)));
    let action = bench.action(1).expect("pending");
    assert_eq!(action.deadline, Some(action.proposed_at.plus_ms(5_000)));
    upgrade(&mut bench, &definition());
    assert_eq!(bench.action(1).expect("pending").deadline, None);
}

#[test]
fn an_approval_of_the_tool_before_does_not_count_for_the_one_after() {
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    let old = bench.request(1);
    bench.say("ann", Word::Approve { request: old });
    // Also where the policy would let it pass: a person has it before them.
    let after = Definition {
        policy: vec![rule(&[], &[], Decide::Allow)],
        ..with(&definition(), "unsafe", |tool| tool.timeout_ms = 1)
    };
    upgrade(&mut bench, &after);
    assert!(bench.owed().is_empty(), "nothing is sent");
    assert_ne!(bench.request(1), old);
    assert_eq!(bench.action(1).map(|action| (action.approved_by.clone(), action.approved)), Some((None, None)));
    assert_eq!(code(&bench.say("ann", Word::Approve { request: old })), "request.stale");
}

#[test]
fn what_does_not_change_keeps_its_request_and_its_approval() {
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("keyed", &json!({"x": 1}))]);
    let (asked, approved) = (bench.request(1), bench.request(2));
    bench.say("ann", Word::Approve { request: approved });
    // What is asked stays asked, though the policy would allow it from now on.
    let after = Definition {
        policy: vec![rule(&[], &[], Decide::Allow)],
        instructions: "Better.".to_owned(),
        ..changed(&definition())
    };
    upgrade(&mut bench, &after);
    assert_eq!(bench.request(1), asked);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"], "the approved one alone");
}

#[test]
fn a_stricter_policy_counts_for_what_was_not_sent() {
    let ask = Rule { expires_ms: Some(1_000), on_expiry: OnExpiry::Deny, ..rule(&["unsafe"], &[], Decide::Ask) };
    let deny = rule(&["keyed"], &[], Decide::Deny);
    let mut bench = Bench::new(free());
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("keyed", &json!({"x": 1}))]);
    let after = Definition { policy: vec![ask, deny, rule(&[], &[], Decide::Allow)], ..changed(&free()) };
    upgrade(&mut bench, &after);
    assert!(bench.owed().is_empty());
    bench.request(1);
    assert_eq!(bench.settled(2).how, How::Withdrawn);
    assert_eq!(bench.told(2), "the policy denies `keyed` now; nothing was sent");
    assert_eq!(bench.standing().due, Some(bench.now.plus_ms(1_000)), "with the new rule's expiry");
}

#[test]
fn what_was_not_sent_of_a_tool_that_is_gone_is_told_to_the_model() {
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    let request = bench.request(1);
    upgrade(&mut bench, &without(&definition(), "unsafe"));
    assert_eq!((bench.settled(1).how, bench.checkpoint.quota.used.tool_calls), (How::Withdrawn, 0));
    assert_eq!(bench.told(1), "there is no tool `unsafe` any more; nothing was sent");
    assert_eq!(code(&bench.say("ann", Word::Approve { request })), "request.withdrawn");
    assert!(bench.checkpoint.decision.is_none(), "the model is asked next");
}

#[test]
fn arguments_that_do_not_fit_any_more_are_told_to_the_model() {
    let mut bench = Bench::new(definition());
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    bench.check = |_, _| Err("`x` is no integer".to_owned());
    upgrade(&mut bench, &with(&definition(), "unsafe", |tool| tool.input = json!({"type": "object"})));
    assert!(bench.told(1).ends_with("Its arguments don't fit any more: `x` is no integer"), "{}", bench.told(1));
}

#[test]
fn what_was_proposed_since_it_was_drawn_up_is_taken_back() {
    let mut bench = Bench::new(definition());
    let drawn_up = bench.upgrade_to(&with(&definition(), "unsafe", |tool| tool.timeout_ms = 1));
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("keyed", &json!({}))]);
    bench.say("ann", drawn_up);
    assert_eq!(bench.told(1), "the tool `unsafe` has changed since this was proposed; nothing was sent");
    bench.request(2);
}

#[test]
fn a_class_that_became_weaker_does_not_weaken_what_follows_an_open_attempt() {
    let weaker = |name: &str| with(&free(), name, |tool| tool.class = Class::Idempotent);
    for (name, leads_to) in [("unsafe", "doubt"), ("checkable", "look up")] {
        let mut bench = Bench::new(free());
        bench.calls(vec![call(name, &json!({"x": 1}))]);
        bench.owed();
        let key = bench.action(1).expect("pending").key.clone();
        upgrade(&mut bench, &weaker(name));
        assert_eq!(bench.action(1).map(|action| (action.class, action.key.clone())), Some((class(name), key)));
        assert_eq!(bench.checkpoint.earlier_definition(Ordinal(1)).map(|it| it.digest), Some(free().digest()));
        bench.crash();
        let found = match bench.state(1) {
            ActionState::Doubt { .. } => "doubt",
            ActionState::LookUp { .. } => "look up",
            other => panic!("{other:?}"),
        };
        assert_eq!(found, leads_to);
        assert!(bench.owed().is_empty(), "a doubt is not done again by the machine");
    }
}

fn class(name: &str) -> Class {
    Class::ALL.into_iter().find(|class| class.as_str() == name).expect("named after it")
}

#[test]
fn a_keyed_effect_that_may_have_arrived_is_sent_again_by_the_definition_before() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("keyed", &json!({"x": 1}))]);
    bench.owed();
    bench.seen(1, Seen::TimedOut);
    upgrade(&mut bench, &without(&free(), "keyed"));
    upgrade(&mut bench, &with(&free(), "keyed", |tool| tool.timeout_ms = 1));
    assert_eq!(bench.checkpoint.earlier_definition(Ordinal(1)).map(|it| it.digest), Some(free().digest()));
    bench.wait_ms(60_000);
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
    bench.seen(1, Seen::Done);
    assert_eq!((bench.settled(1).how, bench.checkpoint.earlier.clone()), (How::Done, None));
}

#[test]
fn a_doubt_stays_and_is_settled_though_its_tool_is_gone() {
    let doubt = || {
        let mut bench = Bench::new(free());
        bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
        bench.owed();
        bench.seen(1, Seen::TimedOut);
        assert_eq!(code(&upgrade(&mut bench, &without(&free(), "unsafe"))), "accepted");
        assert!(matches!(bench.state(1), ActionState::Doubt { .. }));
        bench
    };
    let resolve =
        |bench: &mut Bench, became| bench.say("ann", Word::Resolve { ordinal: Ordinal(1), became, attempt: None });
    let mut bench = doubt();
    assert_eq!(code(&resolve(&mut bench, Became::Happened(b"7".to_vec()))), "accepted");
    assert_eq!((bench.settled(1).how, bench.told(1)), (How::Done, "7".to_owned()));
    // That it did not happen makes it one of which nothing was sent: there is nothing to send it by.
    let mut bench = doubt();
    assert_eq!(code(&resolve(&mut bench, Became::SendAgain)), "accepted");
    assert_eq!(names(&bench.owed()), ["ActionWithdrawn"]);
    assert_eq!(bench.told(1), "there is no tool `unsafe` any more");
}

#[test]
fn a_lookup_goes_on_though_its_tool_is_gone() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("checkable", &json!({"x": 1}))]);
    bench.owed();
    bench.seen(1, Seen::TimedOut);
    upgrade(&mut bench, &without(&free(), "checkable"));
    bench.wait_ms(60_000);
    assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, bench.now), [Ordinal(1)]);
    bench.looked_up(1, LookedUp::Done(b"done".to_vec()));
    assert_eq!(bench.settled(1).how, How::Done);
}

#[test]
fn a_read_that_may_have_begun_ends_and_one_that_provably_did_not_is_told_to_the_model() {
    let begun = || {
        let mut bench = Bench::new(free());
        bench.calls(vec![call("read", &json!({"x": 1}))]);
        upgrade(&mut bench, &without(&free(), "read"));
        assert!(bench.owed().is_empty());
        assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, bench.now), [Ordinal(1)]);
        bench
    };
    let mut bench = begun();
    bench.seen(1, Seen::Done);
    assert_eq!(bench.settled(1).how, How::Done);
    let mut bench = begun();
    bench.seen(1, Seen::NotStarted);
    assert_eq!(names(&bench.owed()), ["ActionWithdrawn"]);
}

#[test]
fn a_read_that_became_an_effect_gets_a_key_before_it_is_sent() {
    let asks = || Definition { policy: vec![rule(&["read"], &[], Decide::Ask)], ..definition() };
    let mut bench = Bench::new(asks());
    bench.calls(vec![call("read", &json!({"x": 1}))]);
    assert_eq!(bench.action(1).and_then(|action| action.key.clone()), None);
    upgrade(&mut bench, &with(&asks(), "read", |tool| tool.class = Class::Keyed));
    let action = bench.action(1).expect("pending");
    assert!(action.class == Class::Keyed && action.key.is_some() && action.same.is_some());
    let request = bench.request(1);
    bench.say("ann", Word::Approve { request });
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn limits_move_by_what_the_definition_changed_and_nothing_spent_is_lowered() {
    let limits = |model_calls, tool_calls| QuotaLimits { model_calls, tool_calls, ..QuotaLimits::default() };
    let mut bench = Bench::new(Definition { quota: limits(Some(10), None), ..free() });
    bench.calls(vec![call("note", &json!({"key": "a", "text": "b"}))]);
    bench.say("ann", Word::TopUp { quota: Quota::ModelCalls, amount: 5 });
    let after = Definition { quota: limits(Some(8), Some(3)), ..changed(&free()) };
    upgrade(&mut bench, &after);
    assert_eq!(bench.checkpoint.quota.limits, limits(Some(13), Some(3)), "the top-up stays");
    assert_eq!(bench.checkpoint.quota.used.model_calls, 1);
    // A limit below what was spent: nothing is left, and nothing is below zero.
    upgrade(&mut bench, &Definition { quota: limits(Some(0), None), ..changed(&free()) });
    upgrade(&mut bench, &Definition { quota: limits(None, None), ..changed(&free()) });
    upgrade(&mut bench, &Definition { quota: limits(Some(0), None), ..changed(&free()) });
    assert_eq!(bench.checkpoint.remaining().iter().map(|row| row.left).collect::<Vec<_>>(), [0]);
    assert_eq!(bench.reserve(), None, "the next call finds no room");
    assert!(matches!(bench.checkpoint.phase, Phase::Stopped { reason: StopReason::Quota, .. }));
}

#[test]
fn milestones_that_are_met_stay_met_and_those_that_are_gone_are_dropped() {
    let before = Definition { milestones: vec![milestone("a", None), milestone("b", None)], ..free() };
    let mut bench = Bench::new(before);
    bench.calls(vec![
        call("plan", &json!({"milestone": "a", "status": "reached"})),
        call("plan", &json!({"milestone": "own", "title": "Own"})),
        call("plan", &json!({"milestone": "c", "title": "Its own", "status": "reached"})),
        call("keyed", &json!({"x": 1})),
    ]);
    bench.owed();
    bench.seen(4, Seen::Done);
    // `c` was the model's to say, and is the runtime's to check now; what `d` asks for was done before.
    let milestones =
        vec![milestone("c", Some("unsafe")), milestone("a", Some("unsafe")), milestone("d", Some("keyed"))];
    upgrade(&mut bench, &Definition { milestones, ..changed(&free()) });
    let plan: Vec<(&str, bool, bool)> = bench
        .checkpoint
        .plan
        .iter()
        .map(|milestone| (milestone.id.as_str(), milestone.fixed, milestone.reached.is_some()))
        .collect();
    assert_eq!(plan, [("c", true, false), ("a", true, true), ("d", true, true), ("own", false, true)]);
    assert_eq!(bench.checkpoint.plan[2].reached, Some(Evidence::Action(Ordinal(4))));
}

#[test]
fn a_stop_that_the_definition_is_the_cause_of_ends_and_others_stay() {
    let reasons = [
        (StopReason::Version, true),
        (StopReason::Model, true),
        (StopReason::Secret, true),
        (StopReason::Completion, true),
        (StopReason::Context, true),
        (StopReason::Operator, false),
        (StopReason::Quota, false),
        (StopReason::Loop, false),
        (StopReason::Crashes, false),
        (StopReason::Undecodable, false),
        (StopReason::Imported, false),
    ];
    for (reason, goes_on) in reasons {
        let mut bench = Bench::new(free());
        let text = ValueRef::of(b"stop");
        bench.push(Event::RunStopped(RunStopped { reason, text })).expect("it is active");
        assert_eq!(code(&upgrade(&mut bench, &without(&free(), "read"))), "accepted");
        assert_eq!(bench.checkpoint.phase == Phase::Active, goes_on, "{reason:?}");
    }
}

#[test]
fn a_finish_that_is_being_judged_by_the_check_before_ends_nothing() {
    let check = |name: &str| Check { argv: vec![name.to_owned()], folder: ".".to_owned() };
    let done = |name: &str| Done { check: Some(check(name)), ..Done::default() };
    let mut bench = Bench::new(Definition { done: done("before"), ..free() });
    bench.calls(vec![call("finish", &json!({}))]);
    assert_eq!(names(&bench.owed()), ["CheckStarted"]);
    upgrade(&mut bench, &Definition { done: done("after"), ..changed(&free()) });
    assert!(bench.seen(1, Seen::Done).is_empty(), "what the check before says is not asked for any more");
    assert!(bench.owed().is_empty() && !bench.checkpoint.is_over());
    assert!(bench.told(1).ends_with("finish again"));
}

#[test]
fn questions_and_waits_stay_open() {
    let mut bench = Bench::new(free());
    let arguments = json!({"name": "paid"});
    bench.calls(vec![call("ask", &json!({"question": "Which?"})), call("wait_for_signal", &arguments)]);
    let question = bench.request(1);
    let gone = without(&without(&free(), "ask"), "wait_for_signal");
    upgrade(&mut bench, &gone);
    assert!(matches!(bench.state(2), ActionState::Gated { gate: Gate::Signal(_) }));
    let answer = Word::Answer { request: question, value: "this".to_owned() };
    assert_eq!(code(&bench.say("ann", answer)), "accepted");
    bench.say("ann", Word::Signal { name: "paid".to_owned(), value: b"1".to_vec() });
    assert_eq!(names(&bench.owed()), ["SignalTaken"]);
}

#[test]
fn a_call_that_waits_for_room_goes_by_its_tool_as_it_is_when_there_is_room() {
    let short = QuotaLimits { tool_calls: Some(0), ..QuotaLimits::default() };
    let mut bench = Bench::new(Definition { quota: short, ..free() });
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    let after = with(&Definition { policy: Vec::new(), ..free() }, "unsafe", |tool| tool.timeout_ms = 1);
    let more = QuotaLimits { tool_calls: Some(1), ..QuotaLimits::default() };
    upgrade(&mut bench, &Definition { quota: more, ..after });
    assert_eq!(names(&bench.owed()), ["QuotaGranted"]);
    bench.request(1);
    assert_eq!(bench.checkpoint.quota.reserved.tool_calls, 1);
}
