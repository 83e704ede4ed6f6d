//! A run that aborts every process that takes it, and one that can't be read, among many that are well.

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::*;

const TOOLS: &str = r#"
[tools.begin]
description = "Begin."
command = ["sh", "-c", "echo $LODESTEP_IDEMPOTENCY_KEY >> begun"]
input = { type = "object" }
class = "keyed"
[tools.poison]
description = "Poison."
command = ["sh", "-c", "echo poison >> poison"]
input = { type = "object" }
class = "read"
"#;

/// An agent whose run waits for an approval of `begin`, calls this next, and finishes.
fn agent(world: &World, name: &str, then: &str) -> String {
    let call = |name: &str| json!({ "calls": [{ "name": name, "arguments": {} }] });
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    let replies = json!([call("begin"), call(then), finish]);
    world.write(&format!("{name}.json"), &json!({ "replies": replies }).to_string());
    let text = format!(
        "format = 1\n[agent]\nname = \"{name}\"\nobjective = \"Follow.\"\ninstructions = \"Follow.\"\n[model]\n\
         provider = \"script\"\nname = \"{name}.json\"\n{TOOLS}"
    );
    world.write(&format!("{name}.toml"), &text).to_str().expect("a path").to_owned()
}

fn row(world: &World, id: &str) -> Value {
    let rows = world.json(&["ls"]);
    rows.as_array().expect("a list").iter().find(|row| row["run"] == id).expect("it is listed").clone()
}

#[test]
fn dep_03_a_poison_run_is_quarantined_and_the_others_finish() {
    let world = World::new();
    let (well, ill) = (agent(&world, "well", "begin"), agent(&world, "ill", "poison"));
    let garbled = agent(&world, "garbled", "begin");
    world.lodestep(&["run", &ill, "--id", "ill"]).exits(3);
    world.lodestep(&["run", &garbled, "--id", "garbled"]).exits(3);
    for number in 1..=50 {
        world.lodestep(&["run", &well, "--id", &format!("w{number:02}")]).exits(3);
    }
    world.lodestep(&["approve", "--tool", "begin", "--yes"]).exits(0);
    world.rest();
    let db = rusqlite::Connection::open(world.path().join("store.db")).expect("opened");
    let garble = "UPDATE journal SET envelope = CAST(x'ff' || substr(envelope, 2) AS BLOB)
                  WHERE seq = 2 AND run = (SELECT number FROM run WHERE id = 'garbled')";
    assert_eq!(db.execute(garble, []).expect("altered"), 1);
    db.execute("DELETE FROM snapshot WHERE run = (SELECT number FROM run WHERE id = 'garbled')", []).expect("deleted");
    drop(db);
    // The supervisor: a worker that has died is started again, and each would die of the same run.
    let start = || {
        let mut command = world.command(&["worker"]);
        command.env("LODESTEP_CRASH_AT", "poison:applied");
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        Running { child: command.spawn().expect("started") }
    };
    let mut workers = [start(), start(), start()];
    let mut deaths = 0;
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        for worker in &mut workers {
            if worker.has_ended() {
                deaths += 1;
                *worker = start();
            }
        }
        let rows = world.json(&["ls"]);
        let left: Vec<&Value> =
            rows.as_array().expect("a list").iter().filter(|row| row["status"] != "completed").collect();
        let held = left.iter().filter(|row| row["status"] == "quarantined");
        let well = held.clone().filter(|row| row["agent"] == "well").count();
        if left.len() == 2 && held.count() == 2 {
            break;
        }
        // They shared its worker at some of its crashes, and are no suspects any more once they come to an outcome.
        assert_eq!(well, 0, "after {deaths} deaths: {left:?}");
        assert!(Instant::now() < until, "after {deaths} deaths not over or held: {left:?}");
    }
    // The last death may have been seen by the other worker first.
    deaths += workers.iter_mut().filter_map(|worker| worker.has_ended().then_some(1)).sum::<u32>();
    let ill = row(&world, "ill");
    // The first crash comes after an outcome of the same claim, the model's reply, and is not counted.
    assert_eq!(deaths, 6, "no worker picks it up after the fifth that counts: {ill}");
    assert_eq!(world.read("poison").lines().count(), 6);
    assert!(ill["why"].as_str().is_some_and(|why| why.contains("crashes")), "{ill}");
    let shown = world.lodestep(&["show", "ill"]).exits(0).out;
    assert!(shown.contains("its workers crashed 5 times on it without an outcome"), "{shown}");
    assert!(shown.contains("the last time while it performed action 2, poison"), "{shown}");
    assert!(shown.contains(" log ill\n") && !shown.contains("about to be done"), "{shown}");
    let garbled = row(&world, "garbled");
    assert_eq!((&garbled["status"], &garbled["crashes"]), (&json!("quarantined"), &json!(0)));
    assert!(garbled["why"].as_str().is_some_and(|why| why.contains("undecodable")), "{garbled}");
    let begun = world.read("begun");
    let keys: BTreeSet<&str> = begun.lines().collect();
    assert_eq!(keys.len(), 50 + 1, "each is done, and under one key however often");
}
