//! A service that limits the rate of its calls (scenario TOL-08): a run waits as a durable timer for as long as it was told,
//! and each attempt is one request.

mod support;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lodestep::core::checkpoint::Phase;
use lodestep::core::definition::ModelSpec;
use lodestep::core::event::StopReason;
use lodestep::core::quota::Quota;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, RunKey};
use lodestep::store::Clock;
use lodestep_model_server::{Fault, Shape, WAYS, mind};
use serde_json::json;
use support::services::*;

/// What a refusal says of the time to wait.
type Headers<'a> = &'a [(&'a str, &'a str)];

fn limited(headers: Headers<'_>) -> Fault {
    Fault::RateLimited(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// A run whose first question is answered by this refusal, and its second by the end of the run.
async fn limited_once(way: (Shape, bool), fault: Fault) -> (Served, Arc<RunKey>) {
    limited_within(way, fault, None).await
}

/// The same with a deadline, in milliseconds from its start.
async fn limited_within(way: (Shape, bool), fault: Fault, deadline_ms: Option<u64>) -> (Served, Arc<RunKey>) {
    let served = Served::new(way, mind::in_order([calls(&[("finish", json!({}))])]));
    served.server.plan([fault]);
    let mut definition = served.definition();
    definition.quota.deadline_ms = deadline_ms;
    let run = served.start(definition).await;
    (served, run)
}

/// How long the run waits from now on, in milliseconds.
fn waits_ms(served: &Served, state: &Checkpoint) -> u64 {
    let stands = standing(state);
    assert_eq!(stands.status, Status::Waiting);
    let left_us = stands.due.expect("a time").as_micros() - served.clock.wall().as_micros();
    u64::try_from(left_us / 1_000).expect("it is to come")
}

fn requests(served: &Served) -> usize {
    served.sound_bill().entries.len()
}

#[tokio::test]
async fn tol_08_no_request_is_sent_before_the_time_that_was_stated() {
    let table: [(Headers<'_>, u64, u64); 8] = [
        (&[("retry-after", "2")], 2_000, 2_100),
        (&[("retry-after", "60")], 60_000, 63_000),
        (&[("retry-after", "171")], 171_000, 179_550),
        (&[("retry-after", "7200")], 7_200_000, 7_560_000),
        (&[("retry-after-ms", "1500"), ("retry-after", "60")], 1_500, 1_575),
        // What says nothing leaves it to the usual pause.
        (&[("retry-after", "soon")], 500, 750),
        (&[("retry-after", "-5")], 500, 750),
        (&[], 500, 750),
    ];
    for way in WAYS {
        for (headers, least_ms, most_ms) in table {
            let (mut served, run) = limited_once(way, limited(headers)).await;
            let state = served.settle(&run).await;
            let wait_ms = waits_ms(&served, &state);
            assert!((least_ms..=most_ms).contains(&wait_ms), "{way:?} {headers:?}: {wait_ms}");
            assert_eq!(requests(&served), 1, "{way:?} {headers:?}");
            // The program that waited is gone, and another looks one moment too early.
            served.restart();
            served.clock.advance_ms(wait_ms - 1);
            assert_eq!(standing(&served.settle(&run).await).status, Status::Waiting, "{way:?} {headers:?}");
            assert_eq!(requests(&served), 1, "{way:?} {headers:?}: not before its time");
            served.clock.advance_ms(2);
            let state = served.settle(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {headers:?}");
            assert_eq!(requests(&served), 2, "{way:?} {headers:?}: one request for each attempt");
            assert_eq!(state.quota.used.model_calls, 1, "{way:?} {headers:?}: a refusal costs nothing");
        }
    }
}

#[tokio::test]
async fn tol_08_a_date_is_a_time_and_one_that_is_past_is_now() {
    for way in WAYS {
        let at = SystemTime::now() + Duration::from_secs(171);
        let (served, run) = limited_once(way, limited(&[("retry-after", &httpdate::fmt_http_date(at))])).await;
        let state = served.settle(&run).await;
        // A date has no fractions of a second.
        let least_ms = at.duration_since(SystemTime::now()).expect("it is to come").as_millis() as u64 - 1_000;
        let wait_ms = waits_ms(&served, &state);
        assert!((least_ms..180_000).contains(&wait_ms), "{way:?}: {wait_ms} of {least_ms}");
        let past = httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(60));
        for now in ["0", past.as_str()] {
            let (served, run) = limited_once(way, limited(&[("retry-after", now)])).await;
            let state = served.settle(&run).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {now}: at once");
            assert_eq!(requests(&served), 2, "{way:?} {now}");
        }
    }
}

#[tokio::test]
async fn tol_08_runs_that_wait_hold_no_worker_and_come_one_after_the_other() {
    for way in WAYS {
        let served = Served::new(way, by_decisions(vec![calls(&[("finish", json!({}))])]));
        served.server.plan([limited(&[("retry-after", "171")]), limited(&[("retry-after", "171")])]);
        let runs = [served.start(served.definition()).await, served.start(served.definition()).await];
        let mut waits = Vec::new();
        for run in &runs {
            // It comes back although the time does not pass: nobody stands and waits.
            let state = served.settle(run).await;
            waits.push(waits_ms(&served, &state));
            let row = served.runtime.store().load(run).await.expect("loaded").row;
            assert_eq!(row.due, standing(&state).due, "{way:?}: the store has the timer");
            assert_eq!(row.holder, None, "{way:?}: and nobody has the run");
        }
        assert!(waits.iter().all(|wait_ms| *wait_ms >= 171_000) && waits[0] != waits[1], "{way:?}: {waits:?}");
        assert_eq!(requests(&served), 2, "{way:?}: both were asked at once, and each was told");
        waits.sort_unstable();
        served.clock.advance_ms(waits[0] + 1);
        served.settle(&runs[0]).await;
        assert_eq!(requests(&served), 3, "{way:?}: one of them is due");
        served.clock.advance_ms(waits[1] - waits[0]);
        for run in &runs {
            assert_eq!(standing(&served.settle(run).await).status, Status::Completed, "{way:?}");
        }
        assert_eq!(requests(&served), 4, "{way:?}: exactly one for each attempt");
    }
}

#[tokio::test]
async fn tol_08_a_run_that_begins_meanwhile_on_the_same_key_waits_too() {
    for way in WAYS {
        let mut served = Served::new(way, by_decisions(vec![calls(&[("finish", json!({}))])]));
        served.server.plan([limited(&[("retry-after", "171")])]);
        let first = served.start(served.definition()).await;
        served.settle(&first).await;
        served.clock.advance_ms(71_000);
        // The program that was told is gone.
        served.restart();
        let second = served.start(served.definition()).await;
        let state = served.settle(&second).await;
        let wait_ms = waits_ms(&served, &state);
        assert!((100_000..=105_000).contains(&wait_ms), "{way:?}: what is left of the time: {wait_ms}");
        assert_eq!(requests(&served), 1, "{way:?}: it sent nothing");
        assert_eq!(state.quota.used.model_calls, 0, "{way:?}");
        let said = served.errors(&second).await;
        assert!(said[0].contains("nothing was sent") && said[0].contains("another run"), "{way:?}: {said:?}");
        served.clock.advance_ms(99_999);
        served.settle(&second).await;
        assert_eq!(requests(&served), 1, "{way:?}: not before its time");
        for run in [&first, &second] {
            assert_eq!(standing(&served.end(run).await).status, Status::Completed, "{way:?}");
        }
        assert_eq!(requests(&served), 3, "{way:?}: one request for each");
    }
}

#[tokio::test]
async fn tol_08_a_limit_is_no_other_models_keys_or_places() {
    for way in WAYS {
        let others: [fn(&mut ModelSpec, Option<String>); 4] = [
            |model, _| model.name = "another".to_owned(),
            |model, _| model.api_key = Some("${env:OTHER_KEY}".to_owned()),
            |model, _| model.api_key = None,
            |model, place| model.base_url = place,
        ];
        for (at, other) in others.iter().enumerate() {
            let elsewhere = Served::new(way, by_decisions(vec![calls(&[("finish", json!({}))])]));
            let place = elsewhere.definition().model.base_url;
            let (served, first) = limited_once(way, limited(&[("retry-after", "171")])).await;
            served.settle(&first).await;
            let mut definition = served.definition();
            other(&mut definition.model, place);
            let second = served.start(definition).await;
            served.settle(&second).await;
            // This server takes one key, and says so: it was asked.
            let asked = served.server.bill().entries.len() + elsewhere.server.bill().entries.len();
            assert_eq!(asked, 2, "{way:?}, {at}: it is asked at once");
        }
    }
}

#[tokio::test]
async fn tol_08_a_service_that_always_says_now_is_asked_after_growing_pauses() {
    for way in WAYS {
        let served = Served::new(way, by_decisions(vec![calls(&[("finish", json!({}))])]));
        served.server.plan((0..6).map(|_| limited(&[("retry-after", "0")])));
        let run = served.start(served.definition()).await;
        let mut waits = Vec::new();
        for asked in 4..=6 {
            let state = served.settle(&run).await;
            waits.push(waits_ms(&served, &state));
            assert_eq!(requests(&served), asked, "{way:?}");
            served.pass_until(state.model.not_before.as_micros());
        }
        assert!(waits[0] >= 500 && waits[1] >= 1_000 && waits[2] >= 2_000, "{way:?}: {waits:?}");
        assert_eq!(standing(&served.settle(&run).await).status, Status::Completed, "{way:?}");
    }
}

#[tokio::test]
async fn tol_08_what_states_no_time_holds_nobody_else() {
    for way in WAYS {
        for headers in [&[][..], &[("retry-after", "0")], &[("retry-after", "soon")]] {
            let served = Served::new(way, by_decisions(vec![calls(&[("finish", json!({}))])]));
            let [first, second] = [served.start(served.definition()).await, served.start(served.definition()).await];
            served.server.plan([limited(headers)]);
            served.settle(&first).await;
            let state = served.settle(&second).await;
            assert_eq!(standing(&state).status, Status::Completed, "{way:?} {headers:?}");
        }
    }
}

#[tokio::test]
async fn tol_08_a_limit_beyond_the_runs_deadline_stops_it_and_says_until_when() {
    for way in WAYS {
        let (served, run) = limited_within(way, limited(&[("retry-after", "7200")]), Some(3_600_000)).await;
        let state = served.settle(&run).await;
        assert!(matches!(state.phase, Phase::Stopped { reason: StopReason::Model, .. }), "{way:?}");
        let until = state.model.not_before;
        let why = served.stopped(&run).await;
        assert!(why.contains(&format!("rate limited until {until}")) && why.contains("HTTP 429"), "{way:?}: {why}");
        assert_eq!(requests(&served), 1, "{way:?}");
        // With more time it goes on, and still not before the time that was stated.
        let more = Word::TopUp { quota: Quota::Deadline, amount: 7_200_000 };
        for word in [more, Word::Resume] {
            assert_eq!(served.runtime.send(&run, "ada", word).await.expect("sent"), Verdict::Accepted);
        }
        let state = served.settle(&run).await;
        assert_eq!((standing(&state).status, requests(&served)), (Status::Waiting, 1), "{way:?}");
        served.pass_until(until.as_micros());
        let state = served.settle(&run).await;
        assert_eq!((standing(&state).status, requests(&served)), (Status::Completed, 2), "{way:?}");
    }
}
