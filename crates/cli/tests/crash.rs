//! Crashes from the outside: at fault points, by kill -9, by SIGTERM; the same command again each time.

mod support;

use std::time::Duration;

use serde_json::json;
use support::*;

const TOOLS: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "pay.sh"]
input = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
class = "keyed"
[tools.mail]
description = "Mail."
command = ["sh", "mail.sh"]
input = { type = "object", properties = { n = { type = "integer" } } }
class = "unsafe"
[[policy]]
tools = ["pay", "mail"]
decide = "allow"
"#;

/// An agent that pays (the receiver applies a key once), mails (a line more each time) and finishes.
fn agent(world: &World) -> String {
    world.write(
        "pay.sh",
        "grep -q \"^$LODESTEP_IDEMPOTENCY_KEY\" paid 2>/dev/null || echo \"$LODESTEP_IDEMPOTENCY_KEY\" >> paid; echo paid\n",
    );
    world.write("mail.sh", "echo \"$LODESTEP_IDEMPOTENCY_KEY\" >> mailed; echo mailed\n");
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "n": 1 } }] },
        { "calls": [{ "name": "mail", "arguments": { "n": 1 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(TOOLS, &replies).to_str().expect("a path").to_owned()
}

fn counts(world: &World) -> (usize, usize) {
    (world.read("paid").lines().count(), world.read("mailed").lines().count())
}

#[test]
fn eff_01_a_crash_round_a_keyed_effect_sends_it_once() {
    for point in ["pay:intent", "pay:applied", "pay:outcome", "model:reply", "run:accepted", "run:checkpoint"] {
        let world = World::new();
        let agent = agent(&world);
        let crashed = world.lodestep(&["run", &agent, "--crash-at", point]);
        assert_eq!(crashed.code, None, "{point}: {crashed:?}");
        world.lodestep(&["run", &agent]).exits(0);
        assert_eq!(counts(&world), (1, 1), "{point}");
        assert!(world.lodestep(&["verify"]).exits(0).out.contains("sound"));
    }
}

#[test]
fn eff_01_a_crash_round_an_unsafe_effect_asks_a_person() {
    for (point, happened) in [("mail:intent", false), ("mail:applied", true)] {
        let world = World::new();
        let agent = agent(&world);
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", point]).code, None);
        let doubt = world.lodestep(&["run", &agent]).exits(5);
        assert!(doubt.out.contains("resolve"), "{doubt:?}");
        assert_eq!(counts(&world), (1, usize::from(happened)), "{point}: never sent again by the machine");
        // Typing the command again changes nothing.
        world.lodestep(&["run", &agent]).exits(5);
        let id = world.run_id();
        let word = if happened { "--happened" } else { "--retry" };
        world.lodestep(&["resolve", &id, "2", word]).exits(0);
        world.lodestep(&["run", &agent]).exits(0);
        assert_eq!(counts(&world), (1, 1), "{point}");
        let again = world.lodestep(&["resolve", &id, "2", word]);
        assert_eq!(
            (again.code, again.out.contains("already given")),
            (Some(i32::from(!happened)), happened),
            "{again:?}"
        );
        let other = world.lodestep(&["resolve", &id, "2", "--abandon"]).exits(1);
        assert!(other.err.contains("action.not_in_doubt"), "{other:?}");
    }
}

#[test]
fn eff_01_a_checkable_effect_is_looked_up() {
    for (point, lookups) in [("charge:intent", "absent"), ("charge:applied", "done")] {
        let world = World::new();
        world.write("charge.sh", "echo \"$LODESTEP_IDEMPOTENCY_KEY\" >> charged; echo charged\n");
        world.write(
            "lookup.sh",
            "echo asked >> lookups\nif grep -q \"^$LODESTEP_IDEMPOTENCY_KEY\" charged 2>/dev/null\nthen echo '{\"status\":\"done\",\"result\":\"charged\"}'\n\
             else echo '{\"status\":\"absent\"}'\nfi\n",
        );
        let tables = "[tools.charge]\ndescription = \"Charge.\"\ncommand = [\"sh\", \"charge.sh\"]\nlookup = [\"sh\", \"lookup.sh\"]\n\
            input = { type = \"object\" }\nclass = \"checkable\"\nsettles_after = \"100ms\"\n[[policy]]\ntools = [\"charge\"]\ndecide = \"allow\"\n";
        let replies = json!([{ "calls": [{ "name": "charge" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
        let agent = world.agent(tables, &replies);
        let agent = agent.to_str().expect("a path");
        assert_eq!(world.lodestep(&["run", agent, "--crash-at", point]).code, None);
        world.lodestep(&["run", agent]).exits(0);
        assert_eq!(world.read("charged").lines().count(), 1, "{lookups}");
        assert!(world.read("lookups").lines().count() >= 1);
    }
}

#[test]
fn eff_09_what_was_accepted_exists_after_a_crash() {
    let world = World::new();
    let agent = agent(&world);
    for number in 0..20 {
        let id = format!("run-{number}");
        assert_eq!(world.lodestep(&["run", &agent, "--id", &id, "--crash-at", "run:accepted"]).code, None);
    }
    let runs = world.json(&["ls"]);
    assert_eq!(runs.as_array().map(Vec::len), Some(20));
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    let runs = world.json(&["ls", "--status", "completed"]);
    assert_eq!(runs.as_array().map(Vec::len), Some(20));
    assert_eq!(counts(&world), (20, 20));
}

/// An agent whose tool waits for a file, so that a test can act while it is under way.
fn waiting_agent(world: &World, class: &str) -> String {
    world.write(
        "slow.sh",
        "echo \"$LODESTEP_IDEMPOTENCY_KEY\" >> begun\nwhile [ ! -e go ]; do sleep 0.05; done\necho \"$LODESTEP_IDEMPOTENCY_KEY\" >> ended; echo slow\n",
    );
    let tables = format!(
        "[tools.slow]\ndescription = \"Slow.\"\ncommand = [\"sh\", \"slow.sh\"]\ninput = {{ type = \"object\" }}\nclass = \"{class}\"\n\
         [[policy]]\ntools = [\"slow\"]\ndecide = \"allow\"\n"
    );
    let replies = json!([{ "calls": [{ "name": "slow" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    world.agent(&tables, &replies).to_str().expect("a path").to_owned()
}

#[test]
fn eff_10_sigterm_leaves_what_kill_leaves_and_the_next_worker_is_there_at_once() {
    for terminate in [true, false] {
        let world = World::new();
        let agent = waiting_agent(&world, "keyed");
        let mut running = world.start(&["run", &agent]);
        eventually("the tool began", Duration::from_secs(20), || !world.read("begun").is_empty());
        if terminate {
            assert_eq!(running.terminate(), Some(130));
        } else {
            running.kill();
        }
        world.write("go", "");
        let since = std::time::Instant::now();
        world.lodestep(&["run", &agent]).exits(0);
        assert!(since.elapsed() < Duration::from_secs(10), "no lease was waited out");
        assert_eq!(world.read("ended").lines().count(), 1, "terminated: {terminate}");
    }
}

#[test]
fn tol_11_nothing_of_a_tool_outlives_its_worker() {
    let world = World::new();
    world.write("tree.sh", "(setsid sh -c 'echo $$ >> pids; exec sleep 300' &) ; echo $$ >> pids; sleep 300\n");
    let tables = "[tools.tree]\ndescription = \"Grows.\"\ncommand = [\"sh\", \"tree.sh\"]\ninput = { type = \"object\" }\nclass = \"idempotent\"\n";
    let replies = json!([{ "calls": [{ "name": "tree" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(tables, &replies);
    let mut running = world.start(&["run", agent.to_str().expect("a path")]);
    eventually("the tree grew", Duration::from_secs(20), || world.read("pids").lines().count() == 2);
    running.kill();
    let alive = |pid: &str| std::path::Path::new("/proc").join(pid).exists();
    eventually("all are gone", Duration::from_secs(5), || !world.read("pids").lines().any(alive));
}

#[test]
fn sql_04_two_workers_on_one_store_do_each_effect_once() {
    let world = World::new();
    let agent = agent(&world);
    for number in 0..12 {
        let id = format!("run-{number}");
        assert_eq!(world.lodestep(&["run", &agent, "--id", &id, "--crash-at", "run:accepted"]).code, None);
    }
    let link = world.path().join("link.db");
    std::os::unix::fs::symlink(world.path().join("store.db"), &link).expect("linked");
    let mut first = world.start(&["worker", "--until-idle"]);
    let mut second = world.command(&["worker", "--until-idle"]);
    second.arg("--store").arg(&link);
    let mut second =
        second.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().expect("started");
    // Reading works beside them.
    world.lodestep(&["ls"]).exits(0);
    assert_eq!(first.child.wait().expect("ended").code(), Some(0));
    assert_eq!(second.wait().expect("ended").code(), Some(0));
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    let done = world.json(&["ls", "--status", "completed"]);
    assert_eq!(done.as_array().map(Vec::len), Some(12), "{done}");
    assert_eq!(counts(&world), (12, 12));
    assert!(world.lodestep(&["verify"]).exits(0).out.contains("store.db: sound\n"));
}

#[test]
fn the_test_command_finds_the_research_example_sound() {
    let world = World::new();
    world.write(
        "docs/a.md",
        "# Leases\n\nA worker holds a lease while it lives, and another worker takes over when it dies.\n",
    );
    let agent = research();
    let said = world.lodestep(&[
        "test",
        agent.to_str().expect("a path"),
        "-i",
        "folder=docs",
        "-i",
        "topic=who takes over when a worker dies",
        "--every",
        "5",
        "--kills",
        "4",
    ]);
    let said = said.exits(0);
    assert!(said.out.contains("0 effects lost, 0 doubled, 0 different results, 0 faults"), "{said:?}");
}

#[test]
fn the_test_command_finds_out_a_tool_that_lies_about_its_class() {
    let world = World::new();
    world.write("mail.sh", "echo \"mail $LODESTEP_IDEMPOTENCY_KEY\" >> \"$1/mailed\"; echo mailed\n");
    world.write("ledger.sh", "cat \"$LODESTEP_TEST_FOLDER/mailed\" 2>/dev/null || true\n");
    // It says that a repeat leaves the same, and appends a line each time.
    let tables = "[inputs]\nout = { type = \"path\", default = \".\" }\n[tools.mail]\ndescription = \"Mail.\"\ncommand = [\"sh\", \"mail.sh\", \"${input:out}\"]\n\
        input = { type = \"object\" }\nclass = \"keyed\"\n[[policy]]\ntools = [\"mail\"]\ndecide = \"allow\"\n\
        [test]\ninputs = { out = \"${test:folder}\" }\nledger = [\"sh\", \"ledger.sh\"]\n";
    let replies = json!([{ "calls": [{ "name": "mail" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(tables, &replies);
    let kept = world.path().join("kept");
    let words = ["test", agent.to_str().expect("a path"), "--keep", kept.to_str().expect("a path")];
    let said = world.lodestep(&words).exits(1);
    assert!(said.out.contains("mail was applied 2 times, not 1"), "{said:?}");
}

#[test]
fn tol_11_nothing_of_a_tool_outlives_its_end_or_its_timeout() {
    for (body, timeout) in [("(setsid sleep 300 &) ; echo done", "60s"), ("(setsid sleep 300 &) ; sleep 300", "500ms")]
    {
        let world = World::new();
        world.write("tree.sh", &format!("(setsid sh -c 'echo $$ >> pids; exec sleep 300' &)\n{body}\n"));
        let tables = format!(
            "[tools.tree]\ndescription = \"Grows.\"\ncommand = [\"sh\", \"tree.sh\"]\ninput = {{ type = \"object\" }}\nclass = \"idempotent\"\n\
             timeout = \"{timeout}\"\nattempts = 1\n"
        );
        let replies = json!([{ "calls": [{ "name": "tree" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
        let agent = world.agent(&tables, &replies);
        world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
        let alive = |pid: &str| std::path::Path::new("/proc").join(pid).exists();
        eventually("all are gone", Duration::from_secs(5), || !world.read("pids").lines().any(alive));
    }
}

#[test]
fn a_run_that_ended_unseen_is_shown_and_not_started_again() {
    let world = World::new();
    let agent = agent(&world);
    // The last transition of all is the run's end: the process dies right after it.
    let traced = World::new();
    let last = {
        let agent = self::agent(&traced);
        let trace = traced.path().join("trace");
        let mut command = traced.command(&["run", &agent]);
        Said::of(command.env("LODESTEP_FAULT_TRACE", &trace).output().expect("ran")).exits(0);
        std::fs::read_to_string(trace).expect("a trace").lines().count()
    };
    let mut command = world.command(&["run", &agent]);
    let crashed = Said::of(command.env("LODESTEP_CRASH_AT", format!("#{last}")).output().expect("ran"));
    assert_eq!(crashed.code, None, "{crashed:?}");
    assert_eq!(world.json(&["ls"])[0]["status"], "completed");
    let shown = world.lodestep(&["run", &agent]).exits(0);
    assert!(shown.err.contains("ended before its end could be shown"), "{shown:?}");
    assert_eq!(counts(&world), (1, 1));
    // Once it was shown, the same command means another run.
    assert!(world.lodestep(&["run", &agent]).exits(0).err.contains("started"));
    assert_eq!(counts(&world), (2, 2));
}

#[test]
fn without_a_ledger_the_test_command_counts_what_the_holders_saw() {
    let world = World::new();
    world.write("mail.sh", "echo x >> mailed; echo mailed\n");
    let tables = "[tools.mail]\ndescription = \"Mail.\"\ncommand = [\"sh\", \"mail.sh\"]\ninput = { type = \"object\" }\n\
        class = \"unsafe\"\n[[policy]]\ntools = [\"mail\"]\ndecide = \"allow\"\n";
    let replies = json!([{ "calls": [{ "name": "mail" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(tables, &replies);
    let said = world.lodestep(&["--json", "test", agent.to_str().expect("a path")]).exits(0);
    let trials =
        serde_json::from_str::<serde_json::Value>(&said.out).expect("JSON")["trials"].as_array().expect("a list").len();
    assert!(said.err.contains("effects mail 1"), "{said:?}");
    assert_eq!(world.read("mailed").lines().count(), trials + 1, "once in each run, the baseline's included");
}

#[test]
fn a_crash_says_where_and_how_to_go_on() {
    let world = World::new();
    let agent = agent(&world);
    let crashed = world.lodestep(&["run", &agent, "--new", "--crash-at", "run:accepted"]);
    assert_eq!(crashed.code, None);
    let command = format!("{} --store {}", env!("CARGO_BIN_EXE_lodestep"), world.path().join("store.db").display());
    let told = format!("crashed at run:accepted, as it was told to; go on with `{command} run {agent}`\n");
    assert!(crashed.err.ends_with(&told), "{told} {crashed:?}");
    let id = world.run_id();
    let crashed = world.lodestep(&["run", &agent, "--crash-at", "pay:applied"]);
    let told =
        format!("crashed at pay:applied, as it was told to; go on with `{command} resume {}`\n", &id[id.len() - 4..]);
    assert!(crashed.err.ends_with(&told), "{told} {crashed:?}");
}

#[test]
fn a_crash_that_could_not_happen_is_refused() {
    let world = World::new();
    let agent = agent(&world);
    for (point, told) in [
        ("mial:applied", "did you mean `mail`?"),
        ("finish:applied", "the names are run, model, pay, mail"),
        ("run:applied", "write run:accepted or run:checkpoint"),
        ("mail:reply", "write mail:intent or mail:applied or mail:outcome"),
    ] {
        let refused = world.lodestep(&["run", &agent, "--crash-at", point]).exits(2);
        assert!(refused.err.contains("usage.crash_at") && refused.err.contains(told), "{point}: {refused:?}");
    }
    assert!(!world.path().join("store.db").exists());
    // A check of the agent's own is performed, too.
    let replies = json!([{ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent("[done]\ncheck = [\"true\"]\n", &replies);
    let crashed = world.lodestep(&["run", agent.to_str().expect("a path"), "--crash-at", "finish:applied"]);
    assert!(crashed.code.is_none() && crashed.err.contains("crashed at finish:applied"), "{crashed:?}");
}

#[test]
fn a_program_that_could_not_start_was_not_sent() {
    let world = World::new();
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"./gone\"]\ninput = { type = \"object\" }\nclass = \"unsafe\"\n\
        attempts = 2\n[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";
    let replies = json!([{ "calls": [{ "name": "pay" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(tables, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    let effect = world.json(&["effects", &world.run_id()]).as_array().expect("a list")[0].clone();
    let outcomes: Vec<_> =
        effect["attempts"].as_array().expect("attempts").iter().map(|a| a["outcome"].clone()).collect();
    assert_eq!((effect["state"].clone(), outcomes), (json!("failed"), vec![json!("not sent"); 2]));
}

#[test]
fn the_test_command_crashes_behind_an_approval_too() {
    let world = World::new();
    world.write("pay.sh", "echo \"pay $LODESTEP_IDEMPOTENCY_KEY\" >> paid; echo paid\n");
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"pay.sh\"]\ninput = { type = \"object\" }\nclass = \"unsafe\"\n";
    let replies = json!([{ "calls": [{ "name": "pay" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(tables, &replies);
    let tested = world.lodestep(&["--json", "test", agent.to_str().expect("a path")]);
    let told: serde_json::Value = serde_json::from_str(&tested.out).expect("JSON");
    let trials = told["trials"].as_array().expect("a list");
    for point in ["pay:intent, command 2", "pay:applied, command 2", "pay:outcome, command 2"] {
        let crashed = |trial: &&serde_json::Value| trial["trial"].as_str().is_some_and(|name| name.ends_with(point));
        let trial = trials.iter().find(crashed).unwrap_or_else(|| panic!("{point}: {trials:?}"));
        assert_eq!(trial["crashes"], 1, "{trial}");
    }
    assert!(tested.err.starts_with("each trial runs the agent for real"), "{tested:?}");
}

#[test]
fn a_point_that_no_trial_reaches_is_not_ok() {
    let world = World::new();
    // The first program of all is killed: only the baseline's run makes two attempts.
    world.write("look.sh", "[ -e seen ] || { : > seen; kill -9 $$; }; echo looked\n");
    let tables = "[tools.look]\ndescription = \"Look.\"\ncommand = [\"sh\", \"look.sh\"]\ninput = { type = \"object\" }\nclass = \"read\"\n";
    let replies = json!([{ "calls": [{ "name": "look" }] }, { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }]);
    let agent = world.agent(tables, &replies);
    let kept = world.path().join("kept");
    let words = ["test", agent.to_str().expect("a path"), "--keep", kept.to_str().expect("a path")];
    let tested = world.lodestep(&words).exits(1);
    let line = |point: &str| tested.out.lines().find(|line| line.contains(point)).unwrap_or_default().to_owned();
    assert!(line(" look:applied:2 ").ends_with("NOT REACHED"), "{tested:?}");
    assert!(line(" look:applied ").ends_with("ok"), "{tested:?}");
    assert!(tested.out.contains("points passed over"), "transitions that only the baseline took: {tested:?}");
    assert!(tested.err.contains("the trials' folders are kept: "), "{tested:?}");
}

#[test]
fn a_baseline_that_does_not_complete_says_what_it_leaves() {
    let world = World::new();
    let replies = json!([{ "calls": [{ "name": "note", "arguments": { "key": "k", "text": "t" } }] }]);
    let agent = world.agent("", &replies);
    let kept = world.path().join("kept");
    let words = ["test", agent.to_str().expect("a path"), "--keep", kept.to_str().expect("a path")];
    let failed = world.lodestep(&words).exits(1);
    let kept = kept.canonicalize().expect("there");
    assert!(failed.err.contains("test.baseline"), "{failed:?}");
    assert!(failed.err.contains(&format!("the trials' folders are kept: {}", kept.display())), "{failed:?}");
    assert!(failed.err.contains(&format!("look at {}", kept.join("baseline/log").display())), "{failed:?}");
}

#[test]
fn a_run_that_crashed_its_workers_too_often_is_quarantined_and_a_release_lets_it_go_on() {
    // The first of the second kind comes after an outcome, the reply, and is not counted.
    for (point, crashes) in [("model:reply", 5), ("look:applied", 6)] {
        let world = World::new();
        let replies = json!([
            { "calls": [{ "name": "look", "arguments": {} }] },
            { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
        ]);
        let look = "[tools.look]\ndescription = \"Look.\"\ncommand = [\"sh\", \"-c\", \"echo looked >> looked\"]\n\
                    input = { type = \"object\" }\nclass = \"read\"\n";
        let agent = world.agent(look, &replies);
        let agent = agent.to_str().expect("a path");
        for _ in 0..crashes {
            assert_eq!(world.lodestep(&["run", agent, "--crash-at", point]).code, None, "it was aborted");
        }
        let (calls, looks) = (world.read_calls(), world.read("looked").lines().count());
        let stopped = world.lodestep(&["run", agent]).exits(5);
        assert!(stopped.out.contains("crashed 5 times"), "{point}: {stopped:?}");
        assert_eq!(world.read("looked").lines().count(), looks, "{point}: nothing is done before a person looks");
        assert_eq!(world.read_calls(), calls, "{point}: nor is the model asked");
        world.lodestep(&["release", &world.run_id()]).exits(0);
        world.lodestep(&["run", agent]).exits(0);
        assert_eq!(world.json(&["ls"])[0]["crashes"], 0);
    }
}
