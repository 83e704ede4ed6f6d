//! After a no: what the hints say leads on, and not to the same stop again.

mod support;

use serde_json::json;
use support::*;

/// The commands that the hints of a text name, without the program.
fn hinted(text: &str) -> Vec<String> {
    let hints = text.split("now:\n").nth(1).unwrap_or_else(|| panic!("no hints: {text}"));
    let of_line = |line: &str| line.split_once("store.db ").map(|(_, words)| words.to_owned());
    hints.lines().filter_map(of_line).collect()
}

#[test]
fn a_word_after_a_no_has_the_example_ask_anew() {
    let world = World::new();
    world.write("docs/leases.md", "# Leases\n\nWhen the worker dies, another worker takes over its runs.\n");
    let agent = research();
    let agent = agent.to_str().expect("a path");
    let inputs = ["-i", "folder=docs", "-i", "out=out", "-i", "topic=who takes over when a worker dies"];
    world.lodestep(&[&["run", agent][..], &inputs].concat()).exits(3);
    let first = world.requests().remove(0);
    world.lodestep(&["deny", &first, "--reason", "not yet"]).exits(0);
    let stopped = world.lodestep(&["resume"]).exits(6);
    assert!(!stopped.out.contains("wait was not called"), "its own tools publish nothing: {stopped:?}");
    let id = world.run_id();
    let end = &id[id.len() - 4..];
    let step = |name: &str| {
        let log = world.lodestep(&["log", &id, "--limit", "1000", "--json"]).exits(0).out;
        let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an event"));
        let mut proposed = events.filter(|event| event["event"] == "ActionProposed" && event["fields"]["tool"] == name);
        proposed.next_back().map(|event| event["step"].as_u64().expect("a step")).expect("proposed")
    };
    let before = (step("publish") - 1).to_string();
    assert_eq!(
        hinted(&stopped.out),
        [
            format!("tell {end} \"what to do now\"  (then resume: without a word it stops again)"),
            format!("fork {end} --at {before}  (another run, which begins before the no)"),
            format!("cancel {end}"),
        ]
    );
    let todo = world.json(&["todo"]);
    assert_eq!(todo[0]["then"], format!("then resume; or fork {end} --at {before}, before the no; or cancel"));
    // Each way leads to a request: the fork asks, too.
    world.lodestep(&["fork", &id, "--at", &before, "--id", "branch"]).exits(0);
    world.lodestep(&["resume", "branch"]).exits(3);
    assert_eq!(world.json(&["show", "branch"])["requests"][0]["tool"], "publish");
    world.lodestep(&["cancel", "branch"]).exits(0);

    world.lodestep(&["tell", &id, "the numbers are in: publish it now"]).exits(0);
    let shown = world.lodestep(&["show", &id]).exits(0).out;
    assert_eq!(hinted(&shown), [format!("resume {end}"), format!("cancel {end}")]);
    let todo = world.json(&["todo"]);
    assert_eq!(todo.as_array().map(Vec::len), Some(1), "{todo}");
    assert!(todo[0]["command"].as_str().is_some_and(|command| command.contains(" resume ")), "{todo}");
    world.lodestep(&["resume", &id]).exits(3);
    let second = world.json(&["show", &id])["requests"][0]["request"].as_str().expect("a name").to_owned();
    assert_ne!(first, second, "it is another action");
    world.lodestep(&["approve", &second]).exits(0);
    world.lodestep(&["resume", &id]).exits(0);
    assert_eq!(world.read("out/notified.log").lines().count(), 1);
    assert_eq!(world.json(&["show", &id])["status"], json!("completed"));
}

/// A run that can't be complete because of this, whatever it tries by itself.
fn stopped_for(how: &str, policy: &str) -> (World, Said) {
    let world = World::new();
    world.write(
        "agent.toml",
        &format!(
            "format = 1\n[agent]\nname = \"pays\"\nobjective = \"Pay.\"\ninstructions = \"Pay.\"\n[model]\nprovider = \"script\"\n\
             name = \"script.json\"\n[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"{how}\"]\n\
             input = {{ type = \"object\" }}\nclass = \"keyed\"\n[[milestone]]\nid = \"paid\"\ntitle = \"It is paid\"\n\
             requires = {{ action = \"pay\" }}\n[done]\nmilestones = \"all\"\n[[policy]]\ntools = [\"pay\"]\n{policy}\n"
        ),
    );
    let mut replies = vec![finish(); 7];
    replies[0] = json!({ "calls": [{ "name": "pay", "arguments": {} }] });
    world.write("script.json", &json!({ "replies": replies }).to_string());
    let stopped = world.lodestep(&["run", "agent.toml"]);
    (world, stopped)
}

#[test]
fn after_an_expiry_or_a_failure_a_resume_alone_is_no_hint() {
    let (world, waits) = stopped_for("cat; echo paid", "decide = \"ask\"\nexpires = \"1s\"");
    waits.exits(3);
    eventually("nobody answered", std::time::Duration::from_secs(20), || {
        world.lodestep(&["worker", "--until-idle"]);
        world.json(&["show", &world.run_id()])["status"] == "stopped"
    });
    let expired = world.lodestep(&["show", &world.run_id()]).exits(0);
    assert!(expired.out.contains("action 1 was denied, as nobody answered in time"), "{expired:?}");
    let (failing, failed) = stopped_for("cat; echo no funds >&2; exit 22", "decide = \"allow\"");
    let failed = failed.exits(6);
    for (world, said, before) in [(world, expired, "nobody answered"), (failing, failed, "it failed")] {
        let id = world.run_id();
        let end = &id[id.len() - 4..];
        let hints = hinted(&said.out);
        assert!(hints[0].starts_with(&format!("tell {end} ")), "{hints:?}");
        assert!(hints[1].starts_with(&format!("fork {end} --at ")) && hints[1].contains(before), "{hints:?}");
        let todo = world.json(&["todo"]);
        assert!(todo[0]["command"].as_str().is_some_and(|command| command.contains(" tell ")), "{todo}");
    }
}
