//! Looking back: what the model was asked, any past state, and what changed between two.

mod support;

use std::sync::{Arc, Mutex};

use lodestep::Runtime;
use lodestep::core::RunKey;
use lodestep::core::effect::Class;
use lodestep::inspect::{self, Which};
use lodestep::model::ScriptModel;
use lodestep::store::{JournalRow, MemoryStore, RunRow, Store};
use lodestep_model::{Model, ModelFuture, Request};
use serde_json::{Value, json};
use support::*;

/// A model that keeps what it was really asked.
struct Witness {
    script: ScriptModel,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Model for Witness {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        self.asked.lock().expect("sound").push(request.clone());
        self.script.ask(request)
    }
}

struct World {
    runtime: Runtime,
    store: MemoryStore,
    run: Arc<RunKey>,
    asked: Arc<Mutex<Vec<Request>>>,
}

/// A run with reads, an effect, notes, a refused call and a finish, at its end.
async fn done(replies: Value) -> World {
    let (ledger, asked) = (Ledger::default(), Arc::<Mutex<Vec<Request>>>::default());
    let clock = test_time();
    let store = MemoryStore::new(clock.clone());
    let model = Witness { script: script(replies), asked: asked.clone() };
    let runtime = Runtime::builder(Arc::new(store.clone()))
        .clock(clock)
        .functions(functions(&ledger, &["look", "pay"]))
        .model(Arc::new(model))
        .ids(|| 7)
        .build();
    let mut agent = agent(vec![tool("look", Class::Read), tool("pay", Class::Keyed)], &[]);
    agent.quota.active_time_ms = Some(3_600_000);
    agent.quota.model_calls = Some(50);
    let run = start(&runtime, agent).await;
    settle(&runtime, &run).await;
    World { runtime, store, run, asked }
}

fn steps() -> Value {
    json!([
        says(&[("look", json!({"n": 1})), ("pay", json!({"n": 2}))]),
        says(&[("note", json!({"key": "k", "text": "paid"})), ("nothing", json!({}))]),
        says(&[("look", json!({"n": 3})), ("note", json!({"key": "k", "text": "looked"}))]),
        says(&[("finish", json!({"summary": "all done"}))]),
    ])
}

impl World {
    async fn row(&self) -> RunRow {
        self.runtime.find(self.run.run.as_str()).await.expect("found")
    }

    async fn journal(&self) -> Vec<JournalRow> {
        self.store.journal(&self.row().await.run, 1, 1_000).await.expect("read")
    }
}

#[tokio::test]
async fn every_request_is_rebuilt_to_the_byte() {
    let world = done(steps()).await;
    let row = world.row().await;
    let asked = world.asked.lock().expect("sound").clone();
    assert_eq!(asked.len(), 4);
    for (place, sent) in (1_u32..).zip(&asked) {
        let rebuilt = inspect::request(&world.store, &row.run, Which::Decision(place)).await.expect("found");
        assert_eq!(rebuilt.request.as_ref(), Ok(sent), "decision {place}");
        assert_eq!((rebuilt.decision, rebuilt.call), (Some(place), u64::from(place)));
        assert_eq!(rebuilt.manifest.map(|manifest| manifest.assembler), Some(1));
        let at = inspect::request(&world.store, &row.run, Which::AtStep(rebuilt.step)).await.expect("found");
        assert_eq!((at.step, at.digest), (rebuilt.step, rebuilt.digest));
    }
    let newest = inspect::request(&world.store, &row.run, Which::Newest).await.expect("found");
    assert_eq!(newest.request.as_ref().ok(), asked.last());
}

#[tokio::test]
async fn a_request_whose_values_were_erased_says_which() {
    let world = done(steps()).await;
    let row = world.row().await;
    let before = inspect::request(&world.store, &row.run, Which::Decision(3)).await.expect("found");
    assert!(before.request.is_ok());
    // The second reply's note stands with the transition that took it in.
    let seq = world.journal().await.iter().find(|row| holds(row, b"paid")).expect("the note").seq;
    world.store.erase_values(&row.run, seq);
    let after = inspect::request(&world.store, &row.run, Which::Decision(3)).await.expect("found");
    let why = after.request.expect_err("it can't be rebuilt");
    assert!(why.contains("erased") && why.contains(&format!("of step {seq}")), "{why}");
    assert_eq!(after.digest, before.digest);
    let error = inspect::request(&world.store, &row.run, Which::Decision(9)).await.expect_err("there is none");
    assert_eq!(error.code(), "context.not_asked");
}

fn holds(row: &JournalRow, bytes: &[u8]) -> bool {
    row.values.iter().flatten().any(|value| value == bytes)
}

#[tokio::test]
async fn any_past_state_is_shown_as_it_was() {
    let world = done(steps()).await;
    let row = world.row().await;
    let mut states = Vec::new();
    for seq in 1..=row.seq {
        let opened = inspect::open_at(&world.store, &row, seq).await.expect("folded");
        assert_eq!(opened.checkpoint.seq, seq);
        states.push(opened);
    }
    let last = states.last().expect("one");
    let now = world.store.load(&world.run).await.expect("loaded").checkpoint().expect("sound");
    assert_eq!(last.checkpoint, now);
    assert_eq!(states[0].checkpoint.last_ordinal, 0);
    for (at, seq) in [(0, row.seq), (row.seq + 1, row.seq)] {
        let error = inspect::open_at(&world.store, &row, at).await.err().expect("there is no such step");
        assert_eq!(error.code(), "run.no_such_step");
        assert!(error.what().contains(&format!("last one is {seq}")), "{error}");
    }
}

#[tokio::test]
async fn what_changed_is_said_in_words() {
    let world = done(steps()).await;
    let row = world.row().await;
    let at = |seq| inspect::open_at(&world.store, &row, seq);
    let (first, last) = (at(1).await.expect("first"), at(row.seq).await.expect("last"));
    assert_eq!(inspect::diff(&last, &last), Vec::new());
    let changes = inspect::diff(&first, &last);
    let change = |part: &str, of: &str| changes.iter().find(|change| change.part == part && change.of == of);
    let words = |part, of| change(part, of).map(|change| (change.before.as_deref(), change.after.as_deref()));
    assert_eq!(words("status", ""), Some((Some("ready"), Some("completed"))));
    assert_eq!(words("notes", "k"), Some((None, Some("looked"))));
    assert_eq!(words("actions", "2"), Some((None, Some("pay done"))));
    assert_eq!(words("actions", "4"), Some((None, Some("nothing refused"))));
    assert_eq!(words("quotas", "model calls used"), Some((Some("0"), Some("4"))));
    assert_eq!(words("quotas", "model_calls"), Some((Some("50 of 50 left"), Some("46 of 50 left"))));
    assert_eq!(words("errors", "reply"), Some((None, Some("1"))));
    assert_eq!(change("definition", ""), None);
    // Backwards it is the other way round.
    let back = inspect::diff(&last, &first);
    assert!(back.iter().any(|change| change.part == "notes" && change.after.is_none()), "{back:?}");
}
