//! Output of any size and encoding: every byte is kept, the model gets a preview, the run goes on.

mod support;

use std::time::Duration;

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
    let rows = sum("SELECT max(length(envelope) + length(vals) + (SELECT coalesce(sum(length(bytes)), 0) FROM piece
         WHERE piece.n >= 128 * journal.n AND piece.n < 128 * journal.n + 64)) FROM journal");
    assert!(rows < 64 * 1024, "a transition of {rows} bytes");
    world.lodestep(&["verify"]).exits(0);
}

/// The most memory that a process has had, in bytes.
#[cfg(target_os = "linux")]
fn peak_bytes(process: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.child.id())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn tol_13_a_stream_of_200_mb_is_cut_at_the_source_and_memory_stays_bounded() {
    const KEPT: usize = 64 << 20;
    let world = World::new();
    let text = "all work and no play, and a ☃\n";
    let tables = format!(
        "[tools.print]\ndescription = \"Print.\"\ncommand = [\"sh\", \"-c\", \"yes '{}' | head -c 200000000; echo x >> ended\"]\n\
         input = {{ type = \"object\" }}\nclass = \"read\"\n",
        text.trim_end()
    );
    let tables = format!("{tables}[[policy]]\ntools = [\"print\"]\ndecide = \"ask\"\n");
    let question = json!({ "calls": [{ "name": "ask", "arguments": { "question": "sure?" } }] });
    let agent = world.agent(&tables, &json!([{ "calls": [{ "name": "print" }] }, question]));
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(3);
    let (id, request) = (world.run_id(), world.requests());
    let mut worker = world.start(&["worker"]);
    eventually("the worker is there", Duration::from_secs(20), || peak_bytes(&worker) > 0);
    world.lodestep(&["approve", &request[0]]).exits(0);
    eventually("it went on", Duration::from_secs(60), || {
        world.json(&["show", &id])["requests"][0]["kind"] == "question"
    });
    let peak = peak_bytes(&worker);
    // A few copies of what is kept, and nothing that grows with what is not.
    assert!(peak > KEPT as u64, "{peak} bytes: it was measured too early");
    assert!(peak < 6 * KEPT as u64, "{peak} bytes of memory");
    assert_eq!(worker.terminate(), Some(130));
    assert_eq!(world.read("ended"), "x\n", "the tool printed all of it, and was not held up");

    let note = "\n[truncated at the source: 200000000 bytes were written]";
    let kept = artifact(&world, &id, "output-1.txt");
    let whole = text.as_bytes().iter().copied().cycle().take(KEPT).collect::<Vec<u8>>();
    assert!(kept == [&whole, note.as_bytes()].concat(), "{} bytes are kept", kept.len());
    let told = world.json(&["context", &id])["request"]["messages"][2]["results"][0]["text"].to_string();
    let wanted = "[… truncated at the source: 200000000 bytes were written; what was kept is artifact output-1.txt";
    assert!(told.contains(wanted), "…{}", &told[told.len().saturating_sub(300)..]);
}
