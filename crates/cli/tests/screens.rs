//! What people read: listings, progress lines, doubts, hints. Not what happens to a run; the other suites show that.

mod support;

use std::time::Duration;

use serde_json::json;
use support::*;

const PAY: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "cat >> paid; echo >> paid"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "unsafe"
"#;

const ALLOWED: &str = "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";

fn paying(world: &World, tables: &str) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "paid\nonce" } }] },
    ]);
    world.agent(tables, &replies).to_str().expect("a path").to_owned()
}

#[test]
fn a_run_whose_worker_died_is_ready_and_not_running() {
    let world = World::new();
    let agent = paying(&world, PAY);
    let crashed = world.lodestep(&["run", &agent, "--crash-at", "run:checkpoint"]);
    assert_eq!(crashed.code, None, "{crashed:?}");
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(listed.contains("ready") && listed.contains("no worker holds it, since 20"), "{listed}");
    assert!(!listed.contains("running"), "{listed}");
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
    assert!(shown.contains("ready: no worker holds it, since 20"), "{shown}");
    assert_eq!(world.json(&["ls"])[0]["running"], false);
    assert_eq!(world.json(&["ls", "--status", "running"]), json!([]));
    assert_eq!(world.json(&["ls", "--status", "ready"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_process_that_was_told_to_crash_names_the_program_as_it_was_typed() {
    use std::os::unix::process::CommandExt as _;

    let world = World::new();
    let agent = paying(&world, PAY);
    let mut command = world.command(&["run", &agent, "--crash-at", "run:checkpoint"]);
    let crashed = Said::of(command.arg0("lodestep").output().expect("ran"));
    assert!(crashed.err.contains("go on with `lodestep "), "{crashed:?}");
}

#[test]
fn a_run_that_a_worker_holds_is_running() {
    let world = World::new();
    let slow = "[tools.slow]\ndescription = \"Slow.\"\ncommand = [\"sh\", \"-c\", \"echo > begun; while [ ! -e go ]; do sleep 0.05; done\"]\n\
        input = { type = \"object\" }\nclass = \"idempotent\"\n";
    let replies = json!([{ "calls": [{ "name": "slow" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(slow, &replies);
    let mut running = world.start(&["run", agent.to_str().expect("a path")]);
    eventually("the tool began", Duration::from_secs(20), || !world.read("begun").is_empty());
    assert_eq!(world.json(&["ls", "--status", "running"])[0]["running"], true);
    assert_eq!(world.json(&["ls", "--status", "ready"]), json!([]));
    assert!(world.lodestep(&["show", &world.run_id()]).exits(0).out.contains("scripted  running"));
    world.write("go", "");
    assert!(running.child.wait().expect("ended").success());
    assert_eq!(world.json(&["ls", "--status", "running"]), json!([]));
}

#[test]
fn an_action_approved_elsewhere_keeps_its_name() {
    let world = World::new();
    let agent = paying(&world, PAY);
    world.lodestep(&["run", &agent]).exits(3);
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    let resumed = world.lodestep(&["run", &agent]).exits(0);
    assert!(resumed.err.lines().any(|line| line.contains("pay cents=10 approved by ada")), "{resumed:?}");
    assert!(
        resumed.err.lines().any(|line| line.starts_with("step") && line.contains("  pay cents=10  ")),
        "{resumed:?}"
    );
    assert!(!resumed.err.contains("action 1"), "{resumed:?}");
    assert!(resumed.out.contains("the model said: paid\n  once\n"), "{resumed:?}");
}

#[test]
fn what_was_said_and_is_not_read_yet_is_shown_as_said() {
    let world = World::new();
    let agent = paying(&world, PAY);
    world.lodestep(&["run", &agent]).exits(3);
    let (run, request) = (world.run_id(), world.requests()[0].clone());
    assert_eq!(world.json(&["show", &run])["requests"][0]["answered"], json!(null));
    world.lodestep(&["approve", &request]).exits(0);
    let shown = world.lodestep(&["show", &run]).exits(0).out;
    assert!(shown.contains("approved by ada, goes on as soon as a worker is there"), "{shown}");
    assert!(shown.contains("; a word has come, and no worker has read it yet\n"), "{shown}");
    assert!(shown.contains(&format!(" resume {}\n", &run[run.len() - 4..])), "{shown}");
    assert!(!shown.contains(" approve ") && !shown.contains(" deny "), "{shown}");
    let json = world.json(&["show", &run]);
    assert_eq!((&json["unread"], &json["requests"][0]["answered"]), (&json!(1), &json!("approved by ada")));
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(!listed.contains("needs you") && listed.contains(", approved by ada: due, no worker holds it"), "{listed}");
    assert_eq!(world.json(&["todo"]), json!([]));
}

#[test]
fn several_lines_are_shown_as_lines() {
    let world = World::new();
    let note = json!({ "key": "k", "text": "one\ntwo\tand\u{7}\u{202e}" });
    let replies = json!([
        { "calls": [{ "name": "note", "arguments": note }, { "name": "pay", "arguments": { "cents": "many" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(PAY, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
    assert!(shown.contains("\n    one\n    two\tand\\u{7}\\u{202e}\n"), "{shown}");
    assert!(!shown.contains("\\u{a}"), "{shown}");
}

#[test]
fn a_doubt_names_what_was_sent_and_how_to_settle_it() {
    let world = World::new();
    let agent = paying(&world, &format!("{PAY}{ALLOWED}"));
    assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "pay:applied"]).code, None);
    let doubt = world.lodestep(&["run", &agent]).exits(5);
    let id = world.run_id();
    let short = &id[id.len() - 4..];
    let command = format!("{} --store {}", env!("CARGO_BIN_EXE_lodestep"), world.path().join("store.db").display());
    for screen in [doubt.out, world.lodestep(&["show", &id]).exits(0).out] {
        assert!(screen.contains("in doubt: pay (action 1, unsafe)") && screen.contains("  cents: 10\n"), "{screen}");
        for (word, means) in [("--happened", "it happened"), ("--retry", "did not happen"), ("--abandon", "given up")] {
            assert!(screen.contains(&format!("{command} resolve {short} 1 {word}\n")), "{word}: {screen}");
            assert!(screen.contains(means), "{means}: {screen}");
        }
        assert!(!screen.contains(&format!("resume {short}")), "resuming helps nobody here: {screen}");
        assert!(screen.contains(&format!("cancel {short}")), "{screen}");
    }
}

#[test]
fn a_doubt_that_was_settled_by_a_word_asks_for_no_other() {
    let world = World::new();
    let agent = paying(&world, &format!("{PAY}{ALLOWED}"));
    world.lodestep(&["run", &agent, "--crash-at", "pay:applied"]);
    world.lodestep(&["run", &agent]).exits(5);
    let run = world.run_id();
    assert!(world.lodestep(&["show", &run]).exits(0).out.contains("--happened"));
    world.lodestep(&["resolve", &run, "1", "--happened"]).exits(0);
    let shown = world.lodestep(&["show", &run]).exits(0).out;
    assert!(shown.contains("a person has said what became of it") && !shown.contains("--happened"), "{shown}");
    assert!(shown.contains(&format!(" resume {}\n", &run[run.len() - 4..])), "{shown}");
    let again = world.lodestep(&["resolve", &run, "1", "--happened"]).exits(0);
    assert!(again.out.contains("already"), "{again:?}");
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!(world.json(&["effects", &run])[0]["by"], "person");
    assert_eq!(world.json(&["effects", &run])[0]["said_by"], "ada");
    assert!(world.lodestep(&["effects", &run]).exits(0).out.contains(" by person ada "));
    let again = world.lodestep(&["resolve", &run, "1", "--happened"]).exits(0);
    assert!(again.out.contains("already"), "{again:?}");
    world.lodestep(&["resolve", &run, "1", "--abandon"]).exits(1);
}

#[test]
fn a_waiting_run_offers_an_answer_and_how_to_read_the_draft() {
    let world = World::new();
    let tables = "[tools.publish]\ndescription = \"Publish.\"\ncommand = [\"true\"]\n\
        input = { type = \"object\", required = [\"body\"], properties = { body = { type = \"artifact\" }, title = { type = \"string\" } } }\n\
        class = \"keyed\"\n";
    let replies = json!([
        { "calls": [{ "name": "artifact_save", "arguments": { "name": "a report.md", "text": "hello" } }] },
        { "calls": [{ "name": "publish", "arguments": { "body": "a report.md", "title": "one\napprove? y" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(tables, &replies);
    let waiting = world.lodestep(&["run", agent.to_str().expect("a path")]).exits(3).out;
    let id = world.run_id();
    let short = &id[id.len() - 4..];
    assert!(waiting.contains(&format!("artifacts {short} 'a report.md' --version 1\n")), "{waiting}");
    assert!(waiting.contains("  title:\n    | one\n    | approve? y\n"), "no line passes for one of ours: {waiting}");
    assert!(!waiting.contains(&format!("resume {short}")), "{waiting}");
}

#[test]
fn an_answer_is_one_of_the_choices() {
    let world = World::new();
    let replies = json!([
        { "calls": [{ "name": "ask", "arguments": { "question": "Which one?", "choices": ["a", "b"] } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent("", &replies);
    let agent = agent.to_str().expect("a path");
    world.lodestep(&["run", agent]).exits(3);
    let name = world.requests().remove(0);
    let refused = world.lodestep(&["answer", &name, "c"]).exits(2);
    assert!(refused.err.contains("usage.answer") && refused.err.contains("a | b"), "{refused:?}");
    assert_eq!(world.requests().first(), Some(&name), "nothing was answered");
    world.lodestep(&["answer", &name, "b"]).exits(0);
    world.lodestep(&["run", agent]).exits(0);
}

#[test]
fn hints_under_errors_can_be_pasted() {
    let world = World::new();
    let agent = paying(&world, PAY);
    world.lodestep(&["run", &agent]).exits(3);
    let id = world.run_id();
    let command = format!("{} --store {}", env!("CARGO_BIN_EXE_lodestep"), world.path().join("store.db").display());
    let unknown = world.lodestep(&["resolve", &id, "9", "--retry"]).exits(1);
    assert!(unknown.err.contains(&format!("`{command} show {}`", &id[id.len() - 4..])), "{unknown:?}");
    let missing = world.lodestep(&["show", "uuuu"]).exits(1);
    assert!(missing.err.contains(&format!("`{command} ls`")), "{missing:?}");
}
