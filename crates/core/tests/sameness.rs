//! What makes two calls the same effect: the tool and its arguments as they will be proposed, and nothing else.

mod support;

use lodestep_core::definition::{Definition, ToolDefinition};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{ArtifactSaved, Event};
use lodestep_core::rules::decide::same_of;
use lodestep_model::Call;
use serde_json::json;
use support::{Bench, free, raw_call, tool};

/// An agent with a tool of each class, and with tools that compare otherwise.
fn agent() -> Definition {
    let by_x = ToolDefinition { same_by: Some(vec!["x".to_owned()]), ..tool("by_x", Class::Keyed) };
    let file = ToolDefinition {
        input: json!({ "type": "object", "properties": { "body": { "type": "string", "format": "artifact-name" } } }),
        ..tool("file", Class::Unsafe)
    };
    let mut agent = free();
    agent.tools.extend([by_x, file]);
    agent
}

fn saved(bench: &mut Bench, version: u32, content: &str) {
    let mut draft = bench.draft();
    let content = draft.put(content);
    draft.push(Event::ArtifactSaved(ArtifactSaved { name: "report".to_owned(), version, content })).expect("it fits");
    bench.commit(draft);
}

#[test]
fn two_calls_are_the_same_by_what_will_be_proposed() {
    let mut bench = Bench::new(agent());
    saved(&mut bench, 1, "first");
    let cases = [
        // Tool, one call's arguments, the other's: are they the same?
        ("unsafe", r#"{"x":1}"#, r#"{"x":1}"#, true),
        ("unsafe", r#"{"x":1,"y":2}"#, r#"{ "y": 2, "x": 1e0 }"#, true),
        ("unsafe", r#"{"x":1}"#, r#"{"x":2}"#, false),
        ("unsafe", r#"{"x":1}"#, r#"{"x":"1"}"#, false),
        ("unsafe", r#"{"x":1}"#, r#"{"x":1,"y":null}"#, false),
        ("unsafe", r#"{"x":1}"#, r#"{"x":1,"repeat_reason":"again"}"#, true),
        ("by_x", r#"{"x":1,"y":1}"#, r#"{"x":1,"y":2}"#, true),
        ("by_x", r#"{"x":1,"y":1}"#, r#"{"x":2,"y":1}"#, false),
        ("by_x", r#"{"y":1}"#, r#"{"y":2}"#, true),
        ("file", r#"{"body":"report"}"#, r#"{"body":"report"}"#, true),
    ];
    let same = |bench: &Bench, name: &str, arguments: &str| {
        same_of(&bench.checkpoint, &bench.definition, &raw_call(name, arguments)).expect("an effect")
    };
    for (name, one, other, wanted) in cases {
        assert_eq!(same(&bench, name, one) == same(&bench, name, other), wanted, "{name} {one} {other}");
    }
    assert_ne!(same(&bench, "unsafe", r#"{"x":1}"#), same(&bench, "keyed", r#"{"x":1}"#), "another tool");
    let before = same(&bench, "file", r#"{"body":"report"}"#);
    saved(&mut bench, 2, "second");
    assert_ne!(same(&bench, "file", r#"{"body":"report"}"#), before, "another version of the artifact");
}

#[test]
fn what_is_no_effect_or_not_sound_is_the_same_as_nothing() {
    let bench = Bench::new(agent());
    let cases: [Call; 8] = [
        raw_call("read", r#"{"x":1}"#),
        raw_call("idempotent", r#"{"x":1}"#),
        raw_call("note", r#"{"key":"a","text":"b"}"#),
        raw_call("nothing", r#"{"x":1}"#),
        raw_call("unsafe", "{not json"),
        raw_call("unsafe", "[1]"),
        raw_call("unsafe", r#"{"x":1,"x":2}"#),
        raw_call("file", r#"{"body":"absent"}"#),
    ];
    for call in cases {
        assert_eq!(same_of(&bench.checkpoint, &bench.definition, &call), None, "{} {}", call.name, call.arguments);
    }
}

#[test]
fn it_is_the_sameness_of_the_action_that_is_proposed() {
    let mut bench = Bench::new(agent());
    for (name, arguments) in [("by_x", r#"{"x":1,"y":1}"#), ("unsafe", r#"{"x":1,"repeat_reason":"again"}"#)] {
        let call = raw_call(name, arguments);
        let wanted = same_of(&bench.checkpoint, &bench.definition, &call);
        assert!(wanted.is_some());
        bench.calls(vec![call]);
        let ordinal = bench.checkpoint.last_ordinal;
        assert_eq!(bench.action(ordinal).and_then(|action| action.same), wanted, "{name}");
        bench.owed();
        bench.seen(ordinal, Seen::Done);
    }
}
