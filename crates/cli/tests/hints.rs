//! What a person reads who types something that is not quite right, or looks at what a run needs next.

mod support;

use serde_json::json;
use support::*;

const PAY: &str = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo paid >> paid\"]\n\
                   input = { type = \"object\" }\nclass = \"unsafe\"\n";

fn paying(world: &World, tables: &str) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
    ]);
    world.agent(&format!("{PAY}{tables}"), &replies).to_str().expect("a path").to_owned()
}

#[test]
fn an_input_that_is_too_short_is_refused_by_name() {
    let world = World::new();
    let agent = paying(&world, "[inputs]\ntopic = { type = \"string\", min_length = 3 }\n");
    for (topic, code) in [("", 2), ("  ab  ", 2), ("abc", 3)] {
        let said = world.lodestep(&["run", &agent, "-i", &format!("topic={topic}")]).exits(code);
        assert_eq!(said.err.contains("input.invalid"), code == 2, "{said:?}");
    }
    let example = world.lodestep(&["run", research().to_str().expect("a path"), "-i", "topic="]).exits(2);
    assert!(example.err.contains("the input `topic`: \"\" has fewer than"), "{example:?}");
}

#[test]
fn a_resume_of_a_quarantined_run_exits_as_the_table_says() {
    let world = World::new();
    let agent = paying(&world, "");
    for _ in 0..5 {
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "model:reply"]).code, None);
    }
    world.lodestep(&["run", &agent]).exits(5);
    assert_eq!(world.json(&["ls"])[0]["status"], "quarantined");
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
    assert!(shown.contains("crashed 5 times") && shown.contains("while its model was asked"), "{shown}");
    let refused = world.lodestep(&["resume", &world.run_id()]).exits(5);
    assert!(refused.err.contains("run.quarantined") && refused.err.contains("release"), "{refused:?}");
}

#[test]
fn a_request_is_named_by_four_characters_at_least() {
    let world = World::new();
    let agent = paying(&world, "");
    world.lodestep(&["run", &agent]).exits(3);
    let name = world.requests().remove(0);
    for word in ["approve", "deny"] {
        let refused = world.lodestep(&[word, &name[..1]]).exits(2);
        assert!(refused.err.contains("usage.request") && refused.err.contains(&name[..8]), "{refused:?}");
    }
    // Two characters are swapped.
    let swapped = format!("{}{}{}", &name[1..2], &name[..1], &name[2..6]);
    if swapped != name[..6] {
        let missed = world.lodestep(&["approve", &swapped]).exits(1);
        assert!(missed.err.contains(&format!("did you mean `{}`?", &name[..6])), "{missed:?}");
    }
    world.lodestep(&["approve", &name[..4]]).exits(0);
    let late = world.lodestep(&["deny", &name]).exits(1);
    assert!(late.err.contains("it was approved by"), "{late:?}");
}

#[test]
fn an_action_that_is_not_in_doubt_is_told_from_the_one_that_is() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "pay:applied"]).code, None);
    world.lodestep(&["run", &agent]).exits(5);
    let id = world.run_id();
    let missed = world.lodestep(&["resolve", &id, "7", "--happened"]).exits(1);
    assert!(missed.err.contains("action.not_found") && missed.err.contains("did you mean action 1"), "{missed:?}");
    world.lodestep(&["resolve", &id, "1", "--happened"]).exits(0);
    world.lodestep(&["resume", &id]).exits(0);
    let over = world.lodestep(&["resolve", &id, "1", "--abandon", "nobody knows"]).exits(1);
    assert!(over.err.contains("it is settled: done") && over.err.contains("no action"), "{over:?}");
}

#[test]
fn after_a_denial_what_helps_comes_first() {
    let world = World::new();
    let milestone = "[[milestone]]\nid = \"paid\"\ntitle = \"Paid\"\nrequires = { action = \"pay\" }\n[done]\nmilestones = \"all\"\n";
    let agent = paying(&world, milestone);
    world.lodestep(&["run", &agent]).exits(3);
    world.lodestep(&["deny", &world.requests()[0], "--reason", "not yet"]).exits(0);
    let stopped = world.lodestep(&["resume", &world.run_id()]).exits(6);
    let hints = stopped.out.split("now:\n").nth(1).expect("hints").to_owned();
    let words: Vec<&str> = hints.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(words, ["tell", "resume", "cancel"], "{stopped:?}");
    let todo = world.json(&["todo"]);
    assert!(todo[0]["command"].as_str().is_some_and(|command| command.contains(" tell ")), "{todo}");
}

#[test]
fn every_command_that_works_can_be_told_to_crash() {
    for words in [&["resume"][..], &["worker", "--until-idle"]] {
        let world = World::new();
        let agent = paying(&world, "");
        world.lodestep(&["run", &agent]).exits(3);
        world.lodestep(&["approve", &world.requests()[0]]).exits(0);
        let misspelt = world.lodestep(&[words, &["--crash-at", "pya:applied"]].concat()).exits(2);
        assert!(
            misspelt.err.contains("usage.crash_at") && misspelt.err.contains("did you mean `pay`?"),
            "{misspelt:?}"
        );
        let crashed = world.lodestep(&[words, &["--crash-at", "pay:applied"]].concat());
        assert_eq!(crashed.code, None, "{crashed:?}");
        assert!(crashed.err.contains("crashed at pay:applied"), "{crashed:?}");
        assert_eq!(world.read("paid"), "paid\n");
        world.lodestep(words);
        assert_eq!(world.json(&["ls"])[0]["status"], "in_doubt");
    }
}

#[test]
fn idn_02_a_start_with_a_known_id_and_another_definition_says_that_the_run_keeps_its_own() {
    let world = World::new();
    let agent = paying(&world, "");
    world.lodestep(&["run", &agent, "--id", "pay-7"]).exits(3);
    let first = world.json(&["show", "pay-7"])["checkpoint"]["definition"]["digest"].clone();
    let changed = world.read("agent.toml").replace("Pay.", "Pay at once.");
    world.write("agent.toml", &changed);
    let again = world.lodestep(&["run", &agent, "--id", "pay-7"]).exits(3);
    assert!(again.err.contains("the agent file has changed since"), "{again:?}");
    assert!(again.err.contains("the tool pay") && again.err.contains("goes on with its own definition"), "{again:?}");
    assert_eq!(world.json(&["show", "pay-7"])["checkpoint"]["definition"]["digest"], first);
    world.lodestep(&["cancel", "pay-7"]).exits(0);
    let over = world.lodestep(&["run", &agent, "--id", "pay-7"]).exits(4);
    assert!(over.err.contains("the agent file has changed since"), "{over:?}");
}

#[test]
fn kills_are_counted_when_they_hit() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    let said = world.lodestep(&["test", &agent, "--every", "100", "--kills", "6", "--seed", "3"]);
    let kills = said.out.lines().filter(|line| line.starts_with("random kills"));
    for line in kills {
        let is_ok = line.ends_with("ok");
        assert!(!(is_ok && line.contains("crashes 0 ")), "a trial without a kill shows nothing: {line}");
    }
    assert!(said.out.contains(", 6 of 6 random kills"), "{said:?}");
}
