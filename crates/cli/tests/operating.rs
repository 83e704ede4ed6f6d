//! What an operator says to a run while it goes on, waits or is stopped: pause, tell, signal, quota; and approvals whose
//! worker dies or comes too late.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::*;

const PAY: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "cat >> paid; echo >> paid; echo paid"]
input = { type = "object", properties = { cents = { type = "integer" } } }
class = "unsafe"
"#;

fn allowed(tables: &str) -> String {
    format!("{PAY}{tables}[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n")
}

fn pay(cents: u64) -> Value {
    json!({ "name": "pay", "arguments": { "cents": cents } })
}

fn agent(world: &World, tables: &str, replies: &[Value]) -> String {
    world.agent(tables, &json!(replies)).to_str().expect("a path").to_owned()
}

fn paid(world: &World) -> usize {
    world.read("paid").lines().filter(|line| !line.is_empty()).count()
}

#[test]
fn a_pause_lets_what_is_under_way_end_and_a_resume_goes_on() {
    let world = World::new();
    world.write("slow.sh", "echo x >> begun\nwhile [ ! -e go ]; do sleep 0.05; done\necho slow\n");
    let slow = "[tools.slow]\ndescription = \"Slow.\"\ncommand = [\"sh\", \"slow.sh\"]\ninput = { type = \"object\" }\nclass = \"read\"\n";
    let both = json!({ "calls": [{ "name": "slow" }] });
    let agent = agent(&world, &allowed(slow), &[both, json!({ "calls": [pay(1)] }), finish()]);
    let (mut running, _said) = world.start_heard(&["run", &agent]);
    eventually("the tool began", Duration::from_secs(20), || !world.read("begun").is_empty());
    let id = world.run_id();
    let pausing = world.command(&["pause", &id, "--reason", "lunch"]).spawn().expect("started");
    eventually("the pause was read", Duration::from_secs(20), || {
        world.json(&["show", &id])["checkpoint"]["phase"]["reason"] == "operator"
    });
    world.write("go", "");
    let paused = Said::of(pausing.wait_with_output().expect("ended")).exits(0);
    assert!(paused.out.contains("is stopped: operator") && paused.out.contains("paused by ada: lunch"), "{paused:?}");
    assert!(paused.out.contains(" resume "), "{paused:?}");
    assert_eq!(running.ended(), Some(6));
    let shown = world.json(&["show", &id]);
    assert_eq!((&shown["status"], &shown["checkpoint"]["recent"][0]["how"]), (&json!("stopped"), &json!("done")));
    assert!(world.lodestep(&["pause", &id]).exits(0).out.starts_with("already given"));
    assert_eq!(paid(&world), 0);
    world.lodestep(&["resume", &id]).exits(0);
    assert_eq!(paid(&world), 1);
    let late = world.lodestep(&["pause", &id]).exits(1);
    assert!(late.err.contains("run.over"), "{late:?}");
}

#[test]
fn sig_01_a_signal_counts_once_under_its_id_and_ends_the_wait() {
    let world = World::new();
    let wait = json!({ "calls": [{ "name": "wait_for_signal", "arguments": { "name": "paid" } }] });
    let agent = agent(&world, "", &[wait, finish()]);
    let waits = world.lodestep(&["run", &agent]).exits(3);
    assert!(waits.out.contains("is waiting: signal paid since 2"), "{waits:?}");
    let id = world.run_id();
    let reason = world.json(&["show", &id])["reasons"][0].clone();
    assert_eq!((&reason["reason"], &reason["name"]), (&json!("signal"), &json!("paid")), "{reason}");
    assert!(reason["since"].is_i64() && reason["until"].is_null(), "{reason}");
    let wrong = world.lodestep(&["signal", &id, "paid", "yes"]).exits(2);
    assert!(wrong.err.contains("usage.signal"), "{wrong:?}");
    let wrong = world.lodestep(&["signal", &id, "paid it"]).exits(1);
    assert!(wrong.err.contains("signal.name_invalid"), "{wrong:?}");
    let delivery = ["signal", &id, "paid", r#"{ "cents": 500 }"#, "--id", "delivery-1"];
    let sent: Vec<_> = (0..10).map(|_| world.command(&delivery).spawn().expect("started")).collect();
    let sent: Vec<Said> =
        sent.into_iter().map(|child| Said::of(child.wait_with_output().expect("ended")).exits(0)).collect();
    assert_eq!(sent.iter().filter(|said| said.out.starts_with("sent")).count(), 1, "{sent:?}");
    world.lodestep(&["resume", &id]).exits(0);
    assert!(world.lodestep(&delivery).exits(0).out.starts_with("already given"));
    let other = world.lodestep(&["signal", &id, "paid", "--id", "delivery-2"]).exits(1);
    assert!(other.err.contains("run.over"), "{other:?}");
    let shown = world.json(&["show", &id]);
    assert_eq!(shown["checkpoint"]["recent"][0]["by"], "signal");
    assert_eq!(shown["checkpoint"]["signals"], json!([]), "it was taken once");
}

#[test]
fn sig_01_a_delivery_that_failed_in_the_middle_left_nothing_and_can_be_sent_again() {
    let world = World::new();
    let wait = json!({ "calls": [{ "name": "wait_for_signal", "arguments": { "name": "paid" } }] });
    let agent = agent(&world, "", &[wait, finish()]);
    world.lodestep(&["run", &agent]).exits(3);
    let id = world.run_id();
    let database = || rusqlite::Connection::open(world.path().join("store.db")).expect("opened");
    let stored = || {
        let count = |sql: &str| database().query_row(sql, [], |row| row.get::<_, i64>(0)).expect("counted");
        (count("SELECT count(*) FROM message"), count("SELECT inbox FROM head"), world.json(&["show", &id]))
    };
    let delivery = ["signal", &id, "paid", "500", "--id", "delivery-1"];
    let before = stored();
    // After each write that a delivery makes, as far as the store's own file knows, the transaction fails.
    for write in ["INSERT ON message", "UPDATE OF inbox ON head", "UPDATE OF due_at ON head"] {
        let fault = format!("CREATE TRIGGER fault AFTER {write} BEGIN SELECT RAISE(ABORT, 'in the middle'); END");
        database().execute_batch(&fault).expect("made");
        let failed = world.lodestep(&delivery).exits(7);
        assert!(failed.err.contains("store.corrupt") && failed.err.contains("in the middle"), "{write}: {failed:?}");
        database().execute_batch("DROP TRIGGER fault").expect("dropped");
        assert_eq!(stored(), before, "{write}: something is left");
    }
    assert!(world.lodestep(&delivery).exits(0).out.starts_with("sent"));
    assert!(world.lodestep(&delivery).exits(0).out.starts_with("already given"));
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    let shown = world.json(&["show", &id]);
    assert_eq!((&shown["status"], &shown["checkpoint"]["recent"][0]["by"]), (&json!("completed"), &json!("signal")));
    world.lodestep(&["verify"]).exits(0);
}

#[test]
fn idn_02_a_signal_or_a_top_up_under_a_used_id_is_the_same_one_or_refused() {
    let world = World::new();
    let wait = json!({ "calls": [{ "name": "wait_for_signal", "arguments": { "name": "paid" } }] });
    let agent = agent(&world, "[quota]\nmodel_calls = 5\n", &[wait, finish()]);
    world.lodestep(&["run", &agent]).exits(3);
    let id = world.run_id();
    let signal = |name: &str, value: &str, key: &str| world.lodestep(&["signal", &id, name, value, "--id", key]);
    let top_up = |amount: &str, key: &str| world.lodestep(&["quota", "add", &id, "model_calls", amount, "--id", key]);
    for said in [signal("paid", r#"{ "cents": 500, "by": "ada" }"#, "n-1").exits(0), top_up("2", "n-2").exits(0)] {
        assert!(!said.out.starts_with("already given"), "{said:?}");
    }
    let stands = || {
        let shown = world.json(&["show", &id]);
        (shown["checkpoint"].clone(), shown["unread"].clone(), world.json(&["quota", "show", &id]))
    };
    let all_say_so = |when: &str| {
        let before = stands();
        for refused in [
            signal("paid", r#"{ "cents": 501, "by": "ada" }"#, "n-1").exits(1),
            signal("paid", r#"{ "cents": 500 }"#, "n-1").exits(1),
            signal("refunded", r#"{ "cents": 500, "by": "ada" }"#, "n-1").exits(1),
            signal("paid", r#"{ "cents": 500, "by": "ada" }"#, "n-2").exits(1),
            top_up("3", "n-2").exits(1),
            top_up("2", "n-1").exits(1),
        ] {
            assert!(refused.err.contains("message.id_reused"), "{when}: {refused:?}");
        }
        // The same value in another order is the same.
        for said in [signal("paid", r#"{"by":"ada","cents":500}"#, "n-1").exits(0), top_up("2", "n-2").exits(0)] {
            assert!(said.out.starts_with("already given"), "{when}: {said:?}");
        }
        assert_eq!(stands(), before, "{when}: nothing changed");
    };
    all_say_so("unread");
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    all_say_so("read, and the run is over");
    let shown = world.json(&["show", &id]);
    assert_eq!(
        (&shown["status"], &shown["checkpoint"]["quota"]["limits"]["model_calls"]),
        (&json!("completed"), &json!(7))
    );
}

#[test]
fn tim_01_a_kill_at_the_moment_of_firing_fires_the_timer_once() {
    for step in 1..=6 {
        let world = World::new();
        let wait = |seconds: u64| json!({ "calls": [{ "name": "wait", "arguments": { "seconds": seconds } }] });
        let agent = agent(&world, "", &[wait(0), wait(0), wait(0), wait(0), finish()]);
        let point = format!("run:checkpoint:{step}");
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", &point]).code, None, "{point} was reached");
        world.lodestep(&["run", &agent]).exits(0);
        let log = world.lodestep(&["log", &world.run_id()]).out;
        assert_eq!(log.matches("TimerFired").count(), 4, "{point}: {log}");
    }
}

#[test]
fn a_short_timer_is_waited_for_at_the_terminal() {
    let world = World::new();
    let wait = json!({ "calls": [{ "name": "wait", "arguments": { "seconds": 1 } }] });
    let agent = agent(&world, "", &[wait, finish()]);
    let said = world.lodestep(&["run", &agent]).exits(0);
    assert!(said.err.contains("waits until 2") && said.err.contains("the time has come"), "{said:?}");
}

#[test]
fn bud_01_a_top_up_with_an_author_and_an_id_lets_a_stopped_run_go_on() {
    let world = World::new();
    let tables = allowed("[quota]\ntool_calls = 1\nmodel_calls = 10\n");
    let agent = agent(&world, &tables, &[json!({ "calls": [pay(1), pay(2)] }), finish()]);
    let stopped = world.lodestep(&["run", &agent]).exits(6);
    assert!(stopped.out.contains("is stopped: quota") && stopped.out.contains("pay (action 2)"), "{stopped:?}");
    let id = world.run_id();
    assert_eq!(paid(&world), 1, "what had room ran");
    // What a client's file says now is not what the run was given.
    world.write("agent.toml", &world.read("agent.toml").replace("tool_calls = 1", "tool_calls = 100"));
    world.lodestep(&["run", &agent]).exits(6);
    world.lodestep(&["resume", &id]).exits(6);
    for (words, code, named) in [
        (["quota", "add", &id, "gold", "1"], 2, "usage.quota"),
        (["quota", "add", &id, "tool_calls", "1.5"], 2, "usage.quota"),
        (["quota", "add", &id, "deadline", "5"], 2, "usage.quota"),
        (["quota", "add", &id, "usd", "2.50"], 1, "quota.not_limited"),
        (["quota", "add", &id, "tool_calls", "0"], 1, "quota.nothing"),
    ] {
        let said = world.lodestep(&words).exits(code);
        assert!(said.err.contains(named), "{words:?}: {said:?}");
    }
    let add = ["quota", "add", &id, "tool_calls", "1", "--by", "grace", "--id", "ticket-7"];
    assert!(world.lodestep(&add).exits(0).out.contains("added 1 to tool_calls"));
    assert!(world.lodestep(&add).exits(0).out.starts_with("already given"));
    let reused =
        world.lodestep(&["quota", "add", &id, "tool_calls", "9", "--by", "grace", "--id", "ticket-7"]).exits(1);
    assert!(reused.err.contains("message.id_reused"), "{reused:?}");
    let row = |name: &str| {
        let shown = world.json(&["quota", "show", &id]);
        let rows = shown["quotas"].as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["quota"] == name).expect("a row")
    };
    let before = row("tool_calls");
    assert_eq!(
        (&before["used"], &before["left"], &before["limit"]),
        (&json!(1), &json!(1), &json!(2)),
        "it counts at once"
    );
    // A top-up alone moves nothing: it is for a person still, in every listing.
    let listed = world.lodestep(&["ls"]).exits(0).out;
    assert!(
        listed.starts_with("needs you (1)\n") && listed.contains("a word has come that no worker has read"),
        "{listed}"
    );
    assert_eq!(world.json(&["todo"])[0]["kind"], "stopped");
    assert_eq!(world.json(&["ls", "--status", "ready"]), json!([]));
    world.lodestep(&["resume", &id]).exits(0);
    assert_eq!(paid(&world), 2, "the call was not lost");
    let after = row("tool_calls");
    assert_eq!((&after["used"], &after["left"], &after["low"]), (&json!(2), &json!(0), &json!(true)));
    let text = world.lodestep(&["quota", "show", &id]).exits(0).out;
    assert!(text.lines().any(|line| line.starts_with("tool_calls") && line.ends_with("low")), "{text}");
    let log = world.lodestep(&["log", &id]).out;
    assert!(log.contains("QuotaRaised") && log.contains("grace"), "{log}");
}

#[test]
fn guidance_reaches_a_run_that_stopped_for_its_completion() {
    let world = World::new();
    let save = json!({ "calls": [{ "name": "artifact_save", "arguments": { "name": "report.md", "text": "x" } }] });
    let replies = [finish(), finish(), finish(), save, finish()];
    let agent = agent(&world, "[done]\nartifacts = [\"report.md\"]\n", &replies);
    world.lodestep(&["run", &agent]).exits(6);
    let id = world.run_id();
    let told = world.lodestep(&["tell", &id, "save the report first"]).exits(0);
    assert!(told.out.contains("resume"), "{told:?}");
    let twice = ["tell", &id, "and be brief", "--id", "t1"];
    world.lodestep(&twice).exits(0);
    assert!(world.lodestep(&twice).exits(0).out.starts_with("already given"));
    let empty = world.lodestep(&["tell", &id, ""]).exits(1);
    assert!(empty.err.contains("guidance.size"), "{empty:?}");
    assert_eq!(world.json(&["show", &id])["unread"], 2);
    let said = world.lodestep(&["resume", &id]).exits(0);
    assert!(said.err.contains("told by ada: save the report first"), "{said:?}");
    assert_eq!(world.json(&["show", &id])["checkpoint"]["guidance"], json!([]));
}

#[test]
fn apr_10_no_kill_round_an_approval_sends_twice_or_asks_again() {
    for point in ["run:checkpoint", "pay:intent", "pay:applied", "pay:outcome"] {
        let world = World::new();
        let agent = agent(&world, PAY, &[json!({ "calls": [pay(1)] }), finish()]);
        world.lodestep(&["run", &agent]).exits(3);
        let request = world.requests().remove(0);
        world.lodestep(&["approve", &request]).exits(0);
        let id = world.run_id();
        let killed = world.command(&["resume", &id]).env("LODESTEP_CRASH_AT", point).output().expect("ran");
        assert_eq!(killed.status.code(), None, "{point} was reached");
        // The approval was used or is used now; the person is not asked for it again.
        // The first transition after the approval holds the intent.
        let in_doubt = point != "pay:outcome";
        let said = world.lodestep(&["resume", &id]).exits(if in_doubt { 5 } else { 0 });
        assert_eq!(world.requests().len(), 0, "{point}: {said:?}");
        assert!(paid(&world) <= 1, "{point}");
        let again = world.lodestep(&["approve", &request]).exits(0);
        assert!(again.out.starts_with("already given"), "{point}: {again:?}");
        if in_doubt {
            assert!(
                said.out.contains("in doubt") && said.out.contains("resolve"),
                "{point}: the reason is shown: {said:?}"
            );
            let word = if point == "pay:applied" { "--happened" } else { "--retry" };
            world.lodestep(&["resolve", &id, "1", word]).exits(0);
            world.lodestep(&["resume", &id]).exits(0);
        }
        assert_eq!(paid(&world), 1, "{point}");
    }
}

#[test]
fn apr_10_two_workers_on_one_approval_send_once() {
    let world = World::new();
    let agent = agent(&world, PAY, &[json!({ "calls": [pay(1)] }), finish()]);
    world.lodestep(&["run", &agent]).exits(3);
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    let workers: Vec<_> =
        (0..2).map(|_| world.command(&["worker", "--until-idle"]).spawn().expect("started")).collect();
    for worker in workers {
        Said::of(worker.wait_with_output().expect("ended")).exits(0);
    }
    assert_eq!(world.json(&["show", &world.run_id()])["status"], "completed");
    assert_eq!(paid(&world), 1);
}

#[test]
fn an_approval_that_no_worker_used_in_time_is_asked_for_again_when_the_rule_pauses() {
    let world = World::new();
    let asks = "[[policy]]\ntools = [\"pay\"]\ndecide = \"ask\"\nexpires = \"4s\"\non_expiry = \"pause\"\n";
    let agent = agent(&world, &format!("{PAY}{asks}"), &[json!({ "calls": [pay(1)] }), finish()]);
    world.lodestep(&["run", &agent]).exits(3);
    let id = world.run_id();
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    let expires = world.json(&["show", &id])["requests"][0]["expires_at"].as_str().map(str::to_owned);
    let expires = lodestep::core::Timestamp::parse(&expires.expect("a time")).expect("a time");
    eventually("the approval expired", Duration::from_secs(20), || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        now.as_micros() as i64 > expires.as_micros() + 1_000_000
    });
    let stopped = world.lodestep(&["resume", &id]).exits(6);
    assert!(stopped.out.contains("ada approved action 1, but the approval expired"), "{stopped:?}");
    assert_eq!((paid(&world), world.requests().len()), (0, 1), "it is asked for again");
}
