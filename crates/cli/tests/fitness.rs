//! Runs that another program has begun and this one can't go on with: they are named when a program starts.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestep::agent::AgentFile;
use lodestep::core::event::RunStarted;
use lodestep::core::json::canonical;
use lodestep::core::value::Values;
use lodestep::core::{Definition, Draft, RunId, RunKey};
use lodestep::model::ScriptModel;
use lodestep::observe::Silent;
use lodestep::store::{SqliteStore, StartRun, SystemClock};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::json;
use support::*;

/// An agent that pays, which is asked for.
fn paying(world: &World) -> Definition {
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo x >> ledger\"]\n\
        input = { type = \"object\" }\nclass = \"unsafe\"\n";
    let file = world.agent(tables, &json!([{ "calls": [{ "name": "pay" }] }]));
    AgentFile::load(&file).expect("sound").definition
}

/// A program that has every provider, over this world's store.
fn other_program(world: &World) -> Runtime {
    let script = json!({ "replies": [{ "calls": [{ "name": "pay" }] }] }).to_string();
    let store = SqliteStore::open(&world.path().join("store.db"), Arc::new(SystemClock)).expect("opened");
    Runtime::builder(Arc::new(store)).model(Arc::new(ScriptModel::parse(&script).expect("sound"))).build()
}

/// Starts a run and works on it until it waits for its approval.
async fn parked(program: &Runtime, definition: Definition, id: &str) {
    let id = Some(RunId::parse(id).expect("sound"));
    let start = Start { definition, inputs: json!({}), id, labels: Default::default(), join_unfinished: false };
    program.start(start).await.expect("started");
    program.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
}

/// Starts a run whose definition has a tool of a kind that this build does not know.
async fn with_unknown_kind(program: &Runtime, definition: &Definition, id: &str) {
    let text = String::from_utf8(definition.to_bytes()).expect("UTF-8");
    let newer = text.replace("\"type\":\"command\"", "\"type\":\"dream\"");
    assert_ne!(newer, text, "it has no command");
    let (key, mut values) = (RunKey::new(RunId::parse(id).expect("sound")), Values::new());
    let (definition_value, inputs) = (values.put(newer.into_bytes()), values.put(canonical(&json!({}))));
    let started = RunStarted {
        namespace: key.namespace.clone(),
        run: key.run.clone(),
        agent: definition.name.clone(),
        definition: definition_value,
        inputs,
        limits: definition.limits,
        quota: definition.quota,
        milestones: Vec::new(),
        labels: None,
    };
    let transition = Draft::start(started, values, program.store().now()).expect("sound").seal();
    let (agent, definition) = (definition.name.clone(), definition_value.digest);
    let start = StartRun { key, agent, definition, inputs: inputs.digest, transition, join_unfinished: false };
    program.store().start(start).await.expect("started");
}

#[tokio::test(flavor = "multi_thread")]
async fn apr_07_dep_02_what_this_program_cannot_go_on_with_is_named_at_its_start() {
    let world = World::new();
    let definition = paying(&world);
    let mut newer = definition.clone();
    newer.model.provider = "oracle".to_owned();
    {
        let program = other_program(&world);
        parked(&program, definition.clone(), "sound").await;
        for id in ["waits-1", "waits-2"] {
            parked(&program, newer.clone(), id).await;
        }
        with_unknown_kind(&program, &definition, "dreams").await;
    }
    // Also to whoever only asks: those that wait, and the one that no worker has taken up.
    let asked = world.json(&["doctor"]);
    let checks = asked["checks"].as_array().expect("checks");
    let named = |words: [&str; 2]| {
        let says = |what: &str| words.iter().all(|word| what.contains(word));
        checks.iter().any(|check| check["verdict"] == "warning" && check["what"].as_str().is_some_and(says))
    };
    assert!(named(["ts-2, ts-1", "no provider `oracle`"]), "{asked}");
    assert!(named(["eams", "unknown variant `dream`"]), "{asked}");

    let begun = Instant::now();
    let worked = world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let wanted = "this program can't go on with runs ts-2, ts-1: this build has no provider `oracle`";
    assert!(worked.err.contains(wanted) && !worked.err.contains("ound"), "{worked:?}");
    let stopped = world.json(&["ls", "--status", "stopped"]);
    assert_eq!((stopped.as_array().map(Vec::len), &stopped[0]["run"]), (Some(1), &json!("dreams")), "{stopped}");
    assert!(stopped[0]["why"].as_str().is_some_and(|why| why.starts_with("version")), "{stopped}");
    // Nothing was stopped that waits: another program may be the one that goes on with it.
    let waiting = world.json(&["ls", "--status", "waiting"]);
    assert_eq!(waiting.as_array().map(Vec::len), Some(3), "{waiting}");
    // What says so itself is not named again.
    let (mut worker, mut said) = world.start_heard(&["worker"]);
    said.until(wanted);
    assert_eq!(worker.terminate(), Some(130));
    let rest = said.rest();
    assert!(!rest.contains("can't go on with"), "{rest}");
    let resumed = world.lodestep(&["resume", "waits-1"]);
    assert!(resumed.err.contains("can't go on with run ts-1: this build has no provider `oracle`"), "{resumed:?}");
    let sound = world.lodestep(&["resume", "sound"]).exits(3);
    assert!(!sound.err.contains("can't go on with"), "{sound:?}");
}
