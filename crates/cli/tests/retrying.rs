//! A tool that can't be reached: what retries it, why and when is seen in every listing, and a worker says it once.

mod support;

use std::time::Duration;

use serde_json::json;
use support::*;

/// Two runs whose tool can't be started were worked on until each has failed more than once; the worker's stderr.
fn failing(world: &World) -> String {
    let tables = "[tools.notify]\ndescription = \"Notify.\"\ncommand = [\"./gone\"]\ninput = { type = \"object\" }\nclass = \"keyed\"\n\
        attempts = 100\n";
    let replies = json!([{ "calls": [{ "name": "notify" }] }]);
    let agent = world.agent(tables, &replies).to_str().expect("a path").to_owned();
    for id in ["one1", "two2"] {
        world.lodestep(&["run", &agent, "--id", id, "--label", "region=us"]).exits(3);
    }
    world.lodestep(&["approve", "--tool", "notify", "--yes"]).exits(0);
    let (mut worker, mut said) = world.start_heard(&["worker"]);
    said.until(" was not sent and is tried again: ");
    eventually("both failed twice", Duration::from_secs(60), || {
        ["one1", "two2"].iter().all(|id| {
            let attempts = &world.json(&["show", id])["checkpoint"]["pending"]["1"]["attempts"];
            attempts.as_u64().is_some_and(|attempts| attempts > 1)
        })
    });
    worker.terminate();
    said.rest()
}

#[test]
fn a_tool_that_fails_is_named_with_its_error_wherever_runs_are_listed() {
    let world = World::new();
    let rest = failing(&world);
    assert!(!rest.contains("was not sent"), "the first failure of a tool is told, not each: {rest}");
    let listed = world.lodestep(&["ls"]).exits(0).out;
    let command = format!("{} --store {}", env!("CARGO_BIN_EXE_lodestep"), world.path().join("store.db").display());
    assert!(listed.starts_with("2 runs retry `notify`: "), "{listed}");
    assert!(listed.contains(&format!("\n  `{command} hold tool:notify` stops it\n")), "{listed}");
    let rows: Vec<&str> = listed.lines().filter(|line| line.contains("retry of notify (")).collect();
    assert_eq!(rows.len(), 2, "{listed}");
    assert!(rows.iter().all(|row| row.contains("./gone") && row.ends_with("region=us")), "{listed}");
    assert!(rows.iter().all(|row| row.matches("T").count() == 1), "one time a row: {listed}");
    let json = world.json(&["ls"]);
    let retry = &json[0]["retries"][0];
    assert_eq!((&retry["action"], &retry["tool"]), (&json!(1), &json!("notify")), "{json}");
    assert!(retry["error"].as_str().is_some_and(|error| error.contains("./gone")), "{json}");
    let doctor = world.lodestep(&["doctor"]).exits(0).out;
    assert!(doctor.contains("warning  tools        2 runs retry `notify`: "), "{doctor}");
    assert!(doctor.contains(&format!("`{command} hold tool:notify`")), "{doctor}");
}

#[test]
fn what_is_due_is_ready_and_found_as_ready() {
    let world = World::new();
    failing(&world);
    eventually("their retries are due", Duration::from_secs(60), || {
        world.lodestep(&["ls"]).exits(0).out.contains("ready (2)\n")
    });
    assert_eq!(world.json(&["ls", "--status", "ready"]).as_array().map(Vec::len), Some(2));
    let listed = world.lodestep(&["ls", "--status", "ready"]).exits(0).out;
    assert!(listed.contains("ready (2)\n") && listed.contains("retry of notify ("), "{listed}");
    assert!(listed.contains("): due, no worker holds it, since 20"), "{listed}");
}

#[test]
fn a_provider_that_does_not_answer_is_named_with_its_error() {
    let world = World::new();
    let replies = json!(vec![json!({ "error": "busy" }); 40]);
    let agent = world.agent("", &replies).to_str().expect("a path").to_owned();
    let (mut running, mut said) = world.start_heard(&["run", &agent, "--id", "busy"]);
    said.until("model: ");
    eventually("it waits for its provider", Duration::from_secs(60), || {
        world.json(&["show", "busy"])["status"] == "waiting"
    });
    running.terminate();
    let json = world.json(&["ls"]);
    let retry = &json[0]["retries"][0];
    assert_eq!((&retry["action"], &retry["tool"]), (&json!(null), &json!(null)), "{json}");
    assert!(retry["error"].as_str().is_some_and(|error| error.contains("the script says `busy`")), "{json}");
    for listing in [&["ls"][..], &["show", "busy"]] {
        let shown = world.lodestep(listing).exits(0).out;
        let first = shown.lines().find(|line| line.contains("provider")).unwrap_or_else(|| panic!("{shown}"));
        assert!(first.contains("`busy`), next at 20") || first.contains("`busy`): due"), "{shown}");
        assert!(!first.contains("retry `"), "{shown}");
    }
}
