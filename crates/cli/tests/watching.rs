//! `watch` from another process, and completions.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

const SLOW: &str = "[tools.slow]\ndescription = \"Slow.\"\ncommand = [\"sh\", \"-c\", \"echo > begun; while [ ! -e go ]; do sleep 0.02; done\"]\n\
    input = { type = \"object\" }\nclass = \"idempotent\"\n";

fn slow(world: &World) -> String {
    let replies = json!([{ "calls": [{ "name": "slow" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    world.agent(SLOW, &replies).to_str().expect("a path").to_owned()
}

#[test]
fn watching_tells_each_transition_of_a_run_and_ends_with_it() {
    let world = World::new();
    let agent = slow(&world);
    let mut running = world.start(&["run", &agent, "--id", "one"]);
    eventually("the tool began", Duration::from_secs(20), || !world.read("begun").is_empty());
    let from = world.json(&["show", "one"])["checkpoint"]["seq"].as_u64().expect("a number");
    let mut watch = world.command(&["watch", "one", "--json"]).spawn().expect("started");
    // What was done before it looked is not told: it is under way first.
    Lines::of(&mut watch).until("one  at step");
    let (all, mut heard) = world.start_heard(&["watch"]);
    heard.until("one  at step");
    world.write("go", "");
    assert!(running.child.wait().expect("ended").success());
    let said = Said::of(watch.wait_with_output().expect("ended")).exits(0);
    let steps: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let numbers: Vec<u64> = steps.iter().map(|step| step["step"].as_u64().expect("a number")).collect();
    let last = world.json(&["show", "one"])["checkpoint"]["seq"].as_u64().expect("a number");
    assert!(numbers.first().is_some_and(|first| *first <= last && *first > from - 1), "{said:?}");
    assert_eq!(numbers, (numbers[0]..=last).collect::<Vec<_>>(), "each once, in order");
    assert_eq!(steps.last().expect("one")["status"], "completed");
    // Of all runs nothing ends it but a signal, and that ends no run.
    let mut all = all;
    assert!(!all.has_ended());
    assert_eq!(all.terminate(), Some(130));
    let over = world.lodestep(&["watch", "one"]).exits(0);
    assert!(over.err.contains("one  at step") && over.err.contains("completed"), "{over:?}");
}

#[test]
fn a_person_who_watches_reads_words_and_no_names_of_events() {
    let world = World::new();
    let asks = json!([{ "calls": [{ "name": "ask", "arguments": { "question": "Which?" } }] }]);
    let agent = world.agent("", &asks);
    world.lodestep(&["run", agent.to_str().expect("a path"), "--id", "asks"]).exits(3);
    let agent = slow(&world);
    world.write("go", "");
    let mut watch = Running { child: world.command(&["watch"]).spawn().expect("started") };
    // It has looked once: what begins from now on is told from its start.
    Lines::of(&mut watch.child).until("asks  at step");
    let stdout = watch.child.stdout.take().expect("a pipe");
    let (mut other, mut heard) = world.start_heard(&["run", &agent, "--id", "after", "--pace", "150ms"]);
    heard.until("started");
    let mut words = String::new();
    for line in std::io::BufRead::lines(std::io::BufReader::new(stdout)) {
        words.push_str(&format!("{}\n", line.expect("read")));
        if words.contains("completed after") {
            break;
        }
    }
    assert!(other.child.wait().expect("ended").success());
    for told in ["step 1    started\n", "step 2    asks its model\n", "step 3    decides on slow\n", "step 4    slow\n"]
    {
        assert!(words.contains(told), "{told}: {words}");
    }
    let log = world.lodestep(&["log", "after", "--json"]).exits(0).out;
    for event in log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event")) {
        let name = event["event"].as_str().expect("a name");
        assert!(!words.contains(name), "{name} is no word for people: {words}");
    }
}

#[test]
fn every_shell_has_completions() {
    let world = World::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = world.lodestep(&["completions", shell]).exits(0);
        assert!(said.out.contains("lodestep") && said.out.contains("todo"), "{shell}");
    }
}

#[test]
fn a_worker_says_everything_as_lines_of_json_when_it_is_asked_to() {
    let world = World::new();
    let agent = slow(&world);
    world.write("go", "");
    let started = world.lodestep(&["run", &agent, "--id", "one", "--crash-at", "run:accepted"]);
    assert_eq!(started.code, None, "{started:?}");
    let said = world.lodestep(&["worker", "--until-idle", "--json"]).exits(0);
    assert_eq!(said.err, "", "{said:?}");
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let note = lines[0]["note"].as_str().expect("a note");
    assert!(note.starts_with("worker on ") && note.contains("store.db"), "{said:?}");
    let told: Vec<(&str, &str)> = lines[1..]
        .iter()
        .map(|line| (line["run"].as_str().expect("a run"), line["what"].as_str().expect("what happened")))
        .collect();
    assert_eq!(told.first(), Some(&("one", "slow")), "{said:?}");
    assert!(told.last().is_some_and(|(_, what)| what.contains("completed after 2 decisions")), "{said:?}");
    let last = lines.last().expect("a line");
    assert_eq!((&last["status"], &last["agent"]), (&json!("completed"), &json!("scripted")));
    // The same lines as those of who watches.
    let keys = |line: &Value| line.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(last), ["agent", "at", "events", "run", "status", "step", "what", "why"]);
}
