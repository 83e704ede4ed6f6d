//! Good requests: what the mind is asked, what the client is told in each shape, and what is billed.

mod support;

use std::io::Read;
use std::sync::{Arc, Mutex};

use lodestep_model::{Message, ModelError, Reply, Request};
use lodestep_model_server::{Kind, Options, Outcome, Server, Shape, WAYS, count_tokens, mind};
use serde_json::{Value, json};
use support::{ARGUMENTS, End, TEXT, ask, head, question, receive, reply, said, send, server};

#[test]
fn a_reply_comes_as_it_was_given_in_each_shape_and_way() {
    for (shape, streamed) in WAYS {
        let server = server();
        let got = ask(&server, shape, &question(shape, streamed));
        assert_eq!((got.status, got.end), (200, End::Whole), "{shape:?} {streamed}: {}", got.text());
        let (text, calls, stop) = said(shape, streamed, &got);
        assert_eq!(text, TEXT);
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!((calls[0].0.as_str(), calls[0].1.as_str()), ("call_1", "look"));
        assert_eq!(json(&calls[0].2), json(ARGUMENTS));
        assert_eq!((calls[1].0.as_str(), calls[1].2.as_str()), ("call_2", "{}"));
        assert_eq!(stop, if shape == Shape::Anthropic { "tool_use" } else { "tool_calls" });
        let bill = server.bill();
        let entry = &bill.entries[0];
        assert_eq!(entry.outcome, Outcome::Answered);
        assert_eq!((entry.shape, entry.streamed), (Some(shape), streamed));
        assert_eq!(entry.body.as_ref().unwrap()["messages"][0]["content"], "Hi");
        assert_eq!(entry.header("content-type"), "application/json");
        let id = if shape == Shape::Anthropic { "request-id" } else { "x-request-id" };
        assert_eq!(got.header(id), entry.request_id);
        server.wait_billed(|bill| bill.entries[0].delivered).unwrap();
        assert_eq!(bill.answered(), 1);
    }
}

#[test]
fn a_stream_cuts_text_and_arguments_in_many_places_and_has_pings_and_comments() {
    let server = server();
    let got = ask(&server, Shape::Anthropic, &question(Shape::Anthropic, true));
    let data = got.data();
    let pieces: Vec<&str> = data.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert!(pieces.iter().any(|piece| piece.ends_with('\\')), "within an escape: {pieces:?}");
    assert!(pieces.iter().any(|piece| piece.ends_with("\\u00")), "within a character's escape: {pieces:?}");
    assert!(data.iter().filter(|event| event["delta"]["type"] == "text_delta").count() > 3);
    assert!(data.iter().any(|event| event["type"] == "ping"));
    assert!(got.text().contains("\n: "), "a comment");
    assert!(got.text().contains("\\ud83e\\udd80") && got.text().contains('☃'), "escaped here, as it is there");
    for (name, data) in got.events() {
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap()["type"], name.as_str());
    }
    let got = ask(&server, Shape::OpenAi, &question(Shape::OpenAi, true));
    assert!(got.text().contains(": keep-alive\n\n"));
    assert!(got.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn usage_stands_where_the_services_have_it_and_is_what_is_billed() {
    let server = server();
    let of = |shape, streamed| {
        let got = ask(&server, shape, &question(shape, streamed));
        let tokens = server.bill().entries.last().unwrap().tokens;
        assert!(tokens.input > 0 && tokens.output > count_tokens(TEXT), "{tokens:?}");
        (got, tokens)
    };
    let (got, tokens) = of(Shape::Anthropic, false);
    assert_eq!(got.json()["usage"]["input_tokens"], tokens.input);
    assert_eq!(got.json()["usage"]["output_tokens"], tokens.output);
    let (got, tokens) = of(Shape::Anthropic, true);
    let data = got.data();
    assert_eq!(data[0]["message"]["usage"]["input_tokens"], tokens.input);
    assert_eq!(data[0]["message"]["usage"]["output_tokens"], 1);
    assert_eq!(data[data.len() - 2]["type"], "message_delta");
    assert_eq!(data[data.len() - 2]["usage"]["output_tokens"], tokens.output);
    let (got, tokens) = of(Shape::OpenAi, false);
    assert_eq!(got.json()["usage"]["prompt_tokens"], tokens.input);
    let (got, tokens) = of(Shape::OpenAi, true);
    let data = got.data();
    assert_eq!(data[data.len() - 1]["choices"], json!([]));
    assert_eq!(data[data.len() - 1]["usage"]["completion_tokens"], tokens.output);
    assert!(data[..data.len() - 1].iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
    let mut silent = question(Shape::OpenAi, true);
    silent.as_object_mut().unwrap().remove("stream_options");
    let got = ask(&server, Shape::OpenAi, &silent);
    assert!(got.data().iter().all(|chunk| chunk.get("usage").is_none()));
    assert_eq!(server.bill().total().input, server.bill().entries.iter().map(|entry| entry.tokens.input).sum::<u64>());
}

/// A server that keeps what its mind was asked.
fn listening() -> (Server, Arc<Mutex<Vec<Request>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    let mind = mind::from_fn(move |request: &Request| {
        kept.lock().expect("no test panics here").push(request.clone());
        Ok(reply())
    });
    (Server::on_thread(Options::new(mind)).expect("a free port"), asked)
}

#[test]
fn the_mind_is_asked_the_same_in_both_shapes() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let anthropic = json!({
        "model": "m", "max_tokens": 100, "system": "Be brief.",
        "tools": [{"name": "look", "description": "Looks.", "input_schema": schema}],
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I do."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"path": "a"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "a file"},
                {"type": "text", "text": "Go on."},
            ]},
        ],
    });
    let openai = json!({
        "model": "m", "max_completion_tokens": 100,
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "I do.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"path\":\"a\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a file"},
            {"role": "user", "content": "Go on."},
        ],
    });
    let (server, asked) = listening();
    assert_eq!(ask(&server, Shape::Anthropic, &anthropic).status, 200);
    assert_eq!(ask(&server, Shape::OpenAi, &openai).status, 200);
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0], asked[1]);
    assert_eq!(asked[0].system, "Be brief.");
    assert_eq!((asked[0].max_output_tokens, asked[0].turn), (100, 1));
    assert_eq!(asked[0].tools[0].input, schema);
    let Message::Results { results } = &*asked[0].messages[2] else { panic!("{:?}", asked[0].messages) };
    assert_eq!((results[0].id.as_str(), results[0].name.as_str(), results[0].text.as_str()), ("c1", "look", "a file"));
    assert_eq!(*asked[0].messages[3], Message::User { text: "Go on.".into() });
}

fn thinking_server() -> Server {
    let options = Options { reasoning: Some("First I look.".into()), ..Options::new(mind::from_fn(|_| Ok(reply()))) };
    Server::on_thread(options).expect("a free port")
}

/// The content of a streamed answer, put together.
fn thinking_of(events: &[Value]) -> (String, String) {
    let piece = |name: &str| {
        events.iter().filter_map(|event| event["delta"][name].as_str()).map(str::to_owned).collect::<String>()
    };
    (piece("thinking"), piece("signature"))
}

#[test]
fn thinking_comes_signed_and_is_taken_back_only_as_it_was() {
    let server = thinking_server();
    let mut body = question(Shape::Anthropic, false);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    let message = ask(&server, Shape::Anthropic, &body).json();
    assert_eq!(message["content"][0]["thinking"], "First I look.");
    body["stream"] = json!(true);
    let streamed = ask(&server, Shape::Anthropic, &body);
    let signature = message["content"][0]["signature"].as_str().unwrap();
    assert_eq!(thinking_of(&streamed.data()), ("First I look.".to_owned(), signature.to_owned()));

    let results = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "x"},
        {"type": "tool_result", "tool_use_id": "call_2"},
    ]});
    let with = |content: &Value| {
        let mut body = body.clone();
        body["stream"] = json!(false);
        body["messages"] = json!([body["messages"][0], {"role": "assistant", "content": content}, results]);
        ask(&server, Shape::Anthropic, &body)
    };
    assert_eq!(with(&message["content"]).status, 200);
    let mut altered = message["content"].clone();
    altered[0]["thinking"] = json!("First I looked.");
    let got = with(&altered);
    assert_eq!(got.status, 400);
    let message_of = |got: &support::Got| got.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message_of(&got), "messages.1.content.0: Invalid `signature` in `thinking` block");
    let mut without = message["content"].clone();
    without.as_array_mut().unwrap().remove(0);
    assert!(message_of(&with(&without)).contains("Expected `thinking` or `redacted_thinking`, but found `text`"));
    assert_eq!(server.bill().refused(Kind::ThinkingAltered), 1);
    assert_eq!(server.bill().refused(Kind::ThinkingMissing), 1);
}

#[test]
fn reasoning_is_content_of_its_own_in_the_other_shape() {
    let server = thinking_server();
    let completion = ask(&server, Shape::OpenAi, &question(Shape::OpenAi, false)).json();
    assert_eq!(completion["choices"][0]["message"]["reasoning_content"], "First I look.");
    let chunks = ask(&server, Shape::OpenAi, &question(Shape::OpenAi, true)).data();
    let piece = |chunk: &Value| chunk["choices"][0]["delta"]["reasoning_content"].as_str().map(str::to_owned);
    assert_eq!(chunks.iter().filter_map(piece).collect::<String>(), "First I look.");
}

#[test]
fn a_cache_is_reported_in_the_terms_of_each_service() {
    let server = server();
    let system = "word ".repeat(2_000);
    let body = json!({
        "model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}],
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
    });
    let usage = |body: &Value| ask(&server, Shape::Anthropic, body).json()["usage"].clone();
    let (first, second) = (usage(&body), usage(&body));
    assert!(first["cache_creation_input_tokens"].as_u64().unwrap() > 2_000, "{first}");
    assert_eq!(first["cache_read_input_tokens"], 0);
    assert_eq!(second["cache_read_input_tokens"], first["cache_creation_input_tokens"]);
    assert_eq!((&second["cache_creation_input_tokens"], &second["input_tokens"]), (&json!(0), &first["input_tokens"]));
    let tokens = server.bill().entries[1].tokens;
    assert_eq!(second["input_tokens"], tokens.input - tokens.cache_read);

    let body = json!({
        "model": "m", "messages": [{"role": "system", "content": system}, {"role": "user", "content": "Hi"}],
    });
    let cached = || {
        let usage = ask(&server, Shape::OpenAi, &body).json()["usage"].clone();
        usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(), 0);
    let read = cached();
    assert!(read >= 1_024 && read.is_multiple_of(128), "{read}");
    assert_eq!(server.bill().total().cache_read, tokens.cache_read + read);
}

#[test]
fn both_shapes_list_the_models_and_take_no_others() {
    let options = Options { models: vec!["one".into(), "two".into()], ..Options::new(mind::from_fn(|_| Ok(reply()))) };
    let server = Server::on_thread(options).unwrap();
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        let models = receive(send(&server, "GET /v1/models", &head(shape), b"")).json();
        let ids: Vec<&Value> = models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
        assert_eq!(ids, ["one", "two"]);
        assert_eq!(ask(&server, shape, &question(shape, false)).status, 404);
        let mut known = question(shape, false);
        known["model"] = json!("two");
        assert_eq!(ask(&server, shape, &known).status, 200);
    }
    assert_eq!(server.bill().refused(Kind::UnknownModel), 2);
    assert_eq!(server.bill().refused_malformed(), 0);
}

#[test]
fn a_script_gives_its_replies_in_order_and_then_fails() {
    let say = |text: &str| Reply { text: text.into(), ..Reply::default() };
    let server = Server::on_thread(Options::new(mind::in_order([say("one"), say("two")]))).unwrap();
    let body = question(Shape::OpenAi, false);
    assert_eq!(said(Shape::OpenAi, false, &ask(&server, Shape::OpenAi, &body)).0, "one");
    assert_eq!(said(Shape::OpenAi, false, &ask(&server, Shape::OpenAi, &body)).0, "two");
    assert_eq!(ask(&server, Shape::OpenAi, &body).status, 500);
    let bill = server.bill();
    assert!(matches!(&bill.entries[2].outcome, Outcome::Failed(why) if why.contains("script")), "{bill:?}");
    assert_eq!(bill.refused_malformed(), 0);
}

#[test]
fn an_error_of_the_mind_is_an_answer_of_the_service_and_no_refusal_is_counted() {
    let busy = ModelError::Busy { message: "wait".into(), retry_after_ms: Some(250) };
    let cases = [
        (ModelError::NotSent("x".into()), 503),
        (busy, 429),
        (ModelError::lost("x"), 500),
        (ModelError::TooLong("x".into()), 400),
        (ModelError::Rejected("bad parameter".into()), 400),
    ];
    for (error, status) in cases {
        let fails = error.clone();
        let server = Server::on_thread(Options::new(mind::from_fn(move |_| Err(fails.clone())))).unwrap();
        for shape in [Shape::Anthropic, Shape::OpenAi] {
            let got = ask(&server, shape, &question(shape, true));
            assert_eq!(got.status, status, "{error}");
            assert_eq!(got.header("retry-after-ms"), if status == 429 { "250" } else { "" });
            let says_why =
                matches!(&error, ModelError::Rejected(why) if got.json()["error"]["message"] == why.as_str());
            assert!(says_why || !matches!(error, ModelError::Rejected(_)), "{}", got.text());
        }
        assert_eq!(server.bill().entries[1].outcome, Outcome::Failed(error.to_string()));
        assert_eq!((server.bill().refused_malformed(), server.bill().refused_too_long()), (0, 0));
    }
}

#[test]
fn a_call_without_an_id_gets_one_and_a_budget_is_always_thought_with() {
    let mut unnamed = reply();
    unnamed.calls.iter_mut().for_each(|call| call.id.clear());
    let server = Server::on_thread(Options::new(mind::from_fn(move |_| Ok(unnamed.clone())))).unwrap();
    let mut body = question(Shape::Anthropic, false);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    let first = ask(&server, Shape::Anthropic, &body).json();
    let second = ask(&server, Shape::Anthropic, &body).json();
    assert_eq!(first["content"][0]["type"], "thinking");
    let ids: Vec<&Value> =
        [&first, &second].into_iter().flat_map(|it| [&it["content"][2]["id"], &it["content"][3]["id"]]).collect();
    assert!(ids.iter().all(|id| id.as_str().is_some_and(|id| !id.is_empty())));
    assert_eq!(ids.iter().map(|id| id.to_string()).collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn a_body_that_is_too_large_is_refused_unread() {
    for (shape, kind) in [(Shape::Anthropic, "request_too_large"), (Shape::OpenAi, "invalid_request_error")] {
        let server = server();
        let mut head = head(shape);
        head.push(("content-length", "40000000".into()));
        let got = receive(send(&server, &format!("POST {}", support::path(shape)), &head, b""));
        assert_eq!((got.status, got.json()["error"]["type"].as_str()), (413, Some(kind)));
        assert_eq!(server.bill().refused(Kind::TooLarge), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_on_the_runtime_of_its_test_ends_with_it_when_it_is_dropped() {
    let server = Server::start(Options::new(mind::from_fn(|_| Ok(reply())))).unwrap();
    server.plan([lodestep_model_server::Fault::Stall(lodestep_model_server::At::Start)]);
    let body = question(Shape::OpenAi, true).to_string();
    let mut stream = send(&server, "POST /v1/chat/completions", &head(Shape::OpenAi), body.as_bytes());
    server.billed(|bill| bill.entries.first().is_some_and(|entry| entry.outcome != Outcome::Underway)).await;
    assert!(server.base_url(Shape::OpenAi).starts_with(&server.base_url(Shape::Anthropic)));
    drop(server);
    let rest = tokio::task::spawn_blocking(move || stream.read_to_end(&mut Vec::new()));
    rest.await.unwrap().unwrap();
}
