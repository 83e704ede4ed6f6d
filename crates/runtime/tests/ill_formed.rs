//! Text that is none: lone surrogates from a model, bytes from a tool. What is stored is what came, what goes out is JSON.

mod support;

use std::sync::{Arc, Mutex};

use lodestep::core::checkpoint::How;
use lodestep::core::effect::Class;
use lodestep::core::event::{Envelope, Event};
use lodestep::core::json::parse_strict;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, Ordinal, RunKey};
use lodestep::model::ScriptModel;
use lodestep::store::garbage::Mode;
use lodestep::store::{JournalRow, MemoryStore, Store};
use lodestep::tools::{Functions, ToolError};
use lodestep::{Runtime, Start};
use lodestep_model::{Model, ModelError, ModelFuture, Request};
use lodestep_model_server::{Fault, WAYS, mind};
use serde_json::{Value, json};
use support::services::{Served, calls};
use support::*;

/// A script behind a provider that refuses whatever is no strict JSON, and keeps what it was sent.
#[derive(Clone)]
struct Provider {
    script: ScriptModel,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn of(script: &str) -> Self {
        Self { script: ScriptModel::parse(script).expect("a sound script"), sent: Arc::default() }
    }

    /// The newest request, as it went over the wire.
    fn newest(&self) -> String {
        self.sent.lock().expect("sound").last().expect("it was asked").clone()
    }
}

impl Model for Provider {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        let body = serde_json::to_string(request).expect("encoded");
        if let Err(fault) = parse_strict(&body) {
            return Box::pin(std::future::ready(Err(ModelError::Rejected(fault))));
        }
        self.sent.lock().expect("sound").push(body);
        self.script.ask(request)
    }
}

/// A run of an agent with `pay` and `read`, which answers so; each step by a worker that knows the store alone.
async fn run(provider: &Provider, ledger: &Ledger, answer: &[u8], class: Class) -> (Runtime, Checkpoint) {
    let clock = still_clock();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let build = || {
        let (answer, mut functions) = (answer.to_vec(), functions(ledger, &["pay"]));
        functions.add("read", move |_| std::future::ready(Ok::<_, ToolError>(answer.clone())));
        runtime(store.clone(), &clock, functions, provider)
    };
    let started = start(&build(), agent(vec![tool("pay", Class::Unsafe), tool("read", class)], &[])).await;
    let worked = build();
    let end = settle(&worked, &started).await;
    assert_eq!(standing(&end).status, Status::Completed, "{:?}", end.phase);
    (worked, end)
}

fn runtime(
    store: Arc<dyn Store>,
    clock: &Arc<lodestep::store::SettableClock>,
    functions: Functions,
    provider: &Provider,
) -> Runtime {
    Runtime::builder(store).clock(clock.clone()).functions(functions).model(Arc::new(provider.clone())).build()
}

async fn bytes_of(runtime: &Runtime, end: &Checkpoint, ordinal: u32) -> Vec<u8> {
    let row = runtime.store().list("default", &Default::default()).await.expect("listed").remove(0);
    let result = end.settled(Ordinal(ordinal)).expect("settled").result;
    runtime.store().values(&row.run, &[result]).await.expect("read").remove(&result.digest).expect("kept")
}

#[tokio::test]
async fn dat_02_a_lone_surrogate_in_an_argument_refuses_the_call_and_in_a_text_is_replaced() {
    let provider = Provider::of(
        r#"{"replies": [
            {"text": "cut \ud99c here", "calls": [
                {"name": "pay", "raw": "{\"text\":\"to \\ud99c\"}"},
                {"name": "pay", "raw": "{\"text\":\"to \\ud83e\\udd80\"}"}]},
            {"text": "\udc00", "calls": [{"name": "finish", "arguments": {"summary": "done"}}]}]}"#,
    );
    let ledger = Ledger::default();
    let (runtime, end) = run(&provider, &ledger, b"", Class::Read).await;
    // The one with half a character was never sent, in no spelling; its sibling was.
    assert_eq!(ledger.counts(), [("pay".to_owned(), 1)].into());
    assert!(matches!(end.settled(Ordinal(1)).expect("settled").how, How::Refused(_)));
    assert_eq!(bytes_of(&runtime, &end, 2).await, "done {\"text\":\"to 🦀\"}".as_bytes());
    let refusal = String::from_utf8(bytes_of(&runtime, &end, 1).await).expect("text");
    assert!(refusal.contains("\\ud99c is half of a surrogate pair"), "{refusal}");
    // What the model reads next has its own text again, well-formed, and the fault by name.
    let next = provider.newest();
    assert!(next.contains("cut \u{fffd} here") && next.contains("surrogate"), "{next}");
}

#[tokio::test]
async fn dat_02_what_a_tool_says_is_kept_to_the_byte_and_shown_as_text() {
    let script = r#"{"replies": [{"calls": [{"name": "read"}]}, {"calls": [{"name": "finish", "arguments": {}}]}]}"#;
    let crabs = ["a", &"🦀".repeat(20_000)].concat();
    for class in [Class::Read, Class::Unsafe] {
        for (said, is_text, shown) in [
            (b"{\"id\":\"\\udc00\"}".as_slice(), true, r#"{\"id\":\"\\udc00\"}"#),
            (
                b"[9007199254740993,0.10000000000000000001,NaN,1e400]",
                true,
                "[9007199254740993,0.10000000000000000001,NaN,1e400]",
            ),
            (b"a\0b", true, r"a\u0000b"),
            (b"caf\xe9 \xed\xa0\x80 end", false, "caf\u{fffd} "),
            (b"\xff\xfe", false, "\u{fffd}\u{fffd}"),
            (crabs.as_bytes(), true, "🦀🦀🦀"),
        ] {
            let (provider, ledger) = (Provider::of(script), Ledger::default());
            let (runtime, end) = run(&provider, &ledger, said, class).await;
            let kept = match end.artifacts.get("output-1.txt") {
                Some(artifact) => {
                    let row = runtime.store().list("default", &Default::default()).await.expect("listed").remove(0);
                    let all = runtime.store().values(&row.run, &[artifact.content]).await.expect("read");
                    all[&artifact.content.digest].clone()
                }
                None => bytes_of(&runtime, &end, 1).await,
            };
            assert!(kept == said, "{class}: {} bytes of {}", kept.len(), said.len());
            let next = provider.newest();
            assert!(next.contains(shown), "{class}: {next}");
            assert_eq!(next.contains("not UTF-8"), !is_text, "{class}: {next}");
            assert_eq!(next.contains('\u{fffd}'), !is_text, "{class}: a character was cut: {next}");
        }
    }
}

#[tokio::test]
async fn a_number_in_a_call_is_sent_as_it_is_written_or_refused_by_name() {
    let numbers = ["9007199254740993", "123456789012345678901234567890", "1e400", "0.10000000000000000001"];
    for number in numbers {
        let call = r#"{"replies": [{"calls": [{"name": "pay", "arguments": {"n": NUMBER}}, {"name": "read"}]},
            {"calls": [{"name": "finish", "arguments": {"summary": "done"}}]}]}"#;
        let (provider, ledger) = (Provider::of(&call.replace("NUMBER", number)), Ledger::default());
        let (runtime, end) = run(&provider, &ledger, b"read", Class::Read).await;
        assert!(ledger.counts().is_empty(), "{number} was sent as another one");
        let refusal = String::from_utf8(bytes_of(&runtime, &end, 1).await).expect("text");
        assert!(refusal.contains(&format!("the number {number} can't be held exactly")), "{refusal}");
        assert_eq!(bytes_of(&runtime, &end, 2).await, b"read", "its sibling was done");
    }
}

#[tokio::test]
async fn a_start_with_a_number_that_cannot_be_held_is_refused_and_stores_nothing() {
    let (provider, clock) = (Provider::of(r#"{"replies": []}"#), still_clock());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let runtime = runtime(store, &clock, Functions::default(), &provider);
    let inputs = json!({ "of": [1, { "n": 9_007_199_254_740_993_u64 }] });
    let definition = agent(Vec::new(), &[]);
    let start = Start { definition, inputs, id: None, labels: Default::default(), join_unfinished: false };
    let error = runtime.start(start).await.expect_err("refused");
    assert_eq!(error.code(), "input.invalid");
    assert!(error.what().contains("9007199254740993"), "{error}");
    assert!(runtime.store().list("default", &Default::default()).await.expect("listed").is_empty());
}

/// Of each reply, oldest first: how it is kept, and whether the journal says that its text was ill-formed.
async fn replies(served: &Served, run: &RunKey) -> Vec<(Value, Option<bool>)> {
    let row = served.opened(run).await.row;
    let rows = served.runtime.store().journal(&row.run, 1, 100).await.expect("read");
    let flag = |row: &JournalRow| {
        let events = Envelope::from_bytes(&row.envelope).expect("sound").events;
        events.iter().find_map(|event| match event {
            Event::CallAnswered(answered) => Some(answered.about.as_ref().and_then(|about| about.ill_formed)),
            _ => None,
        })
    };
    let kept = |row: &JournalRow| serde_json::from_slice(row.transcript.as_ref()?).ok();
    rows.iter().filter_map(|row| Some((kept(row).unwrap_or_default(), flag(row)?))).collect()
}

#[tokio::test]
async fn dat_02_a_text_with_half_of_a_pair_is_kept_in_the_transcript_as_it_came_and_flagged() {
    for way in WAYS {
        let mut said = calls(&[("pay", json!({"n": 1}))]);
        said.text = "it was test-key".to_owned();
        let served = Served::new(way, mind::in_order([said, calls(&[("finish", json!({}))])]));
        served.server.plan([Fault::LoneSurrogate]);
        let run = served.start(served.definition()).await;
        let end = served.end(&run).await;
        assert_eq!(standing(&end).status, Status::Completed, "{way:?}: {}", served.stopped(&run).await);
        served.sound_bill();
        let kept = replies(&served, &run).await;
        let (half, whole) = (&kept[0], &kept[1]);
        assert_eq!(half.0["text"], "it was [secret MODEL_KEY]\u{fffd}", "{way:?}");
        assert_eq!(half.0["ill_formed"], r#""it was [secret MODEL_KEY]\ud99c""#, "{way:?}");
        assert_eq!((half.1, whole.1, &whole.0["ill_formed"]), (Some(true), None, &Value::Null), "{way:?}");
        let stored = served.opened(&run).await.row.run;
        served.runtime.store().forget_transcripts(&stored, Mode::Apply).await.expect("emptied");
        let left = replies(&served, &run).await;
        assert_eq!(left, [(Value::Null, Some(true)), (Value::Null, None)], "{way:?}: it goes with them");
    }
}
