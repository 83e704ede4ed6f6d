//! The power goes while runs are under way: what was acknowledged is there, and each effect has its intent.
//!
//! What a real process does to its files is written down by a library that is preloaded into it. The disk is then built
//! again as it could be at some moment of that, without what was not synced or with any part of it, and opened.
#![cfg(target_os = "linux")]

mod power;
mod support;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use lodestep::core::RunKey;
use lodestep::inspect::verify;
use lodestep::store::{SqliteStore, Store, SystemClock};
use power::{Act, Disk, acts};
use serde_json::json;
use support::*;

/// How often the power goes.
const CUTS: usize = 500;

/// Processes one after the other, each with a run of its own.
const RUNS: usize = 4;

/// Builds the library that writes down.
fn recorder(world: &World) -> PathBuf {
    let source = root().join("crates/cli/tests/power/record.c");
    let library = world.path().join("record.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(command.status().expect("a C compiler").success());
    library
}

/// What several processes did below the folder of their store, and what they and their tools said in between: a line
/// `effect RUN KEY` for each effect, before it is done; a line `begins RUN`, and the process's own.
fn recorded() -> Vec<Act> {
    let world = World::new();
    let library = recorder(&world);
    let (folder, log) = (world.path().join("s"), world.path().join("log"));
    std::fs::create_dir(&folder).expect("made");
    let says = "echo \"effect $LODESTEP_RUN $LODESTEP_IDEMPOTENCY_KEY\" >> log\n";
    world.write("pay.sh", &format!("{says}echo paid\n"));
    // Of another text in each run: a file of its own.
    world.write("look.sh", "echo \"$LODESTEP_RUN\"; seq 1 20000\n");
    let tool = |name, class| {
        format!(
            "[tools.{name}]\ndescription = \"Do it.\"\ncommand = [\"sh\", \"{name}.sh\"]\nclass = \"{class}\"\n\
             input = {{ type = \"object\", properties = {{ n = {{ type = \"integer\" }} }} }}\n"
        )
    };
    let policy = "[[policy]]\ntools = [\"*\"]\ndecide = \"allow\"\n";
    let call = |name: &str, n: u32| json!({ "name": name, "arguments": { "n": n } });
    let replies = json!([
        { "calls": [call("pay", 1), call("look", 1)] },
        { "calls": [call("pay", 2)] },
        { "calls": [call("pay", 3), call("pay", 4)] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(&[&tool("pay", "unsafe"), &tool("look", "read"), policy].concat(), &replies);
    for number in 0..RUNS {
        let append = || OpenOptions::new().create(true).append(true).open(&log).expect("opened");
        std::io::Write::write_all(&mut append(), format!("begins run-{number}\n").as_bytes()).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lodestep"));
        command.current_dir(world.path()).arg("--store").arg(folder.join("store.db"));
        command.args(["run", "--id", &format!("run-{number}")]).arg(&agent);
        command.env("RECORD_ROOT", &folder).env("RECORD_LOG", &log).env("LD_PRELOAD", &library);
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(append()).status().expect("ran");
        assert!(ended.success());
    }
    acts(&std::fs::read_to_string(&log).expect("read"), &folder)
}

/// What was acknowledged up to a moment: the transitions of each run, and the keys of the effects that were begun.
#[derive(Clone, Default)]
struct Acknowledged {
    now: String,
    steps: BTreeMap<String, u64>,
    effects: Vec<(String, String)>,
}

impl Acknowledged {
    fn hear(&mut self, said: &str) {
        let words: Vec<&str> = said.split_whitespace().collect();
        match words[..] {
            ["begins", run] => self.now = run.to_owned(),
            ["effect", run, key] => self.effects.push((run.to_owned(), key.to_owned())),
            ["run", run, "started"] if run == self.now => drop(self.steps.insert(run.to_owned(), 1)),
            ["step", step, ..] => drop(self.steps.insert(self.now.clone(), step.parse().expect("a number"))),
            _ => {}
        }
    }
}

/// What is wrong with a store after a power loss.
async fn faults(path: &Path, wanted: &Acknowledged) -> Vec<String> {
    let store = match SqliteStore::open(path, Arc::new(SystemClock)) {
        Ok(store) => store,
        // Nobody was told of a run in it.
        Err(_) if wanted.steps.is_empty() && wanted.effects.is_empty() => return Vec::new(),
        Err(error) => return vec![format!("it can't be opened: {error}")],
    };
    let mut faults = store.integrity().await.expect("checked");
    for row in store.list("default", &Default::default()).await.expect("listed") {
        faults.extend(row.hold.map(|hold| format!("run {} is held: {hold:?}", row.run.key.run)));
        faults.extend(verify(&store, &row.run).await.expect("verified").faults);
    }
    for (run, step) in &wanted.steps {
        match store.load(&key(run)).await {
            Ok(loaded) if loaded.row.seq >= *step => {}
            Ok(loaded) => faults.push(format!("run {run} is at {}, and {step} was acknowledged", loaded.row.seq)),
            Err(error) => faults.push(format!("run {run}: {error}")),
        }
    }
    for (run, wanted) in &wanted.effects {
        let Ok(state) = store.load(&key(run)).await.and_then(|loaded| loaded.checkpoint()) else { continue };
        let pending = state.pending.values().filter_map(|action| action.key.as_ref());
        let settled = state.recent.iter().filter_map(|action| action.key.as_ref());
        if !pending.chain(settled).any(|key| key == wanted) {
            faults.push(format!("run {run}: the effect {wanted} has no intent"));
        }
    }
    faults
}

fn key(run: &str) -> RunKey {
    RunKey::new(lodestep::core::RunId::parse(run).expect("an id"))
}

#[test]
fn sql_06_what_was_acknowledged_survives_a_power_loss_at_any_moment() {
    let acts = recorded();
    let done = acts.iter().filter(|act| !matches!(act, Act::Said(_))).count();
    assert!(done > 500, "only {done} acts were recorded");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut random = fastrand::Rng::with_seed(6);
    let (mut wrong, mut told) = (Vec::new(), 0);
    for cut in 0..CUTS {
        let at = random.usize(0..=acts.len());
        let (mut disk, mut acknowledged) = (Disk::default(), Acknowledged::default());
        for act in &acts[..at] {
            disk.take(act);
            if let Act::Said(said) = act {
                acknowledged.hear(said);
            }
        }
        // In memory where that is possible: what is opened here has lost its power before.
        let left = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        disk.leave(left.path(), |bound| random.usize(0..bound));
        told += usize::from(!acknowledged.effects.is_empty());
        let found = runtime.block_on(faults(&left.path().join("store.db"), &acknowledged));
        wrong.extend(found.into_iter().map(|fault| format!("cut {cut}, after {at} of {}: {fault}", acts.len())));
    }
    assert_eq!(wrong, [""; 0]);
    assert!(told > CUTS / 2, "only {told} cuts had an effect before them");
}
