//! `lodestep.toml` beside the store: where values come from, path inputs, a program's variables. None of it is in a digest.

mod support;

use serde_json::{Value, json};
use support::*;

const SECRET: &str = "canary-Zr20bNc7!";

/// Appends what it got in its environment to the file `got`, and says it, too.
const PAY: &str = r#"
[inputs]
folder = { type = "path", default = "." }
[tools.pay]
description = "Pay."
command = ["sh", "-c", "cat > /dev/null; echo \"$TOKEN $REGION $1\" >> got; echo \"said $TOKEN\"", "pay", "${input:folder}"]
input = { type = "object" }
class = "keyed"
env = { TOKEN = "${env:TOKEN}", REGION = "${env:REGION:-home}" }
"#;

fn paying(world: &World, tables: &str) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": {} }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(&format!("{PAY}{tables}"), &replies).to_str().expect("a path").to_owned()
}

const ALLOWED: &str = "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";

fn run(world: &World, agent: &str, more: &[&str]) -> Said {
    let words: Vec<&str> = ["run", agent, "--new"].iter().chain(more).copied().collect();
    Said::of(world.command(&words).env("TOKEN", "of-the-process").output().expect("ran"))
}

/// Does any file of the store hold the text?
fn is_stored(world: &World, text: &str) -> bool {
    fn holds(path: &std::path::Path, text: &str) -> bool {
        if path.is_dir() {
            return std::fs::read_dir(path).expect("listed").any(|entry| holds(&entry.expect("one").path(), text));
        }
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
    ["store.db", "store.db-wal", "store.db-files"].iter().any(|name| holds(&world.path().join(name), text))
}

#[test]
fn values_come_from_a_file_or_a_command_over_the_environment_and_are_kept_out_of_what_is_stored() {
    let world = World::new();
    let agent = paying(&world, ALLOWED);
    world.write("secrets/token", &format!("{SECRET}\n"));
    for whence in
        ["{ file = \"secrets/token\" }", "{ command = [\"sh\", \"-c\", \"echo x >> ran; cat secrets/token\"] }"]
    {
        world.write("lodestep.toml", &format!("[env]\nTOKEN = {whence}\n"));
        let ran = run(&world, &agent, &[]).exits(0);
        assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET), "{ran:?}");
        assert!(world.read("got").lines().last().expect("a line").starts_with(&format!("{SECRET} home ")), "{whence}");
    }
    // One process runs the command once, however often the value is needed.
    assert_eq!(world.read("ran"), "x\n");
    world.rest();
    assert!(is_stored(&world, "[secret TOKEN]"), "what the tool said is stored, without the value");
    assert!(!is_stored(&world, SECRET));
    // A worker and a resume take it from there, too.
    let agent = paying(&world, "");
    let waiting = run(&world, &agent, &[]).exits(3);
    assert!(waiting.out.contains("approve"), "{waiting:?}");
    world.lodestep(&["approve", "--tool", "pay", "--yes"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.read("got").lines().filter(|line| line.starts_with(SECRET)).count(), 3);
}

#[test]
fn a_source_that_gives_no_value_is_named_and_neither_the_environment_nor_a_default_stands_in() {
    let world = World::new();
    let agent = paying(&world, ALLOWED);
    world.write("empty", "\n");
    for (line, named) in [
        ("TOKEN = { file = \"secrets/tokn\" }", "secrets/tokn can't be read"),
        ("TOKEN = { file = \"empty\" }", "empty gives nothing"),
        ("TOKEN = { command = [\"sh\", \"-c\", \"exit 3\"] }", "sh ended with exit status: 3"),
        ("TOKEN = { command = [\"./nothing\"] }", "./nothing can't be started"),
        (
            "TOKEN = { command = [\"sh\", \"-c\", \"sleep 30 & sleep 30\"], timeout = \"300ms\" }",
            "did not end within 300ms",
        ),
        ("REGION = { file = \"nowhere\" }", "nowhere can't be read"),
    ] {
        world.write("lodestep.toml", &format!("[env]\n{line}\n"));
        for more in [&[][..], &["--check"]] {
            let refused = run(&world, &agent, more).exits(2);
            assert!(refused.err.contains("agent.secret_unread") && refused.err.contains(named), "{line}: {refused:?}");
        }
    }
    assert_eq!(world.read("got"), "");
    // One that is lost while a run waits stops it by name.
    let agent = paying(&world, "");
    world.write("lodestep.toml", "[env]\nTOKEN = { file = \"token\" }\n");
    world.write("token", SECRET);
    run(&world, &agent, &[]).exits(3);
    std::fs::remove_file(world.path().join("token")).expect("removed");
    world.lodestep(&["approve", "--tool", "pay", "--yes"]).exits(0);
    let stopped = world.lodestep(&["resume"]).exits(6);
    assert!(stopped.out.contains("TOKEN") && stopped.out.contains("token can't be read"), "{stopped:?}");
    assert_eq!(world.read("got"), "");
}

#[test]
fn a_path_input_and_a_programs_variables_are_the_places_and_change_no_digest() {
    let world = World::new();
    let agent = paying(&world, "");
    let digest = |world: &World| world.json(&["run", &agent, "--check"])["definition"].clone();
    let before = digest(&world);
    run(&world, &agent, &[]).exits(3);
    // It is approved before the place is wired, and stays approved.
    world.write("secrets/token", SECRET);
    world.write(
        "lodestep.toml",
        "[env]\nPLACE_TOKEN = { file = \"secrets/token\" }\n[agents.scripted]\ninputs = { folder = \"here\" }\n\
         tools.pay.env = { TOKEN = \"${env:PLACE_TOKEN}\", REGION = \"north\" }\n[agents.other.inputs]\nfolde = \"x\"\n",
    );
    assert_eq!(digest(&world), before);
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    world.lodestep(&["resume"]).exits(0);
    let folder = world.path().canonicalize().expect("a folder");
    assert_eq!(world.read("got"), format!("{SECRET} north {}\n", folder.display()));
    // What the run was given stays; a new one takes the place's folder, and what is typed goes over that.
    run(&world, &paying(&world, ALLOWED), &[]).exits(0);
    run(&world, &paying(&world, ALLOWED), &["-i", "folder=there"]).exits(0);
    let folders: Vec<String> =
        world.read("got").lines().skip(1).map(|line| line.rsplit('/').next().expect("a name").to_owned()).collect();
    assert_eq!(folders, ["here", "there"]);
    let checked = world.json(&["run", &agent, "--check"]);
    let wiring = &checked["wiring"];
    assert_eq!((&wiring["inputs"], &wiring["env"]), (&json!(["folder"]), &json!(["PLACE_TOKEN"])), "{checked}");
    world.rest();
    assert!(!is_stored(&world, SECRET));
}

#[test]
fn a_fault_of_the_file_has_its_line_and_the_nearest_name_and_starts_nothing() {
    let world = World::new();
    let agent = paying(&world, ALLOWED);
    for (text, named) in [
        ("[evn]\n", &["lodestep.toml:1:2: `evn` is no key of the file", "did you mean `env`?"][..]),
        ("[env]\nTOKEN = \"x\"\n", &["lodestep.toml:2:1: `env.TOKEN` is a text"]),
        ("[env]\nTOKEN = { fil = \"x\" }\n", &["`fil` is no key of [env.TOKEN]", "did you mean `file`?"]),
        ("[env]\nTOKEN = { file = \"x\", command = [\"y\"] }\n", &["has both `file` and `command`"]),
        ("[env]\nTOKEN = { file = \"x\", timeout = \"1s\" }\n", &["only a command takes its time"]),
        (
            "[agents.scripted.inputs]\nfolde = \"x\"\n",
            &["lodestep.toml:2:1: the agent scripted has no input `folde`", "did you mean `folder`?"],
        ),
        (
            "[agents.scripted.tools.pya]\nenv = {}\n",
            &["the tool `pya` of scripted is not there", "did you mean `pay`?"],
        ),
        ("[agents.scripted.tools.pay]\nenv = { LODESTEP_RUN = \"x\" }\n", &["are the runtime's"]),
        (
            "[agents.scripted.tools.pay]\nenv = { A = \"${input:folder}\" }\n",
            &["an environment is filled in without the inputs"],
        ),
        ("[notify]\ncommand = []\n", &["names no program"]),
        ("= 1\n", &["not TOML"]),
    ] {
        world.write("lodestep.toml", text);
        for more in [&[][..], &["--check"]] {
            let refused = run(&world, &agent, more).exits(2);
            assert!(refused.err.contains("[wiring.invalid]"), "{text}: {refused:?}");
            for part in named {
                assert!(refused.err.contains(part), "{text}: {part}: {refused:?}");
            }
        }
    }
    assert_eq!(world.json(&["ls"])["error"]["code"], Value::from("store.not_found"));
}
