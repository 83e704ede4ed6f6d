//! A store with a million runs that wait: what a claim, a listing and an idle worker cost, and what others' steps do.
//!
//! The runs are one that really waits, and its row and its head a million times under other ids. Their journals are not
//! there: none of what is measured reads one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestep::core::definition::{Decide, Limits};
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::Status;
use lodestep::observe::Silent;
use lodestep::store::{Filter, Release, SqliteStore, Store, SystemClock, Want};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::Row;
use crate::agents::agent;
use crate::raw::Raw;
use crate::steps;

const MILLION: i64 = 1_000_000;

/// Runs of a claim.
const CLAIM: usize = 32;

/// Claims and listings of a round.
const LOOKS: usize = 200;

const CLAIMS: &str = "W6 claim of 32 among a million waiting runs";
const LISTS: &str = "W6 a page of a list of a million runs";
const IDLE: &str = "W6 an idle worker's part of a core";
const MEMORY: &str = "W6 an idle worker's memory";
const STEPS: &str = "W2 1,000 runs of 5 steps, a million heads";

/// Measures and reports each row. The worker is the built program that LODESTEP_BIN names.
pub async fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    if ![CLAIMS, LISTS, IDLE, MEMORY, STEPS].iter().any(|name| crate::is_wanted(name)) {
        return;
    }
    let path = folder.join("million.db");
    lay(&path).await;
    if crate::is_wanted(CLAIMS) {
        let mut values = Vec::new();
        for _ in 0..rounds {
            values.push(claims(&path).await);
        }
        report(Row { name: CLAIMS, values, unit: "ms", target: "< 3 p99" });
    }
    if crate::is_wanted(LISTS) {
        let mut values = Vec::new();
        for _ in 0..rounds {
            values.push(lists(&path).await);
        }
        report(Row { name: LISTS, values, unit: "ms", target: "< 2 p95" });
    }
    if (crate::is_wanted(IDLE) || crate::is_wanted(MEMORY))
        && let Some(program) = std::env::var_os("LODESTEP_BIN").map(PathBuf::from)
    {
        let idle: Vec<(f64, f64)> = (0..rounds).map(|_| idle(&program, &path)).collect();
        report(Row { name: IDLE, values: idle.iter().map(|one| one.0).collect(), unit: "%", target: "< 1" });
        report(Row { name: MEMORY, values: idle.iter().map(|one| one.1).collect(), unit: "MiB", target: "< 40" });
    }
    if crate::is_wanted(STEPS) {
        let raw = Raw::warm(&folder.join("raw-million.db"));
        let mut values = Vec::new();
        for _ in 0..rounds {
            let before = raw.block(1_000);
            let steps = steps::many_runs(&path, Limits::default().parallel, 5).await;
            values.push(steps * (before + raw.block(1_000)).as_secs_f64() / 2_000.0);
        }
        report(Row { name: STEPS, values, unit: "× raw", target: "≥ 5" });
    }
}

/// One run that waits for an approval, a million times.
async fn lay(path: &Path) {
    let (model, _gate, _arrivals) = steps::stepper(1, 1, 0);
    let runtime = steps::open(path, model);
    let mut definition = agent(Class::Keyed, 1);
    definition.policy[0].decide = Decide::Ask;
    definition.policy[0].tools = vec!["step".to_owned()];
    let start = Start { definition, inputs: json!({}), id: None, labels: Default::default(), join_unfinished: false };
    runtime.start(start).await.expect("started");
    runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
    drop::<Runtime>(runtime);
    let mut db = Connection::open(path).expect("opened");
    for hundred in 0..MILLION / 10_000 {
        let batch = db.transaction().expect("begun");
        {
            let mut run = batch
                .prepare_cached(
                    "INSERT INTO run SELECT ?1, namespace, ?2, ?3, agent, definition, inputs, started_at, labels, root
                     FROM run WHERE number = 1",
                )
                .expect("prepared");
            let mut head = batch
                .prepare_cached(
                    "INSERT INTO head (run, namespace, epoch, seq, digest, status, why, due_at, crashes, inbox,
                         inbox_read, updated_at)
                     SELECT ?1, namespace, epoch, seq, digest, status, why, due_at, crashes, inbox, inbox_read,
                         updated_at + ?1 FROM head WHERE run = 1",
                )
                .expect("prepared");
            for number in hundred * 10_000 + 2..hundred * 10_000 + 10_002 {
                let id = format!("r{number:09}");
                let backwards: String = id.chars().rev().collect();
                run.execute(params![number, id, backwards]).expect("inserted");
                head.execute([number]).expect("inserted");
            }
        }
        batch.commit().expect("committed");
    }
}

/// The time that all but a hundredth of the claims keep. What is claimed is given back, and waits again.
async fn claims(path: &Path) -> f64 {
    let all = (LOOKS * CLAIM) as i64;
    Connection::open(path)
        .expect("opened")
        .execute("UPDATE head SET due_at = 1 + run WHERE run > 1 AND run <= 1 + ?", [all])
        .expect("they are due");
    let store = SqliteStore::open(path, Arc::new(SystemClock)).expect("opened");
    let worker = store.enlist().await.expect("enlisted");
    let mut times = Vec::new();
    let mut claimed = Vec::new();
    for _ in 0..LOOKS {
        let started = Instant::now();
        let claims = store.claim(&worker, Want::Due(CLAIM)).await.expect("claimed");
        times.push(started.elapsed().as_secs_f64() * 1e3);
        assert_eq!(claims.len(), CLAIM, "so many are due");
        claimed.extend(claims);
    }
    for claim in claimed {
        store.release(&claim, None, Release::Idle).await.expect("released");
    }
    store.retire(&worker).await.expect("retired");
    all_but(times, 99)
}

/// The time that all but a twentieth of the listings keep.
async fn lists(path: &Path) -> f64 {
    let store = SqliteStore::open(path, Arc::new(SystemClock)).expect("opened");
    let filter = Filter { statuses: vec![Status::Waiting], limit: Some(50), ..Filter::default() };
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        let started = Instant::now();
        assert_eq!(store.list("default", &filter).await.expect("listed").len(), 50, "a page");
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    all_but(times, 95)
}

/// Hundredths of a core that a worker without work takes, over ten seconds, and its peak of resident memory in MiB.
fn idle(program: &Path, path: &Path) -> (f64, f64) {
    let mut worker = Command::new(program)
        .arg("--store")
        .arg(path)
        .arg("worker")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    std::thread::sleep(Duration::from_secs(2));
    let (before, started) = (ticks(worker.id()), Instant::now());
    std::thread::sleep(Duration::from_secs(10));
    // A tick is a hundredth of a second.
    let part = (ticks(worker.id()) - before) / started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string(format!("/proc/{}/status", worker.id())).expect("it lives");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    let kib: f64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    worker.kill().expect("killed");
    worker.wait().expect("ended");
    (part, kib / 1024.0)
}

/// The processor's ticks that a process has had: fields 14 and 15 of proc(5)'s stat.
fn ticks(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    let fields = stat.rsplit_once(')').expect("a name").1;
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

/// The time that so many hundredths keep.
fn all_but(mut times: Vec<f64>, hundredths: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() * hundredths / 100).min(times.len() - 1)]
}
