//! Calls of a strict server in both shapes, streamed and whole: what comes back, and what each fault is taken for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestep_model::{
    Blocks, Call, CallResult, Message, Model, ModelError, Progress, Reply, Request, StopReason, ToolSpec, Usage,
};
use lodestep_model_server::{At, Bill, Fault, Options, Outcome, Server, Shape, mind};
use lodestep_providers::{Dialect, OutputLimitField, Patience, Provider, Settings};
use serde_json::{Map, Value, json};

/// A way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    dialect: Dialect,
    stream: bool,
}

const WAYS: [Way; 4] = [
    Way { dialect: Dialect::Anthropic, stream: true },
    Way { dialect: Dialect::Anthropic, stream: false },
    Way { dialect: Dialect::OpenAi, stream: true },
    Way { dialect: Dialect::OpenAi, stream: false },
];

impl Way {
    fn settings(self, server: &Server) -> Settings {
        let shape = match self.dialect {
            Dialect::Anthropic => Shape::Anthropic,
            Dialect::OpenAi => Shape::OpenAi,
        };
        let patience = Patience { idle: Duration::from_millis(400), ..Patience::default() };
        Settings {
            dialect: self.dialect,
            base_url: server.base_url(shape),
            model: "m".to_owned(),
            params: Map::new(),
            output_limit_field: None,
            stream: self.stream,
            patience,
        }
    }

    fn provider(self, server: &Server) -> Provider {
        provider(self.settings(server))
    }
}

fn provider(settings: Settings) -> Provider {
    Provider::new(settings, Arc::new(|| Ok(Some("test-key".to_owned()))))
}

fn server(reply: Reply) -> Server {
    Server::start(Options::new(mind::from_fn(move |_| Ok(reply.clone())))).expect("a port of loopback")
}

fn call(id: &str, name: &str, arguments: &str) -> Call {
    Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// Text and two calls, with what is hard to cut well.
fn reply() -> Reply {
    Reply {
        text: "First the pläne 🦀,\nthen \"both\".".to_owned(),
        calls: vec![call("", "publish", r#"{"body":"é🦀\\n\"x\"","n":[1,2.5]}"#), call("", "note", "{}")],
        stop: StopReason::ToolCalls,
        ..Reply::default()
    }
}

fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input: json!({"type": "object", "properties": {"body": {"type": "string"}}}),
    };
    vec![spec("publish"), spec("note")]
}

/// A run in its second decision.
fn request(blocks: Option<Blocks>) -> Request {
    let result = |id: &str, text: &str, is_error| CallResult {
        id: id.to_owned(),
        name: "note".to_owned(),
        text: text.to_owned(),
        is_error,
    };
    let messages = vec![
        Message::User { text: "Begin.".to_owned() },
        Message::Assistant { text: String::new(), calls: vec![call("call_1", "note", r#"{"a":1}"#)], blocks: None },
        Message::Results { results: vec![result("call_1", "kept", false)] },
        Message::Assistant {
            text: "Both.".to_owned(),
            calls: vec![call("call_2", "note", "{}"), call("call_3", "publish", "{}")],
            blocks,
        },
        Message::Results { results: vec![result("call_2", "kept", false), result("call_3", "it failed", true)] },
        Message::User { text: "What next?".to_owned() },
    ];
    Request {
        system: "You work in decisions.".to_owned(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools().into(),
        max_output_tokens: 1_000,
        turn: 2,
    }
}

/// The last request's outcome; its bill tells what came.
async fn ask(way: Way, fault: Option<Fault>) -> (Result<Reply, ModelError>, Bill) {
    let server = server(reply());
    server.plan(fault);
    let asked = way.provider(&server).ask(&request(None)).await;
    let bill = server.bill();
    assert_eq!(bill.refused_malformed() + bill.refused_too_long(), 0, "{way:?}: {:?}", bill.entries);
    assert_eq!(bill.entries.len(), 1, "{way:?}: one question is one request");
    assert_eq!(bill.entries[0].streamed, way.stream);
    (asked, bill)
}

#[tokio::test]
async fn a_reply_comes_as_it_was_said_in_every_way() {
    for way in WAYS {
        let (asked, bill) = ask(way, None).await;
        let got = asked.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!((&got.text, got.stop), (&reply().text, StopReason::ToolCalls), "{way:?}");
        let names: Vec<&str> = got.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["publish", "note"]);
        for (got, said) in got.calls.iter().zip(reply().calls) {
            let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            assert_eq!(value(&got.arguments), value(&said.arguments), "{way:?}");
            assert!(!got.id.is_empty());
        }
        let billed = bill.entries[0].tokens;
        let usage = got.usage.expect("it is reported");
        assert_eq!((usage.input_tokens, usage.output_tokens), (billed.input, billed.output), "{way:?}");
        assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (billed.cache_read, billed.cache_write));
        assert_eq!(got.model.as_deref(), Some("m"));
        assert_eq!(got.request_id.as_deref(), Some(bill.entries[0].request_id.as_str()), "{way:?}");
        assert_eq!(got.blocks, None);
    }
}

#[tokio::test]
async fn what_comes_is_told_as_it_comes_and_adds_up_to_the_reply() {
    for way in WAYS.into_iter().filter(|way| way.stream) {
        let server = server(reply());
        let told: Mutex<(String, Vec<String>, String, usize)> = Mutex::default();
        let watch = |piece: Progress<'_>| {
            let mut told = told.lock().unwrap();
            told.3 += 1;
            match piece {
                Progress::Text(text) => told.0.push_str(text),
                Progress::Call(name) => told.1.push(name.to_owned()),
                Progress::Arguments(text) => told.2.push_str(text),
                Progress::Reasoning(_) => {}
            }
        };
        let got = way.provider(&server).ask_watched(&request(None), &watch).await.expect("a reply");
        let (text, calls, arguments, pieces) = told.into_inner().unwrap();
        assert_eq!(text, got.text, "{way:?}");
        assert_eq!(calls, ["publish", "note"]);
        assert!(arguments.starts_with(&got.calls[0].arguments), "{way:?}: {arguments}");
        assert!(pieces > 6, "{way:?}: it came in pieces");
    }
}

/// What a fault is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Busy(Option<u64>),
    Lost,
    Rejected,
    Reply,
    /// A reply that says that it was cut.
    Cut,
    Refused,
}

fn taken(asked: &Result<Reply, ModelError>) -> Taken {
    match asked {
        Ok(reply) if reply.stop == StopReason::OutputLimit => Taken::Cut,
        Ok(reply) if reply.stop == StopReason::Refused => Taken::Refused,
        Ok(_) => Taken::Reply,
        Err(ModelError::Busy { retry_after_ms, .. }) => Taken::Busy(*retry_after_ms),
        Err(ModelError::Lost { .. }) => Taken::Lost,
        Err(ModelError::Rejected(_)) => Taken::Rejected,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn each_fault_is_taken_for_what_it_is() {
    let limited = |name: &str, value: &str| Fault::RateLimited(vec![(name.to_owned(), value.to_owned())]);
    let mut table = vec![
        (limited("retry-after", "171"), Taken::Busy(Some(171_000))),
        (limited("retry-after", "soon"), Taken::Busy(None)),
        (limited("retry-after-ms", "250"), Taken::Busy(Some(250))),
        (Fault::RateLimited(Vec::new()), Taken::Busy(None)),
        (Fault::Overloaded, Taken::Busy(None)),
        (Fault::Unavailable, Taken::Busy(None)),
        (Fault::InternalError, Taken::Lost),
        (Fault::BadGateway, Taken::Lost),
        (Fault::Unauthorized, Taken::Rejected),
        (Fault::Forbidden, Taken::Rejected),
        (Fault::ModelNotFound, Taken::Rejected),
        (Fault::OutOfCredit, Taken::Rejected),
        (Fault::NotJson, Taken::Lost),
        (Fault::UnexpectedShape, Taken::Lost),
        (Fault::UsageOmitted, Taken::Reply),
        (Fault::CallIdsRepeated, Taken::Reply),
        (Fault::CallIdsDoubled, Taken::Reply),
        (Fault::EmptyReply, Taken::Reply),
        (Fault::EmptyText, Taken::Reply),
        (Fault::LoneSurrogate, Taken::Reply),
        (Fault::OtherModel("m-2".to_owned()), Taken::Reply),
        (Fault::OutputLimit, Taken::Cut),
        (Fault::OutputAtLimit, Taken::Reply),
        (Fault::Refusal, Taken::Refused),
        (Fault::ContentFilter, Taken::Refused),
        (Fault::UnknownEvents, Taken::Reply),
        (Fault::EmptyArguments, Taken::Reply),
        (Fault::DeltasWithoutIndex, Taken::Reply),
    ];
    for at in [At::Headers, At::Start, At::Text, At::Arguments, At::End] {
        table.extend([Fault::Cut(at), Fault::Close(at), Fault::Reset(at)].map(|fault| (fault, Taken::Lost)));
    }
    table.extend([At::Start, At::Text, At::Arguments, At::End].map(|at| (Fault::ErrorEvent(at), Taken::Lost)));
    for way in WAYS {
        for (fault, expected) in &table {
            // A whole body that is cut behind its last byte is whole.
            if !way.stream && matches!(fault, Fault::ErrorEvent(_)) {
                continue;
            }
            let (asked, _) = ask(way, Some(fault.clone())).await;
            assert_eq!(taken(&asked), *expected, "{way:?} {fault:?}: {asked:?}");
        }
    }
}

#[tokio::test]
async fn a_silent_service_is_given_up_and_may_have_been_billed() {
    for way in WAYS.into_iter().filter(|way| way.stream) {
        for at in [At::Headers, At::Start, At::Text, At::Arguments, At::End] {
            let (asked, _) = ask(way, Some(Fault::Stall(at))).await;
            let Err(ModelError::Lost { message: why, .. }) = asked else { panic!("{way:?} {at:?}: {asked:?}") };
            assert!(why.contains("for 0.4 s"), "{way:?} {at:?}: {why}");
        }
    }
    let server = server(reply());
    server.plan([Fault::Stall(At::Text)]);
    let mut settings = WAYS[1].settings(&server);
    settings.patience.whole = Duration::from_millis(300);
    let asked = provider(settings).ask(&request(None)).await;
    let Err(ModelError::Lost { message: why, .. }) = asked else { panic!("{asked:?}") };
    assert!(why.contains("no whole reply within 0.3 s"), "{why}");
}

#[tokio::test]
async fn odd_replies_keep_what_is_whole_in_them() {
    for way in WAYS {
        let of = async |fault: Fault| ask(way, Some(fault)).await.0.expect("a reply");
        assert_eq!(of(Fault::UsageOmitted).await.usage, None, "{way:?}: nothing is made up");
        let doubled = of(Fault::CallIdsDoubled).await;
        assert_eq!(doubled.calls.len(), 2, "{way:?}: both are there, whatever they are called");
        assert!(of(Fault::EmptyReply).await.calls.is_empty());
        let half = of(Fault::LoneSurrogate).await;
        let (kept, end) = (half.ill_formed.expect("evidence"), half.text.ends_with("\"both\".\u{fffd}"));
        assert!(end && kept.ends_with("\\\"both\\\".\\ud99c\""), "{way:?}: {kept}: {}", half.text);
        assert_eq!(of(Fault::OtherModel("m-2".to_owned())).await.model.as_deref(), Some("m-2"));
        for call in of(Fault::EmptyArguments).await.calls {
            assert_eq!(call.arguments, "{}", "{way:?}: none are none");
        }
        let at_limit = of(Fault::OutputAtLimit).await;
        assert_eq!(at_limit.usage.map(|usage: Usage| usage.output_tokens), Some(1_000));
        let without_index = of(Fault::DeltasWithoutIndex).await;
        assert_eq!(without_index.calls.len(), 2, "{way:?}");
        assert!(without_index.calls[0].arguments.contains("2.5"), "{way:?}: {:?}", without_index.calls);
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_told_apart() {
    for way in WAYS {
        let mind = mind::from_fn(|_| Ok(reply()));
        let server = Server::start(Options { window_tokens: 20, ..Options::new(mind) }).expect("a port of loopback");
        let asked = way.provider(&server).ask(&request(None)).await;
        assert!(matches!(asked, Err(ModelError::TooLong(_))), "{way:?}: {asked:?}");
        assert_eq!(server.bill().refused_too_long(), 1);
    }
}

#[tokio::test]
async fn where_nobody_listens_nothing_is_sent() {
    for way in WAYS {
        let mut settings = way.settings(&server(reply()));
        // The server is gone with its port.
        let asked = provider(settings.clone()).ask(&request(None)).await;
        assert!(matches!(asked, Err(ModelError::NotSent(_))), "{way:?}: {asked:?}");
        settings.base_url = "http://no-such-host.invalid/v1".to_owned();
        let asked = provider(settings).ask(&request(None)).await;
        assert!(matches!(asked, Err(ModelError::NotSent(_))), "{way:?}: {asked:?}");
    }
}

#[tokio::test]
async fn the_key_is_looked_up_with_each_call_and_a_missing_one_sends_nothing() {
    let server = server(reply());
    let keys = Arc::new(Mutex::new(vec![
        Ok(Some("test-key".to_owned())),
        Ok(Some("wrong".to_owned())),
        Err("none is set".to_owned()),
    ]));
    for way in WAYS {
        let next = keys.lock().unwrap().clone().into_iter();
        let left = Mutex::new(next);
        let provider =
            Provider::new(way.settings(&server), Arc::new(move || left.lock().unwrap().next().expect("a key")));
        assert!(provider.ask(&request(None)).await.is_ok(), "{way:?}");
        let refused = provider.ask(&request(None)).await;
        let Err(ModelError::Rejected(why)) = refused else { panic!("{way:?}: {refused:?}") };
        assert!(why.contains("401") && why.contains("Is the key the right one"), "{why}");
        let before = server.bill().entries.len();
        let unset = provider.ask(&request(None)).await;
        assert!(matches!(&unset, Err(ModelError::Rejected(why)) if why.contains("none is set")), "{unset:?}");
        assert_eq!(server.bill().entries.len(), before, "nothing was sent");
    }
}

#[tokio::test]
async fn signed_reasoning_goes_back_byte_for_byte_and_an_altered_one_is_refused() {
    for way in WAYS.into_iter().filter(|way| way.dialect == Dialect::Anthropic) {
        let mind = mind::from_fn(|_| Ok(reply()));
        let thought = Some("Wäge \"ab\" 🦀\n".to_owned());
        let server = Server::start(Options { reasoning: thought, ..Options::new(mind) }).expect("a port of loopback");
        let mut settings = way.settings(&server);
        let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 1_024}});
        settings.params = thinking.as_object().expect("an object").clone();
        let provider = provider(settings);
        let mut first = request(None);
        first.max_output_tokens = 2_000;
        let got = provider.ask(&first).await.unwrap_or_else(|error| panic!("{way:?}, in words: {error}"));
        let blocks = got.blocks.expect("it thought");
        assert_eq!(blocks.of, "anthropic m");
        let mut with = request(Some(blocks.clone()));
        with.max_output_tokens = 2_000;
        assert!(provider.ask(&with).await.is_ok(), "{way:?}");
        let altered = Blocks { json: blocks.json.replace("ab", "auf"), ..blocks };
        assert_ne!(altered.json, request(None).system);
        let mut with = request(Some(altered));
        with.max_output_tokens = 2_000;
        let refused = provider.ask(&with).await;
        assert!(matches!(refused, Err(ModelError::Rejected(_))), "{way:?}: the server looks: {refused:?}");
    }
}

#[tokio::test]
async fn a_page_instead_of_a_reply_asks_where_the_service_is_and_costs_nothing() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port of loopback");
    let mut settings = WAYS[2].settings(&server(reply()));
    settings.base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let page = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut read = [0; 64];
        stream.read_exact(&mut read).await.expect("a request");
        let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 6\r\n\r\n<html>";
        stream.write_all(page.as_bytes()).await.expect("answered");
        // The rest of the request is read, so that the answer is not lost with the connection.
        while stream.read(&mut read).await.is_ok_and(|count| count > 0) {}
    };
    let provider = provider(settings);
    let asked = request(None);
    let asked = tokio::select! {
        asked = provider.ask(&asked) => asked,
        () = page => panic!("the connection ended"),
    };
    let Err(ModelError::Rejected(why)) = asked else { panic!("{asked:?}") };
    assert!(why.contains("is `base_url` where the service is?"), "{why}");
}

/// Parts of replies that no sound service sends, as bytes.
#[tokio::test]
async fn a_reply_is_not_lost_for_its_count_and_a_thousand_calls_are_read_at_most() {
    use lodestep_providers::testing::{streamed, whole};
    for (count, usage) in [
        ("12.0", Some(12)),
        ("-1", None),
        ("\"12\"", None),
        ("{}", None),
        ("1e300", None),
        ("18446744073709551615", None),
        ("8999999999999999", Some(8_999_999_999_999_999)),
    ] {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"t"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{count},"completion_tokens":3}}}}"#
        );
        let got = whole(Dialect::OpenAi, body.as_bytes()).expect("a reply");
        assert_eq!(got.usage.map(|usage| usage.input_tokens), usage, "{count}");
        let body = format!(
            r#"{{"content":[{{"type":"text","text":"t"}}],"stop_reason":"end_turn","usage":{{"input_tokens":{count},"output_tokens":3}}}}"#
        );
        let got = whole(Dialect::Anthropic, body.as_bytes()).expect("a reply");
        assert_eq!(got.usage.map(|usage| usage.input_tokens), usage, "{count}");
    }
    let calls: Vec<String> = (0..200_000).map(|index| format!(r#"{{"index":{index}}}"#)).collect();
    let chunk = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{}]}},\"finish_reason\":\"tool_calls\"}}]}}\n\ndata: [DONE]\n\n",
        calls.join(",")
    );
    let got = streamed(Dialect::OpenAi, chunk.as_bytes(), usize::MAX).await.expect("a reply");
    assert_eq!(got.calls.len(), 1_000, "the time that it takes grows with their number, and not with its square");
}

#[tokio::test]
async fn an_error_about_the_context_after_a_reply_began_is_a_lost_reply() {
    use lodestep_providers::testing::streamed;
    let error = r#"{"type":"error","error":{"code":"context_length_exceeded","message":"context window"}}"#;
    let begun = [
        (Dialect::OpenAi, r#"{"choices":[{"delta":{"content":"t"}}]}"#),
        (Dialect::Anthropic, r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
    ];
    for (dialect, begun) in begun {
        let of = async |body: String| streamed(dialect, body.as_bytes(), usize::MAX).await;
        let early = of(format!("data: {error}\n\n")).await;
        assert!(matches!(early, Err(ModelError::TooLong(_))), "{dialect:?}: {early:?}");
        let late = of(format!("data: {begun}\n\ndata: {error}\n\n")).await;
        assert!(matches!(late, Err(ModelError::Lost { .. })), "{dialect:?}: it is billed: {late:?}");
    }
}

#[tokio::test]
async fn instructions_and_tools_are_read_from_the_cache_the_second_time() {
    for way in WAYS {
        let server = server(reply());
        let provider = way.provider(&server);
        let mut long = request(None);
        long.system = "Work with care. ".repeat(600);
        let first = provider.ask(&long).await.expect("a reply").usage.expect("a count");
        long.messages.truncate(3);
        long.messages.push(Arc::new(Message::User { text: "Another end.".to_owned() }));
        let second = provider.ask(&long).await.expect("a reply").usage.expect("a count");
        assert_eq!(first.cache_read_tokens, 0);
        assert!(second.cache_read_tokens > 1_000, "{way:?}: {second:?}");
        assert_eq!(first.cache_write_tokens > 0, way.dialect == Dialect::Anthropic, "{way:?}: {first:?}");
    }
}

#[tokio::test]
async fn parameters_are_sent_as_they_are_and_a_dropped_call_is_over() {
    for way in WAYS {
        let server = server(reply());
        let mut settings = way.settings(&server);
        settings.params = json!({"temperature": 0.25}).as_object().expect("an object").clone();
        let provider = provider(settings);
        provider.ask(&request(None)).await.expect("a reply");
        let bill = server.bill();
        let body = bill.entries[0].body.as_ref().expect("JSON");
        assert_eq!(body["temperature"], json!(0.25));
        server.plan([Fault::Stall(At::Headers)]);
        {
            let asked = request(None);
            let mut asked = std::pin::pin!(provider.ask(&asked));
            tokio::select! {
                reply = &mut asked => panic!("it stalls: {reply:?}"),
                () = server.billed(|bill| bill.entries.len() == 2) => {}
            }
        }
        assert!(provider.ask(&request(None)).await.is_ok(), "the next one has a connection of its own");
        let outcomes: Vec<Outcome> = server.bill().entries.into_iter().map(|entry| entry.outcome).collect();
        assert_eq!(outcomes.len(), 3, "nothing was sent again: {outcomes:?}");
    }
}

#[tokio::test]
async fn a_place_that_takes_the_limit_by_its_new_name_alone_says_so_and_answers_when_told_so() {
    for way in WAYS.into_iter().filter(|way| way.dialect == Dialect::OpenAi) {
        let mut options = Options::new(mind::from_fn(|_| Ok(reply())));
        options.only_max_completion_tokens = true;
        let server = Server::start(options).expect("a port of loopback");
        let mut settings = way.settings(&server);
        let refused = provider(settings.clone()).ask(&request(None)).await;
        let Err(ModelError::Rejected(said)) = &refused else { panic!("{way:?}: {refused:?}") };
        for part in ["'max_tokens' is not supported", "`output_limit_field = \"max_completion_tokens\"`", "[model]"] {
            assert!(said.contains(part), "{way:?}: {said}");
        }
        settings.output_limit_field = Some(OutputLimitField::MaxCompletionTokens);
        let got = provider(settings).ask(&request(None)).await.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(got.calls.len(), 2, "{way:?}");
        let body = server.bill().entries[1].body.clone().expect("JSON");
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(1_000), &Value::Null), "{way:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_tells_what_it_had_reported_and_a_whole_that_breaks_has_reported_nothing() {
    for way in WAYS {
        for at in [At::Start, At::Arguments, At::End] {
            let (asked, bill) = ask(way, Some(Fault::Cut(at))).await;
            let Err(ModelError::Lost { reported, .. }) = asked else { panic!("{way:?} {at:?}: {asked:?}") };
            let billed = bill.entries[0].tokens;
            // One dialect counts the request at the beginning and the reply at its end, the other one both at the end.
            let counted = match (way.dialect, at) {
                _ if !way.stream => (0, 0),
                (_, At::End) => (billed.input, billed.output),
                (Dialect::Anthropic, _) => (billed.input, 1),
                (Dialect::OpenAi, _) => (0, 0),
            };
            assert_eq!((reported.input_tokens, reported.output_tokens), counted, "{way:?} {at:?}");
        }
    }
}

#[tokio::test]
async fn dat_02_half_of_a_pair_in_arguments_that_come_as_a_string_stays_in_them() {
    use lodestep_providers::testing::{streamed, whole};
    let call = r#"{"index":0,"id":"a","type":"function","function":{"name":"pay","arguments":"{\"to\":\"\ud99c\"}"}}"#;
    let choice =
        |part: &str| format!(r#"{{"choices":[{{"{part}":{{"tool_calls":[{call}]}},"finish_reason":"stop"}}]}}"#);
    let whole = whole(Dialect::OpenAi, choice("message").as_bytes()).expect("a reply");
    let stream = format!("data: {}\n\ndata: [DONE]\n\n", choice("delta"));
    let streamed = streamed(Dialect::OpenAi, stream.as_bytes(), usize::MAX).await.expect("a reply");
    for reply in [whole, streamed] {
        assert_eq!(reply.calls[0].arguments, r#"{"to":"\ud99c"}"#, "whoever reads the JSON finds it");
        assert_eq!(reply.ill_formed, None, "the text is none of it");
    }
}
