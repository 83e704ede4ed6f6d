//! `doctor` on a store that is sound, and on some that are not. It never changes any of them.

mod support;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use support::*;

/// A run that waits for an approval and holds a large artifact, in a store that nobody has open.
fn waiting() -> World {
    let world = World::new();
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"cat\"]\nclass = \"unsafe\"\n\
                  input = { type = \"object\" }\n\
                  [tools.look]\ndescription = \"Look.\"\ncommand = [\"sh\", \"-c\", \"yes 0123456789 | head -c 100000\"]\n\
                  class = \"read\"\ninput = { type = \"object\" }\n";
    let replies = json!([
        { "calls": [{ "name": "look", "arguments": {} }] },
        { "calls": [{ "name": "pay", "arguments": {} }] },
    ]);
    let agent = world.agent(tables, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path"), "--id", "one"]).exits(3);
    world.rest();
    world
}

/// Every file below a folder: its bytes, its mode, when it was written.
fn all(folder: &Path) -> BTreeMap<std::path::PathBuf, (Vec<u8>, u32, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("read") {
            let path = entry.expect("an entry").path();
            let about = fs::metadata(&path).expect("there");
            if about.is_dir() {
                folders.push(path.clone());
            }
            let bytes = if about.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
            found.insert(path, (bytes, about.permissions().mode(), about.modified().expect("a time")));
        }
    }
    found
}

/// What it says of one thing, each with its verdict.
fn said<'a>(report: &'a Value, check: &str) -> Vec<(&'a str, &'a str)> {
    let checks = report["checks"].as_array().expect("checks").iter();
    let of_it = checks.filter(|found| found["check"] == json!(check));
    of_it.map(|it| (it["verdict"].as_str().expect("a verdict"), it["what"].as_str().expect("what"))).collect()
}

/// Runs it, and sees that it changed nothing.
fn examined(world: &World, words: &[&str], code: i32) -> Value {
    let before = all(world.path());
    let report = world.lodestep(&[&["--json", "doctor"], words].concat()).exits(code);
    assert!(all(world.path()) == before, "it changed something");
    serde_json::from_str(&report.out).unwrap_or_else(|error| panic!("{error}: {report:?}"))
}

#[test]
fn a_sound_store_has_no_problem_and_is_left_as_it_is() {
    let world = waiting();
    let report = examined(&world, &[], 0);
    assert_eq!(report["problems"], json!(0), "{report}");
    assert!(said(&report, "store")[0].1.contains("--store names it"), "{report}");
    for check in ["permissions", "file", "log", "format", "witness", "workers", "runs", "values", "leftovers", "clock"]
    {
        let found = said(&report, check);
        assert!(!found.is_empty() && found.iter().all(|(verdict, _)| *verdict == "ok"), "{check}: {report}");
    }
    assert!(said(&report, "values")[0].1.starts_with("1 files"), "{report}");
    // Permissions that were widened are told, and left to whoever opens it to write.
    fs::set_permissions(world.path().join("store.db"), Permissions::from_mode(0o644)).expect("set");
    let report = examined(&world, &[], 0);
    assert_eq!(said(&report, "permissions")[0].0, "warning", "{report}");
    let words = world.lodestep(&["doctor"]).exits(0);
    assert!(words.out.contains("warning  permissions") && words.out.contains("0 problems, "), "{words:?}");
    let (verdict, next) = (said(&report, "cage"), "docs/security.md");
    assert!(verdict.iter().any(|(verdict, _)| *verdict == "ok") || report.to_string().contains(next), "{report}");
}

#[test]
fn a_store_that_is_not_there_is_no_problem_and_one_that_is_lost_is() {
    let world = World::new();
    let report = examined(&world, &[], 0);
    assert_eq!(said(&report, "store")[0].0, "warning", "{report}");
    let world = waiting();
    fs::remove_file(world.path().join("store.db")).expect("removed");
    let report = examined(&world, &[], 7);
    assert!(said(&report, "file")[0].1.contains("made before, and now it is gone"), "{report}");
}

#[test]
fn a_damaged_store_is_named_with_what_can_be_saved() {
    let world = waiting();
    let db = rusqlite::Connection::open(world.path().join("store.db")).expect("opened");
    db.execute_batch("PRAGMA journal_mode = DELETE; UPDATE journal SET envelope = zeroblob(50) WHERE seq = 3")
        .expect("altered");
    drop(db);
    let agent = world.path().join("agent.toml");
    let report = examined(&world, &[], 7);
    let runs = said(&report, "runs");
    assert!(runs.iter().any(|(verdict, what)| *verdict == "problem" && what.contains("run one")), "{report}");
    assert!(runs.iter().any(|(_, what)| *what == "0 of 1 runs can be saved from this store"), "{report}");
    assert!(
        said(&report, "file").iter().any(|(verdict, what)| *verdict == "problem" && what.contains("delete")),
        "{report}"
    );
    // A second run is sound: its export is named, and works.
    world.lodestep(&["run", agent.to_str().expect("a path"), "--id", "two"]).exits(3);
    world.rest();
    let report = examined(&world, &[], 7);
    let next: Vec<&str> =
        report["checks"].as_array().expect("checks").iter().filter_map(|it| it["next"].as_str()).collect();
    assert!(next.iter().any(|next| next.contains("export two two.lodestep")), "{report}");
    world.lodestep(&["export", "two", "two.lodestep"]).exits(0);
    // A page that can't be read any more.
    let path = world.path().join("store.db");
    let mut bytes = fs::read(&path).expect("read");
    let at = bytes.len() - 4096;
    bytes[at..at + 64].fill(0xff);
    fs::write(&path, bytes).expect("written");
    let report = examined(&world, &[], 7);
    assert!(said(&report, "file").iter().any(|(verdict, _)| *verdict == "problem"), "{report}");
}

#[test]
fn an_altered_value_and_an_older_copy_are_noticed_and_nothing_is_held_for_it() {
    let world = waiting();
    let older = fs::read(world.path().join("store.db")).expect("read");
    world.lodestep(&["tell", "one", "something new"]).exits(0);
    world.rest();
    let newest = fs::read(world.path().join("store.db")).expect("read");
    fs::write(world.path().join("store.db"), older).expect("put back");
    let report = examined(&world, &[], 7);
    assert_eq!(said(&report, "witness")[0].0, "problem", "{report}");
    fs::write(world.path().join("store.db"), newest).expect("put back");
    examined(&world, &[], 0);
    let file =
        all(&world.path().join("store.db-files/values")).into_keys().find(|path| path.is_file()).expect("a file");
    fs::write(&file, "something else").expect("altered");
    let report = examined(&world, &[], 7);
    assert_eq!(said(&report, "values")[0].0, "problem", "{report}");
}

#[test]
fn what_an_agent_needs_is_looked_for() {
    let world = World::new();
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"no-such-program-here\"]\nclass = \"unsafe\"\n\
                  env = { TOKEN = \"${env:LODESTEP_TEST_NO_SUCH_VARIABLE}\" }\ninput = { type = \"object\" }\n";
    let agent = world.agent(tables, &json!([]));
    let report = examined(&world, &[agent.to_str().expect("a path")], 1);
    let agent: Vec<&str> = said(&report, "agent").into_iter().map(|(_, what)| what).collect();
    assert!(agent.iter().any(|what| what.contains("LODESTEP_TEST_NO_SUCH_VARIABLE")), "{report}");
    assert!(agent.iter().any(|what| what.contains("no-such-program-here")), "{report}");
    let report = examined(&world, &["nothing.toml"], 1);
    assert_eq!(said(&report, "agent")[0].0, "problem", "{report}");
    let research = research();
    let report = examined(&world, &[research.to_str().expect("a path")], 0);
    assert_eq!(said(&report, "agent")[0].0, "ok", "{report}");
}
