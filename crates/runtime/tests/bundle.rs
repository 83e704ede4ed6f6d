//! A run as one file: what comes out is what went in, an altered one is refused by name, and none goes on twice.

mod support;

use std::sync::Arc;

use lodestep::Runtime;
use lodestep::core::RunKey;
use lodestep::core::checkpoint::Phase;
use lodestep::core::definition::StateAct;
use lodestep::core::effect::Class;
use lodestep::core::event::StopReason;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::inspect;
use lodestep::store::{Clock, MemoryStore, RunRow, SettableClock, SqliteStore, Store};
use lodestep::tools::Functions;
use serde_json::{Value, json};
use support::*;

/// An effect that says more than a row holds, then one that waits for a person.
fn replies() -> Value {
    json!([
        says(&[("pay", json!({"n": 1})), ("note", json!({"key": "k", "text": "paid"}))]),
        says(&[("ask_first", json!({"n": 2}))]),
        says(&[("finish", json!({}))]),
    ])
}

struct Place {
    runtime: Runtime,
    ledger: Ledger,
    _folder: tempfile::TempDir,
}

/// A store in a file of its own.
fn place(clock: &Arc<SettableClock>) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("store.db"), clock.clone()).expect("opened");
    over_store(Arc::new(store), clock, folder)
}

fn over_store(store: Arc<dyn Store>, clock: &Arc<SettableClock>, folder: tempfile::TempDir) -> Place {
    let ledger = Ledger::default();
    let mut functions = functions(&ledger, &["ask_first"]);
    let of_pay = ledger.clone();
    functions.add("pay", move |call| {
        of_pay.apply("pay", &call);
        async { Ok::<_, lodestep::tools::ToolError>(vec![b'x'; 100_000]) }
    });
    let clock: Arc<dyn Clock> = clock.clone();
    Place { runtime: over(store, clock, functions, script(replies())), ledger, _folder: folder }
}

async fn waiting(place: &Place) -> Arc<RunKey> {
    let tools = vec![tool("pay", Class::Keyed), tool("ask_first", Class::Unsafe)];
    let run = start(&place.runtime, agent(tools, &["ask_first"])).await;
    assert_eq!(standing(&settle(&place.runtime, &run).await).status, Status::Waiting);
    run
}

async fn row(place: &Place, run: &RunKey) -> RunRow {
    place.runtime.find(run.run.as_str()).await.expect("found")
}

async fn exported(place: &Place, run: &RunKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    place.runtime.export(&row(place, run).await.run, &mut bytes).await.expect("exported");
    bytes
}

#[tokio::test]
async fn an_imported_run_is_held_and_goes_on_when_it_is_released() {
    let clock = still_clock();
    let memory = Arc::new(MemoryStore::new(clock.clone()));
    let others = [place(&clock), over_store(memory, &clock, tempfile::tempdir().expect("a folder"))];
    let here = place(&clock);
    let run = waiting(&here).await;
    let before = row(&here, &run).await;
    let bytes = exported(&here, &run).await;
    for there in others {
        let imported = there.runtime.import(bytes.as_slice()).await.expect("imported");
        assert!(imported.held);
        assert_eq!((imported.about.seq, imported.about.head), (before.seq, before.head));
        let report = inspect::verify(there.runtime.store(), &imported.run).await.expect("verified");
        assert_eq!(report.faults, Vec::<String>::new());
        // It does nothing by itself, not even on an approval.
        let request = there.runtime.store().open_requests("default", 9).await.expect("listed")[0].name;
        let word = Word::Approve { request };
        assert_eq!(there.runtime.send(&run, "ada", word).await.expect("sent"), Verdict::Accepted);
        let state = settle(&there.runtime, &run).await;
        assert!(matches!(state.phase, Phase::Stopped { reason: StopReason::Imported, .. }), "{:?}", state.phase);
        assert_eq!(there.ledger.counts().len(), 0);
        // The same run is not taken in twice.
        let again = there.runtime.import(bytes.as_slice()).await.expect_err("it is there");
        assert_eq!(again.code(), "run.id_taken");
        // Released, it goes on from where it was: what was done is done.
        assert_eq!(there.runtime.send(&run, "ada", Word::Release).await.expect("sent"), Verdict::Accepted);
        assert_eq!(standing(&settle(&there.runtime, &run).await).status, Status::Completed);
        assert_eq!(there.ledger.counts(), [("ask_first".to_owned(), 1)].into());
        let report = inspect::verify(there.runtime.store(), &imported.run).await.expect("verified");
        assert_eq!(report.faults, Vec::<String>::new());
    }
    assert_eq!(row(&here, &run).await, before, "the one that was exported was touched");
}

#[tokio::test]
async fn a_run_that_is_over_is_taken_in_as_it_is() {
    let clock = still_clock();
    let (here, there) = (place(&clock), place(&clock));
    let run = waiting(&here).await;
    here.runtime.send(&run, "ada", Word::Cancel { reason: "enough".to_owned() }).await.expect("sent");
    assert_eq!(standing(&settle(&here.runtime, &run).await).status, Status::Cancelled);
    let imported = there.runtime.import(exported(&here, &run).await.as_slice()).await.expect("imported");
    assert!(!imported.held);
    let (mine, theirs) = (row(&here, &run).await, row(&there, &run).await);
    assert_eq!((mine.head, mine.seq, mine.status), (theirs.head, theirs.seq, theirs.status));
}

#[tokio::test]
async fn what_came_from_outside_is_in_the_bundle_too() {
    let clock = still_clock();
    let model = script(json!([
        says(&[("wait_for_signal", json!({"name": "go"}))]),
        says(&[("wait", json!({"seconds": 60}))]),
        says(&[("finish", json!({}))]),
    ]));
    let waits = [("wait_for_signal", StateAct::WaitForSignal), ("wait", StateAct::Wait)];
    let waits = waits.map(|(name, act)| state_tool(name, act)).to_vec();
    let here = in_memory(&clock, Functions::default(), model);
    let there = place(&clock);
    let run = start(&here, agent(waits, &[])).await;
    settle(&here, &run).await;
    let signal = Word::Signal { name: "go".to_owned(), value: b"{\"n\":7}".to_vec() };
    for word in [Word::Tell { text: "be brief".to_owned() }, signal] {
        assert_eq!(here.send(&run, "ada", word).await.expect("sent"), Verdict::Accepted);
    }
    settle(&here, &run).await;
    clock.advance_ms(60_000);
    assert_eq!(standing(&settle(&here, &run).await).status, Status::Completed);
    let mut bytes = Vec::new();
    here.export(&here.find(run.run.as_str()).await.expect("found").run, &mut bytes).await.expect("exported");
    let imported = there.runtime.import(bytes.as_slice()).await.expect("imported");
    assert_eq!(inspect::verify(there.runtime.store(), &imported.run).await.expect("verified").faults, [""; 0]);
}

/// The bundle without its compression, so that what is altered is the content.
fn plain(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).expect("zstd")
}

#[tokio::test]
async fn an_altered_bundle_is_refused_and_names_what_is_wrong() {
    let clock = still_clock();
    let (here, there) = (place(&clock), place(&clock));
    let run = waiting(&here).await;
    let bytes = exported(&here, &run).await;
    let plain = plain(&bytes);
    // A note's text, in a row; the result; the arguments; the key, in an envelope.
    let at = |needle: &[u8]| plain.windows(needle.len()).position(|window| window == needle).expect("it is in there");
    let pay = "\"n\":1";
    let cases = [
        (at(b"paid"), "ActionProposed"),
        // The first of them stand in a preview, the last in the file.
        (at(&[b'x'; 64]), "ArtifactSaved"),
        (plain.windows(64).rposition(|window| window == [b'x'; 64]).expect("it is in there"), "does not name"),
        (at(pay.as_bytes()), "ActionProposed"),
        (at(b"k1:") + 3, "ActionProposed"),
    ];
    for (place, names) in cases {
        let mut altered = plain.clone();
        altered[place] ^= 1;
        let packed = zstd::encode_all(altered.as_slice(), 0).expect("packed");
        let error = there.runtime.import(packed.as_slice()).await.expect_err("it is altered");
        assert_eq!(error.code(), "bundle.altered");
        assert!(error.what().contains(names), "{error}");
    }
    // Every byte counts, and so does every end.
    for place in (0..plain.len()).step_by(997) {
        let mut altered = plain.clone();
        altered[place] ^= 0x10;
        let packed = zstd::encode_all(altered.as_slice(), 0).expect("packed");
        let error = there.runtime.import(packed.as_slice()).await.err().map(|error| error.code());
        assert!(
            matches!(error, Some("bundle.altered" | "bundle.newer_format" | "bundle.unreadable")),
            "byte {place}: {error:?}"
        );
    }
    let (half, most) = (bytes.len() / 2, bytes.len() - 1);
    for (length, code) in
        [(0, "bundle.unreadable"), (1, "bundle.unreadable"), (half, "bundle.altered"), (most, "bundle.altered")]
    {
        let error = there.runtime.import(&bytes[..length]).await.expect_err("it is cut");
        assert_eq!(error.code(), code, "{length}");
    }
    // A length that nothing has is refused before as much is unpacked as it says.
    let long = [&(1_u64 << 40).to_le_bytes()[..], &plain].concat();
    let packed = zstd::encode_all(long.as_slice(), 0).expect("packed");
    let error = there.runtime.import(packed.as_slice()).await.expect_err("none is so long");
    assert!(error.what().contains("says that it has 1099511627776 bytes"), "{error}");
    assert_eq!(there.runtime.store().list("default", &Default::default()).await.expect("listed").len(), 0);
}
