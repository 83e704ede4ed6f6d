//! Stored bytes that are not what they were: what is altered is named, and nothing is sent because of it.

mod damaged_store;
mod support;

use std::sync::Arc;
use std::time::Duration;

use damaged_store::*;
use lodestep::core::checkpoint::Phase;
use lodestep::core::effect::Class;
use lodestep::core::event::Envelope;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::inspect;
use lodestep::observe::Silent;
use lodestep::store::{Hold, MemoryStore, Store};
use lodestep::worker::Shutdown;
use serde_json::json;
use support::*;

/// A statement that changes one value, and what `verify` has to say of it.
const ALTERED: &[(&str, &[&str])] = &[
    ("UPDATE run SET agent = 'another'", &["table run", "the agent is another", "gives tested"]),
    ("UPDATE run SET definition = zeroblob(32)", &["table run", "the definition is 0000"]),
    ("UPDATE run SET inputs = zeroblob(32)", &["table run", "the inputs is 0000"]),
    ("UPDATE run SET started_at = started_at + 1", &["table run", "the start"]),
    ("UPDATE run SET namespace = 'theirs'", &["table run", "the namespace is theirs", "gives default"]),
    ("UPDATE run SET id = 'x' || id", &["table run", "the id is x"]),
    ("UPDATE run SET id_from_end = 'x' || id_from_end", &["table run", "the id from its end"]),
    ("UPDATE run SET root = 'another'", &["table run", "the root is another", "gives none"]),
    ("UPDATE run SET labels = ''", &["table run", "the labels is {}", "gives {\"team\": \"news\"}"]),
    ("UPDATE label SET value = 'x'", &["table label", "the labels is {\"team\": \"x\"}", "gives {\"team\": \"news\"}"]),
    ("DELETE FROM label", &["table label", "the labels is {}"]),
    ("INSERT INTO parked SELECT 9, number FROM run", &["table parked", "hold 9, and there is none"]),
    ("INSERT INTO parked VALUES (9, 99)", &["table parked", "run number 99"]),
    ("UPDATE store SET name = 'another'", &["table store", "32 hexadecimal digits"]),
    ("UPDATE head SET status = 5", &["table head", "the status is completed", "gives waiting"]),
    ("UPDATE head SET status = 77", &["table head", "is 77"]),
    ("UPDATE head SET why = 'so'", &["table head", "the reason is so", "gives approval"]),
    ("UPDATE head SET due_at = 9000000000000000", &["table head", "it is due 2255"]),
    ("UPDATE head SET digest = zeroblob(32)", &["table head", "the digest is 0000"]),
    ("UPDATE head SET seq = seq + 1", &["table head", "the transition is"]),
    ("UPDATE head SET epoch = 0", &["table head", "the epoch is 0"]),
    ("UPDATE head SET crashes = 1000", &["table head", "1000 crashes"]),
    ("UPDATE head SET holder = 'nobody'", &["table head", "the holder is nobody"]),
    ("UPDATE head SET namespace = 'theirs'", &["table head", "the namespace is theirs"]),
    ("UPDATE head SET inbox = 9", &["table head", "the newest message is 9, and the journal gives 1"]),
    ("UPDATE head SET inbox_read = 0", &["table head", "the last message read is 0, and the journal gives 1"]),
    ("UPDATE head SET cancel_at = 1", &["table head", "the newest cancel"]),
    ("UPDATE head SET updated_at = updated_at + 1", &["table head", "the time"]),
    ("DELETE FROM head", &["table head", "has no row"]),
    (
        "INSERT INTO run SELECT 99, namespace, 'fork', 'krof', agent, definition, inputs, 0, '', id FROM run LIMIT 1",
        &["table head", "another run in its lineage"],
    ),
    ("UPDATE effect SET same = zeroblob(32)", &["table effect, action 1", "the sameness is 0000"]),
    ("UPDATE effect SET ordinal = 9", &["table effect, action 1", "the action is 9"]),
    ("UPDATE effect SET seq = 1", &["table effect, action 1", "the transition is 1"]),
    ("DELETE FROM effect", &["table effect, action 1: missing"]),
    ("UPDATE effect SET run = 9", &["table effect", "run number 9"]),
    ("UPDATE artifact SET name = 'b'", &["table artifact, `a.md` version 1", "the name is b"]),
    ("UPDATE artifact SET version = 2", &["table artifact, `a.md` version 1", "the version is 2"]),
    ("UPDATE artifact SET digest = zeroblob(32)", &["table artifact", "the digest is 0000"]),
    ("UPDATE artifact SET len = 1", &["table artifact", "the length is 1"]),
    ("UPDATE artifact SET seq = 1", &["table artifact", "the transition is 1"]),
    ("UPDATE request SET name = zeroblob(32) WHERE is_open = 0", &["table request", "missing"]),
    ("UPDATE request SET ordinal = 9 WHERE is_open = 0", &["table request", "the action is 9"]),
    ("UPDATE request SET is_open = 1", &["table request", "the request is open", "gives closed"]),
    ("UPDATE request SET is_open = 0", &["table request", "the request is closed", "gives open"]),
    ("UPDATE message SET body = CAST(body || x'00' AS BLOB)", &["table message, position 1", "not what was sent"]),
    ("UPDATE message SET id = 'x'", &["table message, position 1", "not what was sent"]),
    ("UPDATE message SET position = 2", &["table message, position 2", "the one before it is 0"]),
    ("UPDATE snapshot SET seq = 900 WHERE seq = (SELECT max(seq) FROM snapshot)", &["table snapshot", "900"]),
    ("UPDATE snapshot SET digest = zeroblob(32)", &["snapshot", "damaged"]),
    (
        "UPDATE journal SET seq = seq + 1 WHERE seq = (SELECT max(seq) FROM journal)",
        &["table journal", "under the number"],
    ),
    ("UPDATE journal SET transcript = x'0041' WHERE transcript IS NOT NULL", &["its transcript is altered"]),
    ("UPDATE journal SET vals = x'' WHERE seq = 1", &["transition 1: value"]),
    ("DELETE FROM piece WHERE n % 64 = 1", &["the values of transition", "a piece of it is missing"]),
    ("DELETE FROM piece", &["the values of transition", "fewer bytes"]),
    ("INSERT INTO piece SELECT max(n) + 1, bytes FROM piece", &["the values of transition", "more or fewer bytes"]),
    ("UPDATE piece SET n = n + 32 WHERE n % 64 = 1", &["the values of transition", "a piece of it is missing"]),
    ("UPDATE piece SET bytes = substr(bytes, 2) WHERE n % 64 = 1", &["the values of transition", "fewer bytes"]),
    ("UPDATE piece SET bytes = CAST(substr(bytes, 1, 497) || x'5a' AS BLOB)", &["transition"]),
    ("INSERT INTO piece SELECT n + 1000000, bytes FROM piece", &["table piece", "belong to no transition"]),
    ("DELETE FROM piece WHERE n % 128 = 65", &["the transcript of transition", "a piece of it is missing"]),
    ("INSERT INTO piece SELECT max(n) + 64, bytes FROM piece", &["table piece", "which has no use for them"]),
    ("INSERT INTO piece VALUES (-1, x'00')", &["table piece", "from number -1 on: 1 belong to no transition"]),
];

#[tokio::test]
async fn every_value_beside_a_journal_is_verified_and_what_was_altered_is_named() {
    let kept = Kept::with_a_run_that_has_everything().await;
    assert_eq!(kept.faults("").await, Vec::<String>::new());
    for (alter, named) in ALTERED {
        let faults = kept.faults(alter).await.join("\n");
        assert!(!faults.is_empty(), "{alter}: nothing was noticed");
        for words in *named {
            assert!(faults.contains(words), "{alter}: `{words}` is not in\n{faults}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_moves_while_it_is_verified_is_sound() {
    let kept = Kept::with_a_long_way_to_go().await;
    let (runtime, _) = kept.open();
    let worker = runtime.clone();
    let work = tokio::spawn(async move {
        worker.work_until_idle(Arc::new(lodestep::observe::Silent), &Default::default()).await.expect("worked");
    });
    let reading = kept.open_to_look();
    let mut looks = 0;
    while !work.is_finished() {
        for run in reading.audit().await.expect("audited").runs {
            let report = inspect::verify(&reading, &run).await.expect("verified");
            assert_eq!(report.faults, Vec::<String>::new());
            looks += 1;
        }
    }
    work.await.expect("sound");
    assert!(looks > 1, "it was over at once");
    assert_eq!(kept.row(&runtime).await.status, Status::Completed);
}

#[tokio::test]
async fn g05_a_damaged_index_of_effects_lets_nothing_be_sent_twice() {
    for alter in [
        "SELECT 1",
        "UPDATE effect SET same = zeroblob(32)",
        "UPDATE effect SET ordinal = 2",
        "UPDATE effect SET seq = seq + 1",
        "DELETE FROM effect",
    ] {
        let kept = Kept::with_an_old_effect().await;
        kept.alter(alter);
        let (state, ledger) = kept.go_on_and_pay_again().await;
        assert_eq!(standing(&state).status, Status::Completed, "{alter}");
        assert_eq!(ledger.keys("pay").len(), 0, "{alter}: it was paid again");
    }
}

#[tokio::test]
async fn an_undecodable_transition_holds_its_run_at_once_until_it_is_mended() {
    let kept = Kept::with_an_open_request().await;
    let sound = kept.bytes();
    kept.alter("UPDATE journal SET envelope = CAST(x'ff' || substr(envelope, 2) AS BLOB) WHERE seq = 2");
    let (runtime, ledger) = kept.open();
    let request = kept.request().await;
    // The word can't be judged; nor can a worker do anything.
    let refused = runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect_err("unreadable");
    assert_eq!(refused.code(), "store.corrupt");
    kept.make_due();
    runtime.work_until_idle(Arc::new(lodestep::observe::Silent), &Default::default()).await.expect("worked");
    let row = kept.row(&runtime).await;
    assert_eq!((row.status, row.hold, row.crashes, row.due), (Status::Quarantined, Some(Hold::Undecodable), 0, None));
    assert!(row.why.contains("undecodable") && row.why.contains("transition 2"), "{}", row.why);
    assert_eq!(ledger.counts().len(), 0);
    // What can be read is shown.
    let opened = inspect::open(runtime.store(), &kept.run).await.expect("shown");
    assert_eq!((opened.checkpoint.seq, opened.standing.status), (1, Status::Quarantined));
    assert!(opened.damage[0].contains("transition 2") && opened.damage[1].contains("after transition 1"));
    assert!(opened.definition.is_some());
    for word in [Word::Release, Word::Cancel { reason: String::new() }, Word::Resume] {
        let Verdict::Refused(error) = runtime.send(&kept.run, "ada", word).await.expect("answered") else {
            panic!("it was taken")
        };
        assert_eq!(error.code(), "run.quarantined");
        assert!(error.what().contains("transition 2"), "{error}");
    }
    drop(runtime);
    // Mended, it goes on by a person's word and by no other.
    kept.alter(&format!("UPDATE journal SET envelope = x'{}' WHERE seq = 2", kept.envelope_in(&sound, 2)));
    let (runtime, ledger) = kept.open();
    let Verdict::Refused(error) = runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("answered")
    else {
        panic!("it was taken")
    };
    assert_eq!(error.code(), "run.quarantined");
    assert_eq!(runtime.send(&kept.run, "ada", Word::Release).await.expect("answered"), Verdict::Accepted);
    assert_eq!(runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("answered"), Verdict::Accepted);
    assert_eq!(standing(&settle(&runtime, &kept.run).await).status, Status::Completed);
    assert_eq!(ledger.keys("pay").len(), 1);
    assert_eq!(kept.row(&runtime).await.hold, None);
}

/// What no statement of a sound store could find.
const CONTRADICTIONS: &[&str] = &[
    "UPDATE run SET id_from_end = 'x' || id_from_end",
    "INSERT INTO hold (target, said_by, reason, since) VALUES ('nothing', 'ada', '', 1)",
    "ALTER TABLE head RENAME COLUMN inbox_read TO other",
    "ALTER TABLE worker RENAME COLUMN pid TO other",
    "DROP TABLE hold",
];

#[tokio::test]
async fn tables_that_contradict_each_other_stop_a_worker_or_a_run_and_let_none_spin() {
    for alter in CONTRADICTIONS {
        let kept = Kept::with_an_open_request().await;
        let request = kept.request().await;
        let verdict = kept.open().0.send(&kept.run, "ada", Word::Approve { request }).await;
        assert_eq!(verdict.expect("sent"), Verdict::Accepted);
        kept.alter(alter);
        let (runtime, ledger) = kept.open();
        let (silent, never) = (Arc::new(lodestep::observe::Silent), Default::default());
        let working = runtime.work_until_idle(silent, &never);
        let worked = tokio::time::timeout(std::time::Duration::from_secs(10), working).await;
        let Ok(worked) = worked else { panic!("{alter}: it never comes to rest") };
        assert_eq!(ledger.counts(), [].into(), "{alter}: it was paid");
        match worked {
            Err(error) => assert_eq!(error.code(), "store.corrupt", "{alter}"),
            Ok(()) => {
                let held = rusqlite::Connection::open(kept.database()).expect("opened");
                let undecodable = held.query_row("SELECT undecodable FROM head", [], |row| row.get::<_, bool>(0));
                assert_eq!(undecodable, Ok(true), "{alter}");
            }
        }
    }
}

#[tokio::test]
async fn a_message_that_was_altered_is_not_acted_on() {
    let kept = Kept::with_an_open_request().await;
    let (runtime, _) = kept.open();
    let request = kept.request().await;
    assert_eq!(runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("sent"), Verdict::Accepted);
    drop(runtime);
    kept.alter("UPDATE message SET body = CAST(replace(body, 'ada', 'eve') AS BLOB)");
    let (runtime, ledger) = kept.open();
    runtime.work_until_idle(Arc::new(lodestep::observe::Silent), &Default::default()).await.expect("worked");
    let row = kept.row(&runtime).await;
    assert_eq!(row.hold, Some(Hold::Undecodable));
    assert!(row.why.contains("message 1"), "{}", row.why);
    assert_eq!(ledger.counts().len(), 0);
}

#[tokio::test]
async fn a_damaged_definition_or_inputs_value_quarantines_its_run_by_name() {
    for of_inputs in [false, true] {
        let clock = still_clock();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let ledger = Ledger::default();
        let model =
            || script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({"summary": "done"}))])]));
        let build = || over(store.clone(), clock.clone(), functions(&ledger, &["pay"]), model());
        let run = start(&build(), agent(vec![tool("pay", Class::Unsafe)], &["pay"])).await;
        let waiting = settle(&build(), &run).await;
        let damaged = if of_inputs { waiting.inputs } else { waiting.definition };
        assert!(store.damage_value(&damaged.digest));
        // Another process: what the first had compiled is not at hand.
        let second = build();
        let request = store.open_requests("default", 1).await.expect("listed")[0].name;
        second.send(&run, "ada", Word::Approve { request }).await.expect("sent");
        let stopped = settle(&second, &run).await;
        assert_eq!(standing(&stopped).status, Status::Quarantined);
        assert_eq!(ledger.counts().len(), 0, "it was sent");
        let opened = inspect::open(store.as_ref(), &run).await.expect("shown");
        assert_eq!(opened.row.why, "undecodable");
        assert_eq!(opened.row.crashes, 0);
        let Phase::Stopped { text, .. } = &opened.checkpoint.phase else { panic!("it goes on") };
        assert!(opened.text(text).contains(&damaged.digest.to_string()), "{}", opened.text(text));
        assert_eq!(opened.definition.is_some(), of_inputs);
        assert_eq!(opened.damage.len(), 1);
        // Released, it stops again at once; a cancel needs neither value.
        assert_eq!(second.send(&run, "ada", Word::Release).await.expect("sent"), Verdict::Accepted);
        assert_eq!(standing(&settle(&second, &run).await).status, Status::Quarantined);
        second.send(&run, "ada", Word::Cancel { reason: "no use".to_owned() }).await.expect("sent");
        assert_eq!(standing(&settle(&second, &run).await).status, Status::Cancelled);
        assert_eq!(ledger.counts().len(), 0, "it was sent");
    }
}

#[tokio::test]
async fn a_run_of_a_newer_build_with_an_unread_word_is_left_to_that_build() {
    let kept = Kept::with_an_open_request().await;
    let (runtime, _) = kept.open();
    let said = runtime.send(&kept.run, "ada", Word::Approve { request: kept.request().await }).await;
    assert_eq!(said.expect("sent"), Verdict::Accepted);
    let before = kept.row(&runtime).await;
    let last = runtime.store().load(&kept.run).await.expect("loaded").tail.pop().expect("a transition");
    let mut envelope = Envelope::from_bytes(&last).expect("sound");
    envelope.format = 2;
    drop(runtime);
    let digits: String = envelope.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    kept.alter(&format!("UPDATE journal SET envelope = x'{digits}' WHERE seq = {}", before.seq));
    let (runtime, ledger) = kept.open();
    let shutdown = Shutdown::default();
    let worked = runtime.work_until_idle(Arc::new(Silent), &shutdown);
    let worked = tokio::time::timeout(Duration::from_secs(20), worked).await;
    worked.expect("it takes it again and again").expect("worked");
    let row = kept.row(&runtime).await;
    assert_eq!(row.epoch, before.epoch + 1, "it was claimed once");
    assert!(row.due > Some(runtime.store().now()) && row.holder.is_none(), "{row:?}");
    assert_eq!((row.crashes, row.status), (before.crashes, before.status), "it is nobody's fault");
    assert_eq!(ledger.counts(), [].into(), "nothing is sent");
}
