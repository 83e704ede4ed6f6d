//! Resume: from the start of a process, or the death of another, to the next dispatch, however long the run is.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lodestep::core::effect::Class;
use lodestep::observe::Silent;
use lodestep::tools::{Functions, ToolError};
use lodestep::worker::Shutdown;

use crate::Row;
use crate::agents::Stepper;
use crate::steps;

/// Tells this program that it is a worker that is measured: `once` or `on`, and the store's path.
const CHILD: &str = "LODESTEP_BENCH_RESUMED";

/// Actions of the runs that are resumed, and the names of their rows.
const LENGTHS: [(&str, u64); 3] = [
    ("W3 start to next dispatch, 100 actions", 100),
    ("W3 start to next dispatch, 10,000 actions", 10_000),
    ("W3 start to next dispatch, 100,000 actions", 100_000),
];

const AFTER_CRASH: &str = "W3 the same after a crash with a full log";

const TAKEOVER: &str = "W3 kill -9 to another worker's next dispatch";

/// Starts of a round.
const STARTS: usize = 20;

/// Crashes of a round.
const CRASHES: usize = 10;

/// A log this long is full: it is restarted at sixteen MiB.
const FULL_LOG: u64 = 15 << 20;

/// A worker that writes a byte at its first dispatch, when this program was started for that: `once` then hands over,
/// `on` goes on until it is killed.
pub async fn child_main() -> bool {
    let Ok(what) = std::env::var(CHILD) else { return false };
    let (kind, path) = what.split_once(' ').expect("a kind and a path");
    let (shutdown, once) = (Shutdown::default(), kind == "once");
    let mut functions = Functions::default();
    let (told, stop) = (std::sync::Once::new(), shutdown.clone());
    functions.add("step", move |_| {
        told.call_once(|| {
            let mut out = std::io::stdout();
            out.write_all(b"!").and_then(|()| out.flush()).expect("the measuring process listens");
            if once {
                stop.begin();
            }
        });
        std::future::ready(Ok::<_, ToolError>(vec![b'x'; 200]))
    });
    // No call is an equal of one of another process. Microseconds stay below 2^53 until the year 2255.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    let (model, _gate, _arrivals) = steps::stepper(50, u64::MAX, 0);
    let model = Stepper { next: AtomicU64::new(u64::try_from(now).unwrap_or_default()), ..model };
    steps::open_with(Path::new(path), model, functions).work(Arc::new(Silent), &shutdown).await.expect("worked");
    true
}

/// Measures and reports each row.
pub async fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    for (name, actions) in LENGTHS.into_iter().filter(|(name, _)| crate::is_wanted(name)) {
        let path = folder.join(format!("resume-{actions}.db"));
        lay(&path, actions).await;
        let values = (0..rounds).map(|_| p95((0..STARTS).map(|_| start_to_dispatch(&path)).collect())).collect();
        report(Row { name, values, unit: "ms", target: "< 8 p95, flat" });
    }
    if crate::is_wanted(AFTER_CRASH) {
        let path = folder.join("resume-crash.db");
        lay(&path, 10_000).await;
        let values = (0..rounds).map(|_| p95((0..CRASHES).map(|_| after_crash(&path)).collect())).collect();
        report(Row { name: AFTER_CRASH, values, unit: "ms", target: "< 20 p95" });
    }
    if crate::is_wanted(TAKEOVER) {
        let path = folder.join("resume-takeover.db");
        lay(&path, 1_000).await;
        let values = (0..rounds).map(|_| p95((0..CRASHES).map(|_| takeover(&path)).collect())).collect();
        report(Row { name: TAKEOVER, values, unit: "ms", target: "< 1,000 p95" });
    }
}

/// A run with so many effects behind it, handed over.
async fn lay(path: &Path, actions: u64) {
    let turns = actions / 50;
    let (model, gate, mut arrivals) = steps::stepper(50, u64::MAX, turns);
    let runtime = steps::open(path, model);
    steps::start(&runtime, Class::Keyed, 1).await;
    let shutdown = Shutdown::default();
    let (worked, stop) = (runtime.clone(), shutdown.clone());
    let worker = tokio::spawn(async move { worked.work(Arc::new(Silent), &stop).await });
    gate.add_permits(1);
    for _ in 0..2 {
        arrivals.recv().await.expect("at the gate");
    }
    shutdown.begin();
    worker.await.expect("joined").expect("worked");
}

fn start_to_dispatch(path: &Path) -> f64 {
    let started = Instant::now();
    let mut child = spawn("once", path);
    let time = first_byte(&mut child, started);
    assert!(child.wait().expect("ended").success(), "it handed over");
    time
}

/// A worker is killed when the log is full, or after two seconds; then as [`start_to_dispatch`].
fn after_crash(path: &Path) -> f64 {
    let mut child = spawn("on", path);
    first_byte(&mut child, Instant::now());
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until && std::fs::metadata(&log).is_ok_and(|log| log.len() < FULL_LOG) {
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    start_to_dispatch(path)
}

fn takeover(path: &Path) -> f64 {
    let mut first = spawn("on", path);
    first_byte(&mut first, Instant::now());
    let mut second = spawn("once", path);
    // It stands by when it has opened the store and looked for work.
    std::thread::sleep(Duration::from_millis(300));
    let killed = Instant::now();
    first.kill().expect("killed");
    let time = first_byte(&mut second, killed);
    first.wait().expect("ended");
    assert!(second.wait().expect("ended").success(), "it handed over");
    time
}

fn spawn(kind: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("a path"))
        .env(CHILD, format!("{kind} {}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Milliseconds from a moment to the child's first dispatch.
fn first_byte(child: &mut Child, from: Instant) -> f64 {
    child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("a dispatch");
    from.elapsed().as_secs_f64() * 1e3
}

/// The time that all but a twentieth keep.
fn p95(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() * 95 / 100).min(times.len() - 1)]
}
