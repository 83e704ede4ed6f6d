//! Ends that somebody asks for: SIGTERM once and twice. Deaths that nobody asks for are in `crash`.

mod support;

use std::time::Duration;

use serde_json::json;
use support::*;

/// An unsafe tool that says that it has begun, and waits for a file.
fn waiting_agent(world: &World) -> String {
    world.write("slow.sh", "echo x >> begun\nwhile [ ! -e go ]; do sleep 0.05; done\necho x >> ended; echo slow\n");
    let tables = "[tools.slow]\ndescription = \"Slow.\"\ncommand = [\"sh\", \"slow.sh\"]\ninput = { type = \"object\" }\n\
        class = \"unsafe\"\n[[policy]]\ntools = [\"slow\"]\ndecide = \"allow\"\n";
    agent_with(world, tables, "slow")
}

/// An agent that calls one tool, then finishes.
fn agent_with(world: &World, tables: &str, tool: &str) -> String {
    let replies = json!([{ "calls": [{ "name": tool }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    world.agent(tables, &replies).to_str().expect("a path").to_owned()
}

fn has_begun(world: &World) {
    eventually("the tool began", Duration::from_secs(20), || !world.read("begun").is_empty());
}

#[test]
fn eff_10_what_ends_within_the_drain_time_is_finished_and_stored() {
    let world = World::new();
    let agent = waiting_agent(&world);
    let (mut running, mut said) = world.start_heard(&["run", &agent]);
    has_begun(&world);
    running.tell_to_stop();
    said.until("stopping:");
    world.write("go", "");
    assert_eq!(running.ended(), Some(130));
    let effects = world.json(&["effects", &world.run_id()]);
    assert_eq!((&effects[0]["tool"], &effects[0]["state"]), (&json!("slow"), &json!("done")), "{effects}");
    // The next worker has nothing to send, and no doubt to settle.
    world.lodestep(&["run", &agent]).exits(0);
    assert_eq!((world.read("begun"), world.read("ended")), ("x\n".to_owned(), "x\n".to_owned()));
}

#[test]
fn eff_10_a_second_sigterm_ends_the_worker_at_once_and_the_run_ends_as_after_a_kill() {
    let ends = [false, true].map(|told| {
        let world = World::new();
        let agent = waiting_agent(&world);
        let (mut running, mut said) = world.start_heard(&["run", &agent]);
        has_begun(&world);
        if told {
            running.tell_to_stop();
            said.until("stopping:");
            assert_eq!(running.terminate(), Some(130));
            let rest = said.rest();
            assert!(!rest.contains("handed over"), "it waited for the drain time: {rest}");
        } else {
            running.kill();
        }
        let doubt = world.lodestep(&["run", &agent]).exits(5);
        assert!(doubt.out.contains("resolve"), "{doubt:?}");
        world.lodestep(&["resolve", &world.run_id(), "1", "--happened"]).exits(0);
        world.lodestep(&["run", &agent]).exits(0);
        let effects = world.json(&["effects", &world.run_id()]);
        (effects[0]["state"].clone(), effects[0]["attempts"].as_array().map(Vec::len), world.read("begun"))
    });
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0].2, "x\n", "it was sent once");
}
