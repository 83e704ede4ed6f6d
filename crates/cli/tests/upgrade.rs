//! A deploy under unfinished runs: what a changed file means for them, shown first, agreed to, and carried out.

mod support;

use serde_json::{Value, json};
use support::*;

/// Version 1: reads, then pays, then tells; paying and telling are asked for.
const V1: &str = r#"
[tools.look]
description = "Look."
command = ["sh", "-c", "echo look-1 >> ledger; echo seen"]
input = { type = "object" }
class = "read"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "echo pay-1 >> ledger"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "unsafe"
[tools.tell]
description = "Tell."
command = ["sh", "-c", "echo tell-1 >> ledger"]
input = { type = "object" }
class = "unsafe"
[quota]
model_calls = 30
"#;

/// Version 2: a tool before the others, `look` renamed, `tell` removed, `pay` changed, another budget.
const V2: &str = r#"
[tools.first]
description = "Inserted."
command = ["sh", "-c", "echo first-2 >> ledger"]
input = { type = "object" }
class = "read"
[tools.view]
description = "Look."
command = ["sh", "-c", "echo view-2 >> ledger"]
input = { type = "object" }
class = "read"
[tools.pay]
description = "Pay, better."
command = ["sh", "-c", "echo pay-2 >> ledger"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
class = "idempotent"
[[policy]]
tools = ["pay"]
decide = "ask"
[quota]
model_calls = 50
"#;

fn file(world: &World, tables: &str, instructions: &str, replies: &Value) -> String {
    world.write("script.json", &json!({ "replies": replies }).to_string());
    let text = format!(
        "format = 1\n[agent]\nname = \"shop\"\nobjective = \"Serve.\"\ninstructions = \"{instructions}\"\n[model]\n\
         provider = \"script\"\nname = \"script.json\"\n{tables}"
    );
    world.write("agent.toml", &text).to_str().expect("a path").to_owned()
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "calls": [{ "name": name, "arguments": arguments }] })
}

/// A run of version 1 that has looked and waits for its payment's approval.
fn waiting(world: &World) -> String {
    let agent =
        file(world, V1, "Work.", &json!([call("look", &json!({})), call("pay", &json!({"cents": 5})), finish()]));
    world.lodestep(&["run", &agent, "--id", "r1"]).exits(3);
    agent
}

fn second(world: &World) -> String {
    file(world, V2, "Work better.", &json!([{}, {}, finish()]))
}

#[test]
fn dep_02_what_changes_is_shown_first_and_nothing_changes_without_consent() {
    let world = World::new();
    waiting(&world);
    let agent = second(&world);
    let before = world.json(&["show", "r1"]);
    let shown = world.lodestep(&["upgrade", "r1", &agent, "--dry-run"]).exits(0);
    for line in [
        "  instructions: Work. -> Work better.\n",
        "  tools first: new: read\n",
        "  tools look: gone: read\n",
        "  tools tell: gone: unsafe\n",
        "  tools pay class: unsafe -> idempotent (weaker)\n",
        "  tools pay description: Pay. -> Pay, better.\n",
        "  quota model_calls: 30 -> 50, 2 used\n",
        "  action 2 pay: nothing was sent: it is asked anew as ",
    ] {
        assert!(shown.out.contains(line), "{line}{shown:?}");
    }
    let refused = world.lodestep(&["upgrade", "r1", &agent]).exits(2);
    assert!(refused.err.contains("usage.unconfirmed") && refused.err.contains("asked anew"), "{refused:?}");
    assert_eq!(world.json(&["show", "r1"]), before, "nothing changed");
    let plan = world.json(&["upgrade", "r1", &agent, "--dry-run"]);
    assert_eq!((&plan["verdict"], &plan["run"]), (&json!("planned"), &json!("r1")));
    assert_eq!(plan["meaning"][0]["fate"], "asked_anew");
    assert!(
        plan["changes"]
            .as_array()
            .expect("a list")
            .contains(&json!({"part": "tools", "of": "tell", "before": "unsafe", "after": null}))
    );
}

#[test]
fn dep_02_the_run_goes_on_with_the_new_definition_and_repeats_nothing() {
    let world = World::new();
    waiting(&world);
    let old = world.requests();
    let agent = second(&world);
    let said = world.lodestep(&["upgrade", "r1", &agent, "--yes"]).exits(0);
    assert!(said.out.starts_with("upgraded; run r1 goes on"), "{said:?}");
    assert!(world.lodestep(&["upgrade", "r1", &agent, "--yes"]).exits(0).out.starts_with("already given"));
    world.lodestep(&["resume", "r1"]).exits(3);
    assert!(
        world.lodestep(&["upgrade", "r1", &agent]).exits(0).out.starts_with("already given"),
        "also once it is read"
    );
    let stale = world.lodestep(&["approve", &old[0]]).exits(1);
    assert!(stale.err.contains("request.stale"), "{stale:?}");
    let new = world.requests();
    assert_ne!(old, new);
    world.lodestep(&["approve", &new[0]]).exits(0);
    world.lodestep(&["resume", "r1"]).exits(0);
    assert_eq!(world.read("ledger"), "look-1\npay-2\n", "what was done is not done again under another name");
    world.lodestep(&["verify"]).exits(0);
    // Past states and requests are those of the definition that they were made with.
    let at = |step: &str| world.json(&["context", "r1", "--at", step]).to_string();
    assert!(at("2").contains("Work.") && !at("2").contains("Work better."), "{}", at("2"));
    let last = world.json(&["context", "r1"]).to_string();
    assert!(last.contains("Work better.") && last.contains("Inserted."), "{last}");
    let diff = world.json(&["diff", "r1"]).to_string();
    assert!(diff.contains("\"part\":\"definition\""), "{diff}");
    assert!(world.lodestep(&["log", "r1"]).exits(0).out.contains("RunUpgraded"));
    world.lodestep(&["show", "r1", "--at", "2"]).exits(0);
    let over = world.lodestep(&["upgrade", "r1", &agent, "--yes"]).exits(1);
    assert!(over.err.contains("run.over"), "{over:?}");
}

#[test]
fn forks_and_bundles_go_over_an_upgrade() {
    let world = World::new();
    waiting(&world);
    let agent = second(&world);
    world.lodestep(&["upgrade", "r1", &agent, "--yes"]).exits(0);
    world.lodestep(&["resume", "r1"]).exits(3);
    world.lodestep(&["fork", "r1", "--id", "before", "--at", "2"]).exits(0);
    world.lodestep(&["fork", "r1", "--id", "after"]).exits(0);
    let definition = |run: &str| world.json(&["show", run])["checkpoint"]["definition"]["digest"].clone();
    assert_eq!(definition("after"), definition("r1"));
    assert_ne!(definition("before"), definition("r1"));
    world.lodestep(&["export", "r1", "r1.lodestep"]).exits(0);
    let elsewhere = World::new();
    let bundle = world.path().join("r1.lodestep");
    elsewhere.lodestep(&["import", bundle.to_str().expect("a path")]).exits(0);
    assert_eq!(
        elsewhere.json(&["show", "r1"])["checkpoint"]["definition"],
        world.json(&["show", "r1"])["checkpoint"]["definition"]
    );
    elsewhere.lodestep(&["verify"]).exits(0);
    world.lodestep(&["verify"]).exits(0);
}

#[test]
fn dep_02_the_same_command_says_that_the_file_changed_and_how_to_move() {
    let world = World::new();
    waiting(&world);
    let agent = second(&world);
    let said = world.lodestep(&["run", &agent, "--id", "r1"]).exits(3);
    assert!(said.err.contains("the run goes on with its own definition"), "{said:?}");
    let hint = said.err.lines().find_map(|line| line.trim().strip_prefix('`')?.split_once('`')).expect("a command").0;
    assert!(hint.ends_with(&format!("upgrade r1 {agent}")), "{hint}");
    let mut shell = std::process::Command::new("sh");
    let typed = shell.args(["-c", &format!("{hint} --yes")]).current_dir(world.path()).output().expect("ran");
    assert!(typed.status.success(), "{typed:?}");
    let said = world.lodestep(&["run", &agent, "--id", "r1"]).exits(3);
    assert!(!said.err.contains("changed since"), "{said:?}");
}

#[test]
fn a_stop_for_the_definition_ends_with_the_upgrade() {
    let world = World::new();
    waiting(&world);
    std::fs::remove_file(world.path().join("script.json")).expect("removed");
    let request = world.requests();
    world.lodestep(&["approve", &request[0]]).exits(0);
    // The approval is read though the run can't go on: nothing keeps it due.
    let stopped = world.lodestep(&["resume", "r1"]).exits(6);
    assert_eq!(stopped.err.matches("model.script").count(), 0, "{stopped:?}");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    // The script under another name.
    let replies = json!([{}, {}, finish()]);
    world.write("other.json", &json!({ "replies": replies }).to_string());
    let text = world.read("agent.toml").replace("script.json", "other.json");
    let agent = world.write("agent.toml", &text).to_str().expect("a path").to_owned();
    let said = world.lodestep(&["upgrade", "r1", &agent, "--yes"]).exits(0);
    assert!(said.err.contains("the run had stopped for what an upgrade can mend, and goes on"), "{said:?}");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["show", "r1"])["status"], "completed");
    assert_eq!(world.read("ledger"), "look-1\npay-1\n", "its approval stood: the tool is the same");
}

#[test]
fn what_an_upgrade_can_not_do_is_refused_by_name() {
    let world = World::new();
    let agent = waiting(&world);
    let text = world.read("agent.toml");
    for (change, code) in [
        (text.replace("name = \"shop\"", "name = \"other\""), "upgrade.other_agent"),
        (format!("{text}[inputs]\ncolour = {{ type = \"string\", default = \"red\" }}\n"), "upgrade.input_missing"),
        (text.replace("class = \"read\"", "class = \"red\""), "agent.invalid"),
    ] {
        world.write("agent.toml", &change);
        let refused = world.lodestep(&["upgrade", "r1", &agent, "--yes"]);
        assert!(refused.code != Some(0) && refused.err.contains(code), "{code}: {refused:?}");
    }
    for words in [&["upgrade", "r1"][..], &["upgrade"], &["upgrade", &agent]] {
        let refused = world.lodestep(words).exits(2);
        assert!(refused.err.contains("usage."), "{words:?}: {refused:?}");
    }
    world.lodestep(&["upgrade", "r9", &agent, "--yes"]).exits(2);
}

#[test]
fn dep_02_twenty_runs_over_a_deploy_none_idle_in_silence_and_nothing_done_twice() {
    let world = World::new();
    let first = json!([call("look", &json!({})), call("pay", &json!({"cents": 5})), finish()]);
    let agent = file(&world, V1, "Work.", &first);
    let ids: Vec<String> = (1..=20).map(|number| format!("r{number:02}")).collect();
    for id in &ids {
        world.lodestep(&["run", &agent, "--id", id]).exits(3);
    }
    // Eight are approved and not sent yet, the rest are parked on their approvals.
    for id in &ids[..8] {
        let request = world.json(&["show", id])["requests"][0]["request"].as_str().expect("a name").to_owned();
        world.lodestep(&["approve", &request]).exits(0);
    }
    let agent = second(&world);
    let asked = world.lodestep(&["upgrade", &agent, "--status", "waiting", "--status", "ready"]).exits(2);
    assert!(asked.err.contains("20 to upgrade, and nobody agreed"), "{asked:?}");
    assert_eq!(asked.err.matches("tools tell: gone").count(), 1, "the same change is shown once: {asked:?}");
    let moved = world.json(&["upgrade", &agent, "--since", "1h", "--yes"]);
    assert!(moved.as_array().expect("a list").iter().all(|one| one["verdict"] == "accepted"), "{moved}");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    let rows = world.json(&["ls"]);
    let rows = rows.as_array().expect("a list");
    assert!(rows.iter().all(|row| row["status"] == "waiting" && row["why"].as_str().is_some_and(|why| why.starts_with("approval"))), "{rows:?}");
    assert_eq!(world.read("ledger"), "look-1\n".repeat(20), "no approval of the tool before let anything be sent");
    world.lodestep(&["approve", "--tool", "pay", "--yes"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["ls", "--status", "completed"]).as_array().map(Vec::len), Some(20));
    assert_eq!(world.read("ledger"), "look-1\n".repeat(20) + &"pay-2\n".repeat(20));
    world.lodestep(&["verify"]).exits(0);
    let none = world.lodestep(&["upgrade", &agent, "--since", "1h", "--yes"]).exits(2);
    assert!(none.err.contains("usage.nothing_selected"), "{none:?}");
}

#[test]
fn dep_02_a_run_that_nobody_moves_goes_on_with_its_own_definition_after_a_deploy() {
    let world = World::new();
    waiting(&world);
    // The deploy writes the same files anew; what the run is pinned to is in the store.
    world.write("agent.toml", "format = 1\n# nothing that a run could go on with\n");
    let request = world.requests();
    world.lodestep(&["approve", &request[0]]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["show", "r1"])["status"], "completed");
    assert_eq!(world.read("ledger"), "look-1\npay-1\n");
}

#[test]
fn dep_02_a_doubt_outlives_its_tool_and_what_was_not_sent_is_told_to_the_model() {
    let world = World::new();
    let calls = json!({ "calls": [
        { "name": "tell", "arguments": {} }, { "name": "pay", "arguments": { "cents": 5 } }
    ] });
    let allowed = format!("{V1}[[policy]]\ntools = [\"tell\"]\ndecide = \"allow\"\n");
    let agent = file(&world, &allowed, "Work.", &json!([calls, finish()]));
    world.lodestep(&["run", &agent, "--id", "r1", "--crash-at", "tell:applied"]);
    world.lodestep(&["resume", "r1"]).exits(5);
    let agent = second(&world);
    world.write("script.json", &json!({ "replies": [{}, finish()] }).to_string());
    let plan = world.json(&["upgrade", "r1", &agent, "--yes"]);
    let fates: Vec<&Value> = plan["meaning"].as_array().expect("a list").iter().map(|one| &one["fate"]).collect();
    assert_eq!(fates, ["stays_in_doubt", "asked_anew"]);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["show", "r1"])["status"], "in_doubt");
    world.lodestep(&["resolve", "r1", "1", "--happened", "told"]).exits(0);
    world.lodestep(&["deny", "--tool", "pay", "--yes"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["show", "r1"])["status"], "completed");
    assert_eq!(world.read("ledger"), "tell-1\n");
}
