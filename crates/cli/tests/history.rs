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

#[test]
fn frk_01_a_fork_asks_before_it_does_what_its_origin_did() {
    let world = World::new();
    let run = finished(&world);
    let at = world.json(&["log", &run, "--from", "1", "--limit", "1"])["step"].to_string();
    let said = world.json(&["fork", &run, "--at", &at, "--id", "branch"]);
    assert_eq!((&said["run"], &said["existed"]), (&json!("branch"), &json!(false)));
    assert_eq!(world.json(&["fork", &run, "--at", &at, "--id", "branch"])["existed"], json!(true));
    let waits = world.lodestep(&["resume", "branch"]).exits(3);
    let shown = world.lodestep(&["show", "branch"]).exits(0);
    for words in ["of the same lineage has done the same, as its action 1", "it said:", "| paid", "--reuse"] {
        assert!(shown.out.contains(words), "{words}: {shown:?} {waits:?}");
    }
    let request = world.json(&["show", "branch"])["requests"][0]["short"].as_str().expect("a name").to_owned();
    world.lodestep(&["approve", &request, "--reuse"]).exits(0);
    world.lodestep(&["resume", "branch"]).exits(0);
    assert_eq!(world.read("paid"), "{\"cents\":10}", "it was paid again");
    world.lodestep(&["verify"]).exits(0);
}

#[test]
fn a_run_is_carried_to_another_store_and_held_there() {
    let (here, there) = (World::new(), World::new());
    let policy = "\n[[policy]]\ntools = [\"pay\"]\ndecide = \"ask\"\n";
    let tables = PAY.split("[[policy]]").next().expect("a tool").to_owned() + policy;
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = here.agent(&tables, &replies);
    here.lodestep(&["run", agent.to_str().expect("a path")]).exits(3);
    let run = here.run_id();
    let file = here.path().join("run.lodestep");
    let file = file.to_str().expect("a path");
    here.lodestep(&["export", &run, file]).exits(0);
    let twice = here.lodestep(&["export", &run, file]).exits(1);
    assert!(twice.err.contains("bundle.unwritable"), "{twice:?}");
    let here_again = here.lodestep(&["import", file]).exits(1);
    assert!(here_again.err.contains("run.id_taken"), "{here_again:?}");
    let said = there.lodestep(&["import", file]).exits(0);
    assert!(said.out.contains("it is held") && said.out.contains("release"), "{said:?}");
    let listed = there.json(&["ls"]);
    assert_eq!((&listed[0]["status"], &listed[0]["why"]), (&json!("quarantined"), &json!("imported")));
    there.lodestep(&["verify"]).exits(0);
    let damaged = std::fs::read(file).expect("read");
    std::fs::write(here.path().join("cut"), &damaged[..damaged.len() - 9]).expect("written");
    std::fs::write(here.path().join("none"), "none").expect("written");
    for (name, code) in [("cut", "bundle.altered"), ("none", "bundle.unreadable")] {
        let other = World::new();
        let refused = other.lodestep(&["import", here.path().join(name).to_str().expect("a path")]).exits(1);
        assert!(refused.err.contains(code) && !refused.err.contains("a new store"), "{refused:?}");
        let left: Vec<_> = std::fs::read_dir(other.path()).expect("listed").collect();
        assert!(left.is_empty(), "a refusal leaves nothing: {left:?}");
    }
}
