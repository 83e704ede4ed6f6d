//! Workers of one program and of several that start while a run starts: each epoch of it has one of them.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, Definition, RunKey, Timestamp};
use lodestep::observe::{Observer, Silent};
use lodestep::store::{Clock, MemoryStore, SqliteStore, Started, Store, SystemClock};
use lodestep::tools::{Functions, ToolError};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::json;
use support::*;

/// How often they meet.
const ROUNDS: usize = 200;

/// How often each action was called: run, action, attempt.
type Calls = Arc<Mutex<BTreeMap<(String, u32, u32), u32>>>;

/// How often a run was taken, by whomever.
#[derive(Default)]
struct Taken(Mutex<u32>);

impl Observer for Taken {
    fn taken(&self, _: &RunKey, _: &Definition, _: &Checkpoint, _: u32) {
        *self.0.lock().expect("sound") += 1;
    }

    fn committed(&self, _: &RunKey, _: &[lodestep::core::Event], _: &[Vec<u8>], _: &Checkpoint) {}
}

/// A wall clock that is wrong by so many minutes. The boot clock is the machine's.
#[derive(Clone, Copy)]
struct Wrong(i64);

impl Clock for Wrong {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.wall().as_micros() + self.0 * 60_000_000)
    }

    fn boot_us(&self) -> u64 {
        SystemClock.boot_us()
    }
}

/// A program over a store: it makes two calls of an effect and one of a read.
fn program(store: Arc<dyn Store>, clock: Wrong, calls: &Calls) -> Runtime {
    let mut functions = Functions::default();
    for name in ["pay", "look"] {
        let calls = calls.clone();
        functions.add(name, move |call| {
            let mut all = calls.lock().expect("sound");
            *all.entry((call.run.clone(), call.action, call.attempt)).or_default() += 1;
            drop(all);
            async move {
                tokio::task::yield_now().await;
                Ok::<_, ToolError>(b"done".to_vec())
            }
        });
    }
    let replies = json!([
        says(&[("pay", json!({"n": 1})), ("look", json!({"n": 1}))]),
        says(&[("pay", json!({"n": 2}))]),
        says(&[("finish", json!({"summary": "done"}))]),
    ]);
    Runtime::builder(store).clock(Arc::new(clock)).functions(functions).model(Arc::new(script(replies))).build()
}

/// One starts a run and works; the others begin to work in the first moments of it, some sooner, some later.
async fn meet(programs: &[Runtime], round: usize, taken: &Arc<Taken>) -> RunKey {
    let tools = vec![tool("pay", Class::Unsafe), tool("look", Class::Read)];
    let start = Start {
        definition: agent(tools, &[]),
        inputs: json!({ "round": round }),
        id: None,
        labels: BTreeMap::new(),
        join_unfinished: false,
    };
    let others = programs[1..].iter().enumerate().map(|(at, program)| {
        let (program, taken) = (program.clone(), taken.clone());
        tokio::spawn(async move {
            for _ in 0..round * (at + 3) % 29 {
                tokio::task::yield_now().await;
            }
            program.work_until_idle(taken, &Shutdown::default()).await
        })
    });
    let others: Vec<_> = others.collect();
    let Started::New(run) = programs[0].start(start).await.expect("started") else { panic!("it was there before") };
    let run = RunKey::clone(&run.key);
    programs[0].work_until_idle(taken.clone(), &Shutdown::default()).await.expect("worked");
    for other in others {
        other.await.expect("no panic").expect("worked");
    }
    run
}

/// They meet again and again over these handles on one store.
fn contend(handles: Vec<Arc<dyn Store>>) {
    contend_by(handles.into_iter().map(|store| (store, Wrong(0))).collect());
}

/// The same, each with a clock of its own.
fn contend_by(handles: Vec<(Arc<dyn Store>, Wrong)>) {
    let calls = Calls::default();
    let programs: Vec<Runtime> = handles.into_iter().map(|(store, clock)| program(store, clock, &calls)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        for round in 0..ROUNDS {
            let taken = Arc::new(Taken::default());
            let run = meet(&programs, round, &taken).await;
            // Whoever had it when the others found nothing to do has given it back by now.
            programs[0].work_on(&run, Arc::new(Silent), &Shutdown::default(), |_| true).await.expect("read");
            let loaded = programs[0].store().load(&run).await.expect("loaded");
            let state = loaded.checkpoint().expect("sound");
            assert_eq!(standing(&state).status, Status::Completed, "round {round}");
            assert_eq!(loaded.row.epoch, u64::from(*taken.0.lock().expect("sound")), "round {round}: an epoch of two");
            let all = calls.lock().expect("sound");
            let of_run: Vec<_> = all.iter().filter(|((of, ..), _)| *of == run.run.to_string()).collect();
            assert_eq!(of_run.len(), 3, "round {round}: {of_run:?}");
            assert!(
                of_run.iter().all(|((.., attempt), times)| *attempt <= 1 && **times == 1),
                "round {round}: {of_run:?}"
            );
        }
    });
}

fn open(path: &Path) -> Arc<dyn Store> {
    open_by(path, Wrong(0))
}

fn open_by(path: &Path, clock: Wrong) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Arc::new(clock)).expect("opened"))
}

#[test]
fn eff_04_workers_of_one_program_that_start_with_a_run_have_it_one_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder.path().join("store.db"));
    contend(vec![store.clone(), store.clone(), store]);
}

#[test]
fn eff_04_workers_of_three_programs_that_start_with_a_run_have_it_one_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    contend((0..3).map(|_| open(&path)).collect());
}

#[test]
fn eff_04_workers_over_a_store_in_memory_have_a_run_one_at_a_time() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    contend(vec![store.clone(), store.clone(), store]);
}

#[test]
fn tim_03_workers_whose_wall_clocks_are_minutes_apart_have_a_run_one_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    contend_by([0, -7, 7].map(|minutes| (open_by(&path, Wrong(minutes)), Wrong(minutes))).into());
}
