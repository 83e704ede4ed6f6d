//! What a person sees of a model that is a service: keys that are wrong, missing or changed (scenario SEC-01), models and
//! places that there are not, limits of its rate (scenario TOL-08), replies that were lost.

mod support;

use lodestep_model::Reply;
use lodestep_model_server::{At, Fault, Options, Outcome, Shape, WAYS};
use serde_json::{Value, json};
use support::services::*;
use support::*;

fn finish() -> Reply {
    calls(&[("finish", json!({"summary": "done"}))])
}

/// A service that would end the run with its first reply, and an agent that asks it.
fn finishing(world: &World, way: (Shape, bool), model: &str, tables: &str) -> (Service, String) {
    let service = Service::new(way, by_decisions(vec![finish()]));
    let agent = service.agent(world, model, tables).to_str().expect("a path").to_owned();
    (service, agent)
}

/// The run stopped for its model: everywhere where one looks, this is said of why, and `resume` is what comes next.
fn stopped_saying(world: &World, said: &Said, why: &[&str]) {
    assert_eq!(said.code, Some(6), "{said:?}");
    let id = world.run_id();
    let shown = world.lodestep(&["show", &id]).exits(0).out;
    let log = world.lodestep(&["log", &id]).exits(0).out;
    for why in why {
        assert!(said.out.contains(why), "{why}: {}", said.out);
        assert!(shown.contains(why), "{why}: {shown}");
    }
    assert!(log.contains(why[0]), "{}: {log}", why[0]);
    let todo = world.json(&["todo"]);
    assert_eq!(todo[0]["kind"], "stopped", "{todo}");
    assert!(todo[0]["what"].as_str().is_some_and(|what| what.contains(why[0])), "{}: {todo}", why[0]);
    let command = todo[0]["command"].as_str().expect("a command");
    assert!(command.contains("resume "), "{todo}");
    assert!(shown.contains(command), "{shown}");
}

/// Every file of the world but the key's own.
fn stored(world: &World) -> Vec<(String, Vec<u8>)> {
    world.rest();
    let files = world.files().into_iter().filter(|path| !path.ends_with("key"));
    files.map(|path| (path.display().to_string(), std::fs::read(&path).expect("read"))).collect()
}

fn holds(bytes: &[u8], canary: &str) -> bool {
    bytes.windows(canary.len()).any(|window| window == canary.as_bytes())
}

/// No file of the world but the key's own, and no command, holds this.
fn is_nowhere(world: &World, said: &[&Said], canary: &str) {
    let id = world.run_id();
    let mut all = stored(world);
    for words in [&["show", &id][..], &["log", &id], &["ls"], &["todo"], &["verify"], &["context", &id]] {
        for words in [words.to_vec(), [&["--json"], words].concat()] {
            let said = world.lodestep(&words);
            all.push((words.join(" "), [said.out, said.err].concat().into_bytes()));
        }
    }
    all.extend(said.iter().map(|said| ("what it said".to_owned(), format!("{said:?}").into_bytes())));
    for (whence, bytes) in all {
        assert!(!holds(&bytes, canary), "{canary} in {whence}: {}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn sec_01_a_service_that_repeats_its_key_in_a_401_or_a_403_shows_it_to_nobody() {
    for way in WAYS {
        for (fault, status) in [(Fault::Unauthorized, "HTTP 401"), (Fault::Forbidden, "HTTP 403")] {
            let world = World::new();
            let (service, agent) = finishing(&world, way, "", "");
            service.server.plan([fault]);
            let refused = world.lodestep(&["run", &agent]);
            // What was taken out is told as a sentence.
            let first = refused.err.lines().find(|line| line.starts_with("step ")).unwrap_or_default();
            assert!(
                first.contains("a reply of the model held secrets, which were taken out: MODEL_KEY"),
                "{refused:?}"
            );
            assert!(!refused.err.contains("reply: "), "{refused:?}");
            let rejects = format!("the provider rejects the request: {status}");
            stopped_saying(&world, &refused, &[&rejects, "[secret MODEL_KEY]", "`api_key`"]);
            assert_eq!(service.requests(), 1, "{way:?} {status}: it is not asked again with the same key");
            let entry = &service.server.bill().entries[0];
            let sent = [entry.header("x-api-key"), entry.header("authorization")].concat();
            assert!(sent.ends_with(KEY), "{way:?} {status}: the service got it as it is");
            is_nowhere(&world, &[&refused], KEY);
        }
    }
}

#[test]
fn sec_01_a_rotated_key_is_taken_at_the_resume_without_a_change_of_the_definition() {
    const WRONG: &str = "sk-canary-Xk9Ty31Pq-wrong";
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "", "");
        world.write("key", WRONG);
        let refused = world.lodestep(&["run", &agent]);
        stopped_saying(&world, &refused, &["the provider rejects the request: HTTP 401", "`api_key`"]);
        let definition = || world.json(&["show", &world.run_id()])["checkpoint"]["definition"].clone();
        let before = definition();
        world.write("key", KEY);
        let resumed = world.lodestep(&["resume", &world.run_id()]).exits(0);
        assert_eq!(world.json(&["ls"])[0]["status"], "completed", "{way:?}: {resumed:?}");
        assert!(before.is_object() && definition() == before, "{way:?}: {before}");
        assert_eq!(service.server.bill().answered(), 1, "{way:?}");
        for canary in [KEY, WRONG] {
            is_nowhere(&world, &[&refused, &resumed], canary);
        }
    }
}

#[test]
fn a_key_that_is_not_set_is_named_before_anything_is_started() {
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "", "");
        world.write("lodestep.toml", "");
        let mut command = world.command(&["run", &agent]);
        let refused = Said::of(command.env_remove("MODEL_KEY").output().expect("ran")).exits(2);
        assert!(refused.err.contains("agent.secret_missing") && refused.err.contains("MODEL_KEY"), "{refused:?}");
        assert!(!world.path().join("store.db").exists(), "{way:?}: nothing was started");
        assert_eq!(service.requests(), 0, "{way:?}");
    }
}

#[test]
fn what_is_not_set_here_is_named_by_a_check_with_what_needs_it_and_is_no_fault() {
    let world = World::new();
    let tool = "[tools.look]\ndescription = \"Look.\"\ncommand = [\"true\"]\ninput = { type = \"object\" }\nclass = \"read\"\n\
        env = { A = \"${env:LOOK_TOKEN}\", B = \"${env:MODEL_KEY}\", C = \"${env:LOOK_MODE:-fast}\" }\n";
    let (service, agent) = finishing(&world, WAYS[2], "", tool);
    let unset = |words: &[&str]| {
        let mut command = world.command(words);
        Said::of(command.env_remove("MODEL_KEY").env_remove("LOOK_TOKEN").output().expect("ran"))
    };
    // The file beside the store gives the one, and nobody the other.
    let checked = unset(&["run", &agent, "--check"]).exits(0);
    assert!(checked.out.contains("agent.toml: ok."), "{checked:?}");
    assert!(
        checked.err.contains("note: the environment variable LOOK_TOKEN is not set here; tool look needs it"),
        "{checked:?}"
    );
    assert!(!checked.err.contains("MODEL_KEY") && !checked.err.contains("LOOK_MODE"), "{checked:?}");
    world.write("lodestep.toml", "");
    let checked: Value =
        serde_json::from_str(&unset(&["run", &agent, "--check", "--json"]).exits(0).out).expect("JSON");
    let needs = |variable: &str, by: &str| json!({ "variable": variable, "by": by });
    let all = [needs("LOOK_TOKEN", "tool look"), needs("MODEL_KEY", "the model"), needs("MODEL_KEY", "tool look")];
    assert_eq!((&checked["ok"], &checked["unset"]), (&json!(true), &json!(all)), "{checked}");
    assert_eq!(service.requests(), 0);
}

#[test]
fn the_model_and_its_place_are_named_where_a_run_begins_and_where_it_is_shown() {
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "", "");
        let text = world.read("agent.toml").replace("name = \"m\"", "name = \"${env:WHICH:-m}-8b\"");
        world.write("agent.toml", &text);
        let (provider, url) = (service.provider(), text.lines().find(|line| line.starts_with("base_url")));
        let url = url.and_then(|line| line.split('"').nth(1)).expect("a url");
        let said = Said::of(world.command(&["run", &agent]).env("WHICH", "qwen3").output().expect("ran")).exits(0);
        assert!(said.err.contains(&format!("  model  {provider}:qwen3-8b at {url}\n")), "{said:?}");
        let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
        assert!(shown.contains(&format!("\nmodel  {provider}:${{env:WHICH:-m}}-8b at {url}\n")), "{shown}");
        let shown = world.json(&["show", &world.run_id()]);
        let written = json!({ "provider": provider, "name": "${env:WHICH:-m}-8b", "base_url": url });
        assert_eq!(shown["model"], written);
        // What the place says of it goes before.
        world.write("lodestep.toml", "[agents.served.model]\nbase_url = \"https://gateway.example/v1\"\n");
        let shown = world.json(&["show", &world.run_id()]);
        assert_eq!(shown["model"]["base_url"], "https://gateway.example/v1");
        is_nowhere(&world, &[&said], KEY);
    }
}

#[test]
fn another_model_says_which_limits_are_still_those_of_the_file() {
    let world = World::new();
    let (service, agent) = finishing(&world, WAYS[2], "max_output_tokens = 4_321\n", "");
    let there = format!("openai:m2@{}", service.server.base_url(Shape::OpenAi));
    let said = world.lodestep(&["run", &agent, "--check", "--model", &there]).exits(0);
    let kept = "context_window 64000 and max_output_tokens 4321 are still the file's";
    assert_eq!(said.err.matches(kept).count(), 1, "{said:?}");
    assert!(said.err.contains("[model]"), "where they are set: {said:?}");
    let own = world.lodestep(&["run", &agent, "--check"]).exits(0);
    assert!(!own.err.contains("context_window"), "{own:?}");
}

#[test]
fn a_command_for_a_stopped_run_says_that_it_is_why_and_what_lets_it_go_on() {
    let world = World::new();
    let (service, agent) = finishing(&world, WAYS[2], "", "");
    service.server.plan([Fault::Unauthorized]);
    world.lodestep(&["run", &agent]).exits(6);
    let again = world.lodestep(&["run", &agent]).exits(6);
    let command = world.json(&["todo"])[0]["command"].as_str().expect("a command").to_owned();
    for part in ["is stopped at step 3, and this does not resume it: the provider rejects", "HTTP 401", &command] {
        assert!(again.err.contains(part), "{part}: {again:?}");
    }
    assert!(!again.err.contains("going on with") && !again.err.contains("model  openai"), "{again:?}");
    assert_eq!(service.requests(), 1, "nothing was asked");
    // A word that came since is read.
    let id = world.run_id();
    world.lodestep(&["resume", "--agent", "served", "--yes"]).exits(0);
    let going = world.lodestep(&["run", &agent]).exits(0);
    assert!(going.err.contains("going on with"), "{going:?}");
    let over = world.lodestep(&["run", &agent, "--id", &id]).exits(0);
    assert!(over.err.contains("is completed at step") && !over.err.contains("going on with"), "{over:?}");
}

#[test]
fn what_was_spent_is_told_exactly_beside_its_limit() {
    let world = World::new();
    let price = "price = { input = 1.25, output = 2.5 }\n";
    let (_service, agent) = finishing(&world, WAYS[2], price, "[quota]\nusd = 0.9\n");
    let said = world.lodestep(&["run", &agent]).exits(0);
    let shown = world.json(&["show", &world.run_id()]);
    let used = shown["checkpoint"]["quota"]["used"]["usd_micro"].as_u64().expect("usd");
    assert!(!used.is_multiple_of(10_000), "{used} are more than cents");
    let wanted = format!("  ${} of $0.90", format!("0.{used:06}").trim_end_matches('0'));
    assert!(said.err.contains(&wanted), "{wanted}: {said:?}");
}

#[test]
fn what_an_answer_used_is_told_whole() {
    for way in WAYS {
        let world = World::new();
        let note = calls(&[("note", json!({ "key": "a", "text": "b" }))]);
        let service = Service::new(way, by_decisions(vec![note, finish()]));
        let agent = service.agent(&world, "", "");
        // A cache takes only what is long.
        world.write("agent.toml", &world.read("agent.toml").replace("Do it.", &"Do it. ".repeat(1_000)));
        world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
        let id = world.run_id();
        let log = world.lodestep(&["log", &id]).exits(0).out;
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("CallAnswered")).collect();
        let entries = world.lodestep(&["log", &id, "--json"]).exits(0).out;
        let entries = entries.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let answers: Vec<Value> = entries.filter(|entry| entry["event"] == "CallAnswered").collect();
        assert_eq!((lines.len(), answers.len()), (2, 2), "{log}");
        for (line, answer) in lines.iter().zip(&answers) {
            let (used, about) = (&answer["fields"]["used"], &answer["fields"]["about"]);
            let told = [
                ("input_tokens", &used["input_tokens"]),
                ("output_tokens", &used["output_tokens"]),
                ("cache_read_tokens", &about["cache_read_tokens"]),
                ("cache_write_tokens", &about["cache_write_tokens"]),
            ];
            for (name, tokens) in told.iter().filter(|(_, tokens)| tokens.as_u64().is_some_and(|tokens| tokens > 0)) {
                assert!(line.contains(&format!(" {name}={tokens} ")), "{way:?} {name}={tokens}: {line}");
            }
            assert!(line.contains(" model=m"), "{way:?}: {line}");
        }
        let cached = answers.iter().any(|answer| answer["fields"]["about"]["cache_read_tokens"].as_u64() > Some(0));
        assert!(cached, "{way:?}: {log}");
    }
}

#[test]
fn a_model_that_the_service_does_not_have_is_named_with_where_to_change_it() {
    for way in WAYS {
        let world = World::new();
        let options = Options { models: vec!["another".to_owned()], ..Options::new(by_decisions(vec![finish()])) };
        let service = Service::of(way, options);
        let agent = service.agent(&world, "", "");
        let refused = world.lodestep(&["run", agent.to_str().expect("a path")]);
        stopped_saying(&world, &refused, &["HTTP 404", "`name`"]);
        assert_eq!(service.requests(), 1, "{way:?}: it is not asked again");
    }
}

#[test]
fn a_place_where_nobody_listens_is_tried_again_and_then_named() {
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "max_attempts = 2\n", "");
        let address = service.server.address().to_string();
        // It goes with its port.
        drop(service);
        let refused = world.lodestep(&["run", &agent]);
        let wanted = ["no reply (2 in a row): nothing was sent", address.as_str(), "Connection refused", "`base_url`"];
        stopped_saying(&world, &refused, &wanted);
        let state = world.json(&["show", &world.run_id()])["checkpoint"].clone();
        assert_eq!(state["model"]["calls"], 2, "{way:?}");
        assert_eq!(state["quota"]["used"]["model_calls"], 0, "{way:?}: what was not sent costs nothing");
    }
}

#[test]
fn a_base_url_that_is_none_is_named_with_its_line() {
    let world = World::new();
    let (_, agent) = finishing(&world, WAYS[0], "", "");
    let text = world.read("agent.toml");
    let url = text.lines().find(|line| line.starts_with("base_url")).expect("a line").to_owned();
    for wrong in ["base_url = \"\"", "base_url = \"ftp://there\""] {
        world.write("agent.toml", &text.replace(&url, wrong));
        let refused = world.lodestep(&["run", &agent]).exits(2);
        assert!(
            refused.err.contains("model.base_url") && refused.err.contains("agent.toml:9:"),
            "{wrong}: {refused:?}"
        );
        assert!(!world.path().join("store.db").exists());
    }
}

#[test]
fn a_lost_reply_is_charged_and_everywhere_said_to_be_unconfirmed() {
    for way in WAYS {
        for fault in [Fault::Reset(At::Arguments), Fault::InternalError] {
            let world = World::new();
            let (service, agent) = finishing(&world, way, "max_attempts = 1\n", "");
            service.server.plan([fault.clone()]);
            let lost = world.lodestep(&["run", &agent]);
            stopped_saying(&world, &lost, &["no reply (1 in a row, its charge is unconfirmed)", "the reply was lost"]);
            let id = world.run_id();
            let shown = world.lodestep(&["show", &id]).exits(0).out;
            assert!(shown.contains("unconfirmed of it: 1 model calls"), "{way:?} {fault:?}: {shown}");
            let log = world.lodestep(&["log", &id]).exits(0).out;
            let failed = log.lines().find(|line| line.contains("CallFailed")).unwrap_or_else(|| panic!("{log}"));
            assert!(failed.contains("why=lost: charged as reserved, unconfirmed: the reply was lost"), "{failed}");
            // With the next reply the run ends, and what was charged stays what it is.
            let resumed = world.lodestep(&["resume", &id]).exits(0);
            assert!(resumed.out.contains("completed"), "{resumed:?}");
            assert!(world.lodestep(&["show", &id]).out.contains("unconfirmed of it: 1 model calls"), "{way:?}");
        }
    }
}

#[test]
fn a_stream_that_reported_more_than_was_held_back_before_it_broke_is_charged_that_everywhere() {
    for (way, fault) in [
        ((Shape::Anthropic, true), Fault::Reset(At::Arguments)),
        ((Shape::Anthropic, true), Fault::Cut(At::End)),
        ((Shape::OpenAi, true), Fault::Cut(At::End)),
    ] {
        let world = World::new();
        let hidden_tokens = 30_000;
        let options = Options { hidden_tokens, ..Options::new(by_decisions(vec![finish()])) };
        let service = Service::of(way, options);
        let model = "max_attempts = 1\nprice = { input = 1, output = 2, cache_write = 1 }\n";
        let agent = service.agent(&world, model, "[quota]\nusd = 5\n");
        service.server.plan([fault.clone()]);
        let lost = world.lodestep(&["run", agent.to_str().expect("a path")]);
        stopped_saying(&world, &lost, &["no reply (1 in a row, its charge is unconfirmed)", "the reply was lost"]);
        let billed = service.sound_bill().total().input;
        assert!(billed > hidden_tokens, "{way:?} {fault:?}");
        let id = world.run_id();
        let shown = world.lodestep(&["show", &id]).exits(0).out;
        let line = format!("unconfirmed of it: 1 model calls, {billed} tokens in, 4096 out");
        assert!(shown.contains(&line), "{way:?} {fault:?}: {line}: {shown}");
        let quota = &world.json(&["show", &id])["checkpoint"]["quota"];
        assert_eq!(quota["used"], quota["unconfirmed"], "{way:?} {fault:?}");
        assert_eq!(quota["used"]["usd_micro"], json!(billed + 2 * 4_096), "{way:?} {fault:?}: by the price");
        assert!(quota["overrun"]["input_tokens"].as_u64() > Some(20_000), "{way:?} {fault:?}: {quota}");
        let log = world.lodestep(&["log", &id]).exits(0).out;
        assert!(log.contains(": charged as reported before it was lost, unconfirmed: the reply"), "{way:?}: {log}");
    }
}

#[test]
fn a_worker_that_dies_with_a_call_leaves_a_charge_that_is_said_to_be_unconfirmed() {
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "", "");
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "model:reply"]).code, None);
        world.lodestep(&["run", &agent]).exits(0);
        assert_eq!(service.sound_bill().answered(), 2, "{way:?}: the reply was lost, and is asked for again");
        let log = world.lodestep(&["log", &world.run_id()]).exits(0).out;
        let lost = log.lines().find(|line| line.contains("CallLost")).unwrap_or_else(|| panic!("{log}"));
        assert!(lost.contains("charged as reserved, unconfirmed: its worker is gone"), "{lost}");
    }
}

fn limited(seconds: &str) -> Fault {
    Fault::RateLimited(vec![("retry-after".to_owned(), seconds.to_owned())])
}

/// A run of this agent that was told to wait for so long, as its process says it.
fn told_to_wait(world: &World, way: (Shape, bool), seconds: &str, says: &str) -> (Service, String, Running) {
    let (service, agent) = finishing(world, way, "", "");
    service.server.plan([limited(seconds)]);
    let (running, mut said) = world.start_heard(&["run", &agent]);
    said.until(says);
    (service, agent, running)
}

#[test]
fn tol_08_a_kill_during_the_wait_and_a_new_worker_send_nothing_before_its_time() {
    for way in WAYS {
        let world = World::new();
        let (service, _, mut running) = told_to_wait(&world, way, "171", "HTTP 429");
        running.kill();
        let state = world.json(&["show", &world.run_id()])["checkpoint"].clone();
        let (at, not_before) = (state["at"].as_i64(), state["model"]["not_before"].as_i64());
        let waits_us = not_before.expect("microseconds") - at.expect("microseconds");
        assert!(waits_us >= 171_000_000, "{way:?}: {waits_us}");
        world.lodestep(&["worker", "--until-idle"]).exits(0);
        assert_eq!(world.json(&["ls"])[0]["status"], "waiting", "{way:?}");
        assert_eq!(service.requests(), 1, "{way:?}: exactly one for the one attempt");
        assert!(matches!(service.server.bill().entries[0].outcome, Outcome::Fault(_)));
        let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
        assert!(shown.contains("HTTP 429") && shown.contains("next at 20"), "{way:?}: {shown}");
    }
}

#[test]
fn a_run_that_waits_for_its_service_says_until_when_before_it_says_why() {
    for way in WAYS {
        let world = World::new();
        let (service, agent, mut running) = told_to_wait(&world, way, "3600", "model: asked again at 20");
        running.kill();
        let (mut resumed, mut said) = world.start_heard(&["resume", &world.run_id()]);
        said.until("it waits: provider (the provider is busy: HTTP 429");
        resumed.kill();
        world.lodestep(&["cancel", &world.run_id()]).exits(0);
        // Nobody sits that out for a dry run, which has no other run's limits.
        service.server.plan([limited("3600")]);
        let ended = world.lodestep(&["run", &agent, "--dry-run"]).exits(3);
        assert!(ended.out.contains("would then be waiting: provider (the provider is busy"), "{way:?}: {ended:?}");
        assert_eq!(service.requests(), 2, "{way:?}");
    }
}

#[test]
fn what_helps_after_a_stop_is_said_with_the_command_that_alone_would_not() {
    let world = World::new();
    let (service, agent) = finishing(&world, WAYS[0], "", "");
    service.server.plan([Fault::Unauthorized]);
    let stopped = world.lodestep(&["run", &agent]).exits(6);
    assert!(!stopped.out.contains(".."), "each sentence has one end: {stopped:?}");
    assert_eq!(world.json(&["todo"])[0]["then"], "once what it says is mended; or cancel");
}

#[test]
fn tol_08_another_program_on_the_same_store_and_key_sends_nothing_either() {
    for way in WAYS {
        let world = World::new();
        let (service, agent, mut running) = told_to_wait(&world, way, "171", "HTTP 429");
        let (mut other, mut heard) = world.start_heard(&["run", &agent, "--new"]);
        heard.until("the provider is busy: it told another run; nothing was sent");
        assert_eq!(service.requests(), 1, "{way:?}");
        assert_eq!(world.json(&["ls"]).as_array().map(Vec::len), Some(2), "{way:?}: both wait");
        running.kill();
        other.kill();
        for (file, bytes) in stored(&world) {
            assert!(!holds(&bytes, KEY), "{way:?}: the key is in {file}");
        }
    }
}

#[test]
fn tol_08_a_limit_beyond_the_deadline_says_until_when_and_how_much_more_time_it_takes() {
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "", "[quota]\ndeadline = \"1h\"\n");
        service.server.plan([limited("7200")]);
        let limited = world.lodestep(&["run", &agent]).exits(6);
        assert!(limited.out.contains("rate limited until 20") && limited.out.contains("deadline"), "{limited:?}");
        let todo = world.json(&["todo"]);
        let command = todo[0]["command"].as_str().expect("a command");
        let minutes = command.split(" deadline ").nth(1).and_then(|amount| amount.strip_suffix('m'));
        let minutes: u64 = minutes.and_then(|minutes| minutes.parse().ok()).unwrap_or_else(|| panic!("{command}"));
        assert!((60..=67).contains(&minutes), "{way:?}: at least the hour that is missing: {command}");
        assert!(limited.out.contains(command), "{way:?}: {command}: {limited:?}");
        assert_eq!(service.requests(), 1, "{way:?}");
    }
}

/// A place that a variable names is judged where it is used: before a run starts, and of one that is under way as its model's fault.
#[test]
fn a_base_url_of_a_variable_that_is_none_starts_nothing_and_stops_what_is_under_way() {
    let world = World::new();
    let (service, agent) = finishing(&world, WAYS[2], "", "");
    let text = world.read("agent.toml");
    let url = text.lines().find(|line| line.starts_with("base_url")).expect("a line").to_owned();
    let right = url.split('"').nth(1).expect("a url").to_owned();
    world.write("agent.toml", &text.replace(&url, "base_url = \"${env:WHERE}\""));
    let with = |place: &str, words: &[&str]| Said::of(world.command(words).env("WHERE", place).output().expect("ran"));
    for (wrong, said) in [("127.0.0.1:1/v1", "http://"), ("", "http://"), ("http://8.8.8.8/v1", "open line")] {
        let refused = with(wrong, &["run", &agent]).exits(2);
        assert!(refused.err.contains("[model.base_url]") && refused.err.contains(said), "{wrong}: {refused:?}");
        assert!(!world.path().join("store.db").exists(), "{wrong}: nothing was started");
    }
    service.server.plan([Fault::Unauthorized]);
    with(&right, &["run", &agent]).exits(6);
    let id = world.run_id();
    let stopped = with("127.0.0.1:1/v1", &["resume", &id]).exits(6);
    assert!(stopped.out.contains("127.0.0.1:1/v1") && stopped.out.contains("stopped: model"), "{stopped:?}");
    with(&right, &["resume", &id]).exits(0);
}

#[test]
fn a_gateway_that_refuses_max_tokens_is_told_by_the_wiring_of_its_place_to_be_asked_otherwise() {
    for way in WAYS.into_iter().filter(|(shape, _)| *shape == Shape::OpenAi) {
        let world = World::new();
        let options = Options::new(by_decisions(vec![finish()]));
        let service = Service::of(way, Options { only_max_completion_tokens: true, ..options });
        let agent = service.agent(&world, "", "").to_str().expect("a path").to_owned();
        let refused = world.lodestep(&["run", &agent]);
        let key = "output_limit_field = \"max_completion_tokens\"";
        stopped_saying(&world, &refused, &["HTTP 400", "'max_tokens' is not supported", key, "lodestep.toml"]);
        let wiring = world.read("lodestep.toml");
        world.write("lodestep.toml", &format!("{wiring}[agents.served.model]\n{key}\n"));
        world.lodestep(&["resume", &world.run_id()]).exits(0);
        let wired = world.read("agent.toml").replace("stream =", &format!("{key}\nstream ="));
        world.write("lodestep.toml", &wiring);
        world.write("agent.toml", &wired);
        world.lodestep(&["run", &agent, "--new"]).exits(0);
        assert_eq!(service.server.bill().answered(), 2, "{way:?}: one by the place, one by the agent");
    }
}

#[test]
fn dat_02_the_log_says_that_a_text_was_ill_formed() {
    for way in WAYS {
        let world = World::new();
        let (service, agent) = finishing(&world, way, "", "");
        service.server.plan([Fault::LoneSurrogate]);
        world.lodestep(&["run", &agent]).exits(0);
        let log = world.lodestep(&["log", &world.run_id()]).exits(0).out;
        let answered = log.lines().find(|line| line.contains("CallAnswered")).unwrap_or_else(|| panic!("{log}"));
        assert!(answered.contains("became U+FFFD; the transcript has it as it came"), "{way:?}: {answered}");
    }
}
