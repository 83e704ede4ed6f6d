//! Each refusal of chat completions once, by the least request that earns it, and what must not be refused beside it.

mod support;

use lodestep_model_server::{Kind, Options, Server, Shape, mind};
use serde_json::{Value, json};
use support::{Got, ask, head, question, receive, reply, send, server};

/// The least good request, changed.
fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = question(Shape::OpenAi, false);
    change(&mut body);
    body
}

fn messages(messages: &Value) -> Value {
    with(|body| body["messages"] = messages.clone())
}

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn calls(calls: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

/// The least good conversation with a call, changed.
fn call_with(change: impl FnOnce(&mut Value)) -> Value {
    let mut call = call("a");
    change(&mut call);
    let id = call["id"].clone();
    messages(&json!([user(&json!("Hi")), calls(&json!([call])), {"role": "tool", "tool_call_id": id, "content": "x"}]))
}

fn tools(tools: &[Value]) -> Value {
    with(|body| body["tools"] = json!(tools))
}

fn tool(change: impl FnOnce(&mut Value)) -> Value {
    let mut function = json!({"name": "look", "parameters": {"type": "object", "properties": {}}});
    change(&mut function);
    json!({"type": "function", "function": function})
}

/// Message, code and field of an error.
fn error(got: &Got) -> (String, Option<String>, Option<String>) {
    let body = got.json();
    assert_eq!(body["error"]["type"], "invalid_request_error");
    let word = |name: &str| body["error"][name].as_str().map(str::to_owned);
    (word("message").expect("a message"), word("code"), word("param"))
}

#[test]
fn every_bad_body_is_refused_by_kind_and_in_the_services_words() {
    let long_id = "i".repeat(41);
    let cases: &[(Kind, &str, &str, Value)] = &[
        (Kind::UnknownField, "", "Unrecognized request argument supplied: turn", with(|body| body["turn"] = json!(1))),
        (
            Kind::UnknownField,
            "unknown_parameter",
            "Unknown parameter: 'messages[0].reasoning_content'",
            with(|body| body["messages"][0]["reasoning_content"] = json!("x")),
        ),
        (Kind::MissingField, "", "you must provide a model parameter", json!({"messages": [user(&json!("Hi"))]})),
        (Kind::MissingField, "missing_required_parameter", "'messages'", json!({"model": "m"})),
        (Kind::Value, "invalid_type", "expected an object, but got an array", json!([1])),
        (Kind::NoMessages, "empty_array", "Invalid 'messages': empty array", messages(&json!([]))),
        (Kind::Role, "invalid_value", "Invalid value: 'robot'", messages(&json!([{"role": "robot", "content": "x"}]))),
        (Kind::EmptyContent, "", "expected a string, got null", messages(&json!([user(&Value::Null)]))),
        (
            Kind::EmptyContent,
            "",
            "expected a string, got null",
            messages(&json!([user(&json!("Hi")), {"role": "assistant", "content": null}])),
        ),
        (Kind::EmptyContent, "empty_array", "messages[0].content", messages(&json!([user(&json!([]))]))),
        (Kind::Value, "invalid_type", "messages[0].content", messages(&json!([user(&json!(5))]))),
        (Kind::Block, "invalid_value", "'poem'", messages(&json!([user(&json!([{"type": "poem"}]))]))),
        (
            Kind::OutputLimit,
            "integer_below_min_value",
            "Invalid 'max_tokens'",
            with(|body| body["max_tokens"] = json!(0)),
        ),
        (
            Kind::OutputLimit,
            "invalid_parameter_combination",
            "at the same time is not supported",
            with(|body| body["max_completion_tokens"] = json!(1)),
        ),
        (
            Kind::Temperature,
            "decimal_above_max_value",
            "Expected a value <= 2, but got 2.5",
            with(|body| body["temperature"] = json!(2.5)),
        ),
        (Kind::Value, "invalid_type", "'stream': expected a boolean", with(|body| body["stream"] = json!("yes"))),
        (
            Kind::UnknownField,
            "unknown_parameter",
            "'stream_options.usage'",
            with(|body| {
                body["stream"] = json!(true);
                body["stream_options"] = json!({"usage": true});
            }),
        ),
        (
            Kind::Value,
            "invalid_type",
            "'stream_options.include_usage': expected a boolean",
            with(|body| {
                body["stream"] = json!(true);
                body["stream_options"] = json!({"include_usage": 1});
            }),
        ),
        (
            Kind::MissingField,
            "missing_required_parameter",
            "'messages[0].content[0].text'",
            messages(&json!([user(&json!([{"type": "text"}]))])),
        ),
        (Kind::CallId, "empty_string", "messages[1].tool_calls[0].id", call_with(|call| call["id"] = json!(""))),
        (
            Kind::Value,
            "invalid_value",
            "Invalid value: \"tool\". Supported values are: 'function'",
            call_with(|call| call["type"] = json!("tool")),
        ),
        (
            Kind::Value,
            "invalid_value",
            "Invalid value: null. Supported values are: 'function'",
            tools(&[json!({"function": {"name": "look"}})]),
        ),
        (
            Kind::Value,
            "invalid_type",
            "'tools[0].function.description': expected a string",
            tools(&[tool(|it| it["description"] = json!(5))]),
        ),
        (
            Kind::Value,
            "invalid_value",
            "'tool_choice'",
            with(|body| {
                body["tools"] = json!([tool(|_| {})]);
                body["tool_choice"] = json!("sometimes");
            }),
        ),
        (
            Kind::Value,
            "",
            "only allowed when 'stream' is enabled",
            with(|body| body["stream_options"] = json!({"include_usage": true})),
        ),
        (
            Kind::ResultMissing,
            "",
            "did not have response messages: b",
            messages(&json!([
                user(&json!("Hi")),
                calls(&json!([call("a"), call("b")])),
                result("a"),
                user(&json!("x"))
            ])),
        ),
        (
            Kind::ResultMissing,
            "",
            "did not have response messages: a",
            messages(&json!([user(&json!("Hi")), calls(&json!([call("a")]))])),
        ),
        (
            Kind::ResultOrphan,
            "",
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
            messages(&json!([user(&json!("Hi")), result("a")])),
        ),
        (
            Kind::ResultOrphan,
            "",
            "'tool_call_id' of 'z' not found in 'tool_calls' of previous message",
            messages(&json!([user(&json!("Hi")), calls(&json!([call("a")])), result("a"), result("z")])),
        ),
        (
            Kind::MissingField,
            "",
            "messages with role 'tool' must have a 'tool_call_id'",
            messages(&json!([user(&json!("Hi")), calls(&json!([call("a")])), {"role": "tool", "content": "x"}])),
        ),
        (
            Kind::ResultTwice,
            "",
            "Duplicate value for 'tool_call_id' of 'a'",
            messages(&json!([user(&json!("Hi")), calls(&json!([call("a")])), result("a"), result("a")])),
        ),
        (
            Kind::CallIdTwice,
            "",
            "Duplicate value",
            messages(&json!([user(&json!("Hi")), calls(&json!([call("a"), call("a")])), result("a")])),
        ),
        (
            Kind::CallId,
            "string_above_max_length",
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
            call_with(|call| call["id"] = json!(long_id)),
        ),
        (
            Kind::Arguments,
            "invalid_type",
            "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object",
            call_with(|call| call["function"]["arguments"] = json!({})),
        ),
        (
            Kind::ToolName,
            "invalid_value",
            "messages[1].tool_calls[0].function.name",
            call_with(|call| call["function"]["name"] = json!("look.at")),
        ),
        (
            Kind::Value,
            "empty_array",
            "messages[1].tool_calls",
            messages(&json!([user(&json!("Hi")), {"role": "assistant", "content": "x", "tool_calls": []}])),
        ),
        (Kind::ToolName, "invalid_value", "does not match pattern", tools(&[tool(|it| it["name"] = json!("a b"))])),
        (
            Kind::ToolName,
            "string_above_max_length",
            "maximum length 64, but got a string with length 65",
            tools(&[tool(|it| it["name"] = json!("x".repeat(65)))]),
        ),
        (Kind::ToolNameTwice, "", "must be unique", tools(&[tool(|_| {}), tool(|_| {})])),
        (Kind::ToolCount, "empty_array", "Invalid 'tools': empty array", tools(&[])),
        (
            Kind::ToolCount,
            "array_above_max_length",
            "maximum length 128, but got an array with length 129",
            tools(&(0..129).map(|at| tool(|it| it["name"] = json!(format!("t{at}")))).collect::<Vec<_>>()),
        ),
        (
            Kind::Schema,
            "invalid_function_parameters",
            "Invalid schema for function 'look': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
            tools(&[tool(|it| it["parameters"] = json!({"type": "string"}))]),
        ),
        (
            Kind::Schema,
            "invalid_function_parameters",
            "not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level",
            tools(&[tool(|it| it["parameters"]["oneOf"] = json!([]))]),
        ),
        (
            Kind::UnknownField,
            "unknown_parameter",
            "tools[0].function.input_schema",
            tools(&[tool(|it| it["input_schema"] = json!({}))]),
        ),
        (
            Kind::Value,
            "",
            "only allowed when 'tools' are specified",
            with(|body| body["parallel_tool_calls"] = json!(true)),
        ),
    ];
    let server = server();
    for (at, (kind, code, words, body)) in cases.iter().enumerate() {
        let got = ask(&server, Shape::OpenAi, body);
        assert_eq!(got.status, 400, "{words}: {}", got.text());
        let (message, said, _) = error(&got);
        assert!(message.contains(words), "{words}: {message}");
        assert_eq!(said.unwrap_or_default(), *code, "{words}: {message}");
        assert_eq!(server.bill().entries[at].refused(), Some(*kind), "{words}: {message}");
    }
    assert_eq!(server.bill().refused_malformed(), cases.len());
    assert_eq!(server.bill().answered(), 0);
}

#[test]
fn what_is_only_unusual_is_answered() {
    let server = server();
    let cases = [
        messages(
            &json!([{"role": "developer", "content": "Be brief."}, user(&json!([{"type": "text", "text": "a"}]))]),
        ),
        messages(&json!([user(&json!(""))])),
        messages(&json!([user(&json!("Hi")), calls(&json!([call("a"), call("b")])), result("b"), result("a")])),
        call_with(|call| call["function"]["arguments"] = json!("{not json")),
        call_with(|call| call["id"] = json!("a.b:c")),
        tools(&[json!({"type": "function", "function": {"name": "look"}})]),
        with(|body| body["reasoning_effort"] = json!("low")),
        with(|body| body["stop"] = Value::Null),
    ];
    for body in cases {
        let got = ask(&server, Shape::OpenAi, &body);
        assert_eq!(got.status, 200, "{body}: {}", got.text());
    }
}

#[test]
fn every_bad_head_is_refused() {
    let server = server();
    let body = question(Shape::OpenAi, false).to_string();
    let cases = [
        ("authorization", None, 401, Kind::Key, "", "You didn't provide an API key"),
        ("authorization", Some("Bearer sk-other-1234"), 401, Kind::Key, "invalid_api_key", "provided: ****1234."),
        ("content-type", Some("text/plain"), 400, Kind::ContentType, "unsupported_content_type", "'text/plain'"),
    ];
    for (name, value, status, kind, code, words) in cases {
        let mut head = head(Shape::OpenAi);
        head.retain(|(known, _)| *known != name);
        head.extend(value.map(|value| (name, value.to_owned())));
        let got = receive(send(&server, "POST /v1/chat/completions", &head, body.as_bytes()));
        assert_eq!(got.status, status, "{words}");
        let (message, said, _) = error(&got);
        assert!(message.contains(words), "{message}");
        assert_eq!(said.unwrap_or_default(), code);
        assert_eq!(server.bill().entries.last().and_then(|entry| entry.refused()), Some(kind));
    }
    let got = receive(send(&server, "POST /v1/completions", &head(Shape::OpenAi), body.as_bytes()));
    assert_eq!((got.status, error(&got).1.as_deref()), (404, Some("unknown_url")));
    assert_eq!(server.bill().entries.last().map(|entry| entry.shape), Some(None));
}

#[test]
fn a_body_that_is_no_json_or_no_text_is_refused() {
    let server = server();
    for body in [&b"{\"model\":"[..], b"{\"model\":\"\xff\"}", b"{\"model\":\"\\udc00\"}"] {
        let got = receive(send(&server, "POST /v1/chat/completions", &head(Shape::OpenAi), body));
        assert_eq!(got.status, 400);
        assert!(error(&got).0.contains("could not parse the JSON body"), "{}", got.text());
    }
    assert_eq!(server.bill().refused(Kind::Json), 3);
}

#[test]
fn a_prompt_beyond_the_window_is_refused_with_both_numbers() {
    let options = Options { window_tokens: 100, ..Options::new(mind::from_fn(|_| Ok(reply()))) };
    let server = Server::on_thread(options).expect("a free port");
    let got = ask(&server, Shape::OpenAi, &messages(&json!([user(&json!("a".repeat(400)))])));
    assert_eq!(got.status, 400);
    let (message, code, param) = error(&got);
    assert_eq!((code.as_deref(), param.as_deref()), (Some("context_length_exceeded"), Some("messages")));
    let words = "maximum context length is 100 tokens. However, your messages resulted in 113 tokens.";
    assert!(message.contains(words), "{message}");
    assert_eq!((server.bill().refused_too_long(), server.bill().refused_malformed()), (1, 0));
}

#[test]
fn a_service_that_thinks_aloud_takes_its_reasoning_back() {
    let options = Options { reasoning: Some("Hm.".into()), ..Options::new(mind::from_fn(|_| Ok(reply()))) };
    let server = Server::on_thread(options).expect("a free port");
    let before = json!({"role": "assistant", "content": "a", "reasoning_content": "Hm."});
    let body = messages(&json!([user(&json!("Hi")), before, user(&json!("Go on"))]));
    assert_eq!(ask(&server, Shape::OpenAi, &body).status, 200);
}

#[test]
fn a_model_that_insists_on_the_limits_new_name_takes_no_other() {
    let options = Options { only_max_completion_tokens: true, ..Options::new(mind::from_fn(|_| Ok(reply()))) };
    let server = Server::on_thread(options).expect("a port of loopback");
    let old = question(Shape::OpenAi, false);
    let (message, code, param) = error(&ask(&server, Shape::OpenAi, &old));
    assert!(message.contains("Use 'max_completion_tokens' instead"), "{message}");
    assert_eq!((code.as_deref(), param.as_deref()), (Some("unsupported_parameter"), Some("max_tokens")));
    let new = with(|body| {
        body["max_completion_tokens"] = body["max_tokens"].take();
    });
    assert_eq!(ask(&server, Shape::OpenAi, &new).status, 200);
}
