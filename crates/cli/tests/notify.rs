//! `[notify]` of the store's wiring: one command hears once of what needs somebody, and of the end.

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::*;

const PAY: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "echo \"$(cat)\" >> paid"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "unsafe"
"#;

fn paying(world: &World, tables: &str) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }, { "name": "pay", "arguments": { "cents": 20 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(&format!("{PAY}{tables}"), &replies).to_str().expect("a path").to_owned()
}

/// What the command heard: of each call the kinds of what is new.
fn heard(world: &World) -> Vec<Vec<String>> {
    let calls = world.read("heard");
    let calls = calls.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let kinds = |call: Value| {
        call["new"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|new| new["kind"].as_str().expect("a kind").to_owned())
            .collect()
    };
    calls.map(kinds).collect()
}

fn hearing(world: &World) {
    world.write("lodestep.toml", "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> heard\"]\n");
}

#[test]
fn the_command_hears_once_of_each_thing_that_needs_somebody() {
    let world = World::new();
    hearing(&world);
    let agent = paying(&world, "");
    world.lodestep(&["run", &agent]).exits(3);
    assert_eq!(heard(&world), [["approval", "approval"]]);
    // Neither a restart nor another worker tells it again.
    world.lodestep(&["run", &agent]).exits(3);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(heard(&world).len(), 1);
    // One is settled: the other was told.
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    world.lodestep(&["run", &agent]).exits(3);
    assert_eq!(heard(&world).len(), 1, "{:?}", heard(&world));
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!(heard(&world)[1..], [["completed"]]);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(heard(&world).len(), 2);
    let first: Value = serde_json::from_str(world.read("heard").lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["status"], &first["agent"]), (&json!("waiting"), &json!("scripted")));
    assert!(
        first["new"][0]["command"].as_str().is_some_and(|command| command.contains("store.db approve ")),
        "{first}"
    );
}

#[test]
fn what_a_crash_left_untold_is_told_by_the_next_worker() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    hearing(&world);
    assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "pay:applied"]).code, None);
    world.lodestep(&["run", &agent]).exits(5);
    assert!(heard(&world).iter().flatten().any(|kind| kind == "in doubt"), "{:?}", heard(&world));
    // The worker dies while its command runs: nothing of it is known to have been heard.
    let world = World::new();
    let agent = paying(&world, "");
    world.write(
        "lodestep.toml",
        "[notify]\ncommand = [\"sh\", \"-c\", \"echo > called; sleep 30\"]\ntimeout = \"30s\"\n",
    );
    let mut running = world.start(&["run", &agent]);
    eventually("the command was called", Duration::from_secs(20), || !world.read("called").is_empty());
    running.kill();
    hearing(&world);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(heard(&world), [["approval", "approval"]]);
}

#[test]
fn a_command_that_fails_or_hangs_is_ended_and_holds_up_no_run() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    for (command, said) in [
        ("[\"sh\", \"-c\", \"sleep 30 & sleep 30\"]\ntimeout = \"300ms\"", "took longer than"),
        ("[\"false\"]", "ended with"),
        ("[\"./nothing-of-that-name\"]", "can't be started"),
    ] {
        world.write("lodestep.toml", &format!("[notify]\ncommand = {command}\n"));
        let since = Instant::now();
        let done = world.lodestep(&["run", &agent, "--new"]).exits(0);
        assert!(done.err.contains(said), "{done:?}");
        assert!(since.elapsed() < Duration::from_secs(20), "it took {:?}", since.elapsed());
    }
    for (text, named) in [
        ("[notfy]\n", "did you mean `notify`?"),
        ("[notify]\ncommand = []\n", "names no program"),
        ("[notify]\ncommand = [\"a\"]\ntimeout = \"1y\"\n", "timeout"),
    ] {
        world.write("lodestep.toml", text);
        let refused = world.lodestep(&["run", &agent, "--new"]).exits(2);
        assert!(refused.err.contains("nothing was started"), "{refused:?}");
        assert!(refused.err.contains("wiring.invalid") && refused.err.contains(named), "{refused:?}");
    }
}

/// What an agent's own command notes: that it heard, and the variable of the worker that it got.
const OWN: &str = "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> own; echo got:$WORKERS_OWN >> env\"]\n";

#[test]
fn an_agents_own_command_hears_of_its_runs_as_a_tool_would_unless_the_place_has_one() {
    let world = World::new();
    let agent = paying(&world, OWN);
    let run = |world: &World, words: &[&str]| {
        Said::of(world.command(words).env("WORKERS_OWN", "secret").output().expect("ran"))
    };
    run(&world, &["run", &agent]).exits(3);
    assert_eq!(world.read("own").lines().count(), 1);
    let said: Value = serde_json::from_str(&world.read("own")).expect("JSON");
    assert_eq!((&said["status"], &said["new"][0]["kind"]), (&json!("waiting"), &json!("approval")), "{said}");
    // It gets nothing of the worker's environment.
    assert_eq!(world.read("env"), "got:\n");
    run(&world, &["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("own").lines().count(), 1);
    // The place's own is run in its stead, and a run that began without it is told by it from then on.
    hearing(&world);
    for request in world.requests() {
        world.lodestep(&["approve", &request]).exits(0);
    }
    run(&world, &["run", &agent]).exits(0);
    assert_eq!((world.read("own").lines().count(), heard(&world)), (1, vec![vec!["completed".to_owned()]]));
}

#[test]
fn a_crash_while_an_agents_command_runs_leaves_it_to_the_next_worker() {
    // The command is slow, and the worker dies while it runs: it is told again, by another worker.
    let world = World::new();
    let slow = "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> own; test -e called || { echo > called; sleep 30; }\"]\ntimeout = \"40s\"\n";
    let agent = paying(&world, slow);
    let mut running = world.start(&["run", &agent]);
    eventually("the command was called", Duration::from_secs(20), || !world.read("called").is_empty());
    running.kill();
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("own").lines().count(), 2, "{}", world.read("own"));
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("own").lines().count(), 2);
}

#[test]
fn the_trials_of_a_test_notify_nobody() {
    let world = World::new();
    let agent = paying(&world, &format!("[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n{OWN}"));
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!(world.read("own").lines().count(), 1);
    let tested = world.lodestep(&["test", &agent, "--every", "9"]);
    assert!(tested.err.contains("baseline: completed"), "{tested:?}");
    assert_eq!(world.read("own").lines().count(), 1);
}

#[test]
fn a_request_that_stays_open_is_told_of_again_at_each_interval() {
    let world = World::new();
    hearing(&world);
    let policy = "[[policy]]\ntools = [\"pay\"]\ndecide = \"ask\"\nexpires = \"7d\"\nremind = \"1s\"\n";
    let agent = paying(&world, policy);
    world.lodestep(&["run", &agent]).exits(3);
    let reminded = || {
        let calls = world.read("heard");
        let calls = calls.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let of = |call: Value| {
            let new = call["new"].as_array().expect("a list").clone();
            new.into_iter().filter(|need| need["reason"] == json!("reminder"))
        };
        calls.flat_map(of).collect::<Vec<Value>>()
    };
    assert!(reminded().is_empty(), "{:?}", heard(&world));
    // All is down when the first falls due; whoever comes next tells it, once.
    eventually("the reminder is due", Duration::from_secs(20), || {
        let row = &world.json(&["ls"])[0];
        row["due"].as_str().is_some_and(|due| due <= now().as_str())
    });
    let worker = world.start(&["worker"]);
    eventually("it was reminded of twice", Duration::from_secs(20), || reminded().len() >= 4);
    drop(worker);
    let all = reminded();
    let mut names: Vec<String> = all.iter().map(|need| format!("{} {}", need["request"], need["reminder"])).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len(), "each due moment once: {all:?}");
    assert!(all.iter().all(|need| need["kind"] == json!("approval") && need["until"].is_string()), "{all:?}");
    let open = world.json(&["todo"]);
    assert!(open[0]["since"].as_str() < open[0]["until"].as_str(), "{open}");
    let shown = world.lodestep(&["ls"]).exits(0).out;
    assert!(shown.contains("needs you (1)") && shown.contains("since 20") && shown.contains(", until 20"), "{shown}");
}

/// The time of this machine as a store shows it.
fn now() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    lodestep::core::Timestamp::from_micros(now.as_micros() as i64).to_string()
}
