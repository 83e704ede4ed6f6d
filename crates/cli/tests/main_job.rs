//! The main job from the outside: run, approve, publish, show, verify; and the report says only what the documents say.

mod support;

use serde_json::{Value, json};
use support::*;

/// Documents on two subjects.
fn documents(world: &World) -> std::path::PathBuf {
    world.write(
        "docs/leases.md",
        "# Leases\n\nA lease gives one worker the right to advance a run for some time.\nWhen the worker dies, its lease ends and \
         another worker takes over.\n\n- A lease is renewed while its worker\n  lives, and it is void once the lock of its worker is free.\n",
    );
    world.write(
        "docs/bread.md",
        "# Bread\n\nBread needs flour, water, salt and time.\nThe dough rests for some hours before it is baked in a hot oven.\n",
    );
    world.write(
        "docs/notes/weather.txt",
        "Rain is expected in the evening, and the wind will turn to the north later.\n",
    );
    world.path().join("docs")
}

fn run_words<'a>(agent: &'a str, topic: &'a str) -> Vec<&'a str> {
    vec!["run", agent, "-i", "folder=docs", "-i", "out=out", "-i", topic]
}

#[test]
fn the_main_job_from_start_to_end() {
    let world = World::new();
    let docs = documents(&world);
    let agent = research();
    let words = run_words(agent.to_str().expect("a path"), "topic=who takes over when a worker dies");
    let waiting = world.lodestep(&words).exits(3);
    assert!(waiting.out.contains("approval"), "{waiting:?}");
    assert!(world.read("out/notified.log").is_empty(), "nothing is published before the approval");
    let requests = world.requests();
    assert_eq!(requests.len(), 1);
    let approved = world.lodestep(&["approve", &requests[0][..4]]).exits(0);
    assert!(approved.out.contains("approved"), "{approved:?}");
    let done = world.lodestep(&words).exits(0);
    assert!(done.err.contains("going on with"), "{done:?}");

    let id = world.run_id();
    let report = world.lodestep(&["artifacts", &id, "report.md"]).exits(0).out;
    assert!(check_citations(&report, &docs) > 0, "{report}");
    assert!(citations(&report).iter().all(|(_, name, ..)| name == "leases.md"), "{report}");
    let published: Vec<_> = std::fs::read_dir(world.path().join("out/reports")).expect("published").collect();
    assert_eq!(published.len(), 1);
    let published = std::fs::read_to_string(published[0].as_ref().expect("a file").path()).expect("read");
    assert_eq!(published, report, "what was published is what was approved");
    assert_eq!(world.read("out/notified.log").lines().count(), 1);

    let effects = world.json(&["effects", &id]);
    let effects: Vec<_> = effects
        .as_array()
        .expect("a list")
        .iter()
        .map(|effect| (effect["tool"].clone(), effect["state"].clone()))
        .collect();
    assert_eq!(effects, [("publish".into(), "done".into()), ("notify".into(), "done".into())]);
    assert!(world.lodestep(&["verify"]).exits(0).out.contains("sound"));
    assert!(world.lodestep(&["show", &id]).exits(0).out.contains("completed"));
    assert!(world.lodestep(&["log", &id]).exits(0).out.contains("RunEnded"));
    // The natural act after the end starts another run.
    assert!(world.lodestep(&words).exits(3).err.contains("started"));
}

#[test]
fn another_topic_cites_other_documents() {
    let world = World::new();
    let docs = documents(&world);
    let agent = research();
    let words = run_words(agent.to_str().expect("a path"), "topic=how dough becomes bread in the oven");
    world.lodestep(&words).exits(3);
    let report = world.lodestep(&["artifacts", &world.run_id(), "report.md"]).exits(0).out;
    assert!(check_citations(&report, &docs) > 0, "{report}");
    assert!(citations(&report).iter().all(|(_, name, ..)| name == "bread.md"), "{report}");
}

#[test]
fn a_report_over_the_projects_own_documents_says_only_what_they_say() {
    let world = World::new();
    let agent = research();
    let docs = root().join("docs");
    let folder = format!("folder={}", docs.display());
    let words = ["run", agent.to_str().expect("a path"), "-i", &folder, "-i", "out=out"];
    world.lodestep(&words).exits(3);
    let report = world.lodestep(&["artifacts", &world.run_id(), "report.md"]).exits(0).out;
    assert!(check_citations(&report, &docs) >= 5, "{report}");
}

#[test]
fn a_denied_publication_is_not_published() {
    let world = World::new();
    documents(&world);
    let agent = research();
    let words = run_words(agent.to_str().expect("a path"), "topic=who takes over when a worker dies");
    world.lodestep(&words).exits(3);
    world.lodestep(&["deny", &world.requests()[0], "--reason", "not yet"]).exits(0);
    let end = world.lodestep(&words);
    assert!(!world.path().join("out/reports").exists(), "{end:?}");
    assert_eq!(end.code, Some(6), "the milestone `published` can't be reached: {end:?}");
    assert!(world.read("out/notified.log").is_empty(), "nobody is told of a report that was not published");
    let shown = world.json(&["show", &world.run_id()]);
    assert_eq!(shown["reasons"][0]["why"], "completion", "{shown}");
    for told in [
        "finish was refused 3 times",
        "milestone published: it needs a finished publish",
        "was denied by ada",
        "publish did not go through (denied: not yet)",
    ] {
        assert!(end.out.contains(told), "the stop says what is missing and why: {end:?}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_refused_before_anything_starts() {
    let world = World::new();
    let agent = research();
    let agent = agent.to_str().expect("a path");
    for words in [vec!["run", agent, "-i", "folder=gone"], vec!["run", agent, "--check", "-i", "folder=gone"]] {
        let said = world.lodestep(&words).exits(2);
        let gone = world.path().join("gone");
        for told in ["input.folder_missing", "`folder`", gone.to_str().expect("a path"), "-i folder=FOLDER"] {
            assert!(said.err.contains(told), "{told}: {said:?}");
        }
    }
    assert!(!world.path().join("store.db").exists(), "nothing was started");
}

#[test]
fn a_folder_that_went_away_is_said_and_no_empty_report_is_offered() {
    let world = World::new();
    let docs = documents(&world);
    let agent = research();
    let words = run_words(agent.to_str().expect("a path"), "topic=who takes over when a worker dies");
    let mut crash = words.clone();
    crash.extend(["--crash-at", "run:accepted"]);
    assert_eq!(world.lodestep(&crash).code, None);
    let away = world.path().join("away");
    std::fs::rename(&docs, &away).expect("moved");
    // The same command goes on with the run, whose folder is gone by now.
    let stopped = world.lodestep(&words).exits(6);
    let told = format!("documents_list failed (the folder {} does not exist)", docs.display());
    assert!(stopped.out.contains("There was nothing to read") && stopped.out.contains(&told), "{stopped:?}");
    let shown = world.json(&["show", &world.run_id()]);
    assert_eq!(shown["checkpoint"]["artifacts"], serde_json::json!({}), "{shown}");
    assert_eq!(shown["checkpoint"]["plan"][0]["reached"], serde_json::Value::Null, "{shown}");
    // Once it is back, the run reads.
    std::fs::rename(&away, &docs).expect("moved back");
    world.lodestep(&["resume"]).exits(3);
    assert!(world.lodestep(&["artifacts", &world.run_id(), "report.md"]).exits(0).out.contains("leases.md"));
}

#[test]
fn a_check_judges_the_finish_and_tells_the_model_what_is_wrong() {
    let world = World::new();
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "it is done" } }] });
    let save = |text: &str| {
        let arguments = json!({ "name": "report.md", "text": text });
        json!({ "calls": [{ "name": "artifact_save", "arguments": arguments }] })
    };
    let replies = json!([finish, save("too short"), finish, save("long enough by far"), finish]);
    let check = "cat > seen; grep -q 'enough' seen || { echo 'the report says too little'; exit 3; }";
    world.write("check.sh", check);
    let done = "[done]\nartifacts = [\"report.md\"]\ncheck = [\"sh\", \"check.sh\"]\n";
    let agent = world.agent(done, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    let seen: Value = serde_json::from_str(&world.read("seen")).expect("JSON on stdin");
    assert_eq!(seen, json!({ "summary": "it is done", "artifacts": { "report.md": "long enough by far" } }));
    let log = world.lodestep(&["log", &world.run_id()]).exits(0).out;
    assert_eq!(log.matches("CheckStarted").count(), 2, "{log}");
    assert_eq!(log.matches("FinishRefused").count(), 2, "the first had no artifact, the second was checked: {log}");
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
    assert!(!shown.contains("self-declared"), "{shown}");
    assert!(shown.contains("not complete yet, says the check: exit status 3: the report says too little"), "{shown}");
}
