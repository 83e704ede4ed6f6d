//! A run of many steps on a store in a file: what it stores, what going on with it reads, what retention leaves of others.
//!
//! A step gives 2 KB that nothing makes smaller, and after each hundredth comes an effect with an output of a megabyte.
//! `cargo xtask bench SCL-01` does ten thousand such steps; here are as many as show how it grows.

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use lodestep::core::definition::Definition;
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Digest, RunId, RunKey};
use lodestep::inspect;
use lodestep::observe::Silent;
use lodestep::store::garbage::{Amount, Kept, Mode, Removal, SWEEP_AFTER_MS};
use lodestep::store::{Clock, Filter, Loaded, RunRow, SettableClock, SqliteStore, Store};
use lodestep::tools::{Functions, ToolCall, ToolError};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use lodestep_model::{Call, Model, ModelFuture, Reply, Request, StopReason, Usage};
use serde_json::json;
use support::*;
use tempfile::TempDir;
use tokio::sync::Notify;

/// Bytes that a step gives.
const STEP_BYTES: u64 = 2_048;

/// Bytes of a large output.
const LARGE_BYTES: u64 = 1 << 20;

/// Turns with one large output: the last of them has it.
const STRETCH: u64 = 101;

/// Turns of a short run, and of one that is twice as long.
const SHORT: u64 = 2 * STRETCH;
const LONG: u64 = 2 * SHORT;

fn is_large(turn: u64) -> bool {
    turn % STRETCH == STRETCH - 1
}

/// What the tools give in so many turns, no two outputs the same.
fn payload_bytes(turns: u64) -> u64 {
    (0..turns).map(|turn| if is_large(turn) { LARGE_BYTES } else { STEP_BYTES }).sum()
}

/// Bytes that nothing makes smaller.
fn noise(seed: &str, len: u64) -> Vec<u8> {
    let block = |number: u64| *Digest::of(format!("{seed} {number}").as_bytes()).as_bytes();
    (0..len / 32).flat_map(block).collect()
}

/// Without memory: it wants what the turn wants, and finishes after so many.
struct Steps(u64);

impl Model for Steps {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        let (name, arguments) = match request.turn {
            turn if turn >= self.0 => ("finish", json!({})),
            turn if is_large(turn) => ("large", json!({ "n": turn })),
            turn => ("step", json!({ "n": turn })),
        };
        let calls = vec![Call { id: "c".to_owned(), name: name.to_owned(), arguments: arguments.to_string() }];
        let usage = Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() });
        Box::pin(std::future::ready(Ok(Reply {
            text: String::new(),
            calls,
            stop: StopReason::ToolCalls,
            usage,
            ..Reply::default()
        })))
    }
}

fn stepping() -> Definition {
    agent(vec![tool("step", Class::Read), tool("large", Class::Unsafe)], &[])
}

/// An agent whose payment happens once, whichever run wants it.
fn paying() -> Definition {
    let mut pay = tool("pay", Class::Unsafe);
    pay.dedupe = Some("invoice-7".to_owned());
    agent(vec![pay], &[])
}

/// What a program does in the step of a turn, beside giving its bytes.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// It dies in this turn's.
    Dies(u64),
    /// Retention, each of so many turns.
    Retention(u64),
}

/// Where a store is, and what was applied outside of it.
struct Place {
    folder: TempDir,
    clock: Arc<SettableClock>,
    ledger: Ledger,
    /// What retention came to, pass by pass.
    passes: Mutex<Vec<Pass>>,
}

/// A pass of retention: what was removed and kept of the runs that ended, and what was swept of values.
struct Pass {
    removals: Vec<Removal>,
    swept: Amount,
}

impl Place {
    fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        Arc::new(Self { folder, clock: still_clock(), ledger: Ledger::default(), passes: Mutex::default() })
    }

    /// A handle, as another process would have it.
    fn open(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(&self.folder.path().join("store.db"), self.clock.clone()).expect("opened"))
    }

    fn runtime(&self, functions: Functions, model: impl Model + 'static) -> Runtime {
        let runtime = Runtime::builder(self.open()).clock(self.clock.clone()).functions(functions);
        runtime.model(Arc::new(model)).build()
    }

    async fn start(&self, id: &str, definition: Definition) -> lodestep::core::Result<RunKey> {
        let runtime = self.runtime(Functions::default(), Steps(0));
        let id = RunId::parse(id).expect("sound");
        let (inputs, labels) = (json!({}), Default::default());
        let start = Start { definition, inputs, id: Some(id.clone()), labels, join_unfinished: false };
        runtime.start(start).await.map(|_| RunKey::new(id))
    }

    async fn load(&self, run: &RunKey) -> Loaded {
        self.open().load(run).await.expect("loaded")
    }

    /// A program that goes on with what is due, its model finishing after so many turns, until nothing is left to do or
    /// it dies. What its thread had read of the store when it called its first tool.
    async fn program(self: &Arc<Self>, turns: u64, beside: Beside) -> u64 {
        let before = bytes_read();
        let (first_read, dying) = (Arc::new(Mutex::new(None)), Arc::new(Notify::new()));
        let (read, died, place) = (first_read.clone(), dying.clone(), self.clone());
        let mut functions = Functions::default();
        functions.add("step", move |call| {
            read.lock().expect("sound").get_or_insert_with(|| bytes_read() - before);
            let (died, place) = (died.clone(), place.clone());
            async move {
                let turn = turn_of(&call);
                match beside {
                    Beside::Dies(at) if at == turn => {
                        died.notify_one();
                        std::future::pending().await
                    }
                    Beside::Retention(every) if turn % every == every - 1 => place.retention().await,
                    _ => {}
                }
                Ok::<_, ToolError>(noise(&format!("{} {turn}", call.run), STEP_BYTES))
            }
        });
        let ledger = self.ledger.clone();
        functions.add("large", move |call| {
            ledger.apply("large", &call);
            let output = noise(&format!("{} {}", call.run, turn_of(&call)), LARGE_BYTES);
            std::future::ready(Ok::<_, ToolError>(output))
        });
        let (runtime, shutdown) = (self.runtime(functions, Steps(turns)), Shutdown::default());
        tokio::select! {
            worked = runtime.work_until_idle(Arc::new(Silent), &shutdown) => worked.expect("worked"),
            () = dying.notified() => {}
        }
        let first_read = first_read.lock().expect("sound").take();
        first_read.unwrap_or_default()
    }

    /// Does what a run of `paying` wants.
    async fn pay(&self, run: &RunKey) {
        let model = script(json!([says(&[("pay", json!({"n": 7}))]), says(&[("finish", json!({}))])]));
        let runtime = self.runtime(functions(&self.ledger, &["pay"]), model);
        assert_eq!(standing(&settle(&runtime, run).await).status, Status::Completed);
    }

    /// A day goes by; then, as another process, retention of every run that has ended.
    async fn retention(&self) {
        self.clock.set_wall(self.clock.wall().plus_ms(SWEEP_AFTER_MS));
        let runtime = self.runtime(Functions::default(), Steps(0));
        let mut removals = Vec::new();
        let over = Filter { statuses: vec![Status::Completed], ..Filter::default() };
        let ended = runtime.store().list("default", &over).await.expect("listed");
        for lineage in runtime.removable(ended).await.expect("looked") {
            removals.push(runtime.remove(lineage).await.expect("removed").removal);
        }
        let swept = runtime.store().sweep(Mode::Apply).await.expect("swept").swept;
        self.passes.lock().expect("sound").push(Pass { removals, swept });
    }

    /// The bytes of all its files.
    fn bytes(&self) -> u64 {
        bytes_below(self.folder.path())
    }
}

fn turn_of(call: &ToolCall) -> u64 {
    call.arguments["n"].as_u64().expect("a number")
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read").path());
    entries
        .map(|path| if path.is_dir() { bytes_below(&path) } else { path.metadata().map_or(0, |one| one.len()) })
        .sum()
}

/// What this thread has read of files in its life, as the system counts it; nothing where it does not.
fn bytes_read() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// A store after one run of so many turns; what it takes without any, and with them.
async fn stored(turns: u64) -> (Arc<Place>, RunKey, u64, u64) {
    let place = Place::new();
    let run = place.start("run", stepping()).await.expect("started");
    let empty = place.bytes();
    place.program(turns, Beside::Nothing).await;
    let full = place.bytes();
    (place, run, empty, full)
}

/// What the transitions of a run from a number on have in their rows: envelopes, values, replies.
async fn bytes_of_transitions(place: &Place, row: &RunRow, from: u64, count: usize) -> usize {
    let rows = place.open().journal(&row.run, from, count).await.expect("read");
    assert_eq!(rows.len(), count);
    let values = |row: &lodestep::store::JournalRow| row.values.iter().flatten().map(Vec::len).sum::<usize>();
    rows.iter().map(|row| row.envelope.len() + values(row) + row.transcript.as_ref().map_or(0, Vec::len)).sum()
}

#[tokio::test]
async fn scl_01_what_a_run_stores_grows_with_what_it_was_given_and_not_with_its_length() {
    let (_short, _, empty, short) = stored(SHORT).await;
    let (place, run, _, long) = stored(LONG).await;
    assert!(long <= 3 * payload_bytes(LONG), "{long} bytes for {}", payload_bytes(LONG));
    // What every store has, however little is in it, is in neither.
    let (short, long) = (short - empty, long - empty);
    assert!(10 * long <= 22 * short, "{short} bytes, and of twice as many steps {long}");
    // A step is two transitions. The last hundred store what the first did: nothing of the past is in them.
    let row = place.load(&run).await.row;
    let first = bytes_of_transitions(&place, &row, 2, 200).await;
    let last = bytes_of_transitions(&place, &row, row.seq - 201, 200).await;
    assert!(10 * last <= 11 * first, "{first} bytes of the first hundred steps, {last} of the last");
}

#[tokio::test]
async fn scl_01_going_on_with_a_run_reads_as_much_of_a_long_one_as_of_a_short_one() {
    /// Each death is as many transitions behind a snapshot as the others: what differs is the length alone.
    const DEATHS: [u64; 5] = [34, 66, 194, 290, 386];
    let place = Place::new();
    let run = place.start("run", stepping()).await.expect("started");
    let (mut read, mut snapshots) = (Vec::new(), Vec::new());
    for at in DEATHS {
        read.push(place.program(LONG, Beside::Dies(at)).await);
        let loaded = place.load(&run).await;
        snapshots.push(loaded.snapshot.as_ref().expect("there is one").len());
        let every = loaded.checkpoint().expect("sound").limits.snapshot_every;
        assert!(loaded.tail.len() <= every as usize, "{} transitions are folded", loaded.tail.len());
    }
    read.push(place.program(LONG, Beside::Nothing).await);
    // The first program began the run; each of the others went on with it from another length.
    let (shortest, longest) = (read[1], read[DEATHS.len()]);
    assert!(4 * longest <= 5 * shortest, "after 34 steps {shortest} bytes are read, after 386 {longest}");
    assert!(4 * snapshots[4] <= 5 * snapshots[0], "the state grows with the run's length: {snapshots:?}");
    let end = place.load(&run).await;
    let state = end.checkpoint().expect("sound");
    assert_eq!(standing(&state).status, Status::Completed, "no number of steps ends a run");
    let all = usize::try_from(LONG / STRETCH).expect("few");
    assert_eq!(place.ledger.keys("large").len(), all, "an effect was lost or done twice");
    let report = inspect::verify(&*place.open(), &end.row.run).await.expect("verified");
    assert_eq!((report.faults, end.row.crashes), (vec![], 0));
}

#[tokio::test]
async fn scl_01_retention_beside_a_run_that_goes_on_frees_room_and_keeps_what_is_needed() {
    let place = Place::new();
    for id in ["old-1", "old-2"] {
        place.start(id, stepping()).await.expect("started");
    }
    place.program(STRETCH, Beside::Nothing).await;
    let paid = place.start("paid", paying()).await.expect("started");
    place.pay(&paid).await;
    let before = place.bytes();
    let run = place.start("run", stepping()).await.expect("started");
    place.program(SHORT, Beside::Retention(40)).await;
    {
        let passes = place.passes.lock().expect("sound");
        assert!(passes.len() > 3, "it was done {} times", passes.len());
        // Both went in the first pass, their large values a day after it. The payment's run stays each time.
        let gone = |pass: &Pass| pass.removals.iter().filter(|one| matches!(one, Removal::Removed(_))).count();
        assert_eq!(passes.iter().map(gone).collect::<Vec<_>>()[..2], [2, 0]);
        let swept = Amount { count: 2, bytes: 2 * LARGE_BYTES };
        assert_eq!(passes[1].swept, swept);
        let kept = Removal::Kept(Kept::DedupeKey(paid.run.clone(), "invoice-7".to_owned()));
        assert!(passes.iter().all(|pass| pass.removals.contains(&kept)));
    }
    // The run that went on has all that it had, and took the room of what went.
    let end = place.load(&run).await;
    assert_eq!(standing(&end.checkpoint().expect("sound")).status, Status::Completed);
    assert_eq!(inspect::verify(&*place.open(), &end.row.run).await.expect("verified").faults, Vec::<String>::new());
    assert_eq!(place.open().effects(&end.row.run, None).await.expect("read").len(), 2);
    let after = place.bytes();
    assert!(
        after <= before + payload_bytes(SHORT) / 2,
        "{before} bytes before {}, {after} after",
        payload_bytes(SHORT)
    );
    // What was paid is not paid again, and a run that is gone does not begin again.
    let again = place.start("again", paying()).await.expect("started");
    place.pay(&again).await;
    assert_eq!(place.ledger.keys("pay").len(), 1);
    assert_eq!(place.start("old-1", stepping()).await.expect_err("refused").code(), "run.removed");
}
