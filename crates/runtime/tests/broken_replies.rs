//! Replies of a service that are cut or break off (scenarios TOL-03, TOL-07): nothing of them is done, and that call alone is
//! tried again.

mod support;

use std::sync::Arc;

use lodestep::core::checkpoint::Phase;
use lodestep::core::definition::Definition;
use lodestep::core::event::StopReason;
use lodestep::core::quota::Amounts;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, RunKey};
use lodestep::model;
use lodestep::model::Reply;
use lodestep_model_server::{At, Fault, Outcome, Shape, WAYS, mind};
use serde_json::json;
use support::services::*;

/// What the model is told after a reply that was cut.
const CUT_OFF: &str = "the reply was cut off at the output limit";

/// A reply that pays, said to have been cut by the limit.
fn cut(arguments: &str) -> Reply {
    let mut reply = calls(&[("pay", json!({}))]);
    arguments.clone_into(&mut reply.calls[0].arguments);
    Reply { stop: model::StopReason::OutputLimit, ..reply }
}

fn pay(n: u64) -> Reply {
    calls(&[("pay", json!({"n": n, "text": "as agreed"}))])
}

fn finish() -> Reply {
    calls(&[("finish", json!({}))])
}

/// Each way in which a reply is cut inside a call: what the model says, and what the service makes of it.
fn cuts() -> [(&'static str, Reply, Fault); 4] {
    [
        ("broken JSON", pay(666), Fault::OutputLimit),
        ("JSON without what is required", cut("{}"), Fault::Nothing),
        ("JSON that looks complete", cut(r#"{"n":666}"#), Fault::Nothing),
        ("as many tokens as are allowed, and tool_calls", pay(666), Fault::OutputAtLimit),
    ]
}

fn payer(served: &Served) -> Definition {
    let mut definition = served.definition();
    definition.tools[0].input["required"] = json!(["n"]);
    definition
}

#[tokio::test]
async fn tol_03_nothing_of_a_cut_reply_is_done_and_the_model_is_told_that_it_was_cut() {
    for way in WAYS {
        for (what, said, fault) in cuts() {
            let served = Served::new(way, mind::in_order([said, finish()]));
            served.server.plan([fault]);
            let run = served.start(payer(&served)).await;
            let state = served.end(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {what}");
            assert!(served.ledger.counts().is_empty(), "{way:?} {what}: {:?}", served.ledger.counts());
            let bill = served.sound_bill();
            assert_eq!(bill.entries.len(), 2, "{way:?} {what}: it is asked once more");
            let told = bill.entries[1].body.as_ref().expect("JSON").to_string();
            assert!(told.contains(CUT_OFF) && !told.contains("666"), "{way:?} {what}: {told}");
            assert_eq!(state.quota.used.output_tokens, output_tokens(&served), "{way:?} {what}: both are charged");
        }
    }
}

/// Of all that the server billed.
fn output_tokens(served: &Served) -> u64 {
    served.server.bill().total().output
}

#[tokio::test]
async fn tol_03_two_cut_replies_in_a_row_stop_the_run_and_say_what_is_too_little() {
    for way in WAYS {
        for (what, said, fault) in cuts() {
            let served = Served::new(way, mind::in_order([said.clone(), said, finish()]));
            served.server.plan([fault.clone(), fault]);
            let run = served.start(payer(&served)).await;
            let state = served.end(&run).await;
            assert!(matches!(state.phase, Phase::Stopped { reason: StopReason::Model, .. }), "{way:?} {what}");
            let why = served.stopped(&run).await;
            assert!(why.contains("2 replies in a row were cut off") && why.contains("max_output_tokens"), "{why}");
            assert_eq!(served.sound_bill().entries.len(), 2, "{way:?} {what}: it is not asked a third time");
            assert!(served.ledger.counts().is_empty(), "{way:?} {what}");
        }
    }
}

#[tokio::test]
async fn tol_03_the_one_more_try_has_more_room_where_the_file_says_so() {
    for way in WAYS {
        for (what, said, fault) in cuts() {
            let served = Served::new(way, mind::in_order([said, pay(2), finish()]));
            served.server.plan([fault]);
            let mut definition = payer(&served);
            definition.model.max_output_tokens_retry = Some(3_000);
            let run = served.start(definition).await;
            let state = served.end(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {what}: {}", served.stopped(&run).await);
            assert_eq!(served.ledger.keys("pay").len(), 1, "{way:?} {what}: the whole one");
            let bill = served.sound_bill();
            let bodies: Vec<_> = bill.entries.iter().filter_map(|entry| entry.body.as_ref()).collect();
            let limits: Vec<_> = bodies.iter().map(|body| &body["max_tokens"]).collect();
            assert_eq!(limits, [&json!(1_000), &json!(3_000), &json!(1_000)], "{way:?} {what}: of that try alone");
            let told = bodies[1].to_string();
            assert!(told.contains(CUT_OFF) && told.contains("may have 3000 tokens"), "{way:?} {what}: {told}");
        }
    }
}

#[tokio::test]
async fn tol_03_a_run_that_is_resumed_has_its_one_more_try_again() {
    for way in WAYS {
        let served = Served::new(way, mind::in_order(std::iter::repeat_n(cut("{}"), 3).chain([finish()])));
        let run = served.start(payer(&served)).await;
        served.end(&run).await;
        assert!(served.stopped(&run).await.contains("2 replies in a row were cut off"), "{way:?}");
        let resume = served.runtime.send(&run, "ada", Word::Resume).await.expect("sent");
        assert_eq!(resume, Verdict::Accepted);
        let state = served.end(&run).await;
        assert_eq!(standing(&state).status, Status::Completed, "{way:?}: {}", served.stopped(&run).await);
        assert_eq!(served.sound_bill().entries.len(), 4, "{way:?}");
    }
}

#[tokio::test]
async fn tol_03_a_call_that_ended_below_the_limit_runs_when_its_arguments_are_sound() {
    for way in WAYS {
        let mut broken = pay(1);
        broken.calls[0].arguments = r#"{"n":1,"te"#.to_owned();
        let served = Served::new(way, mind::in_order([broken, pay(2), finish()]));
        let run = served.start(payer(&served)).await;
        let state = served.end(&run).await;
        assert_eq!(standing(&state).status, Status::Completed, "{way:?}");
        assert_eq!(served.ledger.keys("pay").len(), 1, "{way:?}: the sound one");
        let told = served.sound_bill().entries[1].body.as_ref().expect("JSON").to_string();
        assert!(!told.contains(CUT_OFF), "{way:?}: it was not cut: {told}");
    }
}

/// Three rounds of tools, a fourth that breaks, and the end.
fn rounds() -> impl model::Model {
    let mut fourth = pay(4);
    fourth.text = "A fourth time, with a text that is long enough to be cut in its middle.".to_owned();
    by_decisions(vec![pay(1), pay(2), calls(&[("look", json!({"n": 3}))]), fourth, finish()])
}

/// What breaks, in a stream or in a whole reply; and whether it may have been billed.
fn breaks(streamed: bool) -> Vec<(Fault, bool)> {
    let mut broken = vec![
        (Fault::Reset(At::Arguments), true),
        (Fault::Cut(At::Arguments), true),
        (Fault::Close(At::Arguments), true),
        (Fault::Stall(At::Arguments), true),
        (Fault::Overloaded, false),
        (Fault::InternalError, true),
        (Fault::Unavailable, false),
    ];
    if streamed {
        broken.extend([(Fault::ErrorEvent(At::Text), true), (Fault::Cut(At::End), true)]);
    }
    broken
}

/// The agent of three rounds, which gives a call up after three tries; against a silent service it is soon out of patience.
fn impatient(served: &Served, fault: &Fault) -> Definition {
    let mut definition = served.definition();
    definition.model.max_attempts = 3;
    if matches!(fault, Fault::Stall(_)) {
        let patience = if definition.model.whole {
            &mut definition.model.timeout_ms
        } else {
            &mut definition.model.idle_timeout_ms
        };
        *patience = Some(1_000);
    }
    definition
}

fn counts(served: &Served) -> (usize, usize) {
    (served.ledger.keys("pay").len(), served.ledger.keys("look").len())
}

#[tokio::test]
async fn tol_07_a_broken_reply_is_dropped_and_that_call_alone_is_asked_again() {
    for way in WAYS {
        for (fault, is_billed) in breaks(way.1) {
            let mut served = Served::new(way, rounds());
            served.plan_after(3, [fault.clone()]);
            let run = served.start(impatient(&served, &fault)).await;
            let state = served.settle(&run).await;
            assert_eq!(standing(&state).status, Status::Waiting, "{way:?} {fault:?}: with back-off");
            assert_eq!(counts(&served), (2, 1), "{way:?} {fault:?}: nothing of the fourth");
            let charged = state.quota.unconfirmed.unwrap_or_default();
            assert_eq!(charged.model_calls, u64::from(is_billed), "{way:?} {fault:?}");
            assert_eq!(charged.output_tokens, if is_billed { 1_000 } else { 0 }, "{way:?} {fault:?}: as reserved");
            assert_eq!(state.quota.reserved, Amounts::default(), "{way:?} {fault:?}");
            served.restart();
            let state = served.end(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {fault:?}");
            assert_eq!(counts(&served), (3, 1), "{way:?} {fault:?}: no round is repeated");
            let bill = served.sound_bill();
            assert_eq!(bill.entries.len(), 6, "{way:?} {fault:?}: one more than rounds");
            let again = bill.entries[4].body.as_ref().expect("JSON").to_string();
            assert!(!again.contains("A fourth time"), "{way:?} {fault:?}: nothing of the half is shown");
        }
    }
}

/// A call that failed; its run is worked on by a new program each time, up to the limit.
async fn failed_three_times(served: &mut Served, fault: &Fault) -> (Arc<RunKey>, Checkpoint) {
    served.plan_after(3, std::iter::repeat_n(fault.clone(), 3));
    let run = served.start(impatient(served, fault)).await;
    for tries in 1..3 {
        let state = served.settle(&run).await;
        assert_eq!((standing(&state).status, state.model.failed_in_row), (Status::Waiting, tries), "{fault:?}");
        served.pass_until(standing(&state).due.expect("a time").as_micros());
        served.restart();
    }
    let state = served.settle(&run).await;
    (run, state)
}

#[tokio::test]
async fn tol_07_the_limit_of_attempts_outlives_restarts_and_a_resume_goes_on_where_it_was() {
    for way in WAYS {
        for fault in [Fault::Reset(At::Arguments), Fault::InternalError] {
            let mut served = Served::new(way, rounds());
            let (run, state) = failed_three_times(&mut served, &fault).await;
            assert!(matches!(state.phase, Phase::Stopped { reason: StopReason::Model, .. }), "{way:?} {fault:?}");
            let why = served.stopped(&run).await;
            assert!(why.contains("no reply (3 in a row"), "{way:?} {fault:?}: {why}");
            assert_eq!(served.sound_bill().entries.len(), 6, "{way:?} {fault:?}");
            assert_eq!(state.quota.unconfirmed.map(|amounts| amounts.model_calls), Some(3), "{way:?} {fault:?}");
            // The count begins anew: two more of them stop nothing.
            served.server.plan([fault.clone(), fault.clone()]);
            let resume = served.runtime.send(&run, "ada", Word::Resume).await.expect("sent");
            assert_eq!(resume, Verdict::Accepted);
            let state = served.end(&run).await;
            let why = served.stopped(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {fault:?}: {why}");
            assert_eq!(counts(&served), (3, 1), "{way:?} {fault:?}");
        }
    }
}

#[tokio::test]
async fn tol_07_a_service_that_asks_to_wait_spends_no_attempts() {
    for way in WAYS {
        for fault in [Fault::Overloaded, Fault::Unavailable] {
            let mut served = Served::new(way, rounds());
            served.plan_after(3, std::iter::repeat_n(fault.clone(), 8).chain([Fault::InternalError]));
            let run = served.start(impatient(&served, &fault)).await;
            served.settle(&run).await;
            served.restart();
            let state = served.end(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {fault:?}: {}", served.stopped(&run).await);
            assert_eq!(counts(&served), (3, 1), "{way:?} {fault:?}");
            let failed = served.server.bill().entries.iter().filter(|entry| entry.outcome != Outcome::Answered).count();
            assert_eq!(failed, 9, "{way:?} {fault:?}: each of them was one request");
        }
    }
}

#[tokio::test]
async fn both_shapes_are_asked_as_they_are_asked_for() {
    for way in WAYS {
        let served = Served::new(way, rounds());
        let run = served.start(served.definition()).await;
        served.end(&run).await;
        let bill = served.sound_bill();
        assert!(bill.entries.iter().all(|entry| (entry.shape, entry.streamed) == (Some(way.0), way.1)), "{way:?}");
        assert_eq!(bill.entries[0].header("x-api-key").is_empty(), way.0 == Shape::OpenAi, "{way:?}");
    }
}
