//! Operating many runs: groups and counts, what waits for people, filters, labels, words to many. What one word does to one
//! run is in `words`.

mod support;

use std::time::Instant;

use serde_json::{Value, json};
use support::*;

const PAY: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "echo \"$(cat)\" >> paid"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "unsafe"
[tools.tell]
description = "Tell."
command = ["sh", "-c", "cat >> told"]
input = { type = "object" }
class = "unsafe"
"#;

/// An agent of that name whose run makes these calls, then finishes.
fn calling(world: &World, name: &str, calls: &Value) -> String {
    let replies = json!([{ "calls": calls }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    world.write(&format!("{name}.json"), &json!({ "replies": replies }).to_string());
    let text = format!(
        "format = 1\n[agent]\nname = \"{name}\"\nobjective = \"Follow.\"\ninstructions = \"Follow.\"\n[model]\n\
         provider = \"script\"\nname = \"{name}.json\"\n{PAY}"
    );
    world.write(&format!("{name}.toml"), &text).to_str().expect("a path").to_owned()
}

fn paying(world: &World) -> String {
    calling(world, "payer", &json!([{ "name": "pay", "arguments": { "cents": 10 } }]))
}

fn telling(world: &World) -> String {
    calling(world, "teller", &json!([{ "name": "tell", "arguments": {} }]))
}

fn ids(list: &Value) -> Vec<&str> {
    let mut ids: Vec<_> =
        list.as_array().expect("a list").iter().map(|row| row["run"].as_str().expect("an id")).collect();
    ids.sort_unstable();
    ids
}

/// Two payers and a teller that wait for approvals, labelled, and a run that is over.
fn world_of_four(world: &World) -> String {
    let (pay, tell) = (paying(world), telling(world));
    world.lodestep(&["run", &pay, "--id", "p1", "--label", "team=billing", "--label", "month=11"]).exits(3);
    world.lodestep(&["run", &pay, "--id", "p2", "--label", "team=billing"]).exits(3);
    world.lodestep(&["run", &tell, "--id", "t1", "--label", "team=news"]).exits(3);
    let done = calling(world, "quick", &json!([]));
    world.write("quick.json", r#"{"replies":[{"calls":[{"name":"finish","arguments":{"summary":"done"}}]}]}"#);
    world.lodestep(&["run", &done, "--id", "q1"]).exits(0);
    pay
}

#[test]
fn filters_hold_together_and_every_command_takes_the_same() {
    let world = World::new();
    world_of_four(&world);
    for (filters, found) in [
        (&["--label", "team=billing"][..], &["p1", "p2"][..]),
        (&["--label", "team=billing", "--label", "month=11"], &["p1"]),
        (&["--label", "team=none"], &[]),
        (&["--agent", "payer"], &["p1", "p2"]),
        (&["--tool", "tell"], &["t1"]),
        (&["--tool", "tell", "--agent", "payer"], &[]),
        (&["--status", "waiting", "--label", "team=news"], &["t1"]),
        (&["--since", "1h"], &["p1", "p2", "q1", "t1"]),
        (&["--since", "0s"], &[]),
        (&["--status", "completed"], &["q1"]),
    ] {
        assert_eq!(ids(&world.json(&[&["ls"], filters].concat())), found, "{filters:?}");
        let waiting: Vec<_> = found.iter().filter(|id| **id != "q1").copied().collect();
        assert_eq!(ids(&world.json(&[&["todo"], filters].concat())), waiting, "{filters:?}");
    }
    assert_eq!(world.json(&["ls", "--label", "month=11"])[0]["labels"], json!({"team": "billing", "month": "11"}));
    let refused = world.lodestep(&["run", "payer.toml", "--id", "p9", "--label", "a b=c"]).exits(1);
    assert!(refused.err.contains("run.label_invalid"), "{refused:?}");
}

#[test]
fn todo_says_what_settles_each_thing_that_waits() {
    let world = World::new();
    let pay = world_of_four(&world);
    let doubtful = std::fs::read_to_string(&pay).expect("read").replace("name = \"payer\"", "name = \"doubter\"");
    let doubtful =
        world.write("doubter.toml", &format!("{doubtful}[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n"));
    let doubtful = doubtful.to_str().expect("a path");
    world.lodestep(&["run", doubtful, "--id", "d1", "--crash-at", "pay:applied"]);
    world.lodestep(&["resume", "d1"]).exits(5);
    let todo = world.lodestep(&["todo"]).exits(0).out;
    assert_eq!(todo.lines().filter(|line| !line.starts_with(' ')).count(), 4, "{todo}");
    assert!(
        todo.lines().next().expect("a line").starts_with("in doubt     d1 doubter action 1  pay cents=10"),
        "{todo}"
    );
    // Of a doubt no outcome is offered before another: it is looked at first, by its key and time.
    let doubt = world.json(&["todo"])[0].clone();
    assert!(doubt["command"].as_str().is_some_and(|command| command.ends_with(" show d1")), "{doubt}");
    let then = "then resolve d1 1 with --happened, --retry, --did-not-happen, --abandon";
    assert_eq!(doubt["then"], json!(then));
    let attempt = world.json(&["effects", "d1"])[0].clone();
    assert_eq!((&doubt["key"], &doubt["sent_at"].is_string()), (&attempt["key"], &true), "{doubt}");
    let sent =
        format!("sent {}, key {}\n", doubt["sent_at"].as_str().expect("a time"), doubt["key"].as_str().expect("a key"));
    assert!(todo.contains(&sent) && todo.contains(then), "{todo}");
    let shown = world.lodestep(&["show", "d1"]).exits(0).out;
    assert!(shown.contains(&sent), "{shown}");
    let effects = world.lodestep(&["effects", "d1"]).exits(0).out;
    assert!(effects.contains(&format!("attempt 1 at {}", doubt["sent_at"].as_str().expect("a time"))), "{effects}");
    world.lodestep(&["resolve", "d1", "1", "--happened"]).exits(0);
    // Each other command, typed as it stands, settles its line.
    let before = world.read("paid").lines().count();
    for item in world.json(&["todo"]).as_array().expect("a list") {
        let command = item["command"].as_str().expect("a command");
        let mut shell = std::process::Command::new("sh");
        let said =
            shell.args(["-c", command]).env("LODESTEP_USER", "ada").current_dir(world.path()).output().expect("ran");
        assert!(said.status.success(), "{command}: {said:?}");
    }
    assert_eq!(world.json(&["todo"]), json!([]));
    assert_eq!(world.lodestep(&["todo"]).exits(0).out, "nothing waits for you\n");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("paid").lines().count(), before + 2, "both payers, and the doubter not again");
    assert_eq!(world.json(&["ls", "--status", "completed"]).as_array().map(Vec::len), Some(5));
}

#[test]
fn a_word_to_many_shows_them_and_needs_consent() {
    let world = World::new();
    world_of_four(&world);
    let before = world.json(&["ls"]);
    for words in
        [&["approve", "--tool", "pay"][..], &["cancel", "--agent", "payer"], &["deny", "--label", "team=billing"]]
    {
        let asked = world.lodestep(words).exits(2);
        assert!(asked.err.contains("usage.unconfirmed") && asked.err.contains("2 to "), "{asked:?}");
        assert_eq!(
            asked.err.lines().filter(|line| line.starts_with("  ") && line.contains("payer")).count(),
            2,
            "{asked:?}"
        );
    }
    for words in [
        &["cancel"][..],
        &["approve"],
        &["release"],
        &["deny"],
        &["resolve", "--retry"],
        &["cancel", "p1", "--agent", "payer"],
    ] {
        let refused = world.lodestep(words).exits(2);
        assert!(refused.err.contains("usage.selection"), "{words:?}: {refused:?}");
    }
    let none = world.lodestep(&["cancel", "--agent", "nobody", "--yes"]).exits(2);
    assert!(none.err.contains("usage.nothing_selected"), "{none:?}");
    assert_eq!(world.json(&["ls"]), before, "nothing changed");
    let said = world.lodestep(&["approve", "--tool", "pay", "--yes"]).exits(0);
    assert_eq!(said.out.matches(": approved; ").count(), 2, "{said:?}");
    assert!(said.out.ends_with("\n2 approved\n"), "{said:?}");
    let again = world.json(&["approve", "--tool", "pay", "--yes"]);
    let verdicts: Vec<_> = again.as_array().expect("a list").iter().map(|said| said["verdict"].clone()).collect();
    assert_eq!(verdicts, ["skipped", "skipped"]);
    assert_eq!((&again[0]["run"], &again[0]["why"]), (&json!("p1"), &json!("approved by ada")), "{again}");
    // Nothing is left to agree to.
    let again = world.lodestep(&["approve", "--tool", "pay"]).exits(0);
    assert_eq!(again.out, "0 approved, 2 skipped: 2 approved by ada\n");
    let cancelled = world.lodestep(&["cancel", "--label", "team=news", "--reason", "old", "--yes"]).exits(0);
    assert!(cancelled.out.starts_with("t1: cancelled"), "{cancelled:?}");
    assert_eq!(ids(&world.json(&["ls", "--status", "cancelled"])), ["t1"]);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("paid").lines().count(), 2);
    assert_eq!(world.read("told"), "");
}

#[test]
fn of_many_each_is_judged_on_its_own() {
    let world = World::new();
    world_of_four(&world);
    world
        .lodestep(&[
            "deny",
            &world.json(&["todo", "--label", "month=11"])[0]["request"].as_str().expect("a name")[..12],
        ])
        .exits(0);
    let asked = world.lodestep(&["approve", "--agent", "payer"]).exits(2);
    assert!(asked.err.contains("\n1 to approve\nnote: 1 skipped, which need it no longer\n"), "{asked:?}");
    let said = world.lodestep(&["approve", "--agent", "payer", "--yes"]).exits(0);
    assert_eq!(said.out.matches(": approved; ").count(), 1, "{said:?}");
    assert!(said.out.ends_with("\n1 approved, 1 skipped: 1 denied by ada\n"), "{said:?}");
    // Those that are named are all said to, and one is refused.
    let names: Vec<String> = ["p1", "p2"]
        .map(|run| world.json(&["show", run])["requests"][0]["request"].clone())
        .map(|name| name.as_str().expect("a name").to_owned())
        .into();
    let named = world.lodestep(&["approve", &names[0], &names[1]]).exits(1);
    assert!(named.err.contains("request.decided"), "{named:?}");
    assert!(named.out.ends_with("\n0 approved, 1 already given, 1 refused\n"), "{named:?}");
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(listed.starts_with("needs you (1)\n") && listed.contains("\nready (2)\n"), "{listed}");
    assert!(listed.contains(": due, no worker holds it, since "), "what was said is not asked for again: {listed}");
    assert_eq!(ids(&world.json(&["todo"])), ["t1"]);
}

#[test]
fn doubts_of_many_runs_are_settled_in_one_call() {
    let world = World::new();
    let pay = std::fs::read_to_string(paying(&world)).expect("read");
    let pay = world.write("payer.toml", &format!("{pay}[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n"));
    let pay = pay.to_str().expect("a path");
    for id in ["d1", "d2"] {
        world.lodestep(&["run", pay, "--id", id, "--crash-at", "pay:applied"]);
        world.lodestep(&["resume", id]).exits(5);
    }
    world.lodestep(&["resolve", "--tool", "tell", "--abandon", "--yes"]).exits(2);
    let said = world.lodestep(&["resolve", "--tool", "pay", "--happened", "--yes"]).exits(0);
    assert!(said.out.contains("d1 1: resolved") && said.out.contains("d2 1: resolved"), "{said:?}");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("paid").lines().count(), 2, "neither was sent again");
}

#[test]
fn a_top_up_of_many_runs_needs_consent_and_counts_once_under_its_id() {
    let world = World::new();
    let short = format!("{}\n[quota]\nmodel_calls = 1\n", std::fs::read_to_string(paying(&world)).expect("read"));
    let short = world.write("payer.toml", &format!("{short}[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n"));
    let short = short.to_str().expect("a path");
    for id in ["s1", "s2"] {
        world.lodestep(&["run", short, "--id", id]).exits(6);
    }
    world.lodestep(&["run", &telling(&world), "--id", "t1"]).exits(3);
    let add = ["quota", "add", "model_calls", "2", "--agent", "payer", "--id", "ticket-9"];
    let asked = world.lodestep(&add).exits(2);
    assert!(asked.err.contains("usage.unconfirmed") && asked.err.contains("2 to raise"), "{asked:?}");
    let yes = [&add[..], &["--yes"]].concat();
    let said = world.lodestep(&yes).exits(0);
    assert!(said.out.contains("s1: raised\n") && said.out.ends_with("\n2 raised\n"), "{said:?}");
    assert!(said.err.contains("resume"), "{said:?}");
    assert!(world.lodestep(&yes).exits(0).out.ends_with("\n0 raised, 2 already given\n"));
    let limit = |run: &str| world.json(&["quota", "show", run])["quotas"][0]["limit"].clone();
    assert_eq!((limit("s1"), limit("s2")), (json!(3), json!(3)));
    for (words, code) in [
        (&["quota", "add", "t1", "model_calls", "2", "--agent", "payer"][..], "usage.selection"),
        (&["quota", "add", "t1", "model_calls"], "usage.quota"),
        (&["quota", "add", "gold", "2", "--agent", "payer"], "usage.quota"),
    ] {
        let refused = world.lodestep(words).exits(2);
        assert!(refused.err.contains(code), "{words:?}: {refused:?}");
    }
    world.lodestep(&["resume", "--agent", "payer", "--yes"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(ids(&world.json(&["ls", "--status", "completed"])), ["s1", "s2"]);
}

/// Each of two runs waits for the other's beginning; one after the other they would not meet.
#[test]
fn all_unfinished_runs_are_gone_on_with_together() {
    let world = World::new();
    let tool = "[tools.meet]\ndescription = \"Meet.\"\ntimeout = \"10s\"\nattempts = 1\ninput = { type = \"object\" }\n\
                class = \"read\"\ncommand = [\"sh\", \"-c\", \"touch at-HERE; while [ ! -e at-THERE ]; do sleep 0.02; done; \
                echo met >> met\"]\n";
    let meet = json!({ "calls": [{ "name": "meet" }] });
    let calls = json!([meet, { "calls": [{ "name": "finish", "arguments": { "summary": "met" } }] }]);
    for (here, there) in [("one", "two"), ("two", "one")] {
        let agent = world.agent(&tool.replace("THERE", there).replace("HERE", here), &calls);
        world.lodestep(&["run", agent.to_str().expect("a path"), "--id", here, "--crash-at", "run:checkpoint"]);
    }
    let said = world.lodestep(&["resume", "--all"]).exits(0);
    assert_eq!(said.out.matches(" is completed").count(), 2, "{said:?}");
    assert_eq!(world.read("met").lines().count(), 2, "{said:?}");
}

/// Five hundred runs stay readable, and an old one that needs somebody is not crowded out.
#[test]
fn a_listing_of_five_hundred_runs_is_short_and_begins_with_what_needs_somebody() {
    let world = World::new();
    world_of_four(&world);
    crowd(&world, 500, 0, "");
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(listed.lines().count() < 60, "{listed}");
    assert!(listed.starts_with("needs you (3)\n"), "{listed}");
    assert!(listed.contains("\nready (500)\n") && listed.contains("\nover (1)\n"), "{listed}");
    assert!(listed.contains("  … 480 more of payer  ready\n"), "{listed}");
    assert_eq!(world.json(&["ls"]).as_array().map(Vec::len), Some(504));
    assert_eq!(world.json(&["ls", "--limit", "4"]).as_array().map(Vec::len), Some(4));
    assert_eq!(ids(&world.json(&["ls", "--limit", "3"])), ["p1", "p2", "t1"]);
    // However many younger runs wait for a time, those that wait for a person are found.
    let waiting = lodestep::core::rules::standing::Status::Waiting.to_number();
    crowd(&world, 1_200, waiting, "provider until 2030-01-01T00:00:00Z");
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(listed.starts_with("needs you (3)\n") && listed.contains("\nwaiting (1200)\n"), "{listed}");
    assert!(listed.contains("  … 1180 more of payer  provider\n"), "{listed}");
}

/// A limit is of what is shown: counts are of all, and what needs a person comes first however old it is.
#[test]
fn under_a_limit_the_counts_are_of_all_and_what_needs_somebody_comes_first() {
    let world = World::new();
    let pay = world_of_four(&world);
    let doubtful = std::fs::read_to_string(&pay).expect("read").replace("name = \"payer\"", "name = \"doubter\"");
    let doubtful =
        world.write("doubter.toml", &format!("{doubtful}[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n"));
    world.lodestep(&["run", doubtful.to_str().expect("a path"), "--id", "d1", "--crash-at", "pay:applied"]);
    world.lodestep(&["resume", "d1"]).exits(5);
    use lodestep::core::rules::standing::Status;
    crowd(&world, 500, Status::Waiting.to_number(), "approval 928f since 2026-01-01T00:00:00Z");
    crowd(&world, 30, Status::Quarantined.to_number(), "crashes");
    crowd(&world, 3, Status::Ready.to_number(), "");
    let db = rusqlite::Connection::open(world.path().join("store.db")).expect("opened");
    let later = "UPDATE head SET why = 'provider until 2030-01-01T00:00:00Z' WHERE run IN (SELECT number FROM run ORDER BY number LIMIT 4 OFFSET 500)";
    assert_eq!(db.execute(later, []).expect("altered"), 4);
    drop(db);
    let listed = world.lodestep(&["ls", "--limit", "3"]).exits(0).out;
    let titles: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(titles, ["needs you (530)", "waiting (4)", "ready (3)", "over (1)"], "{listed}");
    let first = listed.lines().nth(1).expect("a row");
    assert!(first.starts_with("  d1") && first.contains("in doubt"), "what nobody knows comes first: {listed}");
    assert!(
        listed.contains("  … 498 more of payer  approval\n") && listed.contains("  … 28 more of payer  crashes\n"),
        "{listed}"
    );
    assert_eq!(ids(&world.json(&["ls", "--limit", "1"])), ["d1"]);
    let waiting = world.lodestep(&["ls", "--status", "waiting", "--limit", "2"]).exits(0).out;
    assert!(waiting.starts_with("needs you (499)\n") && waiting.contains("\nwaiting (4)\n"), "{waiting}");
    let why = world.json(&["ls", "--status", "waiting", "--limit", "2"]);
    let why: Vec<_> = why.as_array().expect("a list").iter().map(|row| row["why"].to_string()).collect();
    assert!(why.len() == 2 && why.iter().all(|why| why.contains("approval")), "{why:?}");
    let labelled = world.lodestep(&["ls", "--label", "team=billing", "--agent", "payer", "--limit", "1"]).exits(0).out;
    assert!(labelled.starts_with("needs you (2)\n") && !labelled.contains("waiting ("), "{labelled}");
    // Beyond ten thousand of a status not every row is read, and the counts say so.
    crowd(&world, 10_001, Status::Waiting.to_number(), "provider until 2030-01-02T00:00:00Z");
    let listed = world.lodestep(&["ls", "--limit", "3"]).exits(0).out;
    assert!(listed.starts_with("needs you (at least ") && listed.contains("\nwaiting (at least 10000)\n"), "{listed}");
}

/// More runs, each a copy of the newest waiting one's rows: starting them one by one takes long.
fn crowd(world: &World, count: usize, status: u8, why: &str) {
    let db = rusqlite::Connection::open(world.path().join("store.db")).expect("opened");
    db.execute_batch("BEGIN").expect("begun");
    for number in 0..count {
        let id = format!("crowd-{status}-{count}-{number}");
        let backwards: String = id.chars().rev().collect();
        db.execute(
            "INSERT INTO run (namespace, id, id_from_end, agent, definition, inputs, started_at, labels)
             SELECT namespace, ?, ?, agent, definition, inputs, started_at, '' FROM run WHERE id = 'p1'",
            [&id, &backwards],
        )
        .expect("inserted");
        db.execute(
            "INSERT INTO head (run, namespace, epoch, seq, digest, status, why, crashes, inbox, inbox_read, updated_at)
             SELECT last_insert_rowid(), namespace, epoch, seq, digest, ?, ?, 0, 0, 0, updated_at FROM head
             WHERE run = (SELECT number FROM run WHERE id = 'p1')",
            rusqlite::params![status, why],
        )
        .expect("inserted");
    }
    db.execute_batch("COMMIT").expect("committed");
}

/// Compared with the start of the same program, interleaved: both take as much longer on a busy machine. A start takes
/// 2.5 ms, so that eight of them are 20 ms.
#[test]
fn a_listing_of_a_hundred_runs_is_there_at_once() {
    let world = World::new();
    world_of_four(&world);
    crowd(&world, 100, 0, "");
    let timed = |words: &[&str]| {
        let since = Instant::now();
        world.lodestep(words).exits(0);
        since.elapsed()
    };
    let pairs: Vec<_> = (0..20).map(|_| (timed(&["ls"]), timed(&["--version"]))).collect();
    let listed = pairs.iter().map(|(listed, _)| *listed).min().expect("some");
    let started = pairs.iter().map(|(_, started)| *started).min().expect("some");
    assert!(listed < 8 * started, "it took {listed:?}, and a start {started:?}");
}
