//! Output of any size and encoding: every byte is kept, the model gets a preview, the run goes on.

mod support;

use serde_json::{Value, json};
use support::*;

/// An agent whose tool prints the file `output` so many times, and then finishes.
fn printer(world: &World, times: usize) -> String {
    let tables = "[tools.print]\ndescription = \"Print.\"\ncommand = [\"cat\", \"output\"]\n\
        input = { type = \"object\", properties = { n = { type = \"integer\" } } }\nclass = \"read\"\n\
        [limits]\nsnapshot_every = 16\n";
    let mut replies: Vec<Value> =
        (0..times).map(|n| json!({ "calls": [{ "name": "print", "arguments": { "n": n } }] })).collect();
    replies.push(json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }));
    world.agent(tables, &json!(replies)).to_str().expect("a path").to_owned()
}

fn artifact(world: &World, id: &str, name: &str) -> Vec<u8> {
    world.command(&["artifacts", id, name]).output().expect("ran").stdout
}

#[test]
fn tol_13_every_byte_of_an_output_is_an_artifact_and_the_run_goes_on() {
    let megabytes = |unit: &[u8]| unit.iter().copied().cycle().take(10_000_000).collect::<Vec<u8>>();
    for (kind, bytes) in [
        ("lines", megabytes("a line with an é and a ☃\n".as_bytes())),
        ("one line", megabytes("☃".as_bytes())),
        ("every byte", megabytes(&(0..=255).collect::<Vec<u8>>())),
        ("NUL", vec![0; 40_000]),
        ("invalid UTF-8", [b"\xff\xfe".repeat(20_000), b"end".to_vec()].concat()),
    ] {
        let world = World::new();
        std::fs::write(world.path().join("output"), &bytes).expect("written");
        world.lodestep(&["run", &printer(&world, 1)]).exits(0);
        let id = world.run_id();
        assert!(artifact(&world, &id, "output-1.txt") == bytes, "{kind}: every byte");
        let shown = world.lodestep(&["show", &id]).exits(0);
        assert!(shown.out.len() < 20_000, "{kind}: {} bytes are shown", shown.out.len());
        world.lodestep(&["verify"]).exits(0);
    }
}

#[test]
fn tol_13_many_large_outputs_leave_the_checkpoint_small() {
    let world = World::new();
    let line = "0123456789abcdef ".repeat(60_000);
    std::fs::write(world.path().join("output"), line).expect("written");
    world.lodestep(&["run", &printer(&world, 30)]).exits(0);
    let id = world.run_id();
    assert_eq!(world.json(&["artifacts", &id]).as_array().map(Vec::len), Some(30));
    let db = rusqlite::Connection::open(world.path().join("store.db")).expect("a store");
    let sum = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("summed");
    let largest = sum("SELECT max(length(bytes)) FROM snapshot");
    assert!(largest < 64 * 1024, "a checkpoint of {largest} bytes");
    let rows = sum("SELECT max(length(envelope) + length(vals)) FROM journal");
    assert!(rows < 64 * 1024, "a transition of {rows} bytes");
    world.lodestep(&["verify"]).exits(0);
}
