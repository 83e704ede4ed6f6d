//! The program as people start it: how soon a listing answers, how much memory a long run takes.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use lodestep::core::effect::Class;
use lodestep::store::{SqliteStore, SystemClock};
use lodestep::{Runtime, Start};
use serde_json::json;

use crate::Row;
use crate::agents::agent;

const LISTING: &str = "lodestep ls on 100 runs, start to first byte";

const MEMORY: &str = "a run over 200 documents, peak memory";

/// Measures and reports each row. Needs LODESTEP_BIN, the built program.
pub fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    let Some(program) = std::env::var_os("LODESTEP_BIN").map(PathBuf::from) else {
        println!("LODESTEP_BIN is not set: the program is not measured");
        return;
    };
    if ![LISTING, MEMORY].iter().any(|name| crate::is_wanted(name)) {
        return;
    }
    let values = (0..rounds).map(|round| first_byte(&program, &folder.join(format!("ls-{round}.db")))).collect();
    report(Row { name: LISTING, values, unit: "ms", target: "< 20" });
    let values = (0..rounds.min(3)).map(|round| peak_mib(&program, &folder.join(format!("docs-{round}")))).collect();
    report(Row { name: MEMORY, values, unit: "MiB", target: "< 60" });
}

/// The median of 20 starts, in milliseconds.
fn first_byte(program: &Path, store: &Path) -> f64 {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let store = SqliteStore::open(store, Arc::new(SystemClock)).expect("opened");
        let lodestep = Runtime::builder(Arc::new(store)).build();
        for _ in 0..100 {
            let start = Start {
                definition: agent(Class::Read, 1),
                inputs: json!({}),
                id: None,
                labels: Default::default(),
                join_unfinished: false,
            };
            lodestep.start(start).await.expect("started");
        }
    });
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let started = Instant::now();
            let mut child = Command::new(program)
                .arg("--store")
                .arg(store)
                .arg("ls")
                .stdout(Stdio::piped())
                .spawn()
                .expect("started");
            let mut byte = [0];
            child.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("a byte");
            let time = started.elapsed().as_secs_f64() * 1e3;
            child.wait().expect("ended");
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The peak of resident memory of the research example over 200 documents, in MiB.
fn peak_mib(program: &Path, folder: &Path) -> f64 {
    let documents = folder.join("documents");
    std::fs::create_dir_all(&documents).expect("a folder");
    for number in 0..200 {
        std::fs::write(documents.join(format!("doc-{number:03}.md")), document(number)).expect("written");
    }
    let mut child = Command::new(program)
        .arg("--store")
        .arg(folder.join("store.db"))
        .args(["run", "examples/research/agent.toml", "-i", "topic=how a worker takes over a run"])
        .arg("-i")
        .arg(format!("folder={}", documents.display()))
        .arg("-i")
        .arg(format!("out={}", folder.join("out").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    while child.try_wait().expect("asked").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<f64>().ok());
        peak = peak.max(kib.unwrap_or(0.0) / 1024.0);
        std::thread::yield_now();
    }
    peak
}

fn document(number: u32) -> String {
    let mut text = format!("# Document {number}\n\n");
    for paragraph in 0..40 {
        let _ = writeln!(
            text,
            "Paragraph {paragraph} of document {number} says that worker {} takes over run {} after its lease has ended.\nIt reads \
             the checkpoint and goes on with step {}.\n",
            number % 7,
            number * 40 + paragraph,
            paragraph + 1
        );
    }
    text
}
