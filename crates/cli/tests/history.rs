//! Looking back and carrying runs, as a person does it: the shipped program and its store.

mod support;

use serde_json::{Value, json};
use support::*;

const PAY: &str = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"cat >> paid; echo paid\"]\n\
                   class = \"unsafe\"\ninput = { type = \"object\", properties = { cents = { type = \"integer\" } } }\n\
                   [[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";

/// A run that paid once, took a note and finished.
fn finished(world: &World) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "note", "arguments": { "key": "k", "text": "ten cents" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(PAY, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    world.run_id()
}

#[test]
fn context_prints_what_a_decision_saw() {
    let world = World::new();
    let run = finished(&world);
    let shown = world.lodestep(&["context", &run]).exits(0);
    assert!(shown.out.contains("decision 3") && shown.out.contains("instructions and tools"), "{shown:?}");
    assert!(shown.out.contains("as recorded") && shown.out.contains("ten cents"), "{shown:?}");
    let first = world.json(&["context", &run, "--decision", "1"]);
    assert_eq!((&first["decision"], &first["call"], &first["why_not"]), (&json!(1), &json!(1), &Value::Null));
    assert!(first["request"]["system"].as_str().is_some_and(|text| text.contains("Follow it.")), "{first}");
    assert!(!first["request"].to_string().contains("ten cents"));
    let again = world.json(&["context", &run, "--at", &first["step"].to_string()]);
    assert_eq!(again, first);
    let refused = world.lodestep(&["context", &run, "--decision", "9"]).exits(1);
    assert!(refused.err.contains("context.not_asked"), "{refused:?}");
}

#[test]
fn a_past_state_is_shown_and_compared() {
    let world = World::new();
    let run = finished(&world);
    let now = world.json(&["show", &run]);
    let last = now["checkpoint"]["seq"].as_u64().expect("a number");
    assert_eq!(world.json(&["show", &run, "--at", &last.to_string()])["state_digest"], now["state_digest"]);
    let first = world.lodestep(&["show", &run, "--at", "1"]).exits(0);
    assert!(first.out.contains("as it was after step 1 of") && !first.out.contains("now:"), "{first:?}");
    let none = world.lodestep(&["show", &run, "--at", "999"]).exits(1);
    assert!(none.err.contains("run.no_such_step"), "{none:?}");
    let changed = world.lodestep(&["diff", &run]).exits(0);
    for words in ["status: ready -> completed", "notes k: new: ten cents", "actions 1: new: pay done"] {
        assert!(changed.out.contains(words), "{words}: {changed:?}");
    }
    let same = world.json(&["diff", &run, &run]);
    assert_eq!(same["changes"], json!([]));
}
