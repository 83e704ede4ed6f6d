//! `run --dry-run`: reads are done, of everything else it is shown what would be sent, and nothing is left behind.

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::*;

const TOOLS: &str = r#"
[tools.look]
description = "Look."
command = ["sh", "-c", "cat >> looked; echo seen"]
input = { type = "object" }
class = "read"

[tools.drafts]
builtin = "file"
root = "drafts"

[tools.publish]
description = "Publish."
command = ["sh", "-c", "cat >> published"]
input = { type = "object", required = ["body"], properties = { body = { type = "artifact" } } }
output = { type = "object", required = ["id"] }
class = "keyed"

[tools.charge]
description = "Charge."
http = { method = "POST", url = "http://127.0.0.1:9/charge/${arg:id}", headers = { Authorization = "Bearer ${env:PAY_TOKEN:-none}" }, allow_hosts = ["127.0.0.1"] }
input = { type = "object", required = ["id"], properties = { id = { type = "string" } } }
class = "unsafe"

[tools.erase]
description = "Erase."
command = ["sh", "-c", "cat >> erased"]
input = { type = "object" }
class = "unsafe"

[[policy]]
tools = ["erase"]
decide = "deny"

[[policy]]
tools = ["charge"]
decide = "allow"

[[milestone]]
id = "published"
title = "Published"
requires = { action = "publish" }

[done]
milestones = "all"
check = ["sh", "-c", "cat >> checked"]

[notify]
command = ["sh", "-c", "cat >> heard"]
"#;

fn everything(world: &World) -> String {
    let call = |name: &str, arguments: Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let replies = json!([
        call("look", json!({})),
        call("artifact_save", json!({ "name": "report.md", "text": "What was seen." })),
        call("drafts_write", json!({ "name": "a.txt", "text": "draft" })),
        call("publish", json!({ "body": "report.md" })),
        call("erase", json!({})),
        call("charge", json!({ "id": "7" })),
        call("finish", json!({ "summary": "done" })),
    ]);
    world.agent(TOOLS, &replies).to_str().expect("a path").to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("one").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn reads_are_done_and_of_all_else_the_arguments_and_the_verdict_are_shown() {
    let world = World::new();
    let agent = everything(&world);
    let shown = world.json(&["run", &agent, "--dry-run"]);
    assert_eq!((&shown["dry_run"], &shown["status"]), (&json!(true), &json!("completed")), "{shown}");
    let would: Vec<(&str, &str, &Value)> = shown["would_send"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["tool"].as_str().expect("a tool"), it["policy"].as_str().expect("a verdict"), &it["arguments"]))
        .collect();
    assert_eq!(would[0], ("drafts_write", "allow", &json!({ "name": "a.txt", "text": "draft" })));
    // An artifact is shown as the tool would get it.
    assert_eq!(would[1], ("publish", "ask", &json!({ "body": "What was seen." })));
    assert_eq!(would[2], ("charge", "allow", &json!({ "id": "7" })));
    assert_eq!((would[3].0, &would[3].2["summary"]), ("finish", &json!("done")));
    assert_eq!(would.len(), 4);
    assert_eq!(shown["would_send"][2]["by"], "POST http://127.0.0.1:9/charge/${arg:id}");
    assert_eq!(shown["denied"], json!([{ "action": 5, "tool": "erase", "policy": "deny" }]), "{shown}");
    // The read was done, and that is all that there is to see of it: no store, no effect, no notification.
    assert_eq!(world.read("looked"), "{}");
    assert_eq!(names(world.path()), ["agent.toml", "looked", "script.json"]);
    let said = world.lodestep(&["run", &agent, "--dry-run"]).exits(0);
    for part in [
        "would be sent: publish (action 4, keyed; policy: ask)\n  by: sh -c cat >> published\n  body: What was seen.\n",
        "denied by the policy: erase (action 5)",
        "the run would be completed",
        "4 would be sent; nothing was",
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    for (tool, sent) in
        [("drafts_write a.txt", false), ("publish body=report.md", false), ("charge id=\"7\"", false), ("look", true)]
    {
        let told = said.err.lines().rfind(|line| line.contains(tool)).unwrap_or_else(|| panic!("{tool}: {}", said.err));
        assert_eq!(told.contains(&format!("{tool} (dry run: not sent)")), !sent, "{told}");
    }
}

#[test]
fn a_dry_run_ends_where_a_person_would_be_asked_and_touches_no_run_of_the_store() {
    let world = World::new();
    let replies = json!([
        { "calls": [{ "name": "ask", "arguments": { "question": "Which one?" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent("", &replies).to_str().expect("a path").to_owned();
    world.lodestep(&["run", &agent]).exits(3);
    let before = world.json(&["show", &world.run_id()]);
    let ended = world.lodestep(&["run", &agent, "--dry-run"]).exits(3);
    assert!(ended.out.contains("would then be waiting") && ended.out.contains("0 would be sent"), "{ended:?}");
    assert_eq!(world.json(&["show", &world.run_id()]), before);
    // It is one thing or the other.
    world.lodestep(&["run", &agent, "--dry-run", "--id", "x"]).exits(2);
}
