//! Retention, as an operator does it: runs that ended are removed, their transcripts emptied, what is needed is kept.

mod support;

use serde_json::{Value, json};
use support::*;

const PAY: &str = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"cat >> paid; echo paid\"]\n\
                   class = \"unsafe\"\ninput = { type = \"object\", properties = { cents = { type = \"integer\" } } }\n";

const ALLOW: &str = "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n";

/// An agent that pays once and finishes.
fn paying(world: &World, tables: &str) -> String {
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(tables, &replies).to_str().expect("a path").to_owned()
}

fn ids(world: &World) -> Vec<String> {
    let runs = world.json(&["ls"]);
    let mut ids: Vec<String> =
        runs.as_array().expect("runs").iter().map(|row| row["run"].as_str().expect("an id").to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn runs_that_ended_are_removed_when_somebody_agrees_and_never_begin_again() {
    let world = World::new();
    let agent = paying(&world, &format!("{PAY}{ALLOW}"));
    world.lodestep(&["run", &agent, "--id", "old", "--label", "month=10"]).exits(0);
    world.lodestep(&["run", &agent, "--id", "new", "--label", "month=11"]).exits(0);
    let waiting = paying(&world, PAY);
    world.lodestep(&["run", &waiting, "--id", "waits", "--label", "month=10"]).exits(3);
    // None ended a day ago.
    let none = world.json(&["gc", "--ended-before", "1d"]);
    assert_eq!(none["removed"]["runs"], json!(0));
    let chosen = ["gc", "--ended-before", "0s", "--label", "month=10"];
    let would = world.json(&[&chosen[..], &["--dry-run"]].concat());
    assert_eq!((&would["dry_run"], &would["removed"]["runs"], &would["kept"]), (&json!(true), &json!(1), &json!([])));
    assert!(would["removed"]["bytes"].as_u64().is_some_and(|bytes| bytes > 100), "{would}");
    // Without a terminal nobody can agree: what it is about is shown, and nothing changes.
    let asked = world.lodestep(&chosen).exits(2);
    assert!(asked.err.contains("usage.unconfirmed") && asked.err.contains("1 run to remove for ever"), "{asked:?}");
    assert_eq!(ids(&world), ["new", "old", "waits"]);
    let done = world.lodestep(&[&chosen[..], &["--yes"]].concat()).exits(0);
    assert!(done.out.contains("1 run removed: "), "{done:?}");
    assert_eq!(ids(&world), ["new", "waits"]);
    world.lodestep(&["show", "old"]).exits(1);
    world.lodestep(&["verify"]).exits(0);
    // The same command again must not pay again.
    let agent = paying(&world, &format!("{PAY}{ALLOW}"));
    let again = world.lodestep(&["run", &agent, "--id", "old"]).exits(1);
    assert!(again.err.contains("run.removed"), "{again:?}");
    assert_eq!(world.read("paid").matches("cents").count(), 2);
    // Only what is over is removed, whatever is said.
    for (words, code) in [
        (&["gc", "--ended-before", "0s", "--status", "waiting", "--yes"][..], "usage.status"),
        (&["gc", "--agent", "scripted"][..], "usage.gc"),
    ] {
        let refused = world.lodestep(words).exits(2);
        assert!(refused.err.contains(code), "{refused:?}");
    }
}

#[test]
fn what_a_relative_or_a_dedupe_key_needs_is_kept_and_said() {
    let world = World::new();
    let agent = paying(&world, &format!("{PAY}{ALLOW}"));
    world.lodestep(&["run", &agent, "--id", "origin"]).exits(0);
    world.lodestep(&["fork", "origin", "--at", "2", "--id", "branch"]).exits(0);
    let keyed = paying(
        &world,
        &format!(
            "{}dedupe = \"invoice-${{arg:cents}}\"\n{ALLOW}",
            PAY.replace("properties", "required = [\"cents\"], properties")
        ),
    );
    world.lodestep(&["run", &keyed, "--id", "keyed"]).exits(0);
    let kept = world.json(&["gc", "--ended-before", "0s", "--yes"]);
    assert_eq!(kept["removed"]["runs"], json!(0), "{kept}");
    let why = |kept: &Value| {
        let mut why: Vec<(String, String)> = kept["kept"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|kept| {
                (kept["runs"][0].as_str().expect("a run").to_owned(), kept["why"].as_str().expect("why").to_owned())
            })
            .collect();
        why.sort();
        why
    };
    let said = |run: &str, why: &str| (run.to_owned(), why.to_owned());
    assert_eq!(why(&kept), [said("keyed", "dedupe_key"), said("origin", "relative")]);
    world.lodestep(&["cancel", "branch"]).exits(0);
    // Together they go; the key stays with its run.
    let gone = world.lodestep(&["gc", "--ended-before", "0s", "--yes"]).exits(0);
    assert!(gone.out.contains("2 runs removed") && gone.out.contains("dedupe key `invoice-10`"), "{gone:?}");
    assert_eq!(ids(&world), ["keyed"]);
}

#[test]
fn transcripts_are_emptied_and_the_runs_stay_what_they_were() {
    let world = World::new();
    let agent = paying(&world, &format!("{PAY}{ALLOW}"));
    world.lodestep(&["run", &agent, "--id", "one"]).exits(0);
    let before = world.json(&["show", "one"]);
    world.lodestep(&["gc", "--transcripts"]).exits(2);
    let would = world.json(&["gc", "--transcripts", "--dry-run"]);
    assert_eq!(would["transcripts"]["count"], json!(2), "{would}");
    let done = world.json(&["gc", "--transcripts", "--yes"]);
    assert_eq!((&done["transcripts"], &done["removed"]["runs"]), (&would["transcripts"], &json!(0)));
    assert_eq!(world.json(&["gc", "--transcripts", "--yes"])["transcripts"]["count"], json!(0));
    assert_eq!(world.json(&["show", "one"]), before);
    world.lodestep(&["verify"]).exits(0);
    let compact = world.json(&["gc", "--compact"]);
    assert!(compact["given_back"].is_u64(), "{compact}");
}
