//! Timers that fell due while no program ran: how soon after a start they have fired, by the journal's own times.

mod support;

use std::sync::Arc;

use lodestep::agent::AgentFile;
use lodestep::core::event::{Envelope, Event};
use lodestep::core::rules::standing::Status;
use lodestep::core::{RunId, Timestamp};
use lodestep::observe::Silent;
use lodestep::store::{Clock, Filter, SqliteStore, Store, SystemClock};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::json;
use support::*;

const HOUR_MS: i64 = 3_600_000;

/// The time of two hours ago.
struct Earlier;

impl Clock for Earlier {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.wall().as_micros() - 2 * HOUR_MS * 1_000)
    }

    fn boot_us(&self) -> u64 {
        SystemClock.boot_us()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tim_01_two_seconds_after_the_start_every_overdue_timer_has_fired() {
    const RUNS: u64 = 200;
    let world = World::new();
    let wait = |seconds: u64| json!({ "calls": [{ "name": "wait", "arguments": { "seconds": seconds } }] });
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    // Two hours ago a program began, waits of up to an hour, and ended.
    {
        let clock: Arc<dyn Clock> = Arc::new(Earlier);
        let store = SqliteStore::open(&world.path().join("store.db"), clock.clone()).expect("opened");
        let before = Runtime::builder(Arc::new(store)).clock(clock).build();
        for number in 0..RUNS {
            let folder = World::new();
            let replies = json!([wait(10 + number * 17), finish]);
            let mut definition = AgentFile::load(&folder.agent("", &replies)).expect("sound").definition;
            definition.model.name =
                world.write(&format!("{number}.json"), &folder.read("script.json")).display().to_string();
            let id = Some(RunId::parse(&format!("waits-{number}")).expect("sound"));
            let start = Start { definition, inputs: json!({}), id, labels: Default::default(), join_unfinished: false };
            before.start(start).await.expect("started");
        }
        before.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
        let waiting = Filter { statuses: vec![Status::Waiting], ..Filter::default() };
        assert_eq!(before.store().count("default", &waiting, 1_000).await.expect("counted"), RUNS as usize);
    }
    let begun = SystemClock.wall();
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    let store = SqliteStore::open_to_read(&world.path().join("store.db"), Arc::new(SystemClock)).expect("opened");
    let mut fired = Vec::new();
    for row in store.list("default", &Filter::default()).await.expect("listed") {
        for row in store.journal(&row.run, 1, 100).await.expect("read") {
            let envelope = Envelope::from_bytes(&row.envelope).expect("sound");
            let timers = envelope.events.iter().filter(|event| matches!(event, Event::TimerFired(_)));
            fired.extend(timers.map(|_| envelope.at));
        }
    }
    assert_eq!(fired.len() as u64, RUNS, "each once");
    assert!(fired.iter().all(|at| *at >= begun), "before the start");
    let last_ms = fired.iter().map(|at| at.ms_since(begun)).max().expect("some");
    assert!(last_ms < 2_000, "the last one fired after {last_ms} ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_has_passed_says_what_is_missing_until_now() {
    let world = World::new();
    {
        let clock: Arc<dyn Clock> = Arc::new(Earlier);
        let store = SqliteStore::open(&world.path().join("store.db"), clock.clone()).expect("opened");
        let before = Runtime::builder(Arc::new(store)).clock(clock).build();
        let agent = world.agent("[quota]\ndeadline = \"1h\"\n", &json!([]));
        let definition = AgentFile::load(&agent).expect("sound").definition;
        let id = Some(RunId::parse("late").expect("sound"));
        let start = Start { definition, inputs: json!({}), id, labels: Default::default(), join_unfinished: false };
        before.start(start).await.expect("started");
    }
    let stopped = world.lodestep(&["resume", "late"]).exits(6).out;
    // It began two hours ago, and a bit.
    assert!(stopped.contains("the run's deadline has passed: 61m missing"), "{stopped}");
    assert!(stopped.contains("quota add late deadline 61m  (or more; then resume)"), "{stopped}");
    let small = world.lodestep(&["quota", "add", "late", "deadline", "30m"]).exits(0).out;
    assert!(small.contains("too little") && small.contains("quota add late deadline 31m  (or more"), "{small}");
    let enough = world.lodestep(&["quota", "add", "late", "deadline", "31m"]).exits(0).out;
    assert!(enough.contains("it goes on with"), "{enough}");
    assert!(world.lodestep(&["show", "late"]).exits(0).out.contains("the quota deadline has room again"));
}
