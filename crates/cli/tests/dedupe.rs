//! One effect for several runs: the dedupe key, from the outside.

mod support;

use serde_json::{Value, json};
use support::*;

/// An agent file whose run charges with these arguments, and then finishes. A charge is a line in the ledger `charged`.
fn agent(world: &World, name: &str, class: &str, arguments: &str) -> String {
    world.write(
        "charge.sh",
        "if [ -e refuse ]; then echo no; exit 1; fi\necho \"$LODESTEP_RUN\" >> charged; echo \"charged by $LODESTEP_RUN\"\n",
    );
    let charge = json!({ "name": "charge", "raw": arguments });
    let finish = json!({ "name": "finish", "arguments": { "summary": "done" } });
    let script = json!({ "replies": [{ "calls": [charge] }, { "calls": [finish] }] });
    world.write(&format!("{name}.json"), &script.to_string());
    let file = world.write(
        &format!("{name}.toml"),
        &format!(
            "format = 1\n[agent]\nname = \"{name}\"\nobjective = \"Charge.\"\ninstructions = \"Charge.\"\n\
             [model]\nprovider = \"script\"\nname = \"{name}.json\"\n\
             [tools.charge]\ndescription = \"Charge.\"\ncommand = [\"sh\", \"charge.sh\"]\nclass = \"{class}\"\n\
             dedupe = \"invoice-${{arg:invoice}}\"\n\
             input = {{ type = \"object\", required = [\"invoice\", \"cents\"], properties = {{ invoice = {{ type = \"integer\" }}, \
             cents = {{ type = \"integer\" }}, note = {{ type = \"string\" }} }} }}\n\
             [[policy]]\ntools = [\"charge\"]\ndecide = \"allow\"\n"
        ),
    );
    file.to_str().expect("a path").to_owned()
}

const SEVEN: &str = r#"{"invoice":7,"cents":100}"#;

fn run(world: &World, file: &str, id: &str) -> Said {
    world.lodestep(&["run", file, "--id", id])
}

fn charged(world: &World) -> Vec<String> {
    world.read("charged").lines().map(str::to_owned).collect()
}

/// Did the run's charge follow from what another run did, and was it done?
fn followed(world: &World, id: &str) -> Option<bool> {
    let log = world.lodestep(&["--json", "log", id]).exits(0).out;
    let mut events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.find(|event| event["fields"]["by"] == "other_run")?["fields"]["ok"].as_bool()
}

fn conflict(world: &World, id: &str) -> bool {
    world.lodestep(&["show", id]).exits(0).out.contains("effect.conflict: run first has the dedupe key `invoice-7`")
}

fn is_sound(world: &World) {
    world.lodestep(&["verify"]).exits(0);
}

#[test]
fn idn_02_the_same_key_with_the_same_payload_is_one_effect_and_with_another_a_conflict() {
    let world = World::new();
    let payloads = [
        ("first", SEVEN, None),
        ("same", SEVEN, Some(true)),
        ("order", r#"{"cents":100,"invoice":7}"#, Some(true)),
        ("spelled", r#"{"invoice":7e0,"cents":100}"#, Some(true)),
        ("amount", r#"{"invoice":7,"cents":101}"#, Some(false)),
        ("extra", r#"{"invoice":7,"cents":100,"note":"x"}"#, Some(false)),
    ];
    for (name, payload, taken) in payloads {
        let file = agent(&world, name, "unsafe", payload);
        run(&world, &file, name).exits(0);
        assert_eq!(followed(&world, name), taken, "{name}");
        assert_eq!(conflict(&world, name), taken == Some(false), "{name}");
        assert_eq!(charged(&world), ["first"], "{name}");
    }
    let other = agent(&world, "other", "unsafe", r#"{"invoice":8,"cents":100}"#);
    run(&world, &other, "other").exits(0);
    assert_eq!(charged(&world), ["first", "other"]);
    is_sound(&world);
}

#[test]
fn idn_02_a_run_that_meets_the_key_of_a_crashed_one_waits_and_takes_its_outcome() {
    for (class, point, exit) in [("keyed", "charge:intent", 0), ("unsafe", "charge:applied", 5)] {
        let world = World::new();
        let (first, second) = (agent(&world, "first", class, SEVEN), agent(&world, "second", class, SEVEN));
        assert_eq!(world.lodestep(&["run", &first, "--id", "first", "--crash-at", point]).code, None);
        let waits = run(&world, &second, "second").exits(3);
        let listed = world.json(&["ls", "--status", "waiting"]);
        assert_eq!(listed[0]["why"], "held by first 1", "{waits:?} {listed}");
        let shown = world.json(&["show", "second"]);
        let reason = shown["reasons"].as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
        assert_eq!(
            (&reason["reason"], &reason["run"], &reason["by"]),
            (&json!("held"), &json!("first"), &json!(1)),
            "{shown}"
        );
        assert!(reason["since"].as_i64().is_some() || reason["since"].is_string(), "{reason}");
        is_sound(&world);
        // Waiting writes nothing: the same command again finds it as it was.
        let before = shown["seq"].clone();
        run(&world, &second, "second").exits(3);
        assert_eq!(world.json(&["show", "second"])["seq"], before);
        run(&world, &first, "first").exits(exit);
        if exit == 5 {
            run(&world, &second, "second").exits(3);
            world.lodestep(&["resolve", "first", "1", "--happened", "charged by first, says ada"]).exits(0);
        }
        world.lodestep(&["worker", "--until-idle"]).exits(0);
        let done: Value = world.json(&["ls", "--status", "completed"]);
        assert_eq!(done.as_array().map(Vec::len), Some(2), "{class}: {done}");
        assert_eq!(followed(&world, "second"), Some(true), "{class}");
        assert_eq!(charged(&world), ["first"], "{class}");
        is_sound(&world);
    }
}

#[test]
fn a_key_is_free_again_when_its_effect_provably_did_not_happen() {
    let world = World::new();
    let first = agent(&world, "first", "unsafe", SEVEN);
    world.write("refuse", "");
    run(&world, &first, "first").exits(0);
    std::fs::remove_file(world.path().join("refuse")).expect("removed");
    let second = agent(&world, "second", "unsafe", SEVEN);
    run(&world, &second, "second").exits(0);
    assert_eq!(charged(&world), ["second"], "a refusal left the key free");
    is_sound(&world);
    // Not happened, says a person, and it is sent again under the key that it never let another have.
    let world = World::new();
    let (first, second) = (agent(&world, "first", "unsafe", SEVEN), agent(&world, "second", "unsafe", SEVEN));
    assert_eq!(world.lodestep(&["run", &first, "--id", "first", "--crash-at", "charge:intent"]).code, None);
    run(&world, &first, "first").exits(5);
    run(&world, &second, "second").exits(3);
    world.lodestep(&["resolve", "first", "1", "--retry"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(charged(&world), ["first"]);
    assert_eq!(followed(&world, "second"), Some(true));
    is_sound(&world);
}

#[test]
fn a_cancel_of_the_holder_keeps_the_key_until_somebody_says_what_happened() {
    let world = World::new();
    let (first, second) = (agent(&world, "first", "unsafe", SEVEN), agent(&world, "second", "unsafe", SEVEN));
    assert_eq!(world.lodestep(&["run", &first, "--id", "first", "--crash-at", "charge:applied"]).code, None);
    run(&world, &first, "first").exits(5);
    run(&world, &second, "second").exits(3);
    world.lodestep(&["cancel", "first"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["ls", "--status", "cancelled"])[0]["run"], "first");
    run(&world, &second, "second").exits(3);
    world.lodestep(&["resolve", "first", "1", "--abandon", "nobody knows"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    run(&world, &second, "second").exits(0);
    assert!(conflict(&world, "second"));
    assert_eq!(charged(&world), ["first"]);
    is_sound(&world);
    // Who waits can be cancelled too, and leaves nothing behind.
    let third = agent(&world, "third", "unsafe", r#"{"invoice":9,"cents":1}"#);
    assert_eq!(world.lodestep(&["run", &third, "--id", "third", "--crash-at", "charge:intent"]).code, None);
    let fourth = agent(&world, "fourth", "unsafe", r#"{"invoice":9,"cents":1}"#);
    run(&world, &fourth, "fourth").exits(3);
    world.lodestep(&["cancel", "fourth"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["show", "fourth"])["status"], "cancelled");
    is_sound(&world);
}

#[test]
fn a_doubt_of_a_cancelled_run_that_did_not_happen_frees_its_key() {
    for (word, charges) in [("--did-not-happen", &["second"][..]), ("--abandon", &[])] {
        let world = World::new();
        let (first, second) = (agent(&world, "first", "unsafe", SEVEN), agent(&world, "second", "unsafe", SEVEN));
        assert_eq!(world.lodestep(&["run", &first, "--id", "first", "--crash-at", "charge:intent"]).code, None);
        run(&world, &first, "first").exits(5);
        world.lodestep(&["cancel", "first"]).exits(0);
        run(&world, &second, "second").exits(3);
        let again = world.lodestep(&["resolve", "first", "1", "--retry"]);
        assert!(again.code == Some(1) && again.err.contains("it did not happen"), "{again:?}");
        world.lodestep(&["resolve", "first", "1", word]).exits(0);
        world.lodestep(&["worker", "--until-idle"]).exits(0);
        assert_eq!(charged(&world), charges, "{word}");
        assert_eq!(conflict(&world, "second"), charges.is_empty(), "{word}");
        let shown = world.json(&["show", "first"]);
        assert_eq!((&shown["status"], &shown["reasons"]), (&json!("cancelled"), &json!([])), "{word} {shown}");
        let said = world.lodestep(&["resolve", "first", "1", word]).exits(0);
        assert!(said.out.starts_with("already given"), "{said:?}");
        is_sound(&world);
    }
}

#[test]
fn many_runs_and_two_workers_do_it_once() {
    let world = World::new();
    for number in 0..8 {
        let name = format!("run-{number}");
        let file = agent(&world, &name, "unsafe", SEVEN);
        assert_eq!(world.lodestep(&["run", &file, "--id", &name, "--crash-at", "run:accepted"]).code, None);
    }
    let mut workers = [world.start(&["worker", "--until-idle"]), world.start(&["worker", "--until-idle"])];
    workers.iter_mut().for_each(|worker| assert_eq!(worker.ended(), Some(0)));
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["ls", "--status", "completed"]).as_array().map(Vec::len), Some(8));
    assert_eq!(charged(&world).len(), 1);
    is_sound(&world);
}

/// An agent that waits for a word before it charges what its input says.
fn asking(world: &World) -> String {
    world.write("charge.sh", "cat >> charged; echo >> charged; echo done\n");
    let charge = json!({ "name": "charge", "arguments": { "invoice": 7 } });
    let finish = json!({ "name": "finish", "arguments": { "summary": "done" } });
    let tables = "[inputs]\ncents = { type = \"integer\" }\nnote = { type = \"string\", default = \"-\" }\n\
        [tools.charge]\ndescription = \"Charge.\"\ncommand = [\"sh\", \"charge.sh\"]\n\
        input = { type = \"object\", properties = { invoice = { type = \"integer\" } } }\n";
    let file = world.agent(tables, &json!([{ "calls": [charge] }, { "calls": [finish] }]));
    file.to_str().expect("a path").to_owned()
}

#[test]
fn idn_02_a_start_with_a_taken_id_and_another_payload_changes_nothing() {
    let world = World::new();
    let file = asking(&world);
    let start = |inputs: &[&str], more: &[&str]| {
        let mut words = vec!["run", &file, "--id", "k"];
        inputs.iter().for_each(|input| words.extend(["-i", input]));
        words.extend(more);
        world.lodestep(&words)
    };
    start(&["cents=100"], &[]).exits(3);
    let before = world.json(&["show", "k"]);
    for inputs in [&["cents=101"][..], &["cents=100", "note=x"]] {
        let refused = start(inputs, &[]);
        assert!(
            refused.code == Some(1) && refused.err.contains("run.id_taken") && refused.err.contains("run k "),
            "{refused:?}"
        );
    }
    let other = agent(&world, "other", "unsafe", SEVEN);
    let refused = run(&world, &other, "k");
    assert!(refused.code == Some(1) && refused.err.contains("run.id_taken"), "{refused:?}");
    asking(&world);
    // The same payload in another order, and with its default spelled out, is the same run.
    start(&["note=-", "cents=100"], &[]).exits(3);
    assert_eq!(world.json(&["show", "k"]), before, "nothing changed");
    let request = world.requests().remove(0);
    world.lodestep(&["approve", &request]).exits(0);
    let second = world.lodestep(&["deny", &request]);
    assert!(second.code == Some(1) && second.err.contains("request.decided"), "{second:?}");
    assert_eq!(start(&["cents=100"], &["--crash-at", "charge:outcome"]).code, None);
    start(&["cents=100"], &[]).exits(0);
    let after = world.json(&["show", "k"]);
    assert_eq!((&after["inputs"], &after["status"]), (&before["inputs"], &json!("completed")));
    assert_eq!(world.read("charged").lines().count(), 1);
    is_sound(&world);
}
