//! Quotas: what finds no room waits for a top-up and is not lost, what is in doubt stays charged.

mod support;

use lodestep_core::checkpoint::{ActionState, How, Phase};
use lodestep_core::context::assemble;
use lodestep_core::definition::{Decide, Definition, OnExpiry, QuotaLimits, Rule};
use lodestep_core::effect::Seen;
use lodestep_core::event::{Gate, StopReason};
use lodestep_core::quota::Quota;
use lodestep_core::rules::inbox::{Became, Word};
use lodestep_core::rules::standing::Status;
use serde_json::json;
use support::{Bench, call, code, free, names, rule};

fn limited(quota: QuotaLimits) -> Bench {
    Bench::new(Definition { quota, ..free() })
}

fn calls(tool_calls: u64) -> QuotaLimits {
    QuotaLimits { tool_calls: Some(tool_calls), ..QuotaLimits::default() }
}

fn add(quota: Quota, amount: u64) -> Word {
    Word::TopUp { quota, amount }
}

fn is_stopped(bench: &Bench) -> bool {
    matches!(bench.checkpoint.phase, Phase::Stopped { reason: StopReason::Quota, .. })
}

#[test]
fn bud_01_a_call_that_found_no_room_is_made_after_a_top_up() {
    let mut bench = limited(calls(1));
    bench.calls(vec![call("unsafe", &json!({"x": 1})), call("unsafe", &json!({"x": 2}))]);
    let arguments = bench.action(2).expect("it waits").arguments;
    bench.owed();
    bench.seen(1, Seen::Done);
    assert_eq!(names(&bench.owed()), ["RunStopped"]);
    assert!(is_stopped(&bench));
    // A resume without a top-up stops it again, and loses nothing.
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["RunStopped"]);
    assert_eq!(code(&bench.say("ann", add(Quota::ToolCalls, 1))), "accepted");
    assert!(is_stopped(&bench), "a top-up resumes nothing by itself");
    assert_eq!(bench.checkpoint.quota.used.tool_calls, 1, "and lowers nothing that was spent");
    bench.say("ann", Word::Resume);
    assert_eq!(bench.standing().status, Status::Ready);
    assert_eq!(names(&bench.owed()), ["QuotaGranted", "AttemptStarted"]);
    assert_eq!(bench.action(2).expect("under way").arguments, arguments);
    bench.seen(2, Seen::Done);
    assert_eq!((bench.settled(2).how, bench.checkpoint.quota.used.tool_calls), (How::Done, 2));
}

#[test]
fn a_call_that_waited_for_room_is_asked_about_when_there_is_some() {
    let asks = Rule { expires_ms: Some(5_000), on_expiry: OnExpiry::Deny, ..rule(&["unsafe"], &[], Decide::Ask) };
    let mut bench = Bench::new(Definition { quota: calls(0), policy: vec![asks], ..free() });
    bench.calls(vec![call("unsafe", &json!({}))]);
    bench.owed();
    assert!(is_stopped(&bench));
    bench.wait_ms(60_000);
    bench.say("ann", add(Quota::ToolCalls, 1));
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["QuotaGranted"]);
    let ActionState::Gated { gate: Gate::Approval(request) } = bench.state(1) else { panic!("it asks") };
    assert_eq!(request.expires_at, Some(bench.checkpoint.at.plus_ms(5_000)), "its time begins when it is asked");
    assert_eq!(code(&bench.say("ann", Word::Approve { request: request.name })), "accepted");
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn room_that_a_sibling_gives_back_is_used_without_a_stop() {
    let asks = rule(&["unsafe"], &[], Decide::Ask);
    let mut bench =
        Bench::new(Definition { quota: calls(2), policy: vec![asks, rule(&[], &[], Decide::Allow)], ..free() });
    bench.calls(vec![call("unsafe", &json!({})), call("keyed", &json!({})), call("keyed", &json!({"x": 1}))]);
    let request = bench.request(1);
    bench.say("ann", Word::Deny { request, reason: String::new() });
    assert_eq!(names(&bench.owed()), ["QuotaGranted", "AttemptStarted", "AttemptStarted"]);
    assert_eq!(bench.checkpoint.quota.reserved.tool_calls, 2);
}

#[test]
fn what_is_the_same_as_another_effect_needs_no_room() {
    let mut bench = limited(calls(1));
    bench.calls(vec![call("keyed", &json!({"x": 1})), call("keyed", &json!({"x": 1}))]);
    assert_eq!(bench.checkpoint.quota.reserved.tool_calls, 1);
    bench.owed();
    bench.seen(1, Seen::Done);
    bench.owed();
    assert_eq!((bench.settled(2).how, bench.checkpoint.phase.clone()), (How::Done, Phase::Active));
    bench.calls(vec![call("keyed", &json!({"x": 1}))]);
    assert_eq!((bench.settled(3).how, bench.checkpoint.quota.used.tool_calls), (How::Done, 1));
}

#[test]
fn what_is_in_doubt_stays_charged_until_it_is_resolved() {
    let mut bench = limited(calls(2));
    bench.calls(vec![
        call("unsafe", &json!({"x": 1})),
        call("unsafe", &json!({"x": 2})),
        call("unsafe", &json!({"x": 3})),
    ]);
    bench.owed();
    bench.seen(1, Seen::TimedOut);
    bench.seen(2, Seen::Done);
    assert_eq!((bench.checkpoint.quota.used.tool_calls, bench.checkpoint.quota.reserved.tool_calls), (1, 1));
    assert_eq!(names(&bench.owed()), ["RunStopped"], "the doubt's reservation is nobody else's room");
    assert_eq!(bench.standing().status, Status::InDoubt, "which goes before the stop");
    let ordinal = bench.action(1).expect("in doubt").ordinal;
    bench.say("ann", Word::Resolve { ordinal, became: Became::Abandoned(String::new()), attempt: None });
    assert_eq!((bench.checkpoint.quota.used.tool_calls, bench.checkpoint.quota.reserved.tool_calls), (2, 0));
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["RunStopped"], "it may have happened: it stays charged");
}

#[test]
fn a_top_up_is_judged() {
    let mut bench = limited(calls(3));
    assert_eq!(code(&bench.say("ann", add(Quota::Usd, 1))), "quota.not_limited");
    assert_eq!(code(&bench.say("ann", add(Quota::ToolCalls, 0))), "quota.nothing");
    assert_eq!(code(&bench.say("ann", add(Quota::ToolCalls, u64::MAX))), "accepted");
    assert_eq!(bench.checkpoint.quota.limits.tool_calls, Some(u64::MAX));
    bench.say("ann", Word::Cancel { reason: String::new() });
    assert_eq!(code(&bench.say("ann", add(Quota::ToolCalls, 1))), "run.over");
}

#[test]
fn every_quota_stops_the_run_and_a_top_up_lets_it_go_on() {
    for quota in Quota::ALL {
        let mut limits = QuotaLimits { deadline_ms: Some(u64::MAX / 2_000), ..QuotaLimits::default() };
        match quota {
            Quota::TotalTokens => limits.total_tokens = Some(2),
            Quota::InputTokens => limits.input_tokens = Some(2),
            Quota::OutputTokens => limits.output_tokens = Some(2),
            Quota::Usd => limits.usd_micro = Some(2),
            Quota::ModelCalls => limits.model_calls = Some(0),
            Quota::ToolCalls => limits.tool_calls = Some(0),
            Quota::ActiveTime => limits.active_time_ms = Some(0),
            Quota::Deadline => limits.deadline_ms = Some(0),
        }
        let mut definition = Definition { quota: limits, ..free() };
        definition.model.price =
            Some(lodestep_core::definition::Price { input_micro_usd: 5_000_000, ..Default::default() });
        let mut bench = Bench::new(definition);
        let moved = |bench: &mut Bench| match quota {
            Quota::ToolCalls => {
                if bench.action(1).is_none() {
                    bench.calls(vec![call("read", &json!({}))]);
                }
                bench.owed();
                bench.checkpoint.phase == Phase::Active
            }
            Quota::Deadline => {
                bench.owed();
                bench.checkpoint.phase == Phase::Active
            }
            _ => bench.reserve().is_some(),
        };
        assert!(!moved(&mut bench), "{quota:?}");
        assert!(is_stopped(&bench), "{quota:?}: {:?}", bench.checkpoint.phase);
        assert_eq!(code(&bench.say("ann", add(quota, 1_000_000_000))), "accepted");
        bench.say("ann", Word::Resume);
        assert!(moved(&mut bench), "{quota:?}");
    }
}

#[test]
fn the_model_is_told_plainly_when_little_is_left() {
    let limits =
        QuotaLimits { model_calls: Some(5), usd_micro: Some(2_500_000), deadline_ms: Some(86_400_000), ..calls(10) };
    let mut bench = limited(limits);
    let told = |bench: &Bench| {
        let made = assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).expect("it fits");
        serde_json::to_string(&made.request.messages).expect("it is JSON")
    };
    let shown = told(&bench);
    assert!(shown.contains("- model_calls: 5 of 5") && shown.contains("- usd: 2.50 of 2.50"), "{shown}");
    assert!(shown.contains("- deadline: 1d of 1d") && !shown.contains("Low:"), "{shown}");
    for _ in 0..4 {
        bench.calls(vec![call("note", &json!({"key": "a", "text": "b"}))]);
        bench.calls(Vec::new());
        if bench.checkpoint.remaining().iter().any(|row| row.quota == Quota::ModelCalls && row.left == 1) {
            break;
        }
    }
    assert!(told(&bench).contains("Low: model_calls. At 0 the run stops"), "{}", told(&bench));
}
