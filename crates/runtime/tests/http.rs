//! HTTP tools: what each answer and each broken connection comes to (scenario EFF-02). Servers are the tests' own.

mod support;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use lodestep::core::Ordinal;
use lodestep::core::checkpoint::{Checkpoint, How};
use lodestep::core::definition::{HttpLookup, Sign};
use lodestep::core::effect::Class;
use lodestep::core::rules::inbox::{Became, Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::tools::http::HttpClient;
use serde_json::json;
use support::requests::*;
use support::server::*;

/// What became of the call: `done`, `failed`, `doubt`, or `waiting`.
fn became(state: &Checkpoint) -> &'static str {
    match (state.settled(Ordinal(1)).map(|settled| settled.how), standing(state).status) {
        (Some(How::Done), _) => "done",
        (Some(How::Failed), _) => "failed",
        (None, Status::InDoubt) => "doubt",
        (None, Status::Waiting) => "waiting",
        other => panic!("{other:?}"),
    }
}

async fn once(class: Class, behave: fn(&Received, usize) -> Reply) -> (&'static str, usize, String) {
    let server = Server::new(behave);
    let trial = Trial::new(http_tool(class, request("POST", server.url("/x"))), json!({}), HttpClient::default()).await;
    let state = trial.end().await;
    let said = if state.settled(Ordinal(1)).is_some() { trial.told(0).await } else { trial.errors().await };
    (became(&state), server.received().len(), said)
}

#[tokio::test]
async fn eff_02_every_answer_means_what_the_table_says() {
    type Behave = fn(&Received, usize) -> Reply;

    let first: [(&str, Class, Behave, &str, usize, &str); 22] = [
        ("200", Class::Unsafe, |_, _| answer(200, "made"), "done", 1, "made"),
        ("204", Class::Unsafe, |_, _| answer(204, ""), "done", 1, "HTTP 204 No Content"),
        ("404", Class::Unsafe, |_, _| answer(404, "no such"), "failed", 1, "HTTP 404 Not Found: no such"),
        ("422 keyed", Class::Keyed, |_, _| answer(422, ""), "failed", 1, "HTTP 422"),
        ("409", Class::Unsafe, |_, _| answer(409, ""), "failed", 1, "HTTP 409"),
        ("409 keyed", Class::Keyed, |_, n| answer(if n == 0 { 409 } else { 200 }, "made"), "done", 2, "made"),
        ("429", Class::Unsafe, |_, n| answer(if n == 0 { 429 } else { 200 }, "made"), "done", 2, "made"),
        ("429 for ever", Class::Unsafe, |_, _| answer(429, "busy"), "failed", 3, "could not be sent in 3 attempts"),
        (
            "503 that asks to wait",
            Class::Unsafe,
            |_, n| match n {
                0 => Reply::Answer(503, vec![("retry-after", "7".to_owned())], Vec::new()),
                _ => answer(200, "made"),
            },
            "done",
            2,
            "made",
        ),
        ("503", Class::Unsafe, |_, _| answer(503, ""), "doubt", 1, "HTTP 503"),
        ("500", Class::Unsafe, |_, _| answer(500, ""), "doubt", 1, "HTTP 500"),
        ("504", Class::Unsafe, |_, _| answer(504, ""), "doubt", 1, "HTTP 504"),
        ("408", Class::Unsafe, |_, _| answer(408, ""), "doubt", 1, "HTTP 408"),
        ("403", Class::Keyed, |_, _| answer(403, "no"), "failed", 1, "HTTP 403 Forbidden: no"),
        (
            "403 behind a doubt",
            Class::Keyed,
            |_, n| answer(if n == 0 { 500 } else { 403 }, "no"),
            "doubt",
            3,
            "HTTP 403 Forbidden: no",
        ),
        ("500 read", Class::Read, |_, n| answer(if n == 0 { 500 } else { 200 }, "read"), "done", 2, "read"),
        ("no answer", Class::Unsafe, |_, _| Reply::Hang, "doubt", 1, "no whole answer within 0.4 s"),
        (
            "no answer keyed",
            Class::Keyed,
            |_, n| if n == 0 { Reply::Hang } else { answer(200, "made") },
            "done",
            2,
            "made",
        ),
        ("dropped", Class::Unsafe, |_, _| Reply::Drop, "doubt", 1, "the connection was lost before an answer"),
        ("dropped within", Class::Unsafe, |_, _| Reply::Half(200), "doubt", 1, "lost within the answer 200"),
        ("refused within", Class::Unsafe, |_, _| Reply::Half(403), "failed", 1, "HTTP 403"),
        ("redirected", Class::Unsafe, |_, _| redirect(307, "/y"), "doubt", 1, "a redirect to /y that was not followed"),
    ];
    for (name, class, behave, expected, requests, said) in first {
        let (became, received, told) = once(class, behave).await;
        assert_eq!((became, received), (expected, requests), "{name}: {told}");
        assert!(told.contains(said), "{name}: {told}");
    }
}

#[tokio::test]
async fn eff_02_what_never_left_is_proven_not_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("an address");
    let plain = Server::new(|_, _| answer(200, "applied"));
    let names = HttpClient::default().resolver(Arc::new(Names(BTreeMap::new())));
    let trusting = |client: HttpClient| client.roots([certificate().0]).expect("a root");
    for (url, client, said) in [
        ("http://nowhere.test/".to_owned(), names, "the name nowhere.test can't be resolved"),
        (format!("http://{closed}/"), HttpClient::default(), "no connection to 127.0.0.1"),
        (format!("https://{}/", plain.address), trusting(HttpClient::default()), "no TLS with 127.0.0.1"),
    ] {
        let trial = Trial::new(http_tool(Class::Unsafe, request("POST", url)), json!({}), client).await;
        let state = trial.settle().await;
        assert_eq!(became(&state), "waiting", "it is tried again");
        let action = &state.pending[&Ordinal(1)];
        assert!(!action.maybe_sent && action.first_sent.is_none(), "{said}");
        assert!(trial.errors().await.contains(said), "{}", trial.errors().await);
        assert_eq!(became(&trial.end().await), "failed");
        assert!(trial.told(0).await.starts_with("it could not be sent in 3 attempts"), "{}", trial.told(0).await);
    }
    assert!(plain.received().is_empty());
}

#[tokio::test]
async fn eff_02_a_wait_that_the_receiver_asks_for_is_durable_and_holds_nothing() {
    let server = Server::new(|_, n| match n {
        0 => Reply::Answer(429, vec![("retry-after", "7200".to_owned())], Vec::new()),
        _ => answer(200, "made"),
    });
    let tool = http_tool(Class::Keyed, request("POST", server.url("/x")));
    let trial = Trial::new(tool, json!({}), HttpClient::default()).await;
    trial.settle().await;
    let row = trial.runtime.find("7").await.expect("found");
    assert_eq!(row.holder, None, "no worker holds a run that waits");
    trial.clock.advance_ms(7_199_000);
    assert_eq!(became(&trial.settle().await), "waiting");
    assert_eq!(server.received().len(), 1, "not a second early");
    trial.clock.advance_ms(2_000);
    assert_eq!(became(&trial.settle().await), "done");
    let keys: Vec<String> = server.received().iter().map(|sent| sent.header("idempotency-key").to_owned()).collect();
    assert!(keys[0].starts_with("k1:") && keys[0] == keys[1], "{keys:?}");
}

/// A receiver with a ledger that applies a key once, and then fails the first request in some way.
fn ledger_server(ledger: &Arc<Mutex<Vec<String>>>, fault: fn() -> Reply) -> Server {
    let ledger = ledger.clone();
    Server::new(move |received, nth| {
        let mut lines = ledger.lock().expect("sound");
        let key = received.header("idempotency-key").to_owned();
        if received.line.starts_with("GET /lookup/") {
            let found = lines.iter().any(|line| received.line == format!("GET /lookup/{}", line.replace(':', "%3A")));
            return answer(if found { 200 } else { 404 }, r#"{"receipt": 7}"#);
        }
        if !lines.contains(&key) {
            lines.push(key);
        }
        if nth == 0 { fault() } else { answer(200, "made") }
    })
}

#[tokio::test]
async fn eff_02_one_line_in_the_ledger_whatever_breaks_behind_it() {
    let faults: [fn() -> Reply; 6] = [
        || Reply::Hang,
        || Reply::Drop,
        || Reply::Half(200),
        || answer(500, ""),
        || answer(504, "the proxy gave up"),
        || redirect(302, "/login"),
    ];
    for (nth, fault) in faults.into_iter().enumerate() {
        for class in [Class::Keyed, Class::Checkable, Class::Unsafe] {
            let ledger = Arc::new(Mutex::new(Vec::new()));
            let server = ledger_server(&ledger, fault);
            let mut tool = http_tool(class, request("POST", server.url("/pay")));
            http_of(&mut tool).lookup = Some(HttpLookup {
                request: request("GET", server.url("/lookup/${key}")),
                field: None,
                done: vec![Sign::Status(200)],
                absent: vec![Sign::Status(404)],
                running: Vec::new(),
            });
            let trial = Trial::new(tool, json!({"cents": 5}), HttpClient::default()).await;
            let mut state = trial.end().await;
            if class == Class::Unsafe {
                assert_eq!(became(&state), "doubt", "{nth}");
                assert_eq!(state.model.calls, 1, "the model is told nothing while it is unknown");
                let word =
                    Word::Resolve { ordinal: Ordinal(1), became: Became::Happened(b"paid".to_vec()), attempt: None };
                assert_eq!(trial.runtime.send(&trial.run, "ada", word).await.expect("sent"), Verdict::Accepted);
                state = trial.end().await;
            }
            assert_eq!(became(&state), "done", "{nth} {class}");
            assert_eq!(standing(&state).status, Status::Completed, "{nth} {class}");
            assert_eq!(ledger.lock().expect("sound").len(), 1, "{nth} {class}");
            let posts = server.received().iter().filter(|sent| sent.line == "POST /pay").count();
            assert_eq!(posts, if class == Class::Keyed { 2 } else { 1 }, "{nth} {class}");
        }
    }
}

#[tokio::test]
async fn a_lookup_reads_a_status_or_a_field_and_asks_again_when_there_is_no_answer() {
    // Each answers the lookups in turn; the effect itself never gets an answer.
    type Lookups = fn(usize) -> Reply;
    let cases: [(Lookups, &str, &str); 6] = [
        (|_| answer(200, r#"{"state": {"now": "paid"}}"#), "done", r#"{"state": {"now": "paid"}}"#),
        (
            |n| answer(200, if n == 1 { r#"{"state":{"now":"pending"}}"# } else { r#"{"state":{"now":"paid"}}"# }),
            "done",
            "paid",
        ),
        (|n| if n == 1 { answer(503, "") } else { answer(200, r#"{"state":{"now":"paid"}}"#) }, "done", "paid"),
        (|n| if n == 1 { Reply::Drop } else { answer(200, r#"{"state":{"now":"paid"}}"#) }, "done", "paid"),
        (|_| answer(200, r#"{"state":{"now":"odd"}}"#), "doubt", "HTTP 504"),
        (|_| answer(404, ""), "doubt", "HTTP 504"),
    ];
    for (nth, (lookups, expected, said)) in cases.into_iter().enumerate() {
        let server = Server::new(move |received, nth| match received.line.as_str() {
            "POST /pay" => answer(504, ""),
            _ => lookups(nth),
        });
        let mut tool = http_tool(Class::Checkable, request("POST", server.url("/pay")));
        http_of(&mut tool).lookup = Some(HttpLookup {
            request: request("GET", server.url("/state?of=${arg:invoice}")),
            field: Some("state.now".to_owned()),
            done: vec![Sign::Word("paid".to_owned())],
            absent: vec![Sign::Word("none".to_owned())],
            running: vec![Sign::Word("pending".to_owned())],
        });
        let trial = Trial::new(tool, json!({"invoice": "a b"}), HttpClient::default()).await;
        let state = trial.end().await;
        assert_eq!(became(&state), expected, "{nth}");
        assert_eq!(server.received()[1].line, "GET /state?of=a%20b", "only what its url names");
        let told = if expected == "done" { trial.told(0).await } else { trial.errors().await };
        assert!(told.contains(said), "{nth}: {told}");
    }
}

#[tokio::test]
async fn a_lookup_that_says_absent_sends_the_effect_again_under_its_key() {
    let server = Server::new(|received, nth| match (received.line.as_str(), nth) {
        ("POST /pay", 0) => Reply::Drop,
        ("POST /pay", _) => answer(200, "paid"),
        _ => answer(404, ""),
    });
    let mut tool = http_tool(Class::Checkable, request("POST", server.url("/pay")));
    http_of(&mut tool).lookup = Some(HttpLookup {
        request: request("GET", server.url("/state")),
        field: None,
        done: vec![Sign::Status(200)],
        absent: vec![Sign::Status(404)],
        running: Vec::new(),
    });
    let trial = Trial::new(tool, json!({}), HttpClient::default()).await;
    assert_eq!(became(&trial.end().await), "done");
    let lines: Vec<String> = server.received().iter().map(|sent| sent.line.clone()).collect();
    assert_eq!(lines, ["POST /pay", "GET /state", "POST /pay"]);
}

#[tokio::test]
async fn tls_is_agreed_with_a_trusted_receiver_and_with_no_other() {
    let (root, config) = certificate();
    let server = Server::with_tls(config, |_, _| answer(200, "sealed"));
    let url = format!("https://{}/", server.address);
    let trusting = HttpClient::default().roots([root]).expect("a root");
    let trial = Trial::new(http_tool(Class::Unsafe, request("POST", url.clone())), json!({}), trusting).await;
    assert_eq!(became(&trial.end().await), "done");
    assert_eq!(trial.told(0).await, "sealed");
    let another = HttpClient::default().roots([certificate().0]).expect("a root");
    let trial = Trial::new(http_tool(Class::Unsafe, request("POST", url)), json!({}), another).await;
    assert_eq!(became(&trial.settle().await), "waiting");
    assert!(trial.errors().await.contains("no TLS with 127.0.0.1"), "{}", trial.errors().await);
    assert_eq!(server.received().len(), 1);
}
