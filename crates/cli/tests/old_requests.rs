//! Requests that take no answer any more: one that has expired, and one whose tool has changed, before a worker has said so.

mod support;

use std::sync::Arc;

use lodestep::agent::AgentFile;
use lodestep::core::{RunId, Timestamp};
use lodestep::observe::Silent;
use lodestep::store::{Clock, SqliteStore, SystemClock};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::{Value, json};
use support::*;

const PAY: &str = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo paid >> paid\"]\n\
                   input = { type = \"object\" }\nclass = \"unsafe\"\n[questions]\nexpires = \"1h\"\n";
const ASKS: &str = "[[policy]]\ntools = [\"pay\"]\ndecide = \"ask\"\nexpires = \"1h\"\n";

/// The time of two hours ago.
struct Earlier;

impl Clock for Earlier {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.wall().as_micros() - 7_200 * 1_000_000)
    }

    fn boot_us(&self) -> u64 {
        SystemClock.boot_us()
    }
}

/// Two hours ago a run asked this, and its worker ended.
async fn asked_long_ago(world: &World, id: &str, call: Value) {
    let clock: Arc<dyn Clock> = Arc::new(Earlier);
    let store = SqliteStore::open(&world.path().join("store.db"), clock.clone()).expect("opened");
    let before = Runtime::builder(Arc::new(store)).clock(clock).build();
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] });
    let agent = world.agent(&format!("{PAY}{ASKS}"), &json!([{ "calls": [call] }, finish]));
    let definition = AgentFile::load(&agent).expect("sound").definition;
    let id = Some(RunId::parse(id).expect("sound"));
    let start = Start { definition, inputs: json!({}), id, labels: Default::default(), join_unfinished: false };
    before.start(start).await.expect("started");
    before.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_offered_no_answer() {
    for call in [json!({"name": "pay"}), json!({"name": "ask", "arguments": {"question": "Which?"}})] {
        let world = World::new();
        asked_long_ago(&world, "late", call).await;
        assert_eq!(world.json(&["todo"]), json!([]));
        let todo = world.lodestep(&["todo"]).exits(0);
        assert!(todo.err.contains("1 request has no answer any more") && todo.err.contains("resume late"), "{todo:?}");
        let shown = world.lodestep(&["show", "late"]).exits(0).out;
        assert!(shown.contains("its time is over, goes on as soon as a worker is there"), "{shown}");
        assert!(!shown.contains("store.db approve") && !shown.contains("store.db answer"), "{shown}");
        assert!(shown.contains("resume late"), "{shown}");
        assert_eq!(world.json(&["show", "late"])["requests"][0]["answered"], "its time is over");
    }
}

#[test]
fn what_an_upgrade_renews_is_offered_no_answer_until_it_is_asked_anew() {
    let world = World::new();
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] });
    let agent = world.agent(&format!("{PAY}{ASKS}"), &json!([{ "calls": [{ "name": "pay" }] }, finish]));
    let agent = agent.to_str().expect("a path");
    world.lodestep(&["run", agent, "--id", "past"]).exits(3);
    let old = world.requests().remove(0);
    world.write("agent.toml", &world.read("agent.toml").replace("\"Pay.\"", "\"Pay at once.\""));
    world.lodestep(&["upgrade", "past", agent, "--yes"]).exits(0);
    assert_eq!(world.json(&["todo"]), json!([]));
    let todo = world.lodestep(&["todo"]).exits(0);
    assert!(todo.err.contains("1 request has no answer any more") && todo.err.contains("resume past"), "{todo:?}");
    world.lodestep(&["resume", "past"]).exits(3);
    let new = world.requests().remove(0);
    assert_ne!(old, new);
    assert_eq!(world.json(&["todo"])[0]["request"], json!(new));
    assert!(world.lodestep(&["todo"]).exits(0).err.is_empty());
}
