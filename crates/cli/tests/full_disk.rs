//! A disk that becomes full: nothing is sent that is not stored, what is known is not lost, and with room again the run
//! goes on by itself.
#![cfg(target_os = "linux")]

mod small_disk;
mod support;

use std::time::Duration;

use serde_json::{Value, json};
use small_disk::{Disk, RESERVE};
use support::*;

/// What a worker says once when the store can't be written.
const REFUSED: &str = "nothing is sent until it can be written";

/// Reads `look`, which waits for the file `go`; then pays, which prints so many bytes; then finishes. Whether it may pay
/// is the policy's to `decide`.
fn paying_agent(world: &World, printed: usize, decide: &str) -> String {
    world.write("look.sh", "echo x >> looked\nwhile [ ! -e go ]; do sleep 0.02; done\necho seen\n");
    world.write(
        "pay.sh",
        &format!("echo x >> ledger\nwhile [ ! -e paid ]; do sleep 0.02; done\nhead -c {printed} /dev/urandom\n"),
    );
    let tables = format!(
        "[tools.look]\ndescription = \"Look.\"\ncommand = [\"sh\", \"look.sh\"]\ninput = {{ type = \"object\" }}\n\
        class = \"read\"\n[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"pay.sh\"]\ninput = {{ type = \"object\" }}\n\
        class = \"unsafe\"\n[[policy]]\ntools = [\"pay\"]\ndecide = \"{decide}\"\n"
    );
    let replies = json!([
        { "calls": [{ "name": "look" }] },
        { "calls": [{ "name": "pay" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(&tables, &replies).to_str().expect("a path").to_owned()
}

/// An agent in a folder of its own that only looks.
fn reading_agent(world: &World) -> String {
    let own = World::new();
    paying_agent(&own, 0, "deny");
    let script = own.read("script.json").replace("\"pay\"", "\"look\"");
    world.write("other/look.sh", &own.read("look.sh"));
    world.write("other/script.json", &script);
    world.write("other/agent.toml", &own.read("agent.toml").replace("scripted", "other")).display().to_string()
}

fn has(world: &World, name: &str) {
    eventually(name, Duration::from_secs(20), || !world.read(name).is_empty());
}

/// The only run of a disk's store, and its payment as the journal knows it.
fn payment(disk: &Disk) -> (String, Option<Value>) {
    let run = disk.json(&["ls"])[0]["run"].as_str().expect("an id").to_owned();
    let effects = disk.json(&["effects", &run]);
    let paid = effects.as_array().expect("a list").iter().find(|effect| effect["tool"] == "pay").cloned();
    (run, paid)
}

/// The payment's outcome is stored, though there was no room for it.
fn is_stored(disk: &Disk, context: &str) {
    eventually(context, Duration::from_secs(20), || payment(disk).1.is_some_and(|paid| paid["state"] == "done"));
}

/// The run has ended well, with each thing done once, and the store is sound.
fn is_sound(disk: &Disk, context: &str) {
    let (_, paid) = payment(disk);
    assert_eq!(paid.expect("it was paid")["state"], "done", "{context}");
    assert_eq!(disk.world.read("ledger"), "x\n", "{context}: paid once");
    disk.lodestep(&["verify"]).exits(0);
}

#[test]
fn sql_01_whatever_write_finds_the_disk_full_nothing_is_lost_or_done_twice() {
    let kinds = Disk::kinds().len();
    for kind in 0..kinds {
        let (mut intents, mut outcomes) = (0, 0);
        for pages in 0..24 {
            let disk = Disk::kinds().swap_remove(kind);
            let context = format!("kind {kind}, {pages} pages left");
            let agent = paying_agent(&disk.world, 10, "allow");
            disk.world.write("paid", "");
            let (mut running, mut said) = disk.start(&["run", &agent]);
            has(&disk.world, "looked");
            disk.fill_but(&running, pages * 4_096);
            disk.world.write("go", "");
            if !said.says(REFUSED) {
                // So many pages are enough for all of it.
                assert_eq!(running.ended(), Some(0), "{context}");
                is_sound(&disk, &context);
                break;
            }
            let (run, paid) = payment(&disk);
            let ledger = disk.world.read("ledger").lines().count();
            match paid {
                None => {
                    assert_eq!(ledger, 0, "{context}: sent without an intent");
                    intents += usize::from(disk.json(&["show", &run])["checkpoint"]["model"]["calls"] == 1);
                }
                Some(_) if disk.has_reserve() => is_stored(&disk, &context),
                Some(paid) => outcomes += usize::from(paid["state"] != "done"),
            }
            disk.make_room(&running);
            assert_eq!(running.ended(), Some(0), "{context}");
            is_sound(&disk, &context);
        }
        let has_reserve = Disk::kinds().swap_remove(kind).has_reserve();
        let refused = format!("kind {kind}: {intents} intents and {outcomes} outcomes were refused");
        assert!(intents > 0 && (outcomes > 0) != has_reserve, "{refused}");
    }
}

#[test]
fn sql_01_an_outcome_that_cannot_be_stored_is_kept_and_in_doubt_only_after_a_kill() {
    for killed in [false, true] {
        for disk in Disk::kinds() {
            let agent = paying_agent(&disk.world, 10, "allow");
            disk.world.write("go", "");
            let (mut running, mut said) = disk.start(&["run", &agent]);
            has(&disk.world, "ledger");
            disk.drop_reserve();
            disk.fill_but(&running, 0);
            disk.world.write("paid", "");
            said.until(REFUSED);
            assert_eq!(payment(&disk).1.expect("its intent is stored")["state"], "sent");
            if killed {
                running.kill();
                disk.empty();
                let (run, _) = payment(&disk);
                disk.lodestep(&["resume", &run]).exits(5);
                disk.lodestep(&["resolve", &run, "2", "--happened"]).exits(0);
                disk.lodestep(&["resume", &run]).exits(0);
            } else {
                disk.make_room(&running);
                said.until("can be written again");
                assert_eq!(running.ended(), Some(0));
            }
            is_sound(&disk, if killed { "killed" } else { "by itself" });
        }
    }
}

#[test]
fn sql_01_a_result_too_large_for_the_disk_is_kept_and_the_effect_is_not_sent_again() {
    const PRINTED: usize = 4_000_000;
    for disk in Disk::kinds() {
        let agent = paying_agent(&disk.world, PRINTED, "allow");
        disk.world.write("go", "");
        let (mut running, mut said) = disk.start(&["run", &agent]);
        has(&disk.world, "ledger");
        // There is room for many commits, and none for the result's file.
        disk.fill_but(&running, 1_000_000);
        disk.world.write("paid", "");
        said.until(REFUSED);
        let (run, _) = payment(&disk);
        assert_eq!(disk.json(&["artifacts", &run]), json!([]), "a file that is cut is named");
        disk.make_room(&running);
        assert_eq!(running.ended(), Some(0));
        is_sound(&disk, "a large result");
        let whole = disk.command(&["artifacts", &run, "output-2.txt"]).output().expect("ran").stdout;
        assert_eq!(whole.len(), PRINTED, "every byte");
    }
}

#[test]
fn sql_01_a_worker_that_cannot_claim_keeps_what_is_under_way() {
    for disk in Disk::kinds() {
        let agent = paying_agent(&disk.world, 10, "ask");
        disk.world.write("go", "");
        disk.lodestep(&["run", &agent]).exits(3);
        let (run, _) = payment(&disk);
        let request = disk.json(&["show", &run])["requests"][0]["request"].as_str().expect("a name").to_owned();
        disk.lodestep(&["approve", &request]).exits(0);
        let (mut worker, mut said) = disk.start(&["worker"]);
        has(&disk.world, "ledger");
        // A worker with a run of its own, which is dead when the disk is full: whoever claims next has to write that down.
        let other_agent = reading_agent(&disk.world);
        let (mut other, _) = disk.start(&["run", &other_agent]);
        has(&disk.world, "other/looked");
        disk.fill_but(&worker, 0);
        other.kill();
        said.until(REFUSED);
        disk.world.write("paid", "");
        disk.world.write("other/go", "");
        disk.make_room(&worker);
        said.until("can be written again");
        eventually("both runs are over", Duration::from_secs(20), || {
            let runs = disk.json(&["ls"]);
            runs.as_array().expect("a list").iter().all(|run| run["status"] == "completed")
        });
        assert_eq!(worker.terminate(), Some(130));
        assert_eq!(disk.json(&["effects", &run])[0]["state"], "done");
        assert_eq!(disk.world.read("ledger"), "x\n", "paid once");
        disk.lodestep(&["verify"]).exits(0);
    }
}

#[test]
fn sql_01_a_checkpoint_of_the_log_that_finds_the_disk_full_loses_nothing() {
    const STEPS: usize = 160;
    for disk in Disk::kinds() {
        disk.world
            .write("note.sh", "echo x >> ledger\nwhile [ ! -e go ]; do sleep 0.02; done\nhead -c 30000 /dev/urandom\n");
        let tables = "[tools.note_down]\ndescription = \"Note.\"\ncommand = [\"sh\", \"note.sh\"]\n\
            input = { type = \"object\", properties = { n = { type = \"integer\" } } }\nclass = \"unsafe\"\n[[policy]]\ntools = [\"*\"]\ndecide = \"allow\"\n";
        let calls = |n: usize| json!({ "calls": [{ "name": "note_down", "arguments": { "n": n } }] });
        let mut replies: Vec<Value> = (0..STEPS).map(calls).collect();
        replies.push(json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] }));
        let agent = disk.world.agent(tables, &json!(replies)).to_str().expect("a path").to_owned();
        let (mut running, mut said) = disk.start(&["run", &agent]);
        has(&disk.world, "ledger");
        // Enough for a log that is worth a checkpoint, and not for what the checkpoint writes beside it.
        disk.fill_but(&running, 2_600_000);
        disk.world.write("go", "");
        said.until(REFUSED);
        let log = disk.length_of("store.db-wal");
        assert!(log > 500 * 4_120, "no checkpoint was due: the log has {log} bytes");
        disk.make_room(&running);
        assert_eq!(running.ended(), Some(0));
        disk.lodestep(&["verify"]).exits(0);
        let (run, _) = payment(&disk);
        let effects = disk.json(&["effects", &run]);
        let done = effects.as_array().expect("a list").iter().filter(|effect| effect["state"] == "done").count();
        assert_eq!((done, disk.world.read("ledger").lines().count()), (STEPS, STEPS));
    }
}

#[test]
fn a_listing_says_that_the_disk_is_full() {
    // The other kind limits one process: nothing of it is seen from outside.
    let Some(disk) = Disk::small() else { return };
    let agent = paying_agent(&disk.world, 10, "allow");
    let (mut running, mut said) = disk.start(&["run", &agent]);
    has(&disk.world, "looked");
    let told = |words: &[&str]| disk.lodestep(words).exits(0).err.contains("a worker that can't write it waits");
    assert!(!told(&["ls"]) && !told(&["todo"]));
    disk.fill_but(&running, 0);
    disk.world.write("go", "");
    said.until(REFUSED);
    for words in [&["ls"][..], &["todo"], &["ls", "--json"]] {
        assert!(told(words), "{words:?}");
    }
    disk.make_room(&running);
    disk.world.write("paid", "");
    assert_eq!(running.ended(), Some(0));
    assert!(!told(&["ls"]));
}

/// A worker that has paid on a disk that is full then, and what it says; the outcome is in the store.
fn paid_without_room(disk: &Disk) -> (Running, Lines, String) {
    let agent = paying_agent(&disk.world, 10, "allow");
    disk.world.write("go", "");
    let (running, mut said) = disk.start(&["run", &agent]);
    has(&disk.world, "ledger");
    assert_eq!(disk.length_of(RESERVE), 4 << 20);
    disk.fill_but(&running, 0);
    disk.world.write("paid", "");
    said.until(REFUSED);
    is_stored(disk, "an outcome without room");
    assert_eq!(disk.length_of(RESERVE), 0, "the reserve is spent");
    let run = payment(disk).0;
    (running, said, run)
}

#[test]
fn sql_01_an_outcome_without_room_is_stored_from_the_reserve_and_no_kill_makes_a_doubt_of_it() {
    let Some(disk) = Disk::small() else { return };
    let (mut running, _, run) = paid_without_room(&disk);
    running.kill();
    disk.empty();
    disk.lodestep(&["resume", &run]).exits(0);
    is_sound(&disk, "killed");
    assert_eq!(disk.length_of(RESERVE), 4 << 20, "it is made anew");
}

#[test]
fn sql_01_nothing_but_outcomes_is_stored_while_the_reserve_is_spent() {
    let Some(disk) = Disk::small() else { return };
    let (mut running, mut said, run) = paid_without_room(&disk);
    let calls = || disk.json(&["show", &run])["checkpoint"]["model"]["calls"].clone();
    assert_eq!(calls(), 2, "the model was asked what to do next");
    // What was freed would do for all of these.
    let other = reading_agent(&disk.world);
    for words in [&["tell", &run, "go on"][..], &["quota", "add", &run, "model_calls", "1"], &["run", other.as_str()]] {
        let refused = disk.lodestep(words).exits(7);
        assert!(refused.err.contains("held back for outcomes is spent"), "{words:?}: {refused:?}");
    }
    let checked = disk.lodestep(&["doctor"]);
    assert!(checked.out.contains("held back for outcomes is spent"), "{checked:?}");
    // A stop is taken all the same, and so is its end.
    let (mut pausing, _) = disk.start(&["pause", &run]);
    let unread = || disk.json(&["show", &run])["unread"] == 1;
    eventually("the pause is stored", Duration::from_secs(20), unread);
    assert_eq!((calls(), disk.world.read("other/looked").as_str()), (json!(2), ""));
    disk.make_room(&running);
    said.until("can be written again");
    assert_eq!((running.ended(), pausing.ended()), (Some(6), Some(0)), "it is paused");
    assert_eq!(disk.length_of(RESERVE), 4 << 20, "it is made anew");
    disk.lodestep(&["resume", &run]).exits(0);
    is_sound(&disk, "by itself");
}

#[test]
fn sql_01_the_word_of_a_person_about_an_effect_finds_room_in_the_reserve() {
    let Some(disk) = Disk::small() else { return };
    let agent = paying_agent(&disk.world, 10, "allow");
    disk.world.write("go", "");
    disk.world.write("paid", "");
    assert_eq!(disk.lodestep(&["run", &agent, "--crash-at", "pay:applied"]).code, None);
    let (run, _) = payment(&disk);
    disk.lodestep(&["resume", &run]).exits(5);
    let (mut worker, mut said) = disk.start(&["worker"]);
    // One that is not known yet when the disk is full ends, and with it what looking at the store needs.
    let is_known = || disk.lodestep(&["doctor", "--json"]).out.contains("is alive");
    eventually("the worker is known", Duration::from_secs(20), is_known);
    disk.fill(0);
    // A log that was just put back to its beginning has room of its own for some words, and one that is cut gives some back.
    let is_refused = |_: &i32| {
        disk.fill_up();
        disk.lodestep(&["tell", &run, "it is done"]).code == Some(7)
    };
    (0..1_000).find(is_refused).expect("a word finds no room");
    assert_eq!(disk.length_of(RESERVE), 4 << 20, "it was spent for something else");
    // What the log gave back when the word was refused is nobody's either.
    disk.fill_up();
    let unread = || disk.json(&["show", &run])["unread"].as_u64().expect("a number");
    let before = unread();
    let (mut resolving, _) = disk.start(&["resolve", &run, "2", "--happened"]);
    eventually("the word is stored", Duration::from_secs(20), || unread() > before);
    assert_eq!(disk.length_of(RESERVE), 0);
    said.until(REFUSED);
    disk.make_room(&worker);
    assert_eq!(resolving.ended(), Some(0));
    eventually("the run is over", Duration::from_secs(20), || disk.json(&["ls"])[0]["status"] == "completed");
    assert_eq!(worker.terminate(), Some(130));
    is_sound(&disk, "resolved");
}
