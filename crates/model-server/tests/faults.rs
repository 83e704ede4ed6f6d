//! Each fault once, in both shapes: what the client sees of it, and what the bill says.

mod support;

use std::io::Read;

use lodestep_model::{Reply, StopReason};
use lodestep_model_server::{At, Fault, Options, Outcome, Server, Shape, WAYS, mind};
use serde_json::{Value, json};
use support::{ARGUMENTS, End, Got, TEXT, ask, head, path, question, reply, said, send, server};

/// A server's answer to a good request, under this fault.
fn under(fault: &Fault, shape: Shape, streamed: bool) -> (Got, Server) {
    let server = server();
    server.plan([fault.clone()]);
    let got = ask(&server, shape, &question(shape, streamed));
    assert_eq!(server.bill().entries[0].outcome, Outcome::Fault(fault.clone()));
    assert_eq!(server.faults_left(), 0);
    (got, server)
}

/// How many calls have begun in what came, and the arguments that came of the first of them.
fn calls_in(shape: Shape, got: &Got) -> Vec<(String, String, String)> {
    said(shape, true, got).1
}

#[test]
fn faults_are_taken_in_order_and_by_well_formed_requests_alone() {
    let server = server();
    server.plan([Fault::Overloaded, Fault::Nothing]);
    server.plan([Fault::InternalError]);
    let good = question(Shape::Anthropic, false);
    let mut bad = good.clone();
    bad["turn"] = json!(1);
    let statuses: Vec<u16> =
        [&bad, &good, &bad, &good, &good, &good].map(|body| ask(&server, Shape::Anthropic, body).status).into();
    assert_eq!(statuses, [400, 529, 400, 200, 500, 200]);
}

#[test]
fn a_status_comes_with_its_headers_and_in_the_words_of_the_shape() {
    let waits = vec![("retry-after".to_owned(), "7".to_owned()), ("retry-after-ms".to_owned(), "6500".to_owned())];
    let cases = [
        (Fault::RateLimited(waits), 429, "rate_limit_error", 429, "requests"),
        (Fault::Overloaded, 529, "overloaded_error", 529, "server_error"),
        (Fault::InternalError, 500, "api_error", 500, "server_error"),
        (Fault::Unauthorized, 401, "authentication_error", 401, "invalid_request_error"),
        (Fault::Forbidden, 403, "permission_error", 403, "request_forbidden"),
        (Fault::ModelNotFound, 404, "not_found_error", 404, "invalid_request_error"),
        (Fault::OutOfCredit, 402, "billing_error", 429, "insufficient_quota"),
    ];
    for (fault, anthropic, kind, openai, other_kind) in cases {
        for (shape, status, kind) in [(Shape::Anthropic, anthropic, kind), (Shape::OpenAi, openai, other_kind)] {
            let (got, server) = under(&fault, shape, true);
            assert_eq!((got.status, got.json()["error"]["type"].as_str()), (status, Some(kind)), "{fault:?}");
            assert_eq!(server.bill().total().input, 0);
            if let Fault::RateLimited(_) = fault {
                assert_eq!((got.header("retry-after"), got.header("retry-after-ms")), ("7", "6500"));
            }
            if matches!(fault, Fault::Unauthorized | Fault::Forbidden) {
                assert!(got.text().contains("test-key"), "the key that was sent: {}", got.text());
            }
        }
    }
}

#[test]
fn what_a_proxy_says_has_no_shape() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::BadGateway, shape, streamed);
        assert_eq!((got.status, got.header("content-type")), (502, "text/html"));
        assert!(got.text().starts_with("<html>"));
        let (got, _) = under(&Fault::Unavailable, shape, streamed);
        assert_eq!((got.status, got.header("content-type")), (503, "text/plain"));
    }
}

#[test]
fn an_answer_may_be_no_json_or_of_no_known_shape() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::NotJson, shape, streamed);
        assert_eq!((got.status, got.end), (200, End::Whole));
        assert!(serde_json::from_slice::<Value>(&got.body).is_err() && got.data().is_empty(), "{}", got.text());
        let kind = if streamed { "text/event-stream" } else { "application/json" };
        assert_eq!((got.header("content-type"), got.text().contains("data: ")), (kind, streamed));
        let (got, _) = under(&Fault::UnexpectedShape, shape, streamed);
        let value = if streamed { got.data()[0].clone() } else { got.json() };
        assert_eq!((got.status, &value["ok"]), (200, &json!([true])));
    }
}

#[test]
fn a_connection_ends_before_the_answer_as_it_was_told() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        for (fault, end) in [(Fault::Close(At::Headers), End::Short), (Fault::Reset(At::Headers), End::Reset)] {
            let (got, server) = under(&fault, shape, false);
            assert_eq!((got.status, got.end), (0, end), "{fault:?}");
            assert_eq!(server.bill().total().input, 0);
        }
    }
}

#[test]
fn a_stream_is_cut_where_it_was_told_and_as_it_was_told() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        for (broken, end) in
            [(Fault::Cut as fn(At) -> Fault, End::Whole), (Fault::Close, End::Short), (Fault::Reset, End::Reset)]
        {
            for at in [At::Start, At::Text, At::Arguments, At::End] {
                let (got, server) = under(&broken(at), shape, true);
                assert_eq!((got.status, got.end), (200, end), "{shape:?} {end:?} {at:?}");
                let (text, calls, stop) = said(shape, true, &got);
                let marks_the_end = got.text().contains("message_stop") || got.text().contains("[DONE]");
                assert!(!marks_the_end, "{at:?}");
                match at {
                    At::Text => assert!(!text.is_empty() && TEXT.starts_with(&text) && text != TEXT, "{text}"),
                    At::Arguments => {
                        let begun = &calls[0].2;
                        assert!(!begun.is_empty() && ARGUMENTS.starts_with(begun) && begun != ARGUMENTS, "{begun}");
                    }
                    At::End => assert!(!stop.is_empty() && calls.len() == 2),
                    _ => assert!(text.is_empty() && !got.body.is_empty()),
                }
                assert!(server.bill().total().output > 0, "a broken stream is billed");
                assert_eq!(server.bill().entries[0].delivered, end == End::Whole);
            }
        }
    }
}

#[test]
fn a_whole_answer_is_cut_in_its_middle() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        for (fault, end) in [
            (Fault::Cut(At::Text), End::Whole),
            (Fault::Close(At::Text), End::Short),
            (Fault::Reset(At::Text), End::Reset),
        ] {
            let (got, _) = under(&fault, shape, false);
            assert_eq!((got.status, got.end), (200, end));
            assert!(got.body.starts_with(b"{") && serde_json::from_slice::<Value>(&got.body).is_err());
        }
    }
}

#[test]
fn a_stream_may_end_in_an_error_event() {
    let (got, _) = under(&Fault::ErrorEvent(At::Text), Shape::Anthropic, true);
    let events = got.events();
    let (name, data) = &events[events.len() - 1];
    assert_eq!(name, "error");
    assert!(data.contains("overloaded_error"));
    let (text, ..) = said(Shape::Anthropic, true, &got);
    assert!(!text.is_empty() && text != TEXT);
    let (got, _) = under(&Fault::ErrorEvent(At::Arguments), Shape::OpenAi, true);
    assert_eq!(got.data().last().map(|chunk| &chunk["error"]["code"]), Some(&json!("overloaded_error")));
    assert!(!got.text().contains("[DONE]"));
}

#[test]
fn a_stall_lasts_until_the_server_ends() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        for at in [At::Headers, At::Text] {
            let server = server();
            server.plan([Fault::Stall(at)]);
            let body = question(shape, true).to_string();
            let mut stream = send(&server, &format!("POST {}", path(shape)), &head(shape), body.as_bytes());
            if at == At::Text {
                let mut first = [0; 16];
                stream.read_exact(&mut first).expect("the head comes");
                assert!(first.starts_with(b"HTTP/1.1 200"));
            }
            server
                .wait_billed(|bill| {
                    bill.entries.first().is_some_and(|it| it.outcome == Outcome::Fault(Fault::Stall(at)))
                })
                .expect("a runtime");
            // Whatever else the server had to do for that connection it has done when it has answered another.
            assert_eq!(ask(&server, shape, &question(shape, false)).status, 200);
            assert!(!server.bill().entries[0].delivered);
            stream.set_nonblocking(true).expect("a socket");
            let mut rest = Vec::new();
            let waits = stream.read_to_end(&mut rest).expect_err("it neither ends nor goes on");
            assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
            stream.set_nonblocking(false).expect("a socket");
            drop(server);
            // Closed or reset: whichever it is, it does not wait any longer.
            let _ = stream.read_to_end(&mut rest);
            assert_eq!(rest.is_empty(), at == At::Headers);
        }
    }
}

#[test]
fn usage_may_be_left_out() {
    for (shape, streamed) in WAYS {
        let (got, server) = under(&Fault::UsageOmitted, shape, streamed);
        assert!(!got.text().contains("tokens"), "{}", got.text());
        assert!(server.bill().total().input > 0);
    }
}

#[test]
fn ids_of_calls_come_again_or_twice() {
    for (shape, streamed) in WAYS {
        let mut next = reply();
        next.calls[0].id = "call_3".into();
        next.calls[1].id = "call_4".into();
        let one = Reply { calls: vec![next.calls[0].clone()], ..next.clone() };
        let server = Server::on_thread(Options::new(mind::in_order([reply(), next, one]))).expect("a free port");
        server.plan([Fault::Nothing, Fault::CallIdsRepeated, Fault::CallIdsDoubled]);
        let ids = || -> Vec<String> {
            let calls = said(shape, streamed, &ask(&server, shape, &question(shape, streamed))).1;
            calls.into_iter().map(|call| call.0).collect()
        };
        assert_eq!(ids(), ["call_1", "call_2"]);
        assert_eq!(ids(), ["call_1", "call_2"]);
        assert_eq!(ids(), ["call_3", "call_3"]);
    }
}

#[test]
fn a_reply_may_be_empty_or_refused() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::EmptyReply, shape, streamed);
        let end = if shape == Shape::Anthropic { "end_turn" } else { "stop" };
        assert_eq!(said(shape, streamed, &got), (String::new(), Vec::new(), end.into()));
        let (got, _) = under(&Fault::EmptyText, shape, streamed);
        assert_eq!(said(shape, streamed, &got), (String::new(), Vec::new(), end.into()));
        match (shape, streamed) {
            (Shape::Anthropic, false) => assert_eq!(got.json()["content"], json!([{"type": "text", "text": ""}])),
            (Shape::OpenAi, false) => assert_eq!(got.json()["choices"][0]["message"]["content"], ""),
            _ => {}
        }
        let (got, _) = under(&Fault::Refusal, shape, streamed);
        let (text, calls, stop) = said(shape, streamed, &got);
        assert!(calls.is_empty());
        match shape {
            Shape::Anthropic => assert_eq!(stop, "refusal"),
            Shape::OpenAi => assert!(stop == "stop" && text.is_empty() && got.text().contains("\"refusal\":\"I ")),
        }
        let (got, _) = under(&Fault::ContentFilter, shape, streamed);
        let stop = said(shape, streamed, &got).2;
        assert_eq!(stop, if shape == Shape::Anthropic { "refusal" } else { "content_filter" });
    }
}

#[test]
fn another_model_may_answer() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::OtherModel("cheap-1".into()), shape, streamed);
        assert!(got.text().contains("\"model\":\"cheap-1\"") && !got.text().contains("\"model\":\"m\""));
    }
}

#[test]
fn the_output_limit_cuts_arguments_or_is_just_met() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::OutputLimit, shape, streamed);
        let (_, calls, stop) = said(shape, streamed, &got);
        assert_eq!(stop, if shape == Shape::Anthropic { "max_tokens" } else { "length" });
        let cut = &calls[1].2;
        // A whole message of the Anthropic shape has no place for half an object.
        assert_eq!(cut, if (shape, streamed) == (Shape::Anthropic, false) { "{}" } else { "{" });
        let (got, server) = under(&Fault::OutputAtLimit, shape, streamed);
        let stop = said(shape, streamed, &got).2;
        assert!(stop == "tool_use" || stop == "tool_calls");
        assert_eq!(server.bill().total().output, 4_096);
        assert!(got.text().contains("tokens\":4096"), "{}", got.text());
    }
}

#[test]
fn a_text_is_cut_where_there_is_no_call() {
    let say = Reply { text: "four score".into(), stop: StopReason::End, ..Reply::default() };
    let server = Server::on_thread(Options::new(mind::in_order([say]))).expect("a free port");
    server.plan([Fault::OutputLimit]);
    let got = ask(&server, Shape::OpenAi, &question(Shape::OpenAi, true));
    assert_eq!(said(Shape::OpenAi, true, &got), ("four ".into(), Vec::new(), "length".into()));
}

#[test]
fn unknown_events_blocks_and_fields_stand_beside_a_good_answer() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::UnknownEvents, shape, streamed);
        let (text, calls, _) = said(shape, streamed, &got);
        assert_eq!((text.as_str(), calls.len()), (TEXT, 2));
        assert!(got.text().contains("not_yet_known"));
    }
}

#[test]
fn arguments_may_be_an_empty_string() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::EmptyArguments, shape, streamed);
        let none = if (shape, streamed) == (Shape::Anthropic, false) { "{}" } else { "" };
        assert!(said(shape, streamed, &got).1.iter().all(|call| call.2 == none), "{}", got.text());
    }
}

#[test]
fn deltas_may_come_without_their_index() {
    let (got, _) = under(&Fault::DeltasWithoutIndex, Shape::OpenAi, true);
    let deltas: Vec<Value> = got
        .data()
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0].as_object().cloned())
        .map(Value::Object)
        .collect();
    assert!(deltas.len() > 4 && deltas.iter().all(|delta| delta.get("index").is_none()));
    assert_eq!(deltas.iter().filter(|delta| delta.get("id").is_some()).count(), 2);
    assert_eq!(calls_in(Shape::OpenAi, &got)[0].2, ARGUMENTS);
}

#[test]
fn half_of_a_pair_is_spelled_in_a_text() {
    for (shape, streamed) in WAYS {
        let (got, _) = under(&Fault::LoneSurrogate, shape, streamed);
        assert_eq!(got.text().matches("\\ud99c").count(), 1, "{}", got.text());
    }
}
