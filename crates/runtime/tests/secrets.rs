//! No value of a secret is stored, whoever says it: a receiver, a function, the model, its provider (scenario SEC-01, G12).

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lodestep::core::checkpoint::{How, Phase};
use lodestep::core::definition::{HttpRequest, ToolDefinition, ToolKind};
use lodestep::core::effect::Class;
use lodestep::core::event::StopReason;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, Event, Ordinal, RunKey};
use lodestep::observe::Observer;
use lodestep::store::MemoryStore;
use lodestep::tools::Functions;
use lodestep::worker::Shutdown;
use lodestep::{Runtime, inspect};
use serde_json::json;
use support::requests::*;
use support::server::*;
use support::*;

const KEY: &str = "c4nary/Key+42 \u{f6}k";
const PASSWORD: &str = "pa55word-of-the-user";

/// The canaries as other programs write them.
const SPELLED: [&str; 9] = [
    KEY,
    PASSWORD,
    "c4nary\\/Key+42 \\u00f6k",
    "c4nary%2FKey%2B42%20%C3%B6k",
    "63346e6172792f4b65792b343220c3b66b",
    "YzRuYXJ5L0tleSs0MiDDtm",
    "M0bmFyeS9LZXkrNDIgw7Zr",
    "jNG5hcnkvS2V5KzQyIMO2a",
    "cGE1NXdvcmQtb2YtdGhlLXVzZX",
];

/// Keeps every byte that is committed.
#[derive(Default)]
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Observer for Kept {
    fn committed(&self, _: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) {
        let mut kept = self.0.lock().expect("sound");
        kept.extend(values.iter().cloned());
        kept.push(serde_json::to_vec(events).expect("JSON"));
        kept.push(format!("{after:?}").into_bytes());
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn g12_no_value_of_a_secret_is_stored_whoever_says_it() {
    let server = Server::new(|received, _| {
        let (authorization, split) = (received.header("authorization").to_owned(), KEY.len() / 2 - 1);
        match received.line.as_str() {
            "POST /refused" => answer(401, &format!("{{\"error\": \"bad key {authorization}\"}}")),
            "GET /split" => Reply::Chunks(vec![
                [&[b'.'; 50_000][..], &KEY.as_bytes()[..split]].concat(),
                [&KEY.as_bytes()[split..], b" and on"].concat(),
            ]),
            // Where a failure is cut to some thousand characters, the key is in two.
            "POST /cut" => answer(400, &format!("{}{KEY}", "x".repeat(3_990))),
            "POST /lookup" => answer(404, ""),
            line => answer(200, &format!("{line} by {authorization}")),
        }
    });
    let with_key = |method: &str, path: &str| HttpRequest {
        headers: BTreeMap::from([("authorization".to_owned(), "Bearer ${env:API_KEY}".to_owned())]),
        ..request(method, server.url(path))
    };
    let user = request("POST", format!("http://ada:${{env:USER_PASSWORD}}@{}/user?k=${{env:API_KEY}}", server.address));
    let named = |name: &str, request| ToolDefinition { name: name.to_owned(), ..http_tool(Class::Read, request) };
    let save = ToolDefinition {
        kind: ToolKind::Builtin { builtin: "artifacts".to_owned(), function: "save".to_owned(), root: None },
        input: json!({"type": "object"}),
        ..tool("artifact_save", Class::Idempotent)
    };
    let tools = vec![
        named("refused", with_key("POST", "/refused")),
        named("split", with_key("GET", "/split")),
        named("cut", with_key("POST", "/cut")),
        named("user", user),
        tool("spell", Class::Unsafe),
        save,
    ];
    let escaped: String = KEY.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    let mixed = KEY.replace('a', "\\u0061");
    let replies = json!([
        { "text": format!("I know {KEY}."), "calls": [
            {"name": "refused", "arguments": {}}, {"name": "split", "arguments": {}}, {"name": "cut", "arguments": {}},
            {"name": "user", "arguments": {}}, {"name": "spell", "arguments": {}},
            {"name": "artifact_save", "raw": format!("{{\"name\": \"a.md\", \"text\": \"{escaped} {mixed}\"}}")},
            {"name": KEY, "arguments": {}},
        ] },
        says(&[("finish", json!({"summary": KEY}))]),
    ]);
    let mut functions = Functions::default();
    functions.add("spell", |_| async { Ok::<_, lodestep::tools::ToolError>(SPELLED.join("\nx").into_bytes()) });
    let kept = Arc::new(Kept::default());
    let clock = still_clock();
    let runtime = Runtime::builder(Arc::new(MemoryStore::new(clock.clone())))
        .clock(clock.clone())
        .functions(functions)
        .model(Arc::new(script(replies)))
        .environment(environment(&[("API_KEY", KEY), ("USER_PASSWORD", PASSWORD)]))
        .build();
    let run = start(&runtime, agent(tools, &[])).await;
    runtime.work_until_idle(kept.clone(), &Shutdown::default()).await.expect("worked");
    let opened = inspect::open(runtime.store(), &run).await.expect("opened");
    assert_eq!(standing(&opened.checkpoint).status, Status::Completed);

    // The receivers got the true values.
    let received = server.received();
    let of = |line: &str| {
        received.iter().find(|sent| sent.line.starts_with(line)).expect("sent").header("authorization").to_owned()
    };
    assert_eq!(of("POST /refused").as_bytes(), format!("Bearer {KEY}").as_bytes());
    assert_eq!(of("POST /user"), "Basic YWRhOnBhNTV3b3JkLW9mLXRoZS11c2Vy");
    assert!(received.iter().any(|sent| sent.line == "POST /user?k=c4nary%2FKey%2B42%20%C3%B6k"));

    // Nothing of them was kept: not in events, values, artifacts, and not in what the model is told.
    let mut all = kept.0.lock().expect("sound").clone();
    let artifacts: Vec<_> = opened.checkpoint.artifacts.values().map(|artifact| artifact.content).collect();
    assert_eq!(artifacts.len(), 2);
    let blobs = runtime.store().values(&opened.row.run, &artifacts).await.expect("read");
    all.extend(blobs.into_values());
    for spelled in SPELLED {
        let holder = all.iter().find(|bytes| holds(bytes, spelled));
        assert_eq!(
            holder.map(|bytes| String::from_utf8_lossy(bytes).chars().take(400).collect::<String>()),
            None,
            "{spelled}"
        );
    }
    let halves = [&KEY[..8], &KEY[9..]];
    assert!(!all.iter().any(|bytes| halves.iter().any(|half| holds(bytes, half))), "no half of it either");
    assert!(all.iter().any(|bytes| holds(bytes, "bad key Bearer [secret API_KEY]")), "what was around it is there");
    assert!(all.iter().any(|bytes| bytes.starts_with(&[b'.'; 50_000]) && bytes.ends_with(b".[secret API_KEY] and on")));

    // It is counted and noted, without the value.
    for note in [
        "a reply of the model held secrets, which were taken out: API_KEY 4 times [secret.removed]",
        "its result held secrets, which were taken out: API_KEY once [secret.removed]",
        "its result held secrets, which were taken out: API_KEY 7 times, USER_PASSWORD 2 times [secret.removed]",
    ] {
        assert!(all.iter().any(|bytes| bytes == note.as_bytes()), "{note}");
    }
}

#[tokio::test]
async fn a_secret_that_is_too_short_to_be_looked_for_stops_the_run_by_name() {
    let server = Server::new(|_, _| answer(200, ""));
    for (url, expected) in [
        ("/${env:SHORT}", Some("shorter than 8 bytes: SHORT; set it where the worker runs, then resume")),
        ("/${env:SHORT:-setting}", None),
        ("/${env:LONG}", None),
    ] {
        let tool = http_tool(Class::Unsafe, request("POST", server.url(url)));
        let replies = json!([says(&[("call", json!({}))]), says(&[("finish", json!({}))])]);
        let variables = &[("SHORT", "1234567"), ("LONG", "12345678")];
        let trial = Trial::with(vec![tool], replies, Default::default(), variables).await;
        let state = trial.end().await;
        let opened = inspect::open(trial.runtime.store(), &trial.run).await.expect("opened");
        match (&state.phase, expected) {
            (Phase::Stopped { reason: StopReason::Secret, text, .. }, Some(expected)) => {
                assert_eq!(opened.text(text), expected);
            }
            (_, None) => assert_eq!(state.settled(Ordinal(1)).expect("settled").how, How::Done, "{url}"),
            other => panic!("{url}: {other:?}"),
        }
    }
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_rotated_key_is_used_at_the_next_send_and_neither_value_is_stored() {
    let turn = Arc::new(Mutex::new("old-key-of-monday".to_owned()));
    let (now, rotated) = (turn.clone(), turn.clone());
    let server = Server::new(move |received, _| {
        let said = format!("{} after old-key-of-monday", received.header("x-key"));
        *rotated.lock().expect("sound") = "new-key-of-tuesday".to_owned();
        answer(200, &said)
    });
    let keyed = HttpRequest {
        headers: BTreeMap::from([("x-key".to_owned(), "${env:KEY}".to_owned())]),
        ..request("POST", server.url("/x"))
    };
    let clock = still_clock();
    let replies =
        json!(
            [says(&[("call", json!({"n": 1}))]), says(&[("call", json!({"n": 2}))]), says(&[("finish", json!({}))]),]
        );
    let runtime = Runtime::builder(Arc::new(MemoryStore::new(clock.clone())))
        .clock(clock)
        .model(Arc::new(script(replies)))
        .environment(lodestep::secrets::Environment::new(move |_| Some(now.lock().expect("sound").clone())))
        .build();
    let run = start(&runtime, agent(vec![http_tool(Class::Unsafe, keyed)], &[])).await;
    let state = settle(&runtime, &run).await;
    assert_eq!(standing(&state).status, Status::Completed);
    let sent: Vec<String> = server.received().iter().map(|sent| sent.header("x-key").to_owned()).collect();
    assert_eq!(sent, ["old-key-of-monday", "new-key-of-tuesday"]);
    let opened = inspect::open(runtime.store(), &run).await.expect("opened");
    for nth in [0, 1] {
        let told = opened.text(&opened.checkpoint.recent[nth].result);
        assert_eq!(told, "[secret KEY] after [secret KEY]");
    }
}
