//! A cancel while a tool is under way: durable at once, and the truth about each action in the end.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

/// What a cancel says once it is durable.
const ACCEPTED: &str = "is being cancelled";

/// Calls `pay` and `other` at once, then `more`. `pay` says that it has begun, pays when it may, and ends when it may; it
/// does not listen to anybody who wants it to stop.
fn paying_agent(world: &World) -> String {
    world.write(
        "pay.sh",
        "trap '' TERM INT HUP\necho x >> begun\nwhile [ ! -e pay ]; do sleep 0.02; done\necho x >> ledger\n\
         while [ ! -e end ]; do sleep 0.02; done\necho paid\n",
    );
    world.write("more.sh", "echo x >> more\n");
    let tool = |name: &str, script: &str| {
        format!(
            "[tools.{name}]\ndescription = \"{name}\"\ncommand = [\"sh\", \"{script}.sh\"]\ninput = {{ type = \"object\" }}\n\
             class = \"unsafe\"\n"
        )
    };
    let tables = [
        tool("pay", "pay"),
        tool("other", "more"),
        tool("more", "more"),
        "[[policy]]\ntools = [\"other\"]\ndecide = \"ask\"\n[[policy]]\ntools = [\"*\"]\ndecide = \"allow\"\n"
            .to_owned(),
    ];
    let replies = json!([
        { "calls": [{ "name": "pay" }, { "name": "other" }] },
        { "calls": [{ "name": "more" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(&tables.concat(), &replies).to_str().expect("a path").to_owned()
}

fn has(world: &World, name: &str) {
    eventually(name, Duration::from_secs(20), || !world.read(name).is_empty());
}

/// How each action of the only run ended: the effects that were sent, and those that were not.
fn effects(world: &World, run: &str) -> Vec<(String, String)> {
    let effects: Value = world.json(&["effects", run]);
    let text = |effect: &Value, field: &str| effect[field].as_str().expect("a text").to_owned();
    effects.as_array().expect("a list").iter().map(|effect| (text(effect, "tool"), text(effect, "state"))).collect()
}

#[test]
fn tol_12_a_cancel_is_durable_at_once_and_what_happens_in_its_grace_is_recorded() {
    // Before the effect, at it, and right after it: each is applied, or answered, only when the cancel is durable.
    for (before, after) in [(vec![], vec!["pay", "end"]), (vec!["pay"], vec!["end"]), (vec!["pay", "end"], vec![])] {
        let world = World::new();
        let agent = paying_agent(&world);
        let mut running = world.start(&["run", &agent]);
        has(&world, "begun");
        let run = world.run_id();
        before.iter().for_each(|gate| drop(world.write(gate, "")));
        match before[..] {
            [] => {}
            ["pay"] => has(&world, "ledger"),
            // The outcome is stored, and the run waits for the approval of the other.
            _ => assert_eq!(running.ended(), Some(3)),
        }
        let (mut cancel, mut said) =
            Running::heard(world.command(&["cancel", &run]).stdout(std::process::Stdio::null()));
        said.until(ACCEPTED);
        if after.is_empty() {
            assert_eq!(cancel.ended(), Some(0));
        } else {
            // Whoever sent it may go away.
            cancel.kill();
        }
        // A second word: the same again is already given, any other is refused.
        let told = world.lodestep(&["tell", &run, "go on"]).exits(1);
        assert!(told.err.contains("[run."), "{told:?}");
        after.iter().for_each(|gate| drop(world.write(gate, "")));
        assert!(after.is_empty() || running.ended() == Some(4), "{before:?}");
        assert_eq!((world.read("ledger").as_str(), world.read("more").as_str()), ("x\n", ""), "{before:?}");
        let all = effects(&world, &run);
        assert!(all.contains(&("pay".to_owned(), "done".to_owned())), "{before:?}: {all:?}");
        assert!(all.iter().all(|(tool, _)| tool != "more"), "{before:?}: begun after the cancel: {all:?}");
        let shown = world.json(&["show", &run]);
        assert_eq!(shown["status"], "cancelled", "{shown}");
        let again = world.lodestep(&["cancel", &run]).exits(0);
        assert!(again.out.contains("already given"), "{again:?}");
        world.lodestep(&["verify"]).exits(0);
    }
}

#[test]
fn tol_12_a_tool_that_ignores_the_stop_and_a_kill_leave_a_doubt_and_nothing_more_is_sent() {
    for killed in [true, false] {
        let world = World::new();
        let agent = paying_agent(&world);
        let mut running = world.start(&["run", &agent]);
        has(&world, "begun");
        world.write("pay", "");
        has(&world, "ledger");
        let run = world.run_id();
        let (mut cancel, mut said) =
            Running::heard(world.command(&["cancel", &run]).stdout(std::process::Stdio::null()));
        said.until(ACCEPTED);
        if killed {
            running.kill();
        }
        // The other process sees the run to its end, with the grace of ten seconds.
        eventually("the cancel is through", Duration::from_secs(60), || cancel.has_ended());
        assert_eq!(cancel.ended(), Some(0), "killed: {killed}");
        let all = effects(&world, &run);
        assert!(all.contains(&("pay".to_owned(), "in doubt".to_owned())), "killed: {killed}: {all:?}");
        assert_eq!((world.read("ledger").as_str(), world.read("more").as_str()), ("x\n", ""));
        // That it is over hides no doubt.
        let listed = world.lodestep(&["ls"]).exits(0).out;
        assert!(listed.starts_with("needs you (1)\n") && listed.contains("in doubt: action 1"), "{listed}");
        assert!(!listed.contains("\nover ("), "{listed}");
        assert_eq!(world.json(&["ls", "--status", "in-doubt"])[0]["run"], run.as_str());
        let todo = world.lodestep(&["todo"]).exits(0).out;
        assert!(todo.contains("--happened, --did-not-happen, --abandon)"), "{todo}");
        let resumed = world.lodestep(&["resume", &run]).exits(4);
        assert!(resumed.out.contains("resolve") && resumed.out.contains("--did-not-happen"), "{resumed:?}");
        assert!(!resumed.out.contains("--retry"), "{resumed:?}");
        // Only what became of it may still be said, and that sends nothing. It is read at once.
        world.lodestep(&["resolve", &run, "1", "--retry"]).exits(1);
        let words: &[&str] = if killed {
            &["resolve", &run, "--happened"]
        } else {
            &["resolve", "--tool", "pay", "--happened", "--yes"]
        };
        let said = world.lodestep(words).exits(0);
        assert!(said.out.contains("is over and stays so") && !said.out.contains("goes on"), "{said:?}");
        assert_eq!(world.json(&["show", &run])["unread"], 0);
        let shown = world.lodestep(&["show", &run]).exits(0).out;
        assert!(!shown.contains(" resume "), "{shown}");
        assert_eq!(world.json(&["ls", "--status", "in-doubt"]), serde_json::json!([]));
        assert_eq!(world.json(&["todo"]), serde_json::json!([]));
        assert!(world.lodestep(&["ls"]).exits(0).out.starts_with("over (1)\n"));
        assert_eq!(effects(&world, &run)[0], ("pay".to_owned(), "done".to_owned()));
        assert_eq!(world.json(&["show", &run])["status"], "cancelled");
        assert_eq!((world.read("ledger").as_str(), world.read("more").as_str()), ("x\n", ""));
        world.lodestep(&["verify"]).exits(0);
    }
}

/// Checks that every call of a request's history has one result, right behind it, and every result its call; the tools
/// called and what was said of each.
fn paired(world: &World, run: &str) -> Vec<(String, String)> {
    let asked = world.json(&["context", run]);
    let messages = asked["request"]["messages"].as_array().unwrap_or_else(|| panic!("{asked}")).clone();
    let list = |message: Option<&Value>, of: &str| {
        message.and_then(|message| message[of].as_array()).cloned().unwrap_or_default()
    };
    let mut all = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (calls, results) = (list(Some(message), "calls"), list(messages.get(at + 1), "results"));
        let known = |of: &[Value]| of.iter().map(|one| (one["id"].clone(), one["name"].clone())).collect::<Vec<_>>();
        assert_eq!(known(&calls), known(&results), "{messages:?}");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        all.extend(results.iter().map(|result| (text(&result["name"]), text(&result["text"]))));
    }
    assert!(list(messages.first(), "results").is_empty(), "{messages:?}");
    all
}

#[test]
fn tol_12_a_fork_of_a_cancelled_run_has_a_result_for_every_call() {
    // Cancelled while one action is under way and another waits for its approval: the one is done, or in doubt.
    for is_known in [true, false] {
        let world = World::new();
        let agent = paying_agent(&world);
        let mut running = world.start(&["run", &agent]);
        has(&world, "begun");
        let run = world.run_id();
        let (mut cancel, mut said) =
            Running::heard(world.command(&["cancel", &run]).stdout(std::process::Stdio::null()));
        said.until(ACCEPTED);
        if is_known {
            ["pay", "end"].into_iter().for_each(|gate| drop(world.write(gate, "")));
            assert_eq!(running.ended(), Some(4));
        } else {
            running.kill();
        }
        eventually("the cancel is through", Duration::from_secs(60), || cancel.has_ended());
        let state = if is_known { "done" } else { "in doubt" };
        assert!(effects(&world, &run).contains(&("pay".to_owned(), state.to_owned())), "{state}");

        world.lodestep(&["fork", &run, "--id", "fork"]).exits(0);
        // The next replies of the script: what the fork does with that history.
        world.lodestep(&["resume", "fork"]).exits(0);
        let history = paired(&world, "fork");
        let said = |tool: &str| {
            let of_it: Vec<&String> = history.iter().filter(|(name, _)| name == tool).map(|(_, text)| text).collect();
            assert_eq!(of_it.len(), 1, "{state}: {history:?}");
            of_it[0].clone()
        };
        if is_known {
            assert_eq!(said("pay"), "paid\n");
        } else {
            assert!(said("pay").contains("only that run knows what came of it"), "{}", said("pay"));
        }
        assert!(said("other").starts_with("withdrawn: "), "{}", said("other"));
        assert_eq!(said("more"), "done; it said nothing");
        world.lodestep(&["verify"]).exits(0);
    }
}
