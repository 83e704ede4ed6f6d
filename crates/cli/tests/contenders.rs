//! Several workers on one file that want the same run: each epoch of it has one, whoever starts, stops or dies when.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use support::*;

/// How often three workers meet on a run that is under way.
const ROUNDS: usize = 12;

/// How often a worker of several is killed.
const KILLS: usize = 24;

/// The runs that are under way meanwhile.
const RUNS: usize = 16;

/// How often each of them pays, and mails.
const EACH: usize = 8;

/// What is under way longest here.
const LONG: Duration = Duration::from_secs(60);

/// An agent that pays and mails in turn. The receiver of payments applies a key once, that of mails does each time; both
/// write down whom they were called by.
fn agent(world: &World, waits: bool) -> String {
    let wait = if waits { "while [ ! -e go-$LODESTEP_RUN ]; do sleep 0.01; done\n" } else { "sleep 0.1\n" };
    let called = "echo \"$LODESTEP_RUN $LODESTEP_ACTION $LODESTEP_EPOCH\" >> called\n";
    let key = "$LODESTEP_IDEMPOTENCY_KEY";
    let applies_once = format!("grep -q \"^{key}\" paid 2>/dev/null || echo \"{key}\" >> paid\n");
    world.write("pay.sh", &format!("{called}{wait}{applies_once}echo paid\n"));
    world.write("mail.sh", &format!("{called}echo \"{key}\" >> mailed\necho mailed\n"));
    let tool = |name, class| {
        format!(
            "[tools.{name}]\ndescription = \"Do it.\"\ncommand = [\"sh\", \"{name}.sh\"]\nclass = \"{class}\"\n\
             input = {{ type = \"object\", properties = {{ n = {{ type = \"integer\" }} }} }}\n"
        )
    };
    let tables =
        [tool("pay", "keyed"), tool("mail", "unsafe"), "[[policy]]\ntools = [\"*\"]\ndecide = \"allow\"\n".to_owned()];
    let says = |name: &str, n: usize| json!({ "calls": [{ "name": name, "arguments": { "n": n } }] });
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    let mut replies: Vec<_> = match waits {
        true => vec![says("pay", 1)],
        false => (0..EACH).flat_map(|n| [says("pay", n), says("mail", n)]).collect(),
    };
    replies.push(finish);
    world.agent(&tables.concat(), &json!(replies)).to_str().expect("a path").to_owned()
}

/// Accepts a run, which nobody has taken yet.
fn accept(world: &World, agent: &str, id: &str) {
    assert_eq!(world.lodestep(&["run", agent, "--id", id, "--crash-at", "run:accepted"]).code, None);
}

/// The epochs in which each action of each run was called, in order.
fn calls(world: &World) -> BTreeMap<(String, u32), Vec<u64>> {
    let mut calls: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for line in world.read("called").lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [run, action, epoch] = parts[..] else { panic!("{line}") };
        calls
            .entry((run.to_owned(), action.parse().expect("an action")))
            .or_default()
            .push(epoch.parse().expect("one"));
    }
    calls
}

fn count(world: &World, status: &str) -> usize {
    world.json(&["ls", "--status", status]).as_array().expect("a list").len()
}

#[test]
fn eff_04_of_three_workers_one_has_a_run_and_one_takes_it_over() {
    let world = World::new();
    let agent = agent(&world, true);
    for round in 0..ROUNDS {
        let held = format!("held-{round}");
        let mut first = world.start(&["run", &agent, "--id", &held]);
        let called = |run: &str| calls(&world).get(&(run.to_owned(), 1)).cloned().unwrap_or_default();
        eventually("it is under way", LONG, || called(&held) == [1]);
        // Something else for whoever else works: once it is done, they have looked for what they may take.
        let free = format!("free-{round}");
        world.write(&format!("go-{free}"), "");
        accept(&world, &agent, &free);
        let others = [world.start(&["worker"]), world.start(&["worker"])];
        eventually("another run is over", LONG, || count(&world, "completed") > 2 * round);
        assert_eq!(called(&held), [1], "round {round}: two have the run at once");
        first.kill();
        eventually("it is taken over", LONG, || called(&held).len() > 1);
        world.write(&format!("go-{held}"), "");
        eventually("both are over", LONG, || count(&world, "completed") == 2 * (round + 1));
        assert_eq!((called(&held), called(&free)), (vec![1, 2], vec![1]), "round {round}");
        for mut other in others {
            assert_eq!(other.terminate(), Some(130));
        }
    }
    world.lodestep(&["verify"]).exits(0);
    assert_eq!(world.read("paid").lines().count(), 2 * ROUNDS);
}

/// A mail that may have been sent when its worker died is nobody's to send again but a person's, who looks. A run in whose
/// hands one worker after the other died is released.
fn look_after(world: &World) {
    for run in world.json(&["ls", "--status", "quarantined"]).as_array().expect("a list") {
        world.lodestep(&["release", run["run"].as_str().expect("an id")]);
    }
    for run in world.json(&["ls", "--status", "in_doubt"]).as_array().expect("a list") {
        let run = run["run"].as_str().expect("an id");
        for effect in world.json(&["effects", run]).as_array().expect("a list") {
            if effect["state"] == "in doubt" {
                let mailed = world.read("mailed").lines().any(|key| effect["key"] == key);
                let word = if mailed { "--happened" } else { "--retry" };
                world.lodestep(&["resolve", run, &effect["action"].to_string(), word]);
            }
        }
    }
}

/// Kills workers one after the other, each once so many more calls were made, until so many were killed; then lets them
/// come to an end.
fn kill_in_turn(workers: usize) {
    let world = World::new();
    let agent = agent(&world, false);
    (0..RUNS).for_each(|number| accept(&world, &agent, &format!("run-{number}")));
    let mut working: Vec<Running> = (0..workers).map(|_| world.start(&["worker"])).collect();
    let mut killed = 0;
    for kill in 0..KILLS {
        let before = world.read("called").lines().count();
        let more = 1 + kill % 3;
        eventually("they go on", LONG, || {
            look_after(&world);
            world.read("called").lines().count() >= before + more || count(&world, "completed") == RUNS
        });
        if count(&world, "completed") == RUNS {
            break;
        }
        working[kill % workers].kill();
        working[kill % workers] = world.start(&["worker"]);
        killed += 1;
    }
    assert!(killed >= 5, "only {killed} were killed");
    eventually("all are over", LONG, || {
        look_after(&world);
        count(&world, "completed") == RUNS
    });
    for mut worker in working {
        assert_eq!(worker.terminate(), Some(130));
    }
    assert_eq!(
        (world.read("mailed").lines().count(), world.read("paid").lines().count()),
        (EACH * RUNS, EACH * RUNS),
        "{workers} workers"
    );
    for ((run, action), epochs) in calls(&world) {
        assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "run {run}, action {action}: {epochs:?}");
    }
    world.lodestep(&["verify"]).exits(0);
}

#[test]
fn two_workers_that_are_killed_in_turn_do_each_effect_once() {
    kill_in_turn(2);
}

#[test]
fn four_workers_that_are_killed_in_turn_do_each_effect_once() {
    kill_in_turn(4);
}
