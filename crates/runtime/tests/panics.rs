//! What a panic prints: its message holds no value of a secret. The panicking program is this test binary, started again.

mod support;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;

use lodestep::Runtime;
use lodestep::core::definition::HttpRequest;
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::secrets::{Environment, scrub_panics};
use lodestep::store::MemoryStore;
use lodestep::tools::Functions;
use lodestep_model::{Model, ModelFuture, Request};
use serde_json::json;
use support::requests::*;
use support::*;

const KEY: &str = "c4nary/Key+42";

/// Set in the program that panics.
const PROGRAM: &str = "LODESTEP_TEST_PANICS";

/// A model that panics with what it was given in its message.
struct Broken;

impl Model for Broken {
    fn ask<'a>(&'a self, _: &'a Request) -> ModelFuture<'a> {
        Box::pin(async { panic!("the model was called with {KEY}") })
    }
}

/// A runtime with a function that panics, and an agent with a secret.
async fn panicking(model: Arc<dyn Model>) -> Status {
    let mut functions = Functions::default();
    functions.add("spell", |call| async move {
        match call.arguments["n"].as_u64() {
            Some(1) => panic!("sent as {KEY}"),
            Some(2) => panic!("no fault: {:?}", format!("\"{KEY}\" in \"c4nary%2FKey%2B42\"")),
            _ => panic!("nothing is told here"),
        }
    });
    let with_key = HttpRequest {
        headers: BTreeMap::from([("authorization".to_owned(), "Bearer ${env:API_KEY}".to_owned())]),
        ..request("GET", "https://example.com".to_owned())
    };
    let clock = still_clock();
    let runtime = Runtime::builder(Arc::new(MemoryStore::new(clock.clone())))
        .clock(clock)
        .functions(functions)
        .environment(Environment::new(|name| (name == "API_KEY").then(|| KEY.to_owned())))
        .model(model)
        .build();
    let run = start(&runtime, agent(vec![http_tool(Class::Read, with_key), tool("spell", Class::Unsafe)], &[])).await;
    standing(&settle(&runtime, &run).await).status
}

#[tokio::test]
async fn sec_01_the_message_of_a_panic_holds_no_secret() {
    if std::env::var_os(PROGRAM).is_some() {
        scrub_panics();
        let calls = [1, 2, 3].map(|n| ("spell", json!({ "n": n })));
        let script = script(json!([says(&calls), says(&[("finish", json!({}))])]));
        assert_eq!(panicking(Arc::new(script)).await, Status::InDoubt);
        panicking(Arc::new(Broken)).await;
        return;
    }
    let program = std::env::current_exe().expect("this binary");
    let ended = Command::new(program)
        .args(["--exact", "sec_01_the_message_of_a_panic_holds_no_secret", "--nocapture"])
        .env(PROGRAM, "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let said = String::from_utf8([ended.stdout, ended.stderr].concat()).expect("UTF-8");
    assert!(ended.status.success(), "{said}");
    assert!(!said.contains("c4nary"), "{said}");
    for wanted in [
        "sent as [secret API_KEY]\n",
        "no fault: \"\\\"[secret API_KEY]\\\" in \\\"[secret API_KEY]\\\"\"\n",
        "the model was called with [secret API_KEY]\n",
        "nothing is told here\n",
        "panicked at crates/runtime/tests/panics.rs:",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}
