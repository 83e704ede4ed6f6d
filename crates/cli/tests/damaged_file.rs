//! A store's file that is damaged: whatever of it can still be read is saved, and what can't is named.

mod support;

use std::fs;

use serde_json::{Value, json};
use support::*;

/// A store at rest with finished runs, one of them with a large value in a file of its own; their heads by id.
fn filled(world: &World) -> Vec<(String, String)> {
    for n in 0..12 {
        let text = match n {
            0 => "large ".repeat(20_000),
            _ => format!("text {n} ").repeat(300),
        };
        let replies = json!([
            { "calls": [{ "name": "save", "arguments": { "name": "a.md", "text": text } }] },
            { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
        ]);
        let agent = world.agent("", &replies);
        world.lodestep(&["run", "--new", agent.to_str().expect("a path")]).exits(0);
    }
    world.rest();
    world.lodestep(&["verify"]).exits(0);
    let told = world.json(&["export", "--all", "first"]);
    let text = |about: &Value, field: &str| about[field].as_str().expect("a text").to_owned();
    let all: Vec<_> = told["exported"].as_array().expect("a list").clone();
    assert_eq!(all.len(), 12, "{told}");
    all.iter().map(|about| (text(about, "run"), text(about, "head"))).collect()
}

/// What `export --all` made of the store, and how many runs it saved; each is as it was.
fn saved(world: &World, name: &str, sound: &[(String, String)]) -> (Said, Value, usize) {
    let said = world.lodestep(&["--json", "export", "--all", name]);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_default();
    let Some(exported) = told["exported"].as_array().cloned() else {
        assert_eq!(said.code, Some(7), "{said:?}");
        assert!(said.out.contains("store.corrupt"), "{said:?}");
        return (said, Value::Null, 0);
    };
    for about in &exported {
        let head = sound.iter().find(|(id, _)| about["run"] == json!(id)).map(|(_, head)| head);
        assert_eq!(about["head"].as_str(), head.map(String::as_str), "it is not what it was");
    }
    let files = fs::read_dir(world.path().join(name)).expect("a folder").count();
    assert_eq!(files, exported.len(), "a file of a run that was not saved, or none of one that was");
    let left = told["left"].as_array().expect("a list").len() + told["lost"].as_array().expect("a list").len();
    assert_eq!(said.code, Some(if left == 0 { 0 } else { 7 }), "{said:?}");
    (said, told, exported.len())
}

#[test]
fn sql_03_every_run_that_can_be_read_is_saved_and_the_others_are_named() {
    let world = World::new();
    let sound = filled(&world);
    assert_eq!(saved(&world, "sound", &sound).2, sound.len());
    let bytes = fs::read(world.path().join("store.db")).expect("read");
    let (mut whole, mut partly, mut none) = (0, 0, 0);
    for page in 0..bytes.len() / 4_096 {
        for damage in ["zeroed", "flipped", "cut"] {
            let mut altered = bytes.clone();
            let at = page * 4_096;
            match damage {
                "zeroed" => altered[at..at + 4_096].fill(0),
                "flipped" => (at..at + 4_096).step_by(97).for_each(|byte| altered[byte] ^= 0x55),
                _ => altered.truncate(at + 1_000),
            }
            for log in ["store.db-wal", "store.db-shm"] {
                let _ = fs::remove_file(world.path().join(log));
            }
            fs::write(world.path().join("store.db"), &altered).expect("written");
            let (said, told, count) = saved(&world, &format!("{damage}-{page}"), &sound);
            match count {
                0 => none += 1,
                count if count == sound.len() => whole += 1,
                _ => partly += 1,
            }
            if count > 0 && count < sound.len() {
                let named = told["left"].as_array().expect("a list").len() + told["lost"].as_array().expect("").len();
                assert_eq!(
                    count + named,
                    sound.len(),
                    "{damage} page {page}: a run is passed over in silence: {said:?}"
                );
            }
        }
    }
    // Pages of tables that a journal does not need; of the journal; of the schema, and all that is cut off.
    assert!(whole > 20 && partly > 3 && none > 3, "{whole} whole, {partly} partly, {none} not at all");
}

#[test]
fn sql_03_a_large_value_whose_file_is_gone_is_named_and_the_other_runs_go_on() {
    let world = World::new();
    let sound = filled(&world);
    let values = world.path().join("store.db-files/values");
    for folder in fs::read_dir(&values).expect("read") {
        fs::remove_dir_all(folder.expect("read").path()).expect("removed");
    }
    let verified = world.lodestep(&["verify"]).exits(7);
    assert_eq!(verified.out.matches(": DAMAGED").count(), 1, "{verified:?}");
    let (_, told, count) = saved(&world, "saved", &sound);
    assert_eq!((count, &told["left"][0]["error"]["code"]), (sound.len() - 1, &json!("store.value_damaged")), "{told}");
    // Taken in elsewhere, a saved run is what it was.
    let other = World::new();
    let about = &told["exported"][0];
    let file = fs::read_dir(world.path().join("saved"))
        .expect("read")
        .map(|file| file.expect("read").path())
        .find(|file| file.display().to_string().contains(about["run"].as_str().expect("an id")))
        .expect("its file");
    other.lodestep(&["import", file.to_str().expect("a path")]).exits(0);
    other.lodestep(&["verify"]).exits(0);
}

#[test]
fn what_verify_found_is_told_wherever_runs_are_begun_or_listed_until_it_is_mended() {
    let world = World::new();
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] });
    let agent = world.agent("", &json!([finish]));
    let agent = agent.to_str().expect("a path");
    world.lodestep(&["run", agent, "--id", "sound"]).exits(0);
    world.lodestep(&["run", agent, "--id", "hurt"]).exits(0);
    world.rest();
    let path = world.path().join("store.db");
    let whole = std::fs::read(&path).expect("read");
    let db = rusqlite::Connection::open(&path).expect("a store");
    db.execute_batch(
        "PRAGMA journal_mode = DELETE; UPDATE journal SET envelope = zeroblob(50) WHERE seq = 2 AND run = 2",
    )
    .expect("altered");
    drop(db);
    let warning = |words: &[&str]| {
        let said = world.lodestep(words);
        (
            said.err.contains("warning: this store is damaged") && said.err.contains(": hurt; what is sound goes on"),
            said,
        )
    };
    assert!(!warning(&["ls"]).0, "nobody has looked");
    world.lodestep(&["verify"]).exits(7);
    for words in [&["ls"][..], &["todo"], &["worker", "--until-idle"], &["run", agent, "--id", "more"]] {
        let (is_told, said) = warning(words);
        assert!(is_told && said.code == Some(0), "{words:?}: {said:?}");
        assert!(said.err.contains("export --all FOLDER"), "{said:?}");
    }
    for command in ["show", "log", "effects", "artifacts"] {
        let told = |run: &str| world.lodestep(&[command, run]).err.contains("is damaged, as `verify` found at");
        assert!(told("hurt") && !told("sound"), "{command}");
    }
    assert_eq!(world.json(&["ls"]).as_array().map(Vec::len), Some(3), "what is printed for programs is as it was");
    world.lodestep(&["verify", "sound"]).exits(0);
    assert!(warning(&["ls"]).0, "another run was looked at");
    world.lodestep(&["verify", "hurt"]).exits(7);
    assert!(warning(&["ls"]).0);
    world.rest();
    std::fs::write(&path, whole).expect("put back");
    assert!(warning(&["ls"]).0, "it was found, and nobody has looked since");
    world.lodestep(&["verify"]).exits(0);
    assert!(!warning(&["ls"]).0);
}
