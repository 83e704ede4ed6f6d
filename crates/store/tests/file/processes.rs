//! Several processes on one store: this program starts itself again as the other one, and kills it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::script::{Run, runtime, start};
use lodestep_store::{Filter, Release, SqliteStore, Store, SystemClock, Want};
use rusqlite::Connection;

/// Names the store for the other process, and what it does there.
const STORE: &str = "LODESTEP_TEST_STORE";
const ACT: &str = "LODESTEP_TEST_ACT";

/// So long that only what never comes takes it.
const NEVER: Duration = Duration::from_secs(30);

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Arc::new(SystemClock)).expect("opened"))
}

/// Another process of this program, and the lines that it prints.
struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(path: &Path, act: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "processes::the_other_process", "--nocapture", "--test-threads=1"])
            .env(STORE, path)
            .env(ACT, act)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// What follows on `said` in the next line that has it; `None` at the end.
    fn next(&mut self) -> Option<String> {
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("said ").map(|(_, said)| said.to_owned()))
    }

    fn kill(&mut self) {
        // SIGKILL: nothing of it gets to clean up.
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It has ended in every test that passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process; without its variables it is nothing.
#[test]
fn the_other_process() {
    let (Some(path), Ok(act)) = (std::env::var_os(STORE), std::env::var(ACT)) else { return };
    let store = open(Path::new(&path));
    match act.split_once(' ') {
        Some(("commit", id)) => runtime().block_on(commit_until_killed(&store, id)),
        Some(("hold", id)) => runtime().block_on(hold_until_killed(&store, id)),
        Some(("work", steps)) => runtime().block_on(work(&store, steps.parse().expect("a number"))),
        _ => panic!("{act} is no act"),
    }
}

async fn commit_until_killed(store: &Arc<dyn Store>, id: &str) {
    let mut run = Run::begin(store, id).await;
    loop {
        run.step("one more").await;
        println!("said {}", run.checkpoint.seq);
    }
}

async fn hold_until_killed(store: &Arc<dyn Store>, id: &str) {
    let _run = Run::begin(store, id).await;
    println!("said held");
    std::future::pending().await
}

/// Takes whatever is due and makes so many steps on each, until nothing is due.
async fn work(store: &Arc<dyn Store>, steps: u64) {
    let worker = store.enlist().await.expect("enlisted");
    loop {
        let claims = store.claim(&worker, Want::Due(4)).await.expect("claimed");
        if claims.is_empty() {
            break;
        }
        let tasks: Vec<_> = claims
            .into_iter()
            .map(|claim| {
                let (store, worker) = (Arc::clone(store), worker.clone());
                tokio::spawn(async move {
                    let mut run = Run::of(&store, &worker, &claim).await;
                    for _ in 0..steps {
                        run.step("a step").await;
                    }
                    store.release(&claim, None, Release::Idle).await.expect("released");
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
        println!("said worked");
    }
    store.retire(&worker).await.expect("retired");
    println!("said done");
}

fn check_integrity(path: &Path) {
    let db = Connection::open(path).expect("opened");
    let verdict: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(verdict, "ok");
}

#[test]
fn every_acknowledged_commit_survives_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    for round in 0..5_usize {
        let id = format!("run-{round}");
        let mut other = Other::start(&path, &format!("commit {id}"));
        let mut acknowledged: u64 = 0;
        for _ in 0..20 + 37 * round {
            acknowledged = other.next().expect("a line").parse().expect("a number");
        }
        other.kill();
        while let Some(said) = other.next() {
            // A line that was cut off was not read by anybody.
            acknowledged = said.parse().unwrap_or(acknowledged).max(acknowledged);
        }
        let store = open(&path);
        runtime().block_on(async {
            let rows = store.find("default", &id, 1).await.expect("found");
            let loaded = store.load(&rows[0].run.key).await.expect("loaded");
            let seq = loaded.checkpoint().expect("sound").seq;
            // At most the one that was under way is there besides.
            assert!((acknowledged..=acknowledged + 1).contains(&seq), "{seq} after {acknowledged}");
        });
    }
    check_integrity(&path);
}

#[test]
fn a_killed_process_s_runs_are_taken_over_within_a_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path);
    runtime().block_on(async {
        let mut changes = store.changes();
        let worker = store.enlist().await.expect("enlisted");
        for round in 0..3 {
            let mut other = Other::start(&path, &format!("hold run-{round}"));
            assert_eq!(other.next().as_deref(), Some("held"));
            assert_eq!(store.claim(&worker, Want::Due(1)).await.expect("claimed").len(), 0);
            changes.mark_unchanged();
            let since = Instant::now();
            other.kill();
            // As a worker does: it claims when something is hinted at.
            loop {
                tokio::time::timeout(NEVER, changes.changed()).await.expect("a hint").expect("a store");
                let claims = store.claim(&worker, Want::Due(1)).await.expect("claimed");
                if let Some(claim) = claims.first() {
                    assert_eq!((claim.epoch, claim.crashes), (2, 1));
                    break;
                }
            }
            assert!(since.elapsed() < Duration::from_secs(1), "it took {:?}", since.elapsed());
        }
    });
}

#[test]
fn two_processes_share_a_store_and_a_third_dies_in_it() {
    const RUNS: usize = 60;
    const STEPS: u64 = 10;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path);
    runtime().block_on(async {
        for place in 0..RUNS {
            start(&*store, &format!("run-{place}")).await;
        }
    });
    let work = format!("work {STEPS}");
    let mut others = [Other::start(&path, &work), Other::start(&path, &work)];
    let mut dying = Other::start(&path, &work);
    let _ = dying.next();
    dying.kill();
    for other in &mut others {
        let mut last = None;
        while let Some(said) = other.next() {
            last = Some(said);
        }
        assert_eq!(last.as_deref(), Some("done"));
        assert!(other.child.wait().expect("reaped").success());
    }
    runtime().block_on(async {
        // What the dying one held when the others had ended is still to be freed.
        let worker = store.enlist().await.expect("enlisted");
        let late = store.claim(&worker, Want::Due(RUNS)).await.expect("claimed").len();
        let rows = store.list("default", &Filter::default()).await.expect("listed");
        assert_eq!(rows.len(), RUNS);
        for row in rows {
            let checkpoint = store.load(&row.run.key).await.expect("loaded").checkpoint().expect("sound");
            assert_eq!(checkpoint.seq, row.seq);
            // One round of steps by each that had it: one, or two when the first died; or it was not finished.
            let whole = row.epoch == 1 && row.seq == 1 + STEPS;
            assert!(whole || (row.epoch == 2 && row.seq <= 1 + 2 * STEPS), "{row:?}, {late} late");
        }
    });
    check_integrity(&path);
}

#[test]
fn fifty_starts_of_one_id_by_two_handles_and_a_kill_leave_one_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut other = Other::start(&path, "hold one");
    assert_eq!(other.next().as_deref(), Some("held"));
    other.kill();
    let stores = [open(&path), open(&path)];
    runtime().block_on(async {
        for place in 0..50 {
            start(&*stores[place % 2], "one").await;
        }
        let rows = stores[0].list("default", &Filter::default()).await.expect("listed");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].epoch, 1);
    });
}
