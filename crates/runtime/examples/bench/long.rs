//! A long run at its full size: 10,000 steps of 2 KB and 100 outputs of a megabyte, by six programs one after the other, on a
//! store that somebody reads all the while; then retention.
//!
//! What of it is a count is also shown by tests, on a shorter run: `crates/runtime/tests/long_runs.rs`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lodestep::Runtime;
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::Status;
use lodestep::observe::Silent;
use lodestep::store::garbage::{Mode, SWEEP_AFTER_MS};
use lodestep::store::{Clock, Filter, RunRow, SettableClock, SqliteStore, Store, SystemClock};
use lodestep::tools::{Functions, ToolError};
use lodestep::worker::Shutdown;

use crate::Row;
use crate::agents::Stepper;
use crate::size::{bytes_below, noise_of};
use crate::steps;

/// Turns of the run: each hundred steps are followed by a large output.
const TURNS: usize = 10_100;

/// Turns with one large output: the last of them has it.
const STRETCH: usize = 101;

const STEP_BYTES: usize = 2_048;

const LARGE_BYTES: usize = 1 << 20;

/// Turns of a program before it hands over: there are five restarts.
const TURNS_OF_A_PROGRAM: usize = TURNS / 6 + 1;

/// Steps at either end whose time is compared. No large output is among them.
const COMPARED: usize = STRETCH - 1;

const MIB: f64 = (1 << 20) as f64;

const ROWS: [(&str, &str, &str); 5] = [
    ("SCL-01 10,000 steps: bytes over those given", "×", "≤ 3"),
    ("SCL-01 the longest log beside a reader", "MiB", "< 64"),
    ("SCL-01 open to next dispatch, the longest of 5", "ms", "< 1,000"),
    ("SCL-01 the last 100 steps over the first", "×", "≤ 1.2"),
    ("SCL-01 what retention leaves of the bytes", "MiB", ""),
];

/// Measures and reports each row.
pub async fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    if !ROWS.iter().any(|(name, ..)| crate::is_wanted(name)) {
        return;
    }
    let mut values = [const { Vec::new() }; ROWS.len()];
    for round in 0..rounds {
        let place = folder.join(format!("long-{round}"));
        std::fs::create_dir_all(&place).expect("a folder");
        let figures = one_run(&place).await;
        values.iter_mut().zip(figures).for_each(|(values, figure)| values.push(figure));
    }
    for ((name, unit, target), values) in ROWS.into_iter().zip(values) {
        report(Row { name, values, unit, target });
    }
}

/// The figures of one run, in the order of the rows.
async fn one_run(place: &Path) -> [f64; ROWS.len()] {
    let path = place.join("store.db");
    let reader = Reader::start(&path).await;
    let dispatches = Arc::new(Mutex::new(Vec::with_capacity(TURNS)));
    let mut longest = Duration::ZERO;
    for program in 0.. {
        let began = dispatches.lock().expect("sound").len();
        let opened = Instant::now();
        work(&path, program, &dispatches).await;
        let dispatches = dispatches.lock().expect("sound");
        if dispatches.len() == began {
            break;
        }
        longest = longest.max(if began == 0 { Duration::ZERO } else { dispatches[began] - opened });
    }
    let log = reader.end();
    let dispatches = std::mem::take(&mut *dispatches.lock().expect("sound"));
    assert_eq!(dispatches.len(), TURNS, "a step was lost or done again");
    let time_from = |step: usize| (dispatches[step + COMPARED - 1] - dispatches[step]).as_secs_f64();
    let given = TURNS / STRETCH * (COMPARED * STEP_BYTES + LARGE_BYTES);
    [
        bytes_below(place) as f64 / given as f64,
        log as f64 / MIB,
        longest.as_secs_f64() * 1e3,
        time_from(TURNS - STRETCH) / time_from(0),
        retention(place).await / MIB,
    ]
}

/// A program that does its share of the steps, or what is left of them, and notes when each is dispatched.
async fn work(path: &Path, program: u64, dispatches: &Arc<Mutex<Vec<Instant>>>) {
    let (shutdown, done) = (Shutdown::default(), AtomicUsize::new(0));
    let (stop, dispatches) = (shutdown.clone(), dispatches.clone());
    let mut functions = Functions::default();
    functions.add("step", move |_| {
        let mut dispatches = dispatches.lock().expect("sound");
        let turn = dispatches.len();
        dispatches.push(Instant::now());
        if done.fetch_add(1, Ordering::Relaxed) + 1 == TURNS_OF_A_PROGRAM {
            stop.begin();
        }
        let is_large = turn % STRETCH == STRETCH - 1;
        std::future::ready(Ok::<_, ToolError>(noise_of(turn, if is_large { LARGE_BYTES } else { STEP_BYTES })))
    });
    let (model, _gate, _arrivals) = steps::stepper(1, TURNS as u64, 0);
    // No call is an equal of one of another program.
    let model = Stepper { next: AtomicU64::new(program * TURNS as u64), ..model };
    let runtime = steps::open_with(path, model, functions);
    if program == 0 {
        steps::start(&runtime, Class::Keyed, 1).await;
    }
    runtime.work_until_idle(Arc::new(Silent), &shutdown).await.expect("worked");
}

/// Somebody who has the store open and reads what there is, again and again; it keeps an eye on the log.
struct Reader {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Reader {
    async fn start(path: &Path) -> Self {
        let store = SqliteStore::open(path, Arc::new(SystemClock)).expect("opened");
        let (log, is_over) = (PathBuf::from(format!("{}-wal", path.display())), Arc::new(AtomicBool::new(false)));
        let ended = is_over.clone();
        let thread = std::thread::spawn(move || {
            let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
            let mut longest = 0;
            while !ended.load(Ordering::Acquire) {
                for row in threads.block_on(runs(&store)) {
                    threads.block_on(store.load(&row.run.key)).expect("loaded");
                }
                longest = longest.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
                std::thread::sleep(Duration::from_millis(5));
            }
            longest
        });
        Self { is_over, thread }
    }

    /// Closes the store; the most bytes that the log had.
    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().expect("it read")
    }
}

async fn runs(store: &SqliteStore) -> Vec<RunRow> {
    store.list("default", &Filter::default()).await.expect("listed")
}

/// Removes the run, which is over, with two passes over its values a day apart; the bytes that are left.
async fn retention(place: &Path) -> f64 {
    let clock = Arc::new(SettableClock::at(SystemClock.wall()));
    let store = Arc::new(SqliteStore::open(&place.join("store.db"), clock.clone()).expect("opened"));
    let runtime = Runtime::builder(store.clone()).build();
    let runs = runs(&store).await;
    assert!(runs.iter().all(|row| row.status == Status::Completed), "no number of steps ends a run");
    for lineage in runtime.removable(runs).await.expect("looked") {
        runtime.remove(lineage).await.expect("removed");
    }
    for _ in 0..2 {
        store.sweep(Mode::Apply).await.expect("swept");
        clock.advance_ms(SWEEP_AFTER_MS);
    }
    store.compact().await.expect("compacted");
    drop((runtime, store));
    bytes_below(place) as f64
}
