//! How one begins: every template runs at once, and a mistyped id names the one that was meant.

mod support;

use serde_json::json;
use support::*;

#[test]
fn every_template_is_sound_and_runs_offline_at_once() {
    for (template, code) in [("research", 0), ("approval", 3), ("demo", 0)] {
        let world = World::new();
        let made = world.json(&["init", "mine", "--template", template]);
        assert_eq!((&made["folder"], &made["files"][0]), (&json!("mine"), &json!("agent.toml")));
        world.lodestep(&["run", "mine/agent.toml", "--check"]).exits(0);
        // The first line names the schema for an editor, as this program prints it.
        assert_eq!(world.read("mine/agent.toml").lines().next(), Some("#:schema .lodestep/agent.schema.json"));
        let schema = world.lodestep(&["schema", "agent"]).exits(0).out;
        assert_eq!(world.read("mine/.lodestep/agent.schema.json"), schema);
        assert_eq!(world.read("mine/.lodestep/.gitignore"), "*\n");
        let ran = world.lodestep(&["run", "mine/agent.toml"]).exits(code);
        if template == "research" {
            let report = world.lodestep(&["artifacts", &world.run_id(), "report.md"]).exits(0).out;
            assert!(check_citations(&report, &world.path().join("mine/documents")) > 0, "{report}");
        }
        if template == "approval" {
            let asks = "keyed, checkable and unsafe tools ask without a rule";
            assert!(world.read("mine/agent.toml").contains(asks), "as the policy has it");
            assert!(ran.out.contains("Good morning!"), "{ran:?}");
            world.lodestep(&["approve", "--tool", "send", "--yes"]).exits(0);
            world.lodestep(&["run", "mine/agent.toml"]).exits(0);
            assert_eq!(world.read("mine/sent.log").lines().count(), 1, "{}", world.read("mine/sent.log"));
        }
        if template == "demo" {
            assert_eq!(world.read("mine/steps.log").lines().count(), 4);
        }
        // What is there is never touched.
        world.write("mine/agent.toml", "mine");
        let refused = world.lodestep(&["init", "mine", "--template", template]).exits(1);
        assert!(refused.err.contains("init.exists"), "{refused:?}");
        assert_eq!(world.read("mine/agent.toml"), "mine");
    }
}

#[test]
fn a_check_warns_of_programs_that_are_not_here() {
    let world = World::new();
    let tool = |name: &str, command: &str, more: &str| {
        format!(
            "[tools.{name}]\ndescription = \"Do.\"\ncommand = [\"{command}\"]\n{more}input = {{ type = \"object\" }}\nclass = \"read\"\n"
        )
    };
    let tables = [
        tool("gone", "no-such-program-here", ""),
        tool("named", "tools/none.sh", ""),
        tool("own", "sh", "env = { PATH = \"/nowhere\" }\n"),
        tool("there", "sh", ""),
        "[done]\ncheck = [\"no-such-check\"]\n".to_owned(),
    ];
    let agent = world.agent(&tables.concat(), &json!([]));
    let checked = world.lodestep(&["run", agent.to_str().expect("a path"), "--check"]).exits(0);
    for warned in [
        "warning: tool gone: there is no program `no-such-program-here` in the folders of PATH\n",
        "warning: tool named: there is no program `tools/none.sh` in ",
        "warning: tool own: there is no program `sh` in the folders of the PATH that its env sets\n",
        "warning: the check of [done]: there is no program `no-such-check` in the folders of PATH\n",
        "where the agent runs on another machine, it has to be there",
    ] {
        assert!(checked.err.contains(warned), "{warned}: {checked:?}");
    }
    assert!(!checked.err.contains("there:") && checked.out.contains(": ok. "), "{checked:?}");
    let checked = world.json(&["run", agent.to_str().expect("a path"), "--check"]);
    assert_eq!((&checked["ok"], checked["warnings"].as_array().map(Vec::len)), (&json!(true), Some(4)), "{checked}");
}

#[test]
fn a_mistyped_id_names_the_run_that_was_meant() {
    let world = World::new();
    world.lodestep(&["init", "mine", "--template", "approval"]).exits(0);
    world.lodestep(&["run", "mine/agent.toml", "--id", "greeting-7k2m"]).exits(3);
    for typed in ["7k2n", "7km2", "greetnig-7k2m"] {
        let said = world.lodestep(&["show", typed]).exits(1);
        assert!(said.err.contains("run.not_found") && said.err.contains("did you mean `"), "{said:?}");
        assert!(said.err.contains("7k2m`?"), "{said:?}");
    }
    let said = world.lodestep(&["show", "uuuu"]).exits(1);
    assert!(!said.err.contains("did you mean"), "{said:?}");
}

#[test]
fn schemas_are_listed_and_each_that_is_listed_is_printed() {
    let world = World::new();
    let listed = world.json(&["schema"]);
    let names: Vec<&str> =
        listed["schemas"].as_array().expect("a list").iter().map(|it| it["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["agent", "wiring", "ls", "todo", "show", "effects", "run", "lines"]);
    for name in names {
        let schema = world.json(&["schema", name]);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        let describes = ["properties", "items", "anyOf"].iter().any(|key| !schema[key].is_null());
        assert!(describes && schema["title"].is_string(), "{name}");
    }
    assert!(world.lodestep(&["schema"]).exits(0).out.contains("lodestep.toml beside a store"));
    world.lodestep(&["schema", "agnet"]).exits(2);
}
