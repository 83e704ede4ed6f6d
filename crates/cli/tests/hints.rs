//! What a person reads who types something that is not quite right, or looks at what a run needs next.

mod support;

use serde_json::json;
use support::*;

const PAY: &str = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo paid >> paid\"]\n\
                   input = { type = \"object\" }\nclass = \"unsafe\"\n";

fn paying(world: &World, tables: &str) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
    ]);
    world.agent(&format!("{PAY}{tables}"), &replies).to_str().expect("a path").to_owned()
}

#[test]
fn an_input_that_is_too_short_is_refused_by_name() {
    let world = World::new();
    let agent = paying(&world, "[inputs]\ntopic = { type = \"string\", min_length = 3 }\n");
    for (topic, code) in [("", 2), ("  ab  ", 2), ("abc", 3)] {
        let said = world.lodestep(&["run", &agent, "-i", &format!("topic={topic}")]).exits(code);
        assert_eq!(said.err.contains("input.invalid"), code == 2, "{said:?}");
    }
    let example = world.lodestep(&["run", research().to_str().expect("a path"), "-i", "topic="]).exits(2);
    assert!(example.err.contains("the input `topic`: \"\" has fewer than"), "{example:?}");
}

#[test]
fn a_resume_of_a_quarantined_run_exits_as_the_table_says() {
    let world = World::new();
    let agent = paying(&world, "");
    for _ in 0..5 {
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "model:reply"]).code, None);
    }
    world.lodestep(&["run", &agent]).exits(5);
    assert_eq!(world.json(&["ls"])[0]["status"], "quarantined");
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
    assert!(shown.contains("crashed 5 times") && shown.contains("while its model was asked"), "{shown}");
    let refused = world.lodestep(&["resume", &world.run_id()]).exits(5);
    assert!(refused.err.contains("run.quarantined") && refused.err.contains("release"), "{refused:?}");
}

#[test]
fn a_request_is_named_by_four_characters_at_least() {
    let world = World::new();
    let agent = paying(&world, "");
    // Ends with no hexadecimal digit: the start of the request's name is never the end of the run's.
    world.lodestep(&["run", &agent, "--id", "payx"]).exits(3);
    let name = world.requests().remove(0);
    for word in ["approve", "deny"] {
        let refused = world.lodestep(&[word, &name[..1]]).exits(2);
        assert!(refused.err.contains("usage.request") && refused.err.contains(&name[..8]), "{refused:?}");
    }
    // Two characters are swapped.
    let swapped = format!("{}{}{}", &name[1..2], &name[..1], &name[2..6]);
    if swapped != name[..6] {
        let missed = world.lodestep(&["approve", &swapped]).exits(1);
        assert!(missed.err.contains(&format!("did you mean `{}`?", &name[..6])), "{missed:?}");
    }
    world.lodestep(&["approve", &name[..4]]).exits(0);
    let late = world.lodestep(&["deny", &name]).exits(1);
    assert!(late.err.contains("it was approved by"), "{late:?}");
}

#[test]
fn an_action_that_is_not_in_doubt_is_told_from_the_one_that_is() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "pay:applied"]).code, None);
    world.lodestep(&["run", &agent]).exits(5);
    let id = world.run_id();
    let missed = world.lodestep(&["resolve", &id, "7", "--happened"]).exits(1);
    assert!(missed.err.contains("action.not_found") && missed.err.contains("did you mean action 1"), "{missed:?}");
    world.lodestep(&["resolve", &id, "1", "--happened"]).exits(0);
    world.lodestep(&["resume", &id]).exits(0);
    let over = world.lodestep(&["resolve", &id, "1", "--abandon", "nobody knows"]).exits(1);
    assert!(over.err.contains("it is settled: done") && over.err.contains("no action"), "{over:?}");
}

#[test]
fn after_a_denial_what_helps_comes_first() {
    let world = World::new();
    let milestone = "[[milestone]]\nid = \"paid\"\ntitle = \"Paid\"\nrequires = { action = \"pay\" }\n[done]\nmilestones = \"all\"\n";
    let agent = paying(&world, milestone);
    world.lodestep(&["run", &agent]).exits(3);
    world.lodestep(&["deny", &world.requests()[0], "--reason", "not yet"]).exits(0);
    let stopped = world.lodestep(&["resume", &world.run_id()]).exits(6);
    let hints = stopped.out.split("now:\n").nth(1).expect("hints").to_owned();
    let words: Vec<&str> = hints.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(words, ["tell", "fork", "cancel"], "{stopped:?}");
    let todo = world.json(&["todo"]);
    assert!(todo[0]["command"].as_str().is_some_and(|command| command.contains(" tell ")), "{todo}");
}

#[test]
fn every_command_that_works_can_be_told_to_crash() {
    for words in [&["resume"][..], &["worker", "--until-idle"]] {
        let world = World::new();
        let agent = paying(&world, "");
        world.lodestep(&["run", &agent]).exits(3);
        world.lodestep(&["approve", &world.requests()[0]]).exits(0);
        let misspelt = world.lodestep(&[words, &["--crash-at", "pya:applied"]].concat()).exits(2);
        assert!(
            misspelt.err.contains("usage.crash_at") && misspelt.err.contains("did you mean `pay`?"),
            "{misspelt:?}"
        );
        let crashed = world.lodestep(&[words, &["--crash-at", "pay:applied"]].concat());
        assert_eq!(crashed.code, None, "{crashed:?}");
        assert!(crashed.err.contains("crashed at pay:applied"), "{crashed:?}");
        assert_eq!(world.read("paid"), "paid\n");
        world.lodestep(words);
        assert_eq!(world.json(&["ls"])[0]["status"], "in_doubt");
    }
}

#[test]
fn idn_02_a_start_with_a_known_id_and_another_definition_says_that_the_run_keeps_its_own() {
    let world = World::new();
    let agent = paying(&world, "");
    world.lodestep(&["run", &agent, "--id", "pay-7"]).exits(3);
    let first = world.json(&["show", "pay-7"])["checkpoint"]["definition"]["digest"].clone();
    let changed = world.read("agent.toml").replace("Pay.", "Pay at once.");
    world.write("agent.toml", &changed);
    let again = world.lodestep(&["run", &agent, "--id", "pay-7"]).exits(3);
    assert!(again.err.contains("the agent file has changed since"), "{again:?}");
    assert!(again.err.contains("the tool pay") && again.err.contains("goes on with its own definition"), "{again:?}");
    assert_eq!(world.json(&["show", "pay-7"])["checkpoint"]["definition"]["digest"], first);
    world.lodestep(&["cancel", "pay-7"]).exits(0);
    let over = world.lodestep(&["run", &agent, "--id", "pay-7"]).exits(4);
    assert!(over.err.contains("the agent file has changed since"), "{over:?}");
}

#[test]
fn kills_are_counted_when_they_hit() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    let said = world.lodestep(&["test", &agent, "--every", "100", "--kills", "6", "--seed", "3"]);
    let kills = said.out.lines().filter(|line| line.starts_with("random kills"));
    for line in kills {
        let is_ok = line.ends_with("ok");
        assert!(!(is_ok && line.contains("crashes 0 ")), "a trial without a kill shows nothing: {line}");
    }
    assert!(said.out.contains(", 6 of 6 random kills"), "{said:?}");
}

#[test]
fn of_several_doubts_one_is_named_and_another_run_is_no_action() {
    let world = World::new();
    let call = |number: u32| json!({ "name": "pay", "arguments": { "cents": number } });
    let replies = json!([
        { "calls": [call(1), call(2)] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
    ]);
    let pay = PAY.replace("\"object\" }", "\"object\", properties = { cents = { type = \"integer\" } } }");
    let agent = world.agent(&format!("{pay}[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n"), &replies);
    let agent = agent.to_str().expect("a path");
    // The intents of both are stored together.
    assert_eq!(world.lodestep(&["run", agent, "--id", "x02", "--crash-at", "pay:applied"]).code, None);
    world.lodestep(&["resume", "x02"]).exits(5);
    for words in [&["resolve", "x02", "x03", "--happened"][..], &["resolve", "x02", "1", "x03", "--happened"]] {
        let other = world.lodestep(words).exits(2);
        assert!(other.err.contains("`x03` is no action's number") && other.err.contains("--tool TOOL"), "{other:?}");
    }
    let several = world.lodestep(&["resolve", "x02", "--happened"]).exits(2);
    assert!(several.err.contains("usage.action") && several.err.contains("1 (pay), 2 (pay)"), "{several:?}");
    world.lodestep(&["resolve", "x02", "1", "--happened"]).exits(0);
    world.lodestep(&["resume", "x02"]).exits(5);
    world.lodestep(&["resolve", "x02", "--happened"]).exits(0);
    world.lodestep(&["resume", "x02"]).exits(0);
    let none = world.lodestep(&["resolve", "x02", "--happened"]).exits(1);
    assert!(none.err.contains("action.not_in_doubt"), "{none:?}");
}

#[test]
fn a_run_that_is_out_of_a_quota_is_helped_by_a_top_up_and_not_by_a_resume() {
    let world = World::new();
    let agent = paying(&world, "[quota]\nmodel_calls = 1\n[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    let stopped = world.lodestep(&["run", &agent, "--id", "q01"]).exits(6);
    let hint = "quota add q01 model_calls N";
    let todo = || world.lodestep(&["todo"]).exits(0).out;
    let show = || world.lodestep(&["show", "q01"]).exits(0).out;
    for text in [&stopped.out, &todo(), &show(), &world.lodestep(&["quota", "show", "q01"]).exits(0).out] {
        assert!(text.contains(hint) && !text.contains("resume q01"), "{text}");
    }
    world.lodestep(&["quota", "add", "q01", "model_calls", "5"]).exits(0);
    for text in [todo(), show()] {
        assert!(text.contains("resume q01") && !text.contains(hint), "{text}");
        assert!(text.contains("the quota model_calls has room again") && !text.contains("has no room"), "{text}");
    }
    world.lodestep(&["resume", "q01"]).exits(0);
}

#[test]
fn a_top_up_that_is_too_small_is_told_how_much_is_missing() {
    let world = World::new();
    let price = "[quota]\ntotal_tokens = 5000\n[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";
    let agent = paying(&world, price);
    let stopped = world.lodestep(&["run", &agent, "--id", "q01"]).exits(6);
    // What the hint asks for is exactly what the next call takes.
    let missing = |text: &str| -> u64 {
        let (_, rest) = text.split_once("quota add q01 total_tokens ").unwrap_or_else(|| panic!("{text}"));
        rest.split_once("  (or more; ").and_then(|(amount, _)| amount.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let show = || world.lodestep(&["show", "q01"]).exits(0).out;
    let todo = || world.lodestep(&["todo"]).exits(0).out;
    let first = missing(&stopped.out);
    assert_eq!((missing(&show()), missing(&todo())), (first, first));
    assert!(stopped.out.contains("has no room for another call of the model: it asks for "), "{stopped:?}");
    assert!(stopped.out.contains(&format!("left: {first} missing")), "{stopped:?}");
    let small = world.lodestep(&["quota", "add", "q01", "total_tokens", "10"]).exits(0).out;
    assert!(small.contains("too little") && missing(&small) == first - 10, "{small}");
    assert!(!small.contains("it goes on with"), "{small}");
    assert_eq!((missing(&show()), missing(&todo())), (first - 10, first - 10));
    assert_eq!(missing(&world.lodestep(&["quota", "show", "q01"]).exits(0).out), first - 10);
    let less = (first - 11).to_string();
    world.lodestep(&["quota", "add", "q01", "total_tokens", &less]).exits(0);
    assert!(show().contains("quota add q01 total_tokens 1  (or more"), "{}", show());
    let enough = world.lodestep(&["quota", "add", "q01", "total_tokens", "1"]).exits(0).out;
    assert!(enough.contains("it goes on with") && show().contains("resume q01"), "{enough}");
    let again = world.lodestep(&["resume", "q01"]);
    assert!(again.err.contains("pay"), "the next call had room: {again:?}");
}

#[test]
fn a_fork_says_what_it_takes_of_its_origins_quotas_and_what_is_left_there() {
    let world = World::new();
    let agent = paying(&world, "[quota]\nmodel_calls = 21\n");
    world.lodestep(&["run", &agent, "--id", "orig"]).exits(3);
    // One call is used: half of what is left goes to the fork.
    let said = world.lodestep(&["fork", "orig", "--id", "half"]).exits(0).out;
    assert!(said.contains("  model_calls: 10 to spend, taken from run orig, which has 10 left\n"), "{said}");
    let again = world.lodestep(&["fork", "orig", "--id", "half"]).exits(0).out;
    assert!(again.contains("  model_calls: 10 to spend, taken from run orig, which has 10 left\n"), "{again}");
    let made = world.json(&["fork", "orig", "--id", "some", "--grant", "model_calls=3"]);
    assert_eq!((&made["quota"]["model_calls"], &made["origin_left"]["model_calls"]), (&json!(3), &json!(7)), "{made}");
    assert_eq!(world.json(&["quota", "show", "orig"])["quotas"][0]["left"], 7);
}

#[test]
fn a_second_fork_of_a_run_that_is_over_gets_what_the_first_one_left() {
    let world = World::new();
    let agent = paying(&world, "[quota]\nmodel_calls = 21\n");
    world.lodestep(&["run", &agent, "--id", "orig"]).exits(3);
    world.lodestep(&["cancel", "orig"]).exits(0);
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    let first = world.lodestep(&["fork", "orig", "--id", "first", "--at", "2"]).exits(0).out;
    assert!(first.contains("model_calls: 20 to spend, taken from run orig, which has 0 left"), "{first}");
    // The origin is over: no worker reads that it gave that away.
    let second = world.lodestep(&["fork", "orig", "--id", "second", "--at", "2"]).exits(0).out;
    assert!(second.contains("model_calls: 0 to spend"), "{second}");
    world.lodestep(&["quota", "add", "second", "model_calls", "5"]).exits(0);
}

#[test]
fn a_name_that_nothing_has_is_told_from_nothing_to_do() {
    let world = World::new();
    let agent = paying(&world, "");
    world.lodestep(&["run", &agent, "--id", "d003"]).exits(3);
    let typo = world.lodestep(&["todo", "--agent", "scritped"]).exits(1);
    assert!(typo.err.contains("run.no_such_agent") && typo.err.contains("did you mean `scripted`?"), "{typo:?}");
    let typo = world.lodestep(&["approve", "--agent", "scritped", "--yes"]).exits(2);
    assert!(typo.err.contains("did you mean `scripted`?"), "{typo:?}");
    assert_eq!(world.lodestep(&["todo", "--tool", "other"]).exits(0).out, "nothing waits for you\n");
    let held = world.lodestep(&["hold", "tool:pya"]).exits(0);
    assert!(held.err.contains("no run has a tool `pya`; did you mean `tool:pay`?"), "{held:?}");
    for target in ["tool:pay", "tool:p*", "agent:scripted", "model:script"] {
        let held = world.lodestep(&["hold", target]).exits(0);
        assert!(held.err.is_empty(), "{held:?}");
    }
    let released = world.lodestep(&["release", "pay"]).exits(1);
    assert!(released.err.contains("did you mean `tool:pay`"), "{released:?}");
    // A run in the place of its request.
    let name = world.requests().remove(0);
    let open = world.lodestep(&["deny", "d003"]).exits(1);
    assert!(open.err.contains(&format!("d003 is a run; it asks for: {}", &name[..4])), "{open:?}");
    world.lodestep(&["deny", &name]).exits(0);
    let decided = world.lodestep(&["deny", "d003"]).exits(1);
    assert!(
        decided.err.contains(&format!("its last request, {}, is decided: denied by ada", &name[..8])),
        "{decided:?}"
    );
}

#[test]
fn a_usage_line_names_what_has_to_be_typed() {
    let world = World::new();
    let wrong = world.lodestep(&["pause"]).exits(2);
    assert!(wrong.err.contains("Usage: lodestep pause ") && wrong.err.contains("<RUN>"), "{wrong:?}");
    assert!(!wrong.err.contains("--by"), "LODESTEP_USER is set: {wrong:?}");
    let agent = paying(&world, "[quota]\nmodel_calls = 9\n");
    world.lodestep(&["run", &agent, "--id", "one"]).exits(3);
    for words in [
        &["quota", "add", "one", "model_calls", "-1"][..],
        &["quota", "add", "model_calls", "-1", "--agent", "scripted"],
    ] {
        let wrong = world.lodestep(words).exits(2);
        assert!(wrong.err.contains("an amount is a whole number above 0"), "{wrong:?}");
    }
    let cage = world.command(&["ls"]).env("LODESTEP_CAGE", "iron").output().expect("ran");
    let cage = Said::of(cage).exits(2);
    assert!(cage.err.contains("LODESTEP_CAGE is `iron`"), "{cage:?}");
    let by = world.command(&["approve", &world.requests()[0]]).env("LODESTEP_USER", "grace").output().expect("ran");
    Said::of(by).exits(0);
    let shown = world.lodestep(&["show", "one"]).exits(0).out;
    assert!(shown.contains("approved by grace"), "{shown}");
}

#[test]
fn help_ends_with_what_every_command_takes() {
    let world = World::new();
    for words in [&["approve", "--help"][..], &["run", "--help"], &["resolve", "-h"], &["quota", "add", "--help"]] {
        let help = world.lodestep(words).exits(0).out;
        let (own, common) = help.split_once("Common options:\n").unwrap_or_else(|| panic!("{help}"));
        for option in ["--store", "--json", "--by", "--cage"] {
            assert!(!own.contains(&format!("{option} ")) && common.contains(option), "{words:?}: {option}: {help}");
        }
    }
    let run = folded(&world.lodestep(&["run", "--help"]).exits(0).out);
    for code in
        ["0 completed", "1 failed", "2 an error", "3 waiting", "4 cancelled", "5 in doubt", "6 stopped", "7 ", "130 "]
    {
        assert!(run.contains(code), "{code}: {run}");
    }
    let worker = folded(&world.lodestep(&["worker", "--help"]).exits(0).out);
    assert!(worker.contains("0 when nothing is due") && worker.contains("130 handed over"), "{worker}");
    assert!(world.lodestep(&["resolve", "--help"]).exits(0).out.contains("--tool charge --did-not-happen"));
}
