//! A log that lost its end after a kill: noticed, however short the time since it was acknowledged.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use support::*;

/// The log's header, and what each page in it takes.
const HEADER: usize = 32;
const FRAME: usize = 24 + 4_096;

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("read");
            found.insert(path, bytes);
        }
    }
    found
}

/// The world's files again as they were, without what came later.
fn put_back(world: &World, all: &BTreeMap<PathBuf, Vec<u8>>) {
    for path in files(world.path()).into_keys().filter(|path| !all.contains_key(path)) {
        fs::remove_file(path).expect("removed");
    }
    for (path, bytes) in all {
        fs::write(path, bytes).expect("written");
    }
}

/// A store right after the process died that had paid and stored the outcome, with the log that it left.
fn killed(world: &World) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<u8>) {
    world.write("pay.sh", "echo x >> ledger\n");
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"pay.sh\"]\ninput = { type = \"object\" }\n\
        class = \"unsafe\"\n[[policy]]\ntools = [\"pay\"]\ndecide = \"ask\"\n";
    let replies = json!([
        { "calls": [{ "name": "pay" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(tables, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(3);
    world.rest();
    let request = world.requests().remove(0);
    world.lodestep(&["approve", &request]).exits(0);
    world.rest();
    let crashed = world.lodestep(&["resume", "--crash-at", "pay:outcome"]);
    assert_eq!((crashed.code, world.read("ledger").as_str()), (None, "x\n"), "{crashed:?}");
    let all = files(world.path());
    let log = all.get(&world.path().join("store.db-wal")).expect("it left a log").clone();
    (all, log)
}

#[test]
fn g15_a_log_that_is_cut_below_what_was_acknowledged_is_noticed_at_once() {
    let world = World::new();
    let (all, log) = killed(&world);
    let pages = (log.len() - HEADER) / FRAME;
    assert!(pages > 8, "the log has {pages} pages");
    for kept in 0..pages {
        put_back(&world, &all);
        fs::write(world.path().join("store.db-wal"), &log[..HEADER + kept * FRAME]).expect("cut");
        let about = world.json(&["ls"])[0].clone();
        let stands = (about["status"].as_str(), about["why"].as_str());
        assert_eq!(stands, (Some("quarantined"), Some("rewound")), "{kept} of {pages} pages: {about}");
        world.lodestep(&["resume"]).exits(5);
        assert_eq!(world.read("ledger"), "x\n", "{kept} of {pages} pages: paid again");
    }
    put_back(&world, &all);
    assert_eq!(world.json(&["ls"])[0]["status"], "ready", "nothing is gone, and it is held");
    world.lodestep(&["resume"]).exits(0);
    assert_eq!(world.read("ledger"), "x\n");
}
