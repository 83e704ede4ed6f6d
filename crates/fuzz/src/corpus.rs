//! Where mutation begins: golden files of the stored format, the documents' agent files, and what is made here of them.

use std::path::Path;
use std::sync::OnceLock;

use lodestep::agent::AgentFile;
use lodestep_core::checkpoint::ActionState;
use lodestep_core::context::{Blobs, assemble};
use lodestep_core::event::{Envelope, Gate, RunStarted};
use lodestep_core::fold::{fold, fold_first};
use lodestep_core::rules::ask::reserve;
use lodestep_core::rules::decide::{Question, decide};
use lodestep_core::rules::inbox::{Message, Word};
use lodestep_core::rules::upgrade::planned;
use lodestep_core::value::Values;
use lodestep_core::{Checkpoint, Definition, Digest, Draft, RunId, Timestamp};
use lodestep_model::{Call, Reply, StopReason, Usage};
use minicbor::bytes::ByteSlice;
use minicbor::data::Int;
use serde_json::{Value, json};

use crate::targets::bundled;

const EVERY_EVENT: &str = include_str!("../../core/tests/fixtures/journals/v1/every_event.hex");
const GATES_AND_WORDS: &str = include_str!("../../core/tests/fixtures/journals/v1/gates_and_words.hex");
const SMALL_RUN: &str = include_str!("../../core/tests/fixtures/journals/v1/small_run.hex");
const AGENT: &str = include_str!("../seeds/agent.toml");
const WIRING: &str = include_str!("../seeds/lodestep.toml");
const EXAMPLES: [&str; 4] = [
    include_str!("../../../examples/research/agent.toml"),
    include_str!("../../cli/templates/approval/agent.toml"),
    include_str!("../../cli/templates/demo/agent.toml"),
    include_str!("../../../docs/agent-file.md"),
];

/// The seeds of a target. Of one without seeds there is the empty input.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    match target {
        "envelope" => envelopes(),
        "checkpoint" => {
            let mut states = states();
            states.extend([run_begun().to_bytes(), run_asking().0.to_bytes()]);
            states
        }
        "definition" => vec![definition().to_bytes()],
        "journal" => journals(),
        "message" => messages(),
        "packed" => packed(),
        "values" => vec![
            minicbor::to_vec(vec![<&ByteSlice>::from(b"a".as_slice()), <&ByteSlice>::from([7; 600].as_slice())])
                .unwrap_or_default(),
        ],
        "agent" => EXAMPLES.iter().flat_map(|text| toml_of(text)).chain(texts(&[AGENT])).collect(),
        "wiring" => toml_of(EXAMPLES[3]).into_iter().chain(texts(&[WIRING])).collect(),
        "json" => texts(&[
            r#"{"a":[1,-0.5,1e21,null,true],"b":{"c":"\ud83e\udd80 é","d":9007199254740992},"":""}"#,
            "[0.1, 5e-324, 1.7976931348623157e308, 100000000000000000]",
        ]),
        "reply" => replies(),
        "schema" => schemas(),
        "bundle" => vec![bundled(&parts(&items()))],
        "items" => vec![items().concat()],
        "text" => texts(&[
            "pay-${arg:x} ${input:x} ${env:K:-d} $${y} ${key}\npay-${arg:x}",
            "a*b*_read\naab_bread_read",
            "1h30m",
            "12.345678",
            "2026-11-30T15:00:00Z",
            "tool:pay",
            "team-a\nx y",
        ]),
        "model" => texts(&[
            r#"{"type":"message","model":"m","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"é"},{"type":"tool_use","id":"a","name":"read","input":{"x":[1]}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":2}}"#,
            r#"{"model":"m","choices":[{"message":{"content":"t","refusal":null,"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}"#,
            concat!(
                "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n",
                "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
                "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"t\"}}\n\n",
                "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n\n",
                ": ping\n\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"read\",\"input\":{}}}\n\n",
                "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":1}\"}}\n\n",
                "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":4}}\n\n",
                "data: {\"type\":\"message_stop\"}\n\n",
            ),
            concat!(
                "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"\\ud83e\"}}]}\n\n",
                "data: {\"choices\":[{\"delta\":{\"content\":\"\\udd80\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"read\",\"arguments\":\"{\"}}]}}]}\n\n",
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n",
            ),
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
        ]),
        "http" => texts(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 27\r\n\r\n{\"effect\":{\"state\":\"done\"}}",
            "HTTP/1.1 201 Created\r\nlocation: /effects/7\r\ntransfer-encoding: chunked\r\n\r\n4\r\nmade\r\n0\r\n\r\n",
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: Fri, 15 Jan 2027 08:01:00 GMT\r\n\r\nlater",
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 Conflict\r\ncontent-length: 4\r\n\r\nbusy",
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://other.test:81/x?y#z\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.0 404 Not Found\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        ]),
        _ => vec![b"some words, and some more".to_vec(), Vec::new()],
    }
}

/// The definition of the agent file among the seeds.
pub fn definition() -> &'static Definition {
    static DEFINITION: OnceLock<Definition> = OnceLock::new();
    DEFINITION.get_or_init(|| {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("agent.toml");
        std::fs::write(&path, AGENT).expect("a file");
        std::fs::write(folder.path().join("instructions.md"), "Work.").expect("instructions");
        load(&path)
    })
}

fn load(path: &Path) -> Definition {
    match AgentFile::load(path) {
        Ok(file) => file.definition,
        Err(errors) => panic!("the seed is sound: {errors}"),
    }
}

/// A run that has begun: its model has asked for an effect, put a question and waits for a signal.
pub fn run_begun() -> &'static Checkpoint {
    static BEGUN: OnceLock<Checkpoint> = OnceLock::new();
    BEGUN.get_or_init(|| {
        let (asking, call) = run_asking();
        let mut draft = Draft::next(asking.clone(), asking.at.plus_ms(1_000), 1, 7);
        let reply = sound_reply();
        let transcript = draft.put("reply");
        let (priors, apart) = Default::default();
        let question = Question {
            definition: definition(),
            call: *call,
            reply: &reply,
            transcript,
            check: &|_, _| Ok(()),
            priors: &priors,
            apart: &apart,
        };
        decide(&mut draft, &question).expect("it is decided on");
        draft.seal().checkpoint
    })
}

/// A run whose model is asked, and the number of that call.
pub fn run_asking() -> &'static (Checkpoint, u64) {
    static ASKING: OnceLock<(Checkpoint, u64)> = OnceLock::new();
    ASKING.get_or_init(|| {
        let definition = definition();
        let mut values = Values::new();
        let started = RunStarted {
            namespace: "default".to_owned(),
            run: RunId::parse("fuzzed").expect("an id"),
            agent: definition.name.clone(),
            definition: values.put(definition.to_bytes()),
            inputs: values.put("{}"),
            limits: definition.limits,
            quota: definition.quota,
            milestones: planned(definition),
            labels: None,
        };
        let began = Draft::start(started, values, Timestamp::from_micros(1_000_000)).expect("a start").seal();
        let mut draft = Draft::next(began.checkpoint, Timestamp::from_micros(2_000_000), 1, 7);
        let request = assemble(draft.checkpoint(), definition, &json!({}), &Blobs::default());
        let Ok(request) = request else { panic!("the request fits") };
        let call = reserve(&mut draft, definition, &request).expect("it is reserved").expect("there is room");
        (draft.seal().checkpoint, call)
    })
}

fn sound_reply() -> Reply {
    let call = |name: &str, arguments: Value| Call {
        id: format!("id-{name}"),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    let calls = vec![
        call("pay", json!({ "to": "ada", "cents": 5, "of": { "next": {} } })),
        call("post", json!({ "id": "1", "body": "report.md" })),
        call("ask", json!({ "question": "Which?", "choices": ["a", "b"] })),
        call("wait_for_signal", json!({ "signal": "go", "timeout": "1h" })),
        call("note", json!({ "key": "k", "text": "v" })),
        call("plan", json!({ "milestones": [{ "id": "m", "title": "M" }] })),
        call("finish", json!({ "summary": "done" })),
    ];
    let usage = Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() });
    Reply { text: "Well.".to_owned(), calls, stop: StopReason::ToolCalls, usage, ..Reply::default() }
}

fn replies() -> Vec<Vec<u8>> {
    let whole = sound_reply();
    let each = whole.calls.iter().map(|call| call.arguments.clone().into_bytes());
    each.chain([serde_json::to_vec(&whole).unwrap_or_default()]).collect()
}

fn schemas() -> Vec<Vec<u8>> {
    let with =
        |schema: Value, arguments: Value| json!({ "schema": schema, "arguments": arguments }).to_string().into_bytes();
    let tree = json!({ "$ref": "#/$defs/tree", "$defs": { "tree": { "type": "object", "properties": { "next": { "$ref": "#/$defs/tree" } } } } });
    vec![
        with(
            definition().tools.iter().find(|tool| tool.name == "pay").map_or(Value::Null, |tool| tool.input.clone()),
            json!({ "to": "ada" }),
        ),
        with(tree, json!({ "next": { "next": { "next": 1 } } })),
        with(
            json!({ "anyOf": [{ "type": "array", "uniqueItems": true, "items": { "enum": [1, "a"] } }, { "not": { "multipleOf": 0.1 } }] }),
            json!([1, "a", 1]),
        ),
        with(
            json!({ "patternProperties": { "^(a+)+$": { "format": "date" } }, "maxProperties": 3 }),
            json!({ "aaaaaaaa": "x" }),
        ),
    ]
}

fn journals() -> Vec<Vec<u8>> {
    let forked = lines(SMALL_RUN).concat();
    vec![forked, [lines(SMALL_RUN).concat(), lines(EVERY_EVENT).concat()].concat()]
}

/// Each envelope of the golden files, and each of their events alone.
fn envelopes() -> Vec<Vec<u8>> {
    let whole = [lines(EVERY_EVENT), lines(SMALL_RUN), lines(GATES_AND_WORDS)[..1].to_vec()].concat();
    let read: Vec<Envelope> = whole.iter().filter_map(|bytes| Envelope::from_bytes(bytes).ok()).collect();
    let alone = |envelope: &Envelope| {
        let envelope = envelope.clone();
        let events = envelope.events.clone();
        events.into_iter().map(move |event| Envelope { events: vec![event], ..envelope.clone() }.to_bytes())
    };
    whole.iter().cloned().chain(read.iter().flat_map(alone)).collect()
}

/// Every word of the golden file, and every word that means a request of the run that has begun.
fn messages() -> Vec<Vec<u8>> {
    let mut found = lines(GATES_AND_WORDS)[1..].to_vec();
    for action in run_begun().pending.values() {
        let ActionState::Gated { gate: Gate::Approval(asked) | Gate::Answer(asked) } = &action.state else { continue };
        let request = asked.name;
        let words = [
            Word::Approve { request },
            Word::ApproveEdited { request, arguments: b"{\"to\":\"bob\"}".to_vec(), same: Some(request), dedupe: None },
            Word::Deny { request, reason: "no".to_owned() },
            Word::Answer { request, value: "a".to_owned() },
        ];
        found.extend(words.map(|word| Message { by: "ada".to_owned(), word }.to_bytes()));
    }
    found
}

fn states() -> Vec<Vec<u8>> {
    let envelopes = lines(SMALL_RUN);
    let Some((first, rest)) = envelopes.split_first() else { return Vec::new() };
    let Ok((mut state, _)) = fold_first(first) else { return Vec::new() };
    let mut found = vec![state.to_bytes()];
    for envelope in rest {
        if fold(&mut state, envelope).is_ok() {
            found.push(state.to_bytes());
        }
    }
    found
}

fn packed() -> Vec<Vec<u8>> {
    let text = "the same words again and again ".repeat(40).into_bytes();
    let list = minicbor::to_vec(vec![<&ByteSlice>::from(text.as_slice())]).unwrap_or_default();
    let frame = |plain: &[u8]| [vec![1], zstd::bulk::compress(plain, 1).unwrap_or_default()].concat();
    vec![[vec![0], text.clone()].concat(), frame(&text), frame(&list), frame(&vec![0; 1 << 20])]
}

/// The items of a bundle with the small run, without its end.
fn items() -> Vec<Vec<u8>> {
    let envelopes = lines(SMALL_RUN);
    let Ok((mut state, _)) = fold_first(&envelopes[0]) else { return Vec::new() };
    let mut transitions = Vec::new();
    for (nth, envelope) in envelopes.iter().enumerate() {
        if nth > 0 && fold(&mut state, envelope).is_err() {
            break;
        }
        let (bytes, values, head): (&ByteSlice, Option<Int>, Digest) = (envelope.as_slice().into(), None, state.head);
        transitions.push(minicbor::to_vec((1_u32, [(bytes, values, head)])).unwrap_or_default());
    }
    let about = (1_u32, &state.namespace, state.run.as_str(), state.seq, state.head);
    let words = lines(GATES_AND_WORDS);
    let message = (1_u64, "id", <&ByteSlice>::from(words[1].as_slice()));
    let about = minicbor::to_vec((0_u32, [about])).unwrap_or_default();
    let message = minicbor::to_vec((3_u32, [message])).unwrap_or_default();
    std::iter::once(about).chain(transitions).chain([message]).collect()
}

fn parts(items: &[Vec<u8>]) -> Vec<&[u8]> {
    items.iter().map(Vec::as_slice).collect()
}

/// A TOML file as it stands, or each block of TOML in a page.
fn toml_of(text: &str) -> Vec<Vec<u8>> {
    if !text.contains("```") {
        return vec![text.as_bytes().to_vec()];
    }
    let blocks = text.split("```toml").skip(1).filter_map(|rest| rest.split_once('\n')?.1.split_once("```"));
    blocks.map(|(block, _)| block.as_bytes().to_vec()).collect()
}

/// The byte strings of a golden file: hex, with an empty line between them.
fn lines(hex: &str) -> Vec<Vec<u8>> {
    let bytes = |text: &str| {
        let digits: Vec<u8> =
            text.bytes().filter_map(|digit| (digit as char).to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    };
    hex.split("\n\n").map(bytes).collect()
}
