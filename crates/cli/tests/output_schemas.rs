//! What commands print with `--json` is what their schemas say: nothing is missing, and nothing stands there that they lack.

mod support;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::*;

const TOOLS: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "! grep -q '\"fails\":true'"]
input = { type = "object", properties = { fails = { type = "boolean" } } }
class = "unsafe"
[tools.gone]
description = "Is not there."
command = ["./gone"]
input = { type = "object" }
class = "idempotent"
"#;

const ASKS: &str = "[[policy]]\ntools = [\"pay\"]\ndecide = \"ask\"\nexpires = \"7d\"\n";

const ALLOWS: &str = "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";

/// A schema in which no object has a field that it does not name.
fn strict(mut schema: Value) -> Value {
    fn close(of: &mut Value) {
        match of {
            Value::Object(fields) => {
                fields.values_mut().for_each(close);
                if fields.get("properties").is_some_and(Value::is_object)
                    && !fields.contains_key("additionalProperties")
                {
                    fields.insert("additionalProperties".to_owned(), json!(false));
                }
            }
            Value::Array(all) => all.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    schema
}

/// Checks a printed value.
fn check(world: &World, schema: &str, printed: &Value) {
    let schema = strict(world.json(&["schema", schema]));
    let validator = jsonschema::validator_for(&schema).expect("a sound schema");
    let faults: Vec<String> =
        validator.iter_errors(printed).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}\n{printed:#}");
}

/// Starts a run of an agent file of its own; what was printed.
fn run(world: &World, id: &str, tables: &str, replies: &Value, more: &[&str]) -> Said {
    world.write(&format!("{id}.json"), &json!({ "replies": replies }).to_string());
    let text = format!(
        "format = 1\n[agent]\nname = \"{id}\"\nobjective = \"Follow.\"\ninstructions = \"Follow.\"\n[model]\n\
         provider = \"script\"\nname = \"{id}.json\"\n{TOOLS}{tables}"
    );
    let file = world.write(&format!("{id}.toml"), &text);
    let file = file.to_str().expect("a path");
    world.lodestep(&[&["run", file, "--id", id, "--label", "team=a", "--json"][..], more].concat())
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "calls": [{ "name": name, "arguments": arguments }] })
}

fn finish() -> Value {
    call("finish", json!({ "summary": "over" }))
}

/// A store with a run in each state that one comes to without waiting, and what was printed as they got there.
fn states(world: &World) -> Vec<Said> {
    let pay = || call("pay", json!({}));
    let ask = call("ask", json!({ "question": "Which?", "choices": ["a", "b"] }));
    let mut printed = vec![
        run(world, "done", ALLOWS, &json!([pay(), call("pay", json!({ "fails": true })), finish()]), &[]),
        run(world, "asks", ASKS, &json!([pay(), finish()]), &[]),
        run(world, "ques", "", &json!([ask, finish()]), &[]),
        run(world, "quot", &format!("{ALLOWS}[quota]\nmodel_calls = 1\n"), &json!([pay(), finish()]), &[]),
        run(world, "sign", "", &json!([call("wait_for_signal", json!({ "name": "paid" })), finish()]), &[]),
    ];
    world.lodestep(&["tell", "asks", "soon"]).exits(0);
    printed.push(run(world, "deny", ASKS, &json!([pay(), finish()]), &[]));
    let name = world.json(&["show", "deny"])["requests"][0]["request"].as_str().expect("a name").to_owned();
    world.lodestep(&["deny", &name, "--reason", "no"]).exits(0);
    printed.push(world.lodestep(&["resume", "deny", "--json"]));
    run(world, "dbts", ALLOWS, &json!([pay(), finish()]), &["--crash-at", "pay:applied"]);
    printed.push(world.lodestep(&["resume", "dbts", "--json"]));
    // What a command would wait for by itself is left to a worker that leaves.
    let wait = call("wait", json!({ "seconds": 3_600 }));
    run(world, "time", "", &json!([wait, finish()]), &["--crash-at", "run:accepted"]);
    run(world, "gone", "", &json!([call("gone", json!({}))]), &["--crash-at", "run:accepted"]);
    run(world, "busy", "", &json!([json!({ "error": "busy" })]), &["--crash-at", "run:accepted"]);
    printed
}

#[test]
fn what_is_printed_is_what_the_schemas_say() {
    let world = World::new();
    let printed = states(&world);
    let statuses: Vec<Option<i32>> = printed.iter().map(|said| said.code).collect();
    assert_eq!(statuses, [0, 3, 3, 6, 3, 3, 0, 5].map(Some), "{printed:?}");
    for said in &printed {
        check(&world, "run", &serde_json::from_str(&said.out).unwrap_or_else(|fault| panic!("{fault}: {said:?}")));
    }
    let worker = world.lodestep(&["worker", "--until-idle", "--json"]).exits(0);
    assert!(worker.out.lines().count() > 3, "{worker:?}");
    for line in worker.out.lines() {
        check(&world, "lines", &serde_json::from_str(line).expect("JSON"));
    }
    world.lodestep(&["hold", "tool:pay"]).exits(0);
    run(&world, "held", ALLOWS, &json!([call("pay", json!({})), finish()]), &[]).exits(3);

    let listed = world.json(&["ls"]);
    check(&world, "ls", &listed);
    let listed = listed.as_array().expect("a list");
    let retries: usize = listed.iter().filter_map(|run| run["retries"].as_array()).map(Vec::len).sum();
    assert_eq!((listed.len(), retries), (11, 2), "{listed:#?}");
    let todo = world.json(&["todo"]);
    check(&world, "todo", &todo);
    let kinds: BTreeSet<&str> =
        todo.as_array().expect("a list").iter().filter_map(|item| item["kind"].as_str()).collect();
    assert_eq!(kinds, ["approval", "in doubt", "question", "stopped"].into());
    let mut reasons = BTreeSet::new();
    for run in listed.iter().filter_map(|run| run["run"].as_str()) {
        let shown = world.json(&["show", run]);
        check(&world, "show", &shown);
        reasons.extend(shown["reasons"].as_array().expect("a list").iter().map(|reason| reason["reason"].to_string()));
        check(&world, "effects", &world.json(&["effects", run]));
    }
    assert!(reasons.len() >= 8, "{reasons:?}");
    let effects = world.json(&["effects", "deny"]);
    assert_eq!((&effects[0]["state"], &effects[0]["said_by"]), (&json!("denied"), &json!("ada")));
}

#[test]
fn a_schema_refuses_what_is_not_its_own() {
    let world = World::new();
    let said = run(&world, "done", ALLOWS, &json!([call("pay", json!({})), finish()]), &[]).exits(0);
    let sound: Value = serde_json::from_str(&said.out).expect("JSON");
    let schema = world.json(&["schema", "run"]);
    let validator = jsonschema::validator_for(&schema).expect("a sound schema");
    assert!(validator.is_valid(&sound));
    for (field, other) in
        [("status", json!("over")), ("run", json!("done")), ("unread", json!(-1)), ("requests", json!({}))]
    {
        let mut altered = sound.clone();
        altered[field] = other;
        assert!(!validator.is_valid(&altered), "{field}");
        altered.as_object_mut().expect("an object").remove(field);
        assert!(!validator.is_valid(&altered), "{field} is required");
    }
}
