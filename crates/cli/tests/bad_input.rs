//! What is odd, damaged or too large when it comes in: kept exactly or refused by name, and never altered in silence.

mod support;

use lodestep::core::Digest;
use serde_json::json;
use support::*;

const BEGIN: &str = "format = 1\n[agent]\nname = \"odd\"\nobjective = \"Do it.\"\ninstructions = \"Follow it.\"\n\
    [model]\nprovider = \"script\"\nname = \"script.json\"\n";

/// Does the run's journal name these very bytes?
fn has_stored(world: &World, run: &str, text: &str) -> bool {
    let log = world.lodestep(&["--json", "log", run]).exits(0).out;
    log.contains(&Digest::of(text.as_bytes()).to_hex())
}

#[test]
fn an_agent_file_with_an_odd_value_is_named_by_its_line_and_nothing_is_started() {
    for (text, line, names) in [
        ("[inputs]\na = { type = \"string\", default = \"x\\u0000\" }\n", 10, "holds a NUL character"),
        ("[inputs]\na = { type = \"string\", default = \"x\0\" }\n", 10, "not TOML"),
        ("[inputs]\na = { type = \"string\", default = \"x\\ud800\" }\n", 10, "not TOML"),
        ("[inputs]\na = { type = \"number\", default = nan }\n", 10, "is no number"),
        ("[inputs]\na = { type = \"number\", default = inf }\n", 10, "is no number"),
        ("[inputs]\na = { type = \"integer\", default = 9007199254740993 }\n", 10, "can't be held exactly"),
        ("[quota]\ntotal_tokens = 9007199254740993\n", 10, "9007199254740993"),
        ("[quota]\nmodel_calls = nan\n", 10, "`quota.model_calls` is a number with a point"),
    ] {
        let world = World::new();
        world.write("script.json", "{\"replies\": []}");
        let agent = world.write("agent.toml", &format!("{BEGIN}{text}"));
        for words in
            [&["run", agent.to_str().expect("a path")][..], &["run", agent.to_str().expect("a path"), "--check"]]
        {
            let said = world.lodestep(words).exits(2);
            assert!(said.err.contains(&format!("agent.toml:{line}:")) && said.err.contains(names), "{text}: {said:?}");
            assert!(said.err.contains("agent.invalid") && said.err.contains("nothing was started"), "{text}: {said:?}");
        }
        assert!(!world.path().join("store.db").exists(), "{text}: a store was made");
    }
    let world = World::new();
    world.write("script.json", "{\"replies\": []}");
    std::fs::write(world.path().join("agent.toml"), [BEGIN.as_bytes(), b"# caf\xe9\n"].concat()).expect("written");
    let said = world.lodestep(&["run", "agent.toml"]).exits(2);
    assert!(said.err.contains("agent.toml") && said.err.contains("UTF-8"), "{said:?}");
}

#[test]
fn an_input_that_cannot_be_held_exactly_is_refused_also_by_a_fork() {
    let world = World::new();
    let tables = "[inputs]\nn = { type = \"integer\", default = 3 }\nf = { type = \"number\", default = 0.5 }\n";
    let agent = world.agent(tables, &json!([{ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]));
    let agent = agent.to_str().expect("a path");
    let odd =
        ["n=9007199254740993", "f=123456789012345678901234567890", "f=1e400", "f=NaN", "f=0.10000000000000000001"];
    for input in odd {
        let said = world.lodestep(&["run", agent, "-i", input]).exits(2);
        let number = &input[2..];
        assert!(said.err.contains("input.invalid") && said.err.contains(number), "{input}: {said:?}");
    }
    assert!(!world.path().join("store.db").exists(), "a store was made");
    world.lodestep(&["run", agent, "--id", "odd1"]).exits(0);
    for input in odd {
        let said = world.lodestep(&["fork", "odd1", "-i", input]).exits(2);
        assert!(said.err.contains("input.invalid") && said.err.contains(&input[..1]), "{input}: {said:?}");
    }
    assert_eq!(world.json(&["ls"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn what_a_lookup_says_is_kept_to_the_byte() {
    let result = r#"{"n": 123456789012345678901234567890, "f": 0.10000000000000000001, "s": "\ud800 \u0000"}"#;
    for (said, kept) in [(result, result), (r#""a\u0000 text""#, "a\0 text"), (r#""half \ud800""#, r#""half \ud800""#)]
    {
        let world = World::new();
        world.write("answer", &format!("{{\"status\": \"done\", \"result\": {said}}}"));
        let tables = "[tools.charge]\ndescription = \"Charge.\"\ncommand = [\"true\"]\nlookup = [\"cat\", \"answer\"]\n\
            input = { type = \"object\" }\nclass = \"checkable\"\nsettles_after = \"10ms\"\n\
            [[policy]]\ntools = [\"charge\"]\ndecide = \"allow\"\n";
        let replies = json!([{ "calls": [{ "name": "charge" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
        let agent = world.agent(tables, &replies);
        let agent = agent.to_str().expect("a path");
        assert_eq!(world.lodestep(&["run", agent, "--crash-at", "charge:applied"]).code, None);
        world.lodestep(&["run", agent]).exits(0);
        assert!(has_stored(&world, &world.run_id(), kept), "{said} was altered");
    }
}

#[test]
fn a_word_with_odd_characters_is_kept_and_a_signal_that_is_no_json_is_refused_by_name() {
    let world = World::new();
    let replies = json!([
        { "calls": [{ "name": "ask", "arguments": { "question": "who?" } }, { "name": "wait_for_signal", "arguments": { "name": "go" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent("", &replies);
    world.lodestep(&["run", agent.to_str().expect("a path"), "--id", "odd2"]).exits(3);
    for (value, names) in [
        ("{\"n\": 9007199254740993}", "9007199254740993 can't be held exactly"),
        ("[1e400]", "1e400 can't be held exactly"),
        ("NaN", "not valid JSON"),
        ("\"\\ud800\"", "\\ud800 is half of a surrogate pair"),
        ("{\"a\": 1, \"a\": 2}", "not valid JSON"),
    ] {
        let said = world.lodestep(&["signal", "odd2", "go", value]).exits(2);
        assert!(said.err.contains("usage.signal") && said.err.contains(names), "{value}: {said:?}");
    }
    let answer = "\u{1}\u{202e}\u{ffff} 9007199254740993 NaN \\ud800";
    world.lodestep(&["answer", &world.requests()[0], answer]).exits(0);
    world.lodestep(&["signal", "odd2", "go", "\"a\\u0000b\""]).exits(0);
    world.lodestep(&["resume", "odd2"]).exits(0);
    assert!(has_stored(&world, "odd2", answer), "the answer was altered");
    assert!(has_stored(&world, "odd2", "\"a\\u0000b\""), "the signal was altered");
}

#[test]
fn an_unknown_artifact_names_those_that_there_are() {
    let world = World::new();
    let save = json!({ "calls": [{ "name": "artifact_save", "arguments": { "name": "report.md", "text": "text" } }] });
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    for (replies, names) in [(json!([finish]), "it has none"), (json!([save, finish]), "report.md (version 1)")] {
        let agent = world.agent("", &replies);
        world.lodestep(&["run", "--new", agent.to_str().expect("a path")]).exits(0);
        let newest = world.json(&["ls"])[0]["run"].as_str().expect("an id").to_owned();
        let said = world.lodestep(&["artifacts", &newest, "reporz.md"]).exits(1);
        assert!(said.err.contains("artifact.not_found") && said.err.contains(names), "{said:?}");
    }
}

#[test]
fn a_script_that_was_moved_stops_the_run_by_its_name_and_nothing_is_lost() {
    let world = World::new();
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo x >> paid\"]\ninput = { type = \"object\" }\n\
        class = \"unsafe\"\n";
    let replies = json!([
        { "calls": [{ "name": "pay" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(tables, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(3);
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    let (script, away) = (world.path().join("script.json"), world.path().join("away"));
    std::fs::rename(&script, &away).expect("moved");
    let stopped = world.lodestep(&["resume"]).exits(6);
    assert!(stopped.out.contains("stopped: secret") && stopped.out.contains("script.json"), "{stopped:?}");
    assert_eq!(world.read("paid"), "", "it was sent");
    std::fs::rename(&away, &script).expect("moved back");
    world.lodestep(&["resume"]).exits(0);
    assert_eq!(world.read("paid"), "x\n", "the approval still counts");
}
