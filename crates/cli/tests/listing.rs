//! What `ls` finds: runs by what an effect came to, and a name that nothing has.

mod support;

use serde_json::{Value, json};
use support::*;

/// A tool that fails when its argument says so, and one that fails and is no effect.
const TOOLS: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "! grep -q '\"fails\":true'"]
input = { type = "object", properties = { fails = { type = "boolean" }, n = { type = "integer" } } }
class = "unsafe"
[tools.look]
description = "Look."
command = ["false"]
input = { type = "object" }
class = "read"
[[policy]]
tools = ["pay"]
decide = "allow"
[limits]
recent_actions = 4
"#;

fn run(world: &World, id: &str, calls: &[Value], more: &[&str]) {
    let mut replies: Vec<Value> = calls.iter().map(|call| json!({ "calls": [call] })).collect();
    replies.push(json!({ "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] }));
    let agent = world.agent(TOOLS, &json!(replies));
    let agent = agent.to_str().expect("a path");
    world.lodestep(&[&["run", agent, "--id", id, "--label", "team=billing"][..], more].concat()).exits(0);
}

fn pay(n: u32, fails: bool) -> Value {
    json!({ "name": "pay", "arguments": { "n": n, "fails": fails } })
}

fn listed(world: &World, words: &[&str]) -> Vec<String> {
    let runs = world.json(&[&["ls"], words].concat());
    runs.as_array().expect("a list").iter().map(|run| run["run"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn completed_runs_with_a_failed_effect_are_found() {
    let world = World::new();
    run(&world, "sound", &[pay(1, false), json!({ "name": "look" })], &[]);
    run(&world, "newer", &[pay(1, true)], &[]);
    // The failure has left the state, which keeps four actions.
    let looks: Vec<Value> =
        (0..6).map(|n| json!({ "name": "note", "arguments": { "key": "a", "text": n.to_string() } })).collect();
    run(&world, "older", &[vec![pay(1, true)], looks].concat(), &[]);
    assert_eq!(world.json(&["show", "older"])["checkpoint"]["older"]["pay"]["not_done"], 1);
    assert_eq!(listed(&world, &["--effect", "failed"]), ["older", "newer"]);
    assert_eq!(listed(&world, &["--effect", "failed", "--tool", "pay", "--status", "completed"]), ["older", "newer"]);
    for none in [&["--tool", "look"][..], &["--status", "waiting"], &["--agent", "other"]] {
        assert!(listed(&world, &[&["--effect", "failed"], none].concat()).is_empty(), "{none:?}");
    }
    assert!(listed(&world, &["--effect", "denied"]).is_empty());
    let shown = world.lodestep(&["ls", "--effect", "failed"]).exits(0);
    assert!(shown.out.starts_with("over (2)\n") && shown.err.is_empty(), "{shown:?}");
    world.lodestep(&["ls", "--effect", "fialed"]).exits(2);
}

#[test]
fn a_filter_that_finds_nothing_names_what_was_misspelt() {
    let world = World::new();
    run(&world, "sound", &[pay(1, false)], &[]);
    for (words, note) in [
        (["--agent", "scritped"], "note: no run of this store is of an agent `scritped`; did you mean `scripted`?\n"),
        (
            ["--label", "team=biling"],
            "note: no run of this store has a label `team=biling`; did you mean `team=billing`?\n",
        ),
        (["--tool", "pya"], "note: none of the newest runs has a tool `pya`; did you mean `pay`?\n"),
    ] {
        let listed = world.lodestep(&[&["ls"][..], &words].concat()).exits(0);
        assert_eq!((listed.out.as_str(), listed.err.as_str()), ("no runs\n", note));
        assert_eq!(world.json(&[&["ls"][..], &words].concat()), json!([]));
        let refused = world.lodestep(&[&["cancel", "--yes"][..], &words].concat()).exits(2);
        assert!(refused.err.contains("did you mean `"), "{refused:?}");
    }
    // What is known and takes nothing is no misspelling.
    for words in [["--tool", "pay"], ["--status", "waiting"]] {
        assert!(world.lodestep(&[&["ls"][..], &words].concat()).exits(0).err.is_empty());
    }
    let todo = world.lodestep(&["todo", "--label", "team=biling"]).exits(0);
    assert!(todo.err.contains("did you mean `team=billing`?"), "{todo:?}");
}
