//! Ends that somebody asks for: SIGTERM once and twice, a cancel, a hundred runs of one worker. What is stored, and what
//! is left of the tools. Deaths that nobody asks for are in `crash`.

mod support;

use std::path::{Path, PathBuf};
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
fn a_stop_that_leaves_a_doubt_says_so_and_not_that_the_run_goes_on() {
    let world = World::new();
    let agent = waiting_agent(&world);
    let (mut running, said) = world.start_heard(&["run", &agent]);
    has_begun(&world);
    assert_eq!(running.terminate(), Some(130));
    let rest = said.rest();
    let last: Vec<&str> = rest.lines().rev().take(2).collect();
    assert!(last[1].contains("handed over") && last[1].contains("in doubt: action 1"), "{rest}");
    assert!(last[0].contains("show ") && !rest.contains("goes on"), "{rest}");
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0);
    assert!(shown.out.contains("--happened"), "{shown:?}");
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

/// A tool with a child that leaves it by a double fork; both say who they are. `then` is what it does after that.
fn growing_agent(world: &World, then: &str) -> String {
    world.write(
        "tree.sh",
        &format!("(setsid sh -c 'echo $$ >> pids; exec sleep 300' &)\necho $$ >> pids\necho x >> begun\n{then}\n"),
    );
    let tables = "[tools.tree]\ndescription = \"Grows.\"\ncommand = [\"sh\", \"tree.sh\"]\ninput = { type = \"object\" }\n\
        class = \"idempotent\"\ntimeout = \"1h\"\n";
    agent_with(world, tables, "tree")
}

/// The processes that said who they are and that still are something, be it a zombie.
fn left_of(world: &World) -> Vec<String> {
    let pids = world.read("pids");
    pids.lines().filter(|pid| Path::new("/proc").join(pid).exists()).map(str::to_owned).collect()
}

#[test]
fn tol_11_nothing_of_a_tool_outlives_a_cancel() {
    let world = World::new();
    let agent = growing_agent(&world, "sleep 300");
    let mut running = world.start(&["run", &agent]);
    eventually("the tree grew", Duration::from_secs(20), || world.read("pids").lines().count() == 2);
    assert_eq!(left_of(&world).len(), 2);
    let mut cancel = world.start(&["cancel", &world.run_id()]);
    // The grace of ten seconds, and some for a busy machine.
    eventually("the cancel is through", Duration::from_secs(60), || cancel.has_ended());
    assert_eq!((cancel.ended(), running.ended()), (Some(0), Some(4)));
    eventually("all are gone", Duration::from_secs(5), || left_of(&world).is_empty());
}

/// The worker, what descends from it, zombies too, and whatever else works in this world's folder.
fn processes(world: &World, worker: u32) -> Vec<u32> {
    let folder = world.path().canonicalize().expect("there");
    let all: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .expect("listed")
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            // "pid (name) state parent …": the name can hold anything, the last bracket ends it.
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat[stat.rfind(')')? + 1..].split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut of_worker = vec![worker];
    let mut next = 0;
    while let Some(parent) = of_worker.get(next).copied() {
        of_worker.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    let is_here = |pid: u32| {
        let cwd: PathBuf = ["/proc", &pid.to_string(), "cwd"].iter().collect();
        std::fs::read_link(cwd).is_ok_and(|cwd| cwd == folder)
    };
    all.into_iter().map(|(pid, _)| pid).filter(|pid| of_worker.contains(pid) || is_here(*pid)).collect()
}

#[test]
fn tol_11_after_a_hundred_runs_there_are_as_many_processes_as_before() {
    const RUNS: usize = 100;
    let world = World::new();
    let agent = growing_agent(&world, "echo grown");
    let (worker, mut said) = world.start_heard(&["worker"]);
    said.until("Ctrl-C hands over");
    let pid = worker.child.id();
    assert_eq!(processes(&world, pid), [pid], "only the worker");
    for number in 0..RUNS {
        let id = format!("run-{number}");
        assert_eq!(world.lodestep(&["run", &agent, "--id", &id, "--crash-at", "run:accepted"]).code, None);
    }
    eventually("all have run", Duration::from_secs(60), || {
        world.json(&["ls", "--status", "completed"]).as_array().map(Vec::len) == Some(RUNS)
    });
    assert_eq!(world.read("begun").lines().count(), RUNS, "each had its tool");
    eventually("all are gone", Duration::from_secs(5), || left_of(&world).is_empty());
    eventually("as many as before", Duration::from_secs(5), || processes(&world, pid) == [pid]);
}

#[test]
fn g13_a_stop_in_the_middle_of_a_lookup_leaves_the_lookup_to_do() {
    let world = World::new();
    world.write("lookup.sh", "echo x >> begun\nwhile :; do sleep 0.05; done\n");
    let tables = "[tools.charge]\ndescription = \"Charge.\"\ncommand = [\"sh\", \"-c\", \"echo x >> charged\"]\n\
        lookup = [\"sh\", \"lookup.sh\"]\ninput = { type = \"object\" }\nclass = \"checkable\"\nsettles_after = \"1ms\"\n\
        [[policy]]\ntools = [\"charge\"]\ndecide = \"allow\"\n";
    let agent = agent_with(&world, tables, "charge");
    assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "charge:applied"]).code, None, "it was aborted");
    let mut running = world.start(&["run", &agent]);
    has_begun(&world);
    assert_eq!(running.terminate(), Some(130));
    // A kill would leave the action to be looked up: so does a stop, which learned nothing of the effect.
    let action = &world.json(&["show", &world.run_id()])["checkpoint"]["pending"]["1"];
    assert_eq!(action["state"]["state"], "look_up", "{action}");
    assert_eq!(world.read("charged").lines().count(), 1);
}
