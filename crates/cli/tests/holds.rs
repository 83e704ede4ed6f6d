//! Holds: a tool, a model or an agent is stopped in every run, whatever process works on it, and goes on when it is
//! released. A kill at any moment changes neither.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

const TOOLS: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "echo \"$(cat)\" >> paid"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "keyed"
[tools.look]
description = "Look."
command = ["sh", "-c", "echo >> looked"]
input = { type = "object" }
class = "read"
[[policy]]
tools = ["pay"]
decide = "allow"
"#;

fn calling(world: &World, calls: &Value) -> String {
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    world.agent(TOOLS, &json!([{ "calls": calls }, finish])).to_str().expect("a path").to_owned()
}

fn paying(world: &World) -> String {
    calling(world, &json!([{ "name": "pay", "arguments": { "cents": 10 } }, { "name": "look", "arguments": {} }]))
}

/// A world with a store that holds one run that is over, so that there is something to hold.
fn begun() -> World {
    let world = World::new();
    let quick = calling(&world, &json!([{ "name": "look", "arguments": {} }]));
    world.lodestep(&["run", &quick, "--id", "quick"]).exits(0);
    world
}

#[test]
fn a_held_tool_is_not_sent_to_while_others_go_on() {
    let world = begun();
    let looked = world.read("looked").lines().count();
    world.lodestep(&["hold", "tool:pay", "--reason", "the bank is down"]).exits(0);
    assert!(
        world.lodestep(&["hold", "tool:pay"]).exits(0).out.starts_with("already given: held: tool:pay by ada since")
    );
    let agent = paying(&world);
    let waits = world.lodestep(&["run", &agent, "--id", "one"]).exits(3);
    assert!(waits.out.contains("run one is waiting: held: tool:pay by ada since 20"), "{waits:?}");
    assert!(waits.out.contains(": the bank is down"), "{waits:?}");
    assert_eq!((world.read("paid").as_str(), world.read("looked").lines().count()), ("", looked + 1));
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(listed.starts_with("held: tool:pay by ada since 20") && listed.contains("\nwaiting (1)\n"), "{listed}");
    assert_eq!(ids(&world.json(&["ls", "--status", "waiting"])), ["one"]);
    assert_eq!(world.json(&["show", "one"])["reasons"][0]["reason"], "hold");
    world.lodestep(&["verify"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("paid"), "");
    assert_eq!(world.json(&["hold"])[0]["target"], "tool:pay");
    world.lodestep(&["release", "tool:pay"]).exits(0);
    let released = world.lodestep(&["ls"]).exits(0).out;
    assert!(!released.contains("held: ") && released.starts_with("ready (1)\n"), "{released}");
    assert!(released.contains("no worker holds it, since 20"), "{released}");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("paid").lines().count(), 1);
    assert_eq!(world.json(&["show", "one"])["status"], "completed");
    assert_eq!(world.json(&["hold"]), json!([]));
    let gone = world.lodestep(&["release", "tool:pay"]).exits(1);
    assert!(gone.err.contains("hold.not_found") && gone.err.contains("nothing is held"), "{gone:?}");
    for wrong in ["pay", "tool:", "run:one"] {
        let refused = world.lodestep(&["hold", wrong]).exits(2);
        assert!(refused.err.contains("hold.target"), "{refused:?}");
    }
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|row| row["run"].as_str().expect("an id")).collect()
}

#[test]
fn a_held_model_is_not_asked_and_a_held_agent_does_nothing() {
    for target in ["model:*script.json", "model:script", "agent:scripted", "agent:scr*"] {
        let world = begun();
        world.lodestep(&["hold", target]).exits(0);
        let waits = world.lodestep(&["run", &paying(&world), "--id", "one"]).exits(3);
        assert!(waits.out.contains(&format!("waiting: held: {target} by ada")), "{waits:?}");
        assert_eq!(world.json(&["show", "one"])["checkpoint"]["model"]["calls"], 0, "{target}");
        assert_eq!(world.read("paid"), "");
        world.lodestep(&["release", target]).exits(0);
        world.lodestep(&["run", &paying(&world), "--id", "one"]).exits(0);
        assert_eq!(world.read("paid").lines().count(), 1);
    }
}

/// Whatever a worker was doing when it was killed, a hold that stood then stands for the next one.
#[test]
fn a_hold_survives_crashes_and_nothing_is_sent_twice_or_lost() {
    for point in
        ["run:accepted", "model:reply", "model:outcome", "run:checkpoint:1", "run:checkpoint:2", "run:checkpoint:3"]
    {
        let world = begun();
        world.lodestep(&["hold", "tool:pay"]).exits(0);
        let agent = paying(&world);
        let crashed = world.lodestep(&["run", &agent, "--id", "one", "--crash-at", point]);
        assert_eq!(crashed.code, None, "{point}: {crashed:?}");
        world.lodestep(&["run", &agent, "--id", "one"]).exits(3);
        assert_eq!(world.read("paid"), "", "{point}");
        // Released, and killed right after the intent: it is sent again under its key, once applied.
        world.lodestep(&["release", "tool:pay"]).exits(0);
        let crashed = world.lodestep(&["run", &agent, "--id", "one", "--crash-at", "pay:intent"]);
        assert_eq!(crashed.code, None, "{point}: {crashed:?}");
        world.lodestep(&["hold", "tool:pay"]).exits(0);
        world.lodestep(&["run", &agent, "--id", "one"]).exits(3);
        assert_eq!(world.read("paid"), "", "{point}: a retry is a dispatch too");
        world.lodestep(&["release", "tool:pay"]).exits(0);
        world.lodestep(&["run", &agent, "--id", "one"]).exits(0);
        assert_eq!(world.read("paid").lines().count(), 1, "{point}");
        world.lodestep(&["verify"]).exits(0);
    }
}

#[test]
fn a_run_that_is_parked_under_no_hold_is_named_by_verify() {
    let world = begun();
    world.lodestep(&["hold", "tool:pay"]).exits(0);
    world.lodestep(&["run", &paying(&world), "--id", "one"]).exits(3);
    world.lodestep(&["verify"]).exits(0);
    let store = rusqlite::Connection::open(world.path().join("store.db")).expect("opened");
    store.execute_batch("DELETE FROM parked").expect("altered");
    drop(store);
    let found = world.lodestep(&["verify"]).exits(7);
    assert!(found.out.contains("table head: it is due never, and the journal gives"), "{found:?}");
}

#[test]
fn a_worker_elsewhere_learns_of_a_hold_and_of_its_end() {
    let world = begun();
    let pay = json!({ "name": "pay", "arguments": { "cents": 10 } });
    let wait = "[tools.linger]\ndescription = \"Wait.\"\ncommand = [\"sh\", \"-c\", \"echo > begun; while [ ! -e go ]; do sleep 0.02; done\"]\n\
        input = { type = \"object\" }\nclass = \"idempotent\"\n";
    let replies = json!([
        { "calls": [{ "name": "linger", "arguments": {} }] },
        { "calls": [pay] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(&format!("{TOOLS}{wait}"), &replies);
    let mut worker = world.start(&["worker"]);
    let said = world.start(&["run", agent.to_str().expect("a path"), "--id", "one"]);
    eventually("the tool began", Duration::from_secs(20), || !world.read("begun").is_empty());
    world.lodestep(&["hold", "tool:pay"]).exits(0);
    world.write("go", "");
    eventually("it waits", Duration::from_secs(20), || {
        world.json(&["ls"])[0]["why"].as_str().is_some_and(|why| why.starts_with("held"))
    });
    assert_eq!(world.read("paid"), "");
    drop(said);
    world.lodestep(&["release", "tool:pay"]).exits(0);
    eventually("it goes on", Duration::from_secs(20), || world.json(&["show", "one"])["status"] == "completed");
    assert_eq!(world.read("paid").lines().count(), 1);
    assert_eq!(worker.terminate(), Some(130));
}

#[test]
fn a_held_tool_without_intents_is_not_started_either() {
    let world = begun();
    world.lodestep(&["hold", "tool:look"]).exits(0);
    let agent = paying(&world);
    let waits = world.lodestep(&["run", &agent, "--id", "one"]).exits(3);
    assert!(waits.out.contains("waiting: held: tool:look by ada"), "{waits:?}");
    assert_eq!((world.read("paid").lines().count(), world.read("looked").lines().count()), (1, 1));
    world.lodestep(&["release", "tool:look"]).exits(0);
    world.lodestep(&["run", &agent, "--id", "one"]).exits(0);
    assert_eq!((world.read("paid").lines().count(), world.read("looked").lines().count()), (1, 2));
}
