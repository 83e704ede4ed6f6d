//! Each refusal of the Messages API once, by the least request that earns it, and what must not be refused beside it.

mod support;

use lodestep_model_server::{Kind, Options, Server, Shape, mind};
use serde_json::{Value, json};
use support::{Got, ask, head, question, receive, reply, send, server};

/// The least good request, changed.
fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = question(Shape::Anthropic, false);
    change(&mut body);
    body
}

/// The least good request with other messages.
fn messages(messages: &Value) -> Value {
    with(|body| body["messages"] = messages.clone())
}

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: &Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn marked(text: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
}

/// A conversation with these blocks before and behind the calls.
fn exchange(calls: &Value, results: &Value) -> Value {
    messages(&json!([user(&json!("Hi")), assistant(calls), user(results)]))
}

fn tool(change: impl FnOnce(&mut Value)) -> Value {
    let mut tool = json!({"name": "look", "description": "Looks.", "input_schema": {"type": "object"}});
    change(&mut tool);
    with(|body| body["tools"] = json!([tool]))
}

fn thinking(budget: u64, change: impl FnOnce(&mut Value)) -> Value {
    with(|body| {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        change(body);
    })
}

fn error(got: &Got) -> (String, String) {
    let body = got.json();
    assert_eq!(body["type"], "error");
    assert_eq!(body["request_id"], got.header("request-id"));
    let word = |name: &str| body["error"][name].as_str().expect("an error's words").to_owned();
    (word("type"), word("message"))
}

#[test]
fn every_bad_body_is_refused_by_kind_and_in_the_services_words() {
    let cases: &[(Kind, &str, Value)] = &[
        (Kind::UnknownField, "turn: Extra inputs are not permitted", with(|body| body["turn"] = json!(1))),
        (
            Kind::UnknownField,
            "messages.0.name: Extra inputs are not permitted",
            with(|body| body["messages"][0]["name"] = json!("x")),
        ),
        (Kind::MissingField, "max_tokens: Field required", json!({"model": "m", "messages": []})),
        (Kind::MissingField, "model: Field required", json!({"max_tokens": 1, "messages": []})),
        (Kind::Value, "Input should be a valid dictionary", json!([1])),
        (Kind::Value, "stream: Input should be a valid boolean", with(|body| body["stream"] = json!("yes"))),
        (Kind::OutputLimit, "greater than or equal to 1", with(|body| body["max_tokens"] = json!(0))),
        (Kind::OutputLimit, "valid integer", with(|body| body["max_tokens"] = json!(1.5))),
        (Kind::Temperature, "temperature: range: 0..1", with(|body| body["temperature"] = json!(1.1))),
        (Kind::NoMessages, "at least one message is required", messages(&json!([]))),
        (
            Kind::FirstMessage,
            "first message must use the \"user\" role",
            messages(&json!([assistant(&json!("Hi")), user(&json!("Hi"))])),
        ),
        (Kind::Role, "Unexpected role \"system\"", messages(&json!([{"role": "system", "content": "x"}]))),
        (Kind::Role, "should be 'user' or 'assistant'", messages(&json!([{"role": "tool", "content": "x"}]))),
        (
            Kind::EmptyContent,
            "messages.0: all messages must have non-empty content",
            messages(&json!([user(&json!(""))])),
        ),
        (
            Kind::EmptyContent,
            "messages.1: all messages must have non-empty content",
            messages(&json!([user(&json!("a")), assistant(&json!([])), user(&json!("b"))])),
        ),
        (Kind::EmptyText, "text content blocks must be non-empty", messages(&json!([user(&json!([text("")]))]))),
        (Kind::EmptyText, "must contain non-whitespace text", messages(&json!([user(&json!([text(" \n")]))]))),
        (Kind::EmptyText, "must contain non-whitespace text", messages(&json!([user(&json!(" \n"))]))),
        (
            Kind::EmptyText,
            "system: text content blocks must be non-empty",
            with(|body| body["system"] = json!([text("")])),
        ),
        (
            Kind::EmptyText,
            "text content blocks must be non-empty",
            exchange(&json!([call("a")]), &json!([{"type": "tool_result", "tool_use_id": "a", "content": [text("")]}])),
        ),
        (
            Kind::TrailingSpace,
            "final assistant content cannot end with trailing whitespace",
            messages(&json!([user(&json!("a")), assistant(&json!("so "))])),
        ),
        (Kind::Block, "`tool_use` blocks can only be in `assistant`", messages(&json!([user(&json!([call("a")]))]))),
        (Kind::Block, "Input tag 'poem'", messages(&json!([user(&json!([{"type": "poem"}]))]))),
        (
            Kind::ResultMissing,
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b.",
            exchange(&json!([call("a"), call("b")]), &json!([result("a")])),
        ),
        (
            Kind::ResultMissing,
            "immediately after: a.",
            exchange(&json!([call("a")]), &json!([text("first a word"), result("a")])),
        ),
        (
            Kind::ResultMissing,
            "immediately after: a.",
            messages(&json!([user(&json!("Hi")), assistant(&json!([call("a")]))])),
        ),
        (
            Kind::ResultOrphan,
            "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: z.",
            exchange(&json!([call("a")]), &json!([result("a"), result("z")])),
        ),
        (Kind::ResultOrphan, "messages.0.content.0: unexpected", messages(&json!([user(&json!([result("z")]))]))),
        (
            Kind::ResultTwice,
            "Found multiple `tool_result` blocks with id: a",
            exchange(&json!([call("a")]), &json!([result("a"), result("a")])),
        ),
        (
            Kind::CallIdTwice,
            "messages.1.content.1: `tool_use` ids must be unique",
            exchange(&json!([call("a"), call("a")]), &json!([result("a")])),
        ),
        (
            Kind::CallIdTwice,
            "messages.3.content.0: `tool_use` ids must be unique",
            messages(&json!([
                user(&json!("Hi")),
                assistant(&json!([call("a")])),
                user(&json!([result("a")])),
                assistant(&json!([call("a")])),
                user(&json!([result("a")])),
            ])),
        ),
        (
            Kind::CallId,
            "messages.1.content.0.tool_use.id: String should match pattern",
            exchange(&json!([call("a.b")]), &json!([result("a.b")])),
        ),
        (
            Kind::Arguments,
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            exchange(&json!([{"type": "tool_use", "id": "a", "name": "look", "input": "{}"}]), &json!([result("a")])),
        ),
        (
            Kind::MissingField,
            "messages.1.content.0.tool_use.name: Field required",
            exchange(&json!([{"type": "tool_use", "id": "a", "input": {}}]), &json!([result("a")])),
        ),
        (Kind::ToolName, "String should match pattern", tool(|tool| tool["name"] = json!("look.at"))),
        (Kind::ToolName, "at most 128 characters", tool(|tool| tool["name"] = json!("x".repeat(129)))),
        (
            Kind::ToolNameTwice,
            "Tool names must be unique",
            with(|body| {
                let tool = json!({"name": "look", "input_schema": {"type": "object"}});
                body["tools"] = json!([tool, tool]);
            }),
        ),
        (
            Kind::Schema,
            "input_schema: Field required",
            tool(|tool| {
                tool.as_object_mut().expect("an object").remove("input_schema");
            }),
        ),
        (Kind::Schema, "input_schema.type: Field required", tool(|tool| tool["input_schema"] = json!({}))),
        (Kind::Schema, "Input should be 'object'", tool(|tool| tool["input_schema"] = json!({"type": "string"}))),
        (
            Kind::Schema,
            "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
            tool(|tool| tool["input_schema"]["anyOf"] = json!([])),
        ),
        (Kind::UnknownField, "tools.0.custom.parameters: Extra", tool(|tool| tool["parameters"] = json!({}))),
        (Kind::Schema, "valid dictionary", tool(|tool| tool["input_schema"] = json!([]))),
        (Kind::Value, "tools.0.custom.description", tool(|tool| tool["description"] = json!(5))),
        (
            Kind::Value,
            "Tool 'find' not found in provided tools",
            with(|body| {
                body["tools"] = json!([{"name": "look", "input_schema": {"type": "object"}}]);
                body["tool_choice"] = json!({"type": "tool", "name": "find"});
            }),
        ),
        (Kind::Value, "model: String should have at least 1 character", with(|body| body["model"] = json!(""))),
        (
            Kind::Block,
            "system.0.type: Input should be 'text'",
            with(|body| body["system"] = json!([{"type": "image", "text": "x"}])),
        ),
        (
            Kind::Value,
            "cache_control.type: Input should be 'ephemeral'",
            with(|body| body["cache_control"] = json!({"type": "persistent"})),
        ),
        (
            Kind::Value,
            "cache_control.ttl: Input should be '5m' or '1h'",
            with(|body| body["cache_control"] = json!({"type": "ephemeral", "ttl": "2h"})),
        ),
        (
            Kind::ToolName,
            "messages.1.content.0.tool_use.name: String should have at least 1 and at most 200 characters",
            exchange(
                &json!([{"type": "tool_use", "id": "a", "name": "x".repeat(201), "input": {}}]),
                &json!([result("a")]),
            ),
        ),
        (
            Kind::Value,
            "messages.2.content.0.tool_result.is_error: Input should be a valid boolean",
            exchange(
                &json!([call("a")]),
                &json!([{"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": "no"}]),
            ),
        ),
        (Kind::Value, "tool_choice", with(|body| body["tool_choice"] = json!({"type": "auto"}))),
        (
            Kind::CacheMarks,
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            with(|body| {
                body["system"] = json!([marked("a"), marked("b")]);
                body["messages"] = json!([user(&json!([marked("a"), marked("b"), marked("c")]))]);
            }),
        ),
        (
            Kind::CacheMarkPlace,
            "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
            messages(&json!([user(&json!([marked("")]))])),
        ),
        (
            Kind::CacheMarkPlace,
            "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
            exchange(
                &json!([
                    {"type": "thinking", "thinking": "a", "signature": "b", "cache_control": {"type": "ephemeral"}},
                    text("so"),
                ]),
                &json!("Hi"),
            ),
        ),
        (
            Kind::MissingField,
            "messages.1.content.0.thinking.signature: Field required",
            exchange(&json!([{"type": "thinking", "thinking": "a"}]), &json!("Hi")),
        ),
        (Kind::Thinking, "greater than or equal to 1024", thinking(1_023, |_| {})),
        (
            Kind::Thinking,
            "`top_k` must be unset when thinking is enabled",
            thinking(1_024, |body| body["top_k"] = json!(5)),
        ),
        (
            Kind::Thinking,
            "Thinking may not be enabled when tool_choice forces tool use",
            thinking(1_024, |body| {
                body["tools"] = json!([{"name": "look", "input_schema": {"type": "object"}}]);
                body["tool_choice"] = json!({"type": "any"});
            }),
        ),
        (Kind::Thinking, "`max_tokens` must be greater than `thinking.budget_tokens`", thinking(4_096, |_| {})),
        (
            Kind::Thinking,
            "`temperature` may only be set to 1",
            thinking(1_024, |body| body["temperature"] = json!(0.2)),
        ),
        (
            Kind::ThinkingMissing,
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
            thinking(1_024, |body| {
                body["messages"] =
                    json!([user(&json!("Hi")), assistant(&json!([call("a")])), user(&json!([result("a")]))]);
            }),
        ),
        (
            Kind::ThinkingAltered,
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            thinking(1_024, |body| {
                let thought = json!({"type": "thinking", "thinking": "a", "signature": "b"});
                body["messages"] = json!([user(&json!("Hi")), assistant(&json!([thought])), user(&json!("Go on"))]);
            }),
        ),
    ];
    let server = server();
    for (at, (kind, words, body)) in cases.iter().enumerate() {
        let got = ask(&server, Shape::Anthropic, body);
        assert_eq!(got.status, 400, "{words}: {}", got.text());
        let (error, message) = error(&got);
        assert_eq!(error, "invalid_request_error");
        assert!(message.contains(words), "{words}: {message}");
        assert_eq!(server.bill().entries[at].refused(), Some(*kind), "{words}: {message}");
        assert_eq!(server.bill().entries[at].tokens, lodestep_model_server::Tokens::default());
    }
    assert_eq!(server.bill().refused_malformed(), cases.len());
    assert_eq!(server.bill().answered(), 0);
}

#[test]
fn what_is_only_unusual_is_answered() {
    let server = server();
    let cases = [
        exchange(&json!([call("a"), call("b")]), &json!([result("b"), result("a"), text("and on")])),
        exchange(&json!([call("a")]), &json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true}])),
        messages(&json!([user(&json!("a")), user(&json!("b")), assistant(&json!("so"))])),
        messages(&json!([user(&json!("a")), assistant(&json!([]))])),
        with(|body| body["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"})),
        with(|body| body["system"] = json!([marked("a")])),
        with(|body| body["temperature"] = json!(0)),
        thinking(1_024, |body| body["temperature"] = json!(1)),
        with(|body| body["thinking"] = json!({"type": "disabled"})),
        tool(|tool| tool["input_schema"]["properties"] = json!({"a": {"anyOf": [{"type": "string"}]}})),
        exchange(&json!([{"type": "thinking", "thinking": "a", "signature": "b"}, text("so")]), &json!("Hi")),
    ];
    for body in cases {
        let got = ask(&server, Shape::Anthropic, &body);
        assert_eq!(got.status, 200, "{body}: {}", got.text());
    }
}

#[test]
fn every_bad_head_is_refused() {
    let server = server();
    let body = question(Shape::Anthropic, false).to_string();
    let cases = [
        ("x-api-key", None, 401, Kind::Key, "authentication_error", "x-api-key header is required"),
        ("x-api-key", Some("other"), 401, Kind::Key, "authentication_error", "invalid x-api-key"),
        (
            "anthropic-version",
            None,
            400,
            Kind::Version,
            "invalid_request_error",
            "anthropic-version: header is required",
        ),
        ("anthropic-version", Some("2020-01-01"), 400, Kind::Version, "invalid_request_error", "not a valid version"),
        ("content-type", Some("text/plain"), 400, Kind::ContentType, "invalid_request_error", "application/json"),
    ];
    for (name, value, status, kind, of, words) in cases {
        let mut head = head(Shape::Anthropic);
        head.retain(|(known, _)| *known != name);
        head.extend(value.map(|value| (name, value.to_owned())));
        let got = receive(send(&server, "POST /v1/messages", &head, body.as_bytes()));
        assert_eq!(got.status, status, "{words}");
        let (error, message) = error(&got);
        assert!(error == of && message.contains(words), "{error}: {message}");
        assert_eq!(server.bill().entries.last().and_then(|entry| entry.refused()), Some(kind));
    }
    let got = receive(send(&server, "GET /v1/messages", &head(Shape::Anthropic), b""));
    assert_eq!((got.status, error(&got).0.as_str()), (404, "not_found_error"));
    assert_eq!(server.bill().refused_malformed(), 4, "a wrong key is not malformed");
}

#[test]
fn a_body_that_is_no_json_or_no_text_is_refused() {
    let server = server();
    let around = |text: &[u8]| {
        let (before, behind) = (br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":""#, br#""}]}"#);
        [&before[..], text, &behind[..]].concat()
    };
    for body in [b"{\"model\":".to_vec(), around(b"\xff"), around(b"\\ud99c"), around(b"\n")] {
        let got = receive(send(&server, "POST /v1/messages", &head(Shape::Anthropic), &body));
        assert_eq!(got.status, 400);
        assert!(error(&got).1.contains("not valid JSON"), "{}", got.text());
    }
    assert_eq!(server.bill().refused(Kind::Json), 4);
}

#[test]
fn a_prompt_beyond_the_window_is_refused_with_both_numbers() {
    let options = Options { window_tokens: 100, ..Options::new(mind::from_fn(|_| Ok(reply()))) };
    let server = Server::on_thread(options).expect("a free port");
    assert_eq!(ask(&server, Shape::Anthropic, &question(Shape::Anthropic, false)).status, 200);
    let got = ask(&server, Shape::Anthropic, &messages(&json!([user(&json!("a".repeat(400)))])));
    assert_eq!(got.status, 400);
    assert_eq!(error(&got), ("invalid_request_error".into(), "prompt is too long: 112 tokens > 100 maximum".into()));
    assert_eq!((server.bill().refused_too_long(), server.bill().refused_malformed()), (1, 0));
}
