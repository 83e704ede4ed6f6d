//! Words from people through the command line: approvals, answers, edits, errors, exit codes.

mod support;

use serde_json::json;
use support::*;

const PAY: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "echo \"$(cat)\" >> paid"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "unsafe"
"#;

fn paying(world: &World) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(PAY, &replies).to_str().expect("a path").to_owned()
}

#[test]
fn apr_02_of_many_answers_one_counts() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let name = world.requests().remove(0);
    let said: Vec<_> = (0..8)
        .map(|number| {
            let words: Vec<&str> = if number % 2 == 0 { vec!["approve", &name] } else { vec!["deny", &name] };
            world.command(&words).spawn().expect("started")
        })
        .collect();
    let said: Vec<Said> = said.into_iter().map(|child| Said::of(child.wait_with_output().expect("ended"))).collect();
    let first = |text: &str| said.iter().filter(|said| said.code == Some(0) && said.out.starts_with(text)).count();
    assert_eq!(first("approved") + first("denied"), 1, "{said:?}");
    assert_eq!(first("already given"), 3, "{said:?}");
    assert_eq!(
        said.iter().filter(|said| said.code == Some(1) && said.err.contains("request.decided")).count(),
        4,
        "{said:?}"
    );
    let approved = first("approved") == 1;
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!(world.read("paid").lines().count(), usize::from(approved));
}

/// An agent that would pay three times in one turn.
fn paying_thrice(world: &World) -> String {
    let pay = |cents: u32| json!({ "name": "pay", "arguments": { "cents": cents } });
    let replies = json!([
        { "calls": [pay(10), pay(20), pay(30)] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(PAY, &replies).to_str().expect("a path").to_owned()
}

#[test]
fn apr_02_a_call_that_names_one_request_twice_is_refused_whole() {
    let world = World::new();
    let agent = paying_thrice(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let names = world.requests();
    assert_eq!(names.len(), 3);
    let (first, other, whole) = (&names[0][..12], &names[1][..12], names[0].as_str());
    for command in ["approve", "deny"] {
        for words in [vec![first, other, first], vec![other, first, whole], vec![first, &names[2], other, first]] {
            let words: Vec<&str> = [command].into_iter().chain(words).collect();
            let refused = world.lodestep(&words).exits(2);
            assert!(refused.err.contains("usage.request_twice") && refused.err.contains(&names[0][..8]), "{refused:?}");
            assert!(refused.out.is_empty(), "{refused:?}");
        }
        let refused = world.lodestep(&[command, first, "ffffffffff", other]).exits(1);
        assert!(refused.err.contains("request.not_found"), "{refused:?}");
    }
    let refused = world.lodestep(&["approve", first, other, "--edit", r#"{"cents":7}"#]).exits(2);
    assert!(refused.err.contains("usage.edit"), "{refused:?}");
    // Approved and denied in one call: no command can say both.
    for words in [vec!["approve", first, "--deny", other], vec!["approve", first, "--reason", "no"]] {
        world.lodestep(&words).exits(2);
    }
    assert_eq!(world.requests(), names, "all are open as before");
    world.lodestep(&["run", &agent]).exits(3);
    assert!(world.read("paid").is_empty());
}

#[test]
fn several_requests_are_answered_in_one_call_and_judged_one_by_one() {
    let world = World::new();
    let agent = paying_thrice(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let names = world.requests();
    let denied = world.lodestep(&["deny", &names[1], "--reason", "too much"]).exits(0);
    assert!(denied.out.starts_with("denied"), "{denied:?}");
    let said = world.lodestep(&["approve", &names[0], &names[1], &names[2]]).exits(1);
    assert_eq!(said.out.matches(": approved;").count(), 2, "{said:?}");
    assert!(said.err.starts_with(&format!("error: {}: ", &names[1][..8])), "{said:?}");
    assert!(said.err.contains("it was denied by ada") && said.err.contains("request.decided"), "{said:?}");
    let again = world.json(&["approve", &names[0], &names[1], &names[2]]);
    let verdicts: Vec<_> = again.as_array().expect("a list").iter().map(|said| said["verdict"].clone()).collect();
    assert_eq!(verdicts, ["already_given", "refused", "already_given"], "{again}");
    assert_eq!((&again[1]["request"], &again[1]["error"]["code"]), (&json!(names[1]), &json!("request.decided")));
    world.lodestep(&["run", &agent]).exits(0);
    let mut paid: Vec<_> = world.read("paid").lines().map(str::to_owned).collect();
    paid.sort();
    assert_eq!(paid, [r#"{"cents":10}"#, r#"{"cents":30}"#]);
}

#[test]
fn why_a_person_said_no_is_read_back() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let id = world.run_id();
    world.lodestep(&["deny", &world.requests()[0], "--reason", "too much"]).exits(0);
    let shown = world.lodestep(&["show", &id]).exits(0).out;
    assert_eq!(shown.matches("denied by ada: too much, goes on as soon as").count(), 2, "before it is read: {shown}");
    world.lodestep(&["run", &agent]).exits(0);
    let shown = world.lodestep(&["show", &id]).exits(0).out;
    assert!(shown.contains("  denied by ada: too much\n"), "{shown}");
    let log = world.lodestep(&["log", &id]).exits(0).out;
    assert!(log.lines().any(|line| line.contains("ActionDenied") && line.ends_with(": denied: too much")), "{log}");
    let effect = world.json(&["effects", &id])[0].clone();
    assert_eq!((&effect["state"], &effect["by"]), (&json!("denied"), &json!("person")), "{effect}");
    assert_eq!((&effect["said_by"], &effect["reason"]), (&json!("ada"), &json!("too much")), "{effect}");
    let effects = world.lodestep(&["effects", &id]).exits(0).out;
    assert!(effects.contains(" by person ada: too much  "), "{effects}");
}

#[test]
fn apr_03_what_was_approved_is_what_is_sent() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    // The script changes its mind while the request waits: nobody asks it again.
    let changed = json!({ "replies": [
        { "calls": [{ "name": "pay", "arguments": { "cents": 9999 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]});
    world.write("script.json", &changed.to_string());
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!(world.read("paid").trim(), r#"{"cents":10}"#);
}

#[test]
fn apr_03_an_edit_is_another_action_and_the_old_request_is_stale() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let name = world.requests().remove(0);
    let wrong = world.lodestep(&["approve", &name, "--edit", r#"{"cents":"many"}"#]).exits(2);
    assert!(wrong.err.contains("usage.edit"), "{wrong:?}");
    world.lodestep(&["approve", &name, "--edit", r#"{"cents":7}"#]).exits(0);
    let stale = world.lodestep(&["approve", &name]).exits(1);
    assert!(stale.err.contains("request.stale"), "{stale:?}");
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!(world.read("paid").trim(), r#"{"cents":7}"#);
}

#[test]
fn a_question_waits_for_its_answer() {
    let world = World::new();
    let replies = json!([
        { "calls": [{ "name": "ask", "arguments": { "question": "Which one?" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent("", &replies);
    let agent = agent.to_str().expect("a path");
    let asked = world.lodestep(&["run", agent]).exits(3);
    assert!(asked.out.contains("Which one?"), "{asked:?}");
    let name = world.requests().remove(0);
    let wrong = world.lodestep(&["approve", &name]).exits(1);
    assert!(wrong.err.contains("request.is_a_question"), "{wrong:?}");
    world.lodestep(&["answer", &name, ""]).exits(0);
    assert!(world.lodestep(&["answer", &name, ""]).exits(0).out.contains("already given"));
    world.lodestep(&["run", agent]).exits(0);
}

#[test]
fn idn_01_fifty_starts_with_one_id_are_one_run() {
    let world = World::new();
    let replies = json!([{ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent("", &replies);
    let agent = agent.to_str().expect("a path");
    let starts: Vec<_> =
        (0..50).map(|_| world.command(&["run", agent, "--id", "one"]).spawn().expect("started")).collect();
    let said: Vec<Said> = starts.into_iter().map(|child| Said::of(child.wait_with_output().expect("ended"))).collect();
    assert!(said.iter().all(|said| said.code == Some(0)), "{said:?}");
    assert_eq!(said.iter().filter(|said| said.err.contains("started")).count(), 1);
    assert_eq!(world.run_id(), "one");
    assert_eq!(world.json(&["show", "one"])["checkpoint"]["model"]["calls"], 1, "it ran once");
}

#[test]
fn idn_01_a_start_after_a_cancel_returns_the_cancelled_run() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent, "--id", "one"]).exits(3);
    world.lodestep(&["cancel", "one", "--reason", "wrong month"]).exits(0);
    let head = || world.json(&["ls"])[0]["head"].clone();
    let cancelled = head();
    for _ in 0..2 {
        let again = world.lodestep(&["run", &agent, "--id", "one"]).exits(4);
        assert!(again.out.contains("run one is cancelled\n  wrong month\n"), "{again:?}");
        assert!(!again.err.contains("started"), "{again:?}");
    }
    assert_eq!(world.run_id(), "one", "there is no other run");
    assert_eq!(head(), cancelled, "and nothing was added to it");
    assert!(world.read("paid").is_empty());
    // Without the id it is another start, and a run of its own.
    world.lodestep(&["run", &agent]).exits(3);
    assert_eq!(world.json(&["ls"]).as_array().map(Vec::len), Some(2));
}

#[test]
fn errors_have_codes_and_a_next_step() {
    let world = World::new();
    let agent = paying(&world);
    for (words, code, named) in [
        (vec!["ls"], 7, "store.not_found"),
        (vec!["run", "missing.toml"], 2, "agent.not_found"),
        (vec!["run", &agent, "-i", "topic=x"], 2, "input.unknown"),
        (vec!["run", &agent, "--id", "A B"], 2, "run.id_invalid"),
        (vec!["run", &agent, "--crash-at", "pay"], 2, "usage.crash_at"),
    ] {
        let said = world.lodestep(&words).exits(code);
        assert!(said.err.contains(named), "{words:?}: {said:?}");
    }
    world.lodestep(&["run", &agent]).exits(3);
    for (words, code, named) in [
        (vec!["show", "uuuu"], 1, "run.not_found"),
        (vec!["approve", "ffffffffff"], 1, "request.not_found"),
        (vec!["approve", "not-hex"], 1, "request.not_found"),
        (vec!["resolve", "uuuu", "9", "--retry"], 1, "run.not_found"),
        (vec!["ls", "--status", "sleeping"], 2, "usage.status"),
    ] {
        let said = world.lodestep(&words).exits(code);
        assert!(said.err.contains(named), "{words:?}: {said:?}");
    }
    let id = world.run_id();
    let said = world.lodestep(&["resolve", &id, "9", "--retry"]).exits(1);
    assert!(said.err.contains("there is no action 9; the last is 1"), "{said:?}");
}

#[test]
fn art_02_names_that_leave_the_root_are_refused() {
    let world = World::new();
    let names = ["../x", "/etc/x", "a/../../x", "C:\\x", "\\\\host\\x", "x\u{0}.txt", "CON", ".", "", "%2e%2e/x"];
    let mut calls: Vec<_> = names
        .iter()
        .map(|name| json!({ "name": "artifact_save", "arguments": { "name": name, "text": "canary" } }))
        .collect();
    calls.extend(
        names.iter().map(|name| json!({ "name": "out_write", "arguments": { "name": name, "text": "canary" } })),
    );
    calls.push(json!({ "name": "out_write", "arguments": { "name": "link/x", "text": "canary" } }));
    calls.push(json!({ "name": "out_write", "arguments": { "name": "good.txt", "text": "fine" } }));
    let replies = json!([{ "calls": calls }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent("[tools.out]\nbuiltin = \"file\"\nroot = \"out\"\n", &replies);
    std::fs::create_dir_all(world.path().join("out")).expect("made");
    std::fs::create_dir_all(world.path().join("outside")).expect("made");
    std::os::unix::fs::symlink(world.path().join("outside"), world.path().join("out/link")).expect("linked");
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    assert_eq!(std::fs::read_dir(world.path().join("outside")).expect("read").count(), 0);
    assert_eq!(world.read("out/good.txt"), "fine");
    assert!(!world.path().join("x").exists());
    assert_eq!(world.json(&["artifacts", &world.run_id()]), json!([]));
}

#[test]
fn a_missing_secret_at_resume_stops_the_run_and_names_it() {
    let world = World::new();
    let tables = format!("{PAY}env = {{ TOKEN = \"${{env:LODESTEP_TESTED_TOKEN}}\" }}\n");
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(&tables, &replies);
    let agent = agent.to_str().expect("a path");
    let refused = world.lodestep(&["run", agent]).exits(2);
    assert!(refused.err.contains("LODESTEP_TESTED_TOKEN"), "{refused:?}");
    let with = |words: &[&str]| {
        Said::of(world.command(words).env("LODESTEP_TESTED_TOKEN", "a secret word").output().expect("ran"))
    };
    with(&["run", agent]).exits(3);
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    let stopped = world.lodestep(&["resume"]).exits(6);
    assert!(stopped.out.contains("not set: LODESTEP_TESTED_TOKEN"), "{stopped:?}");
    assert!(world.read("paid").is_empty(), "nothing was sent");
    with(&["resume"]).exits(0);
    assert_eq!(world.read("paid").lines().count(), 1);
    // The reference is stored, the value is not.
    for entry in std::fs::read_dir(world.path()).expect("listed").flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).expect("read");
        assert!(!bytes.windows(13).any(|window| window == b"a secret word"), "{:?}", entry.path());
    }
}

#[test]
fn a_store_that_was_lost_is_refused_and_not_begun_anew() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let store = world.path().join("store.db");
    let refused = |words: &[&str]| {
        let said = world.lodestep(words).exits(7);
        assert!(said.err.contains("store.corrupt"), "{words:?}: {said:?}");
    };
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.path().join(format!("store.db{suffix}")));
    }
    refused(&["run", &agent]);
    std::fs::write(&store, []).expect("written");
    for words in [vec!["ls"], vec!["verify"], vec!["worker", "--until-idle"], vec!["run", &agent]] {
        refused(&words);
        assert_eq!(std::fs::metadata(&store).expect("there").len(), 0, "{words:?} left it as it was");
    }
    // Moved away by a person, it begins anew.
    std::fs::rename(world.path().join("store.db-files"), world.path().join("old-files")).expect("moved");
    world.lodestep(&["run", &agent]).exits(3);
}

#[test]
fn verify_names_a_damaged_page_and_the_runs_that_can_still_be_read() {
    use std::os::unix::fs::FileExt as _;
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let sound = world.lodestep(&["verify"]).exits(0);
    assert!(sound.out.starts_with("store ") && sound.out.contains("store.db: sound\n"), "{sound:?}");
    assert!(sound.out.lines().count() == 3 && sound.out.ends_with("\n1 run sound\n"), "a line a run: {sound:?}");
    assert!(world.lodestep(&["verify", &world.run_id()]).exits(0).out.contains("\n  head  "), "one alone in full");
    assert_eq!(world.json(&["verify"])[0]["faults"], json!([]));
    let store = world.path().join("store.db");
    let root = |name: &str| {
        let db = rusqlite::Connection::open(&store).expect("opened");
        let found =
            db.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?", [name], |row| row.get::<_, i64>(0));
        (found.expect("it is in the schema") as u64 - 1) * 4096
    };
    let damage = |name: &str| {
        let at = root(name);
        let file = std::fs::OpenOptions::new().write(true).open(&store).expect("opened");
        file.write_all_at(&[0x5a; 512], at).expect("damaged");
    };
    // An index that no reading of one run needs: the run itself is whole.
    damage("request_open");
    let damaged = world.lodestep(&["verify"]).exits(7);
    assert!(
        damaged.out.contains("store.db: DAMAGED [store.corrupt]\n  table request or one of its indexes: "),
        "{damaged:?}"
    );
    assert!(damaged.out.contains("put it back from a copy"), "{damaged:?}");
    assert!(damaged.out.contains(": sound. "), "the run can still be read: {damaged:?}");
    assert!(damaged.out.contains("` still reads it\n"), "{damaged:?}");
    world.lodestep(&["show", &world.run_id()]).exits(0);
    // The index by which a run is found: its own rows are whole, and no command says that it reads them.
    let run = world.run_id();
    damage("run_by_id");
    let hidden = world.lodestep(&["verify"]).exits(7);
    world.lodestep(&["show", &run]).exits(7);
    assert!(hidden.out.contains(": sound. ") && hidden.out.contains("  no command reads it here: "), "{hidden:?}");
    assert!(!hidden.out.contains("still reads it"), "{hidden:?}");
    // The table of all runs: there is nothing left to list, and that is not called empty.
    damage("head");
    let lost = world.lodestep(&["verify"]).exits(7);
    assert!(
        lost.out.contains("  table head or one of its indexes: ") && lost.out.ends_with("no run can be read\n"),
        "{lost:?}"
    );
    let shown = world.json(&["verify"]);
    assert_eq!((shown.as_array().map(Vec::len), &shown[0]["error"]["code"]), (Some(1), &json!("store.corrupt")));
}

#[test]
fn of_a_file_that_is_no_store_nothing_is_promised() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    world.rest();
    std::fs::write(world.path().join("store.db"), [0x5a; 8192]).expect("written");
    for words in [["ls"], ["verify"], ["todo"]] {
        let said = world.lodestep(&words).exits(7);
        assert!(said.err.contains("put back a copy") && !said.err.contains("verify` lists"), "{words:?}: {said:?}");
    }
}

#[test]
fn the_nearest_folder_that_has_or_had_a_store_decides() {
    let world = World::new();
    let agent = paying(&world);
    let (upper, lower) = (world.path().join("a"), world.path().join("a/b"));
    std::fs::create_dir_all(&lower).expect("made");
    let at = |folder: &std::path::Path, words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lodestep"));
        command.args(words).current_dir(folder).env_remove("LODESTEP_STORE").stdin(std::process::Stdio::null());
        Said::of(command.output().expect("ran"))
    };
    let store = |folder: &std::path::Path| folder.join(".lodestep/lodestep.db");
    let new = at(&lower, &["run", &agent]).exits(3);
    let path = std::fs::canonicalize(store(&lower)).expect("made").display().to_string();
    assert!(new.err.lines().any(|line| line == format!("a new store: {path}")), "{new:?}");
    let again = at(&lower, &["run", &agent]).exits(3);
    assert!(!again.err.contains("a new store"), "{again:?}");
    std::fs::rename(lower.join(".lodestep"), world.path().join("kept")).expect("moved");
    at(&upper, &["run", &agent]).exits(3);
    std::fs::rename(world.path().join("kept"), lower.join(".lodestep")).expect("moved back");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(lower.join(format!(".lodestep/lodestep.db{suffix}")));
    }
    for words in [vec!["run", agent.as_str()], vec!["ls"], vec!["worker", "--until-idle"]] {
        let lost = at(&lower, &words).exits(7);
        assert!(lost.err.contains("was made before, and now it is gone or empty"), "{words:?}: {lost:?}");
    }
    assert!(!store(&lower).exists());
}

#[test]
fn without_a_name_in_the_environment_the_systems_user_says_it() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let mut command = world.command(&["approve", &world.requests()[0]]);
    let nameless = command.env_remove("LODESTEP_USER").env_remove("USER").env_remove("LOGNAME");
    Said::of(nameless.output().expect("ran")).exits(0);
    let system = std::process::Command::new("id").arg("-un").output().expect("id");
    let name = String::from_utf8(system.stdout).expect("UTF-8");
    let done = world.lodestep(&["run", &agent]).exits(0);
    assert!(done.err.contains(&format!("approved by {} ", name.trim())), "{name}: {done:?}");
}

#[test]
fn a_second_cancel_is_already_given() {
    let world = World::new();
    let agent = paying(&world);
    world.lodestep(&["run", &agent]).exits(3);
    let id = world.run_id();
    let cancels: Vec<_> = (0..4).map(|_| world.command(&["cancel", &id]).spawn().expect("started")).collect();
    let said: Vec<Said> = cancels.into_iter().map(|child| Said::of(child.wait_with_output().expect("ended"))).collect();
    assert!(said.iter().all(|said| said.code == Some(0)), "{said:?}");
    assert!(world.lodestep(&["cancel", &id]).exits(0).out.starts_with("already given"));
}
