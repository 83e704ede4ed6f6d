//! Requests that lack something, and requests that no runtime would make.

use lodestep_model::{Call, CallResult, Message, ModelError, Request, ToolSpec};
use serde_json::{Value, json};

use crate::TIDES;
use crate::simulation::{Run, ask};

#[test]
fn without_its_tools_it_says_what_it_can_do() {
    let mut request = Run::new("the moon", TIDES).request();
    request.tools = request.tools.iter().filter(|tool| !tool.name.starts_with("documents")).cloned().collect();
    let Err(ModelError::Rejected(why)) = ask(&request) else { panic!("it cannot work") };
    assert!(why.contains("reads documents") && why.contains("_list") && why.contains("_read"), "{why}");
    request.tools = [].into();
    assert!(matches!(ask(&request), Err(ModelError::Rejected(_))));
}

#[test]
fn no_request_makes_it_panic() {
    let run = Run::new("the moon", TIDES);
    let tools = run.tools.clone();
    let texts = [
        "",
        "# ",
        "# Objective",
        "# Notes\n## extracts\n- 1-2: x\nread: ",
        "\u{0}\u{feff}",
        "# Inputs\n- topic:",
        "# Objective\nx\n# Notes\n## extracts\nterms: x\nlimits: 99999999999999999999 bytes, 0 lines\n",
        "# Objective\nxy\n# Notes\n## extracts\nterms: xy\nhaving: 1\nat: 18446744073709551615 clear\nnext: 18446744073709551615 lines, 18446744073709551615 bytes, a\nreading: 1 sentences, 18446744073709551615 words, 18446744073709551615 terms, 4294967295 titled,\n",
        "# Plan\n- [ ] \n- [x]\n# Completed actions\n- #\n- #1\n- #1 publish {\"a\": -> ok\n- 4 earlier: x",
    ];
    let results = [
        "",
        "a lines 1-2 of 3",
        "a lines 18446744073709551615-18446744073709551615 of 18446744073709551615\n18446744073709551615| xy",
        "a\t1 lines\t2 bytes\n[… 1 bytes left out …]",
        "\tlines\tbytes",
        "5 of 9 documents; more after \"\"",
        "denied: no",
    ];
    let arguments = ["", "{", "[]", "null", "{\"name\":\"a\",\"from\":18446744073709551615}", "{\"after\":\"\"}"];
    for text in texts {
        for (result, arguments) in results.iter().flat_map(|r| arguments.iter().map(move |a| (r, a))) {
            let calls: Vec<_> = tools.iter().map(|tool| call(&tool.name, arguments)).collect();
            let results = tools.iter().skip(1).map(|tool| answer(&tool.name, result)).collect();
            let messages = [
                Message::Results { results: vec![answer("x", "x")] },
                Message::User { text: text.into() },
                Message::Assistant { text: String::new(), calls: calls.clone(), blocks: None },
                Message::Assistant { text: String::new(), calls, blocks: None },
                Message::Results { results },
            ];
            for upto in 0..=messages.len() {
                let request = request(messages[..upto].to_vec(), tools.clone());
                assert!(ask(&request).is_ok_and(|reply| !reply.calls.is_empty()));
            }
        }
    }
}

#[test]
fn schemas_of_any_kind_are_borne() {
    for input in
        [Value::Null, json!([]), json!({"properties": []}), json!({"properties": {"text": true, "title": null}})]
    {
        let mut run = Run::new("the moon", TIDES);
        run.offer("odd", input, "fine", false);
        run.finish();
        assert!(run.summary.as_deref().is_some_and(|summary| summary.contains("odd was not called")));
    }
}

fn request(messages: Vec<Message>, tools: Vec<ToolSpec>) -> Request {
    let messages = messages.into_iter().map(Into::into).collect();
    Request { system: String::new(), messages, tools: tools.into(), max_output_tokens: 1, turn: 0 }
}

fn call(name: &str, arguments: &str) -> Call {
    Call { id: "call-1".into(), name: name.into(), arguments: arguments.into() }
}

fn answer(name: &str, text: &str) -> CallResult {
    CallResult { id: "call-1".into(), name: name.into(), text: text.into(), is_error: false }
}
