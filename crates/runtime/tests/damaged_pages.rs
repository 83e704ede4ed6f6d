//! One page of a store's file is not what it was, whichever page and however: what was done is not done again, no run goes
//! on from an older state, and whatever does not go on says so.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestep::core::effect::Class;
use lodestep::core::rules::inbox::Word;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Digest, RunKey};
use lodestep::observe::Silent;
use lodestep::store::garbage::Mode;
use lodestep::store::{Hold, SqliteStore, Started, Store};
use lodestep::tools::{Functions, ToolError};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::json;
use support::*;
use tempfile::TempDir;

const PAGE: usize = 4_096;

/// The runs; half as many more are removed, which leaves free pages.
const RUNS: usize = 4;

/// How often each payment of each run was made.
type Paid = Arc<Mutex<BTreeMap<(String, String), u32>>>;

/// What a page is, by its first byte or by who names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Header,
    TableInterior,
    TableLeaf,
    IndexLeaf,
    /// An overflow page, a free one, or an index's interior.
    Other,
}

/// What is done to a page.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// One bit, somewhere.
    Bit,
    /// A byte of each hundred.
    Bytes,
    Zeroed,
    /// A write of another page that went astray.
    Another,
}

/// A store at rest whose runs have each paid once and wait for the approval of another payment.
struct Kept {
    folder: TempDir,
    bytes: Vec<u8>,
    witness: Vec<u8>,
    requests: Vec<(RunKey, Digest, u64)>,
}

fn program(path: &Path, paid: &Paid) -> Result<Runtime, lodestep::core::Error> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, still_clock())?);
    let mut functions = Functions::default();
    for name in ["pay", "charge"] {
        let paid = paid.clone();
        functions.add(name, move |call| {
            *paid.lock().expect("sound").entry((call.run.clone(), name.to_owned())).or_default() += 1;
            // Long, and of little that repeats: it takes pages of its own.
            let result: String =
                (0..700).map(|n| Digest::of(format!("{} {n}", call.run).as_bytes()).to_hex()).collect();
            std::future::ready(Ok::<_, ToolError>(result.into_bytes()))
        });
    }
    let replies = json!([
        says(&[("pay", json!({"n": 1}))]),
        says(&[("charge", json!({"n": 2}))]),
        says(&[("finish", json!({"summary": "done"}))]),
    ]);
    // Ids and times of its own: the same bytes stand in the same places each time.
    Ok(over(store, still_clock(), functions, script(replies)))
}

impl Kept {
    async fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let path = folder.path().join("store.db");
        let paid = Paid::default();
        let runtime = program(&path, &paid).expect("opened");
        let mut runs = Vec::new();
        for number in 0..RUNS + RUNS / 2 {
            let tools = vec![tool("pay", Class::Unsafe), tool("charge", Class::Unsafe)];
            let start = Start {
                definition: agent(tools, &["charge"]),
                inputs: json!({ "number": number }),
                id: None,
                labels: [("number".to_owned(), number.to_string())].into(),
                join_unfinished: false,
            };
            let Started::New(run) = runtime.start(start).await.expect("started") else { panic!("it was there before") };
            runs.push(run);
        }
        runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
        for run in runs.split_off(RUNS) {
            runtime.send(&run.key, "ada", Word::Cancel { reason: "enough".to_owned() }).await.expect("sent");
            runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
            runtime.store().remove(&[run], Mode::Apply).await.expect("removed");
        }
        let open = runtime.store().open_requests("default", 100).await.expect("listed");
        let mut requests = Vec::new();
        for request in open {
            let seq = runtime.store().load(&request.run.key).await.expect("loaded").row.seq;
            requests.push((RunKey::clone(&request.run.key), request.name, seq));
        }
        assert_eq!((requests.len(), paid.lock().expect("sound").len()), (RUNS, RUNS + RUNS / 2));
        drop(runtime);
        let read = |name: &str| fs::read(folder.path().join(name)).expect("read");
        let (bytes, witness) = (read("store.db"), read("store.db-files/witness"));
        let db = rusqlite::Connection::open(&path).expect("opened");
        let free: i64 = db.query_row("PRAGMA freelist_count", [], |row| row.get(0)).expect("counted");
        assert!(free > 2, "{free} free pages");
        Self { folder, bytes, witness, requests }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn pages(&self) -> usize {
        self.bytes.len() / PAGE
    }

    fn kind(&self, page: usize) -> Kind {
        match self.bytes[page * PAGE] {
            _ if page == 0 => Kind::Header,
            5 => Kind::TableInterior,
            10 => Kind::IndexLeaf,
            13 => Kind::TableLeaf,
            _ => Kind::Other,
        }
    }

    /// The store with one page damaged.
    fn damage(&self, page: usize, damage: Damage, random: &mut fastrand::Rng) {
        let mut bytes = self.bytes.clone();
        let at = page * PAGE;
        match damage {
            Damage::Bit => bytes[at + random.usize(0..PAGE)] ^= 1 << random.u32(0..8),
            Damage::Bytes => (0..PAGE / 100).for_each(|_| bytes[at + random.usize(0..PAGE)] = random.u8(..)),
            Damage::Zeroed => bytes[at..at + PAGE].fill(0),
            Damage::Another => {
                let other = random.usize(0..self.pages()) * PAGE;
                bytes.copy_within(other..other + PAGE, at);
            }
        }
        for name in ["store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(self.folder.path().join(name));
        }
        fs::write(self.path(), bytes).expect("written");
        fs::write(self.folder.path().join("store.db-files/witness"), &self.witness).expect("written");
    }
}

/// Is it one of the ways in which damage is told?
fn is_told(error: &lodestep::core::Error) -> bool {
    let damage = ["store.corrupt", "store.undecodable", "store.value_damaged", "store.newer_format", "run.not_found"];
    damage.contains(&error.code())
}

/// Does the full check find something?
async fn is_damage_named(runtime: &Runtime) -> bool {
    runtime.store().integrity().await.map_or_else(|error| is_told(&error), |faults| !faults.is_empty())
}

/// What came of a damaged store, by what was told: how many runs went on, and how many did not.
#[derive(Debug, Default)]
struct Seen {
    refused: u32,
    whole: u32,
    partly: u32,
}

/// As [`go_on`], by a program of which nothing is left afterwards.
fn go_on_once(kept: &Kept, seen: &mut Seen) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(go_on(kept, seen))
}

/// Opens the store, approves what waits and works. What is wrong, if anything.
async fn go_on(kept: &Kept, seen: &mut Seen) -> Result<(), String> {
    let paid = Paid::default();
    let runtime = match program(&kept.path(), &paid) {
        Ok(runtime) => runtime,
        Err(error) if is_told(&error) => {
            seen.refused += 1;
            return Ok(());
        }
        Err(error) => return Err(format!("it is refused as {error}")),
    };
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    for (run, request, _) in &kept.requests {
        match runtime.send(run, "ada", Word::Approve { request: *request }).await {
            Err(error) if is_told(&error) => drop(told.insert(run.run.to_string(), error.to_string())),
            Err(error) => return Err(format!("a word is refused as {error}")),
            Ok(_) => {}
        }
    }
    let (silent, never) = (Arc::new(Silent), Shutdown::default());
    let working = runtime.work_until_idle(silent, &never);
    let worked = tokio::time::timeout(Duration::from_secs(20), working).await.map_err(|_| "it never comes to rest")?;
    if let Err(error) = &worked
        && !is_told(error)
    {
        return Err(format!("work ends with {error}"));
    }
    let mut completed = 0;
    for (run, _, before) in &kept.requests {
        let id = run.run.to_string();
        let times = |tool: &str| paid.lock().expect("sound").get(&(id.clone(), tool.to_owned())).copied().unwrap_or(0);
        if times("pay") > 0 || times("charge") > 1 {
            return Err(format!("run {id} paid again: {} and {} times", times("pay"), times("charge")));
        }
        match runtime.store().load(run).await {
            Ok(loaded) if loaded.row.hold.is_some_and(|hold| hold == Hold::Undecodable) => {}
            Ok(loaded) => match loaded.checkpoint() {
                Ok(state) if state.seq < *before => return Err(format!("run {id} is at {}, not {before}", state.seq)),
                Ok(state) if standing(&state).status == Status::Completed => completed += 1,
                Ok(_) if worked.is_err() || told.contains_key(&id) => {}
                Ok(state) if matches!(standing(&state).status, Status::Quarantined | Status::Stopped) => {}
                // Its commits fail, or its effect can't be compared with others: the full check says of what.
                Ok(state) if !state.errors.is_empty() || is_damage_named(&runtime).await => {}
                Ok(state) => return Err(format!("run {id} is {:?}, and nothing says why", standing(&state))),
                Err(error) if is_told(&error) => {}
                Err(error) => return Err(format!("run {id}: {error}")),
            },
            Err(error) if is_told(&error) => {}
            Err(error) => return Err(format!("run {id}: {error}")),
        }
    }
    if completed == kept.requests.len() {
        seen.whole += 1
    } else {
        seen.partly += 1
    }
    Ok(())
}

#[test]
fn sql_03_a_damaged_page_of_whatever_kind_lets_nothing_be_done_again() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let kept = runtime.block_on(Kept::new());
    let mut random = fastrand::Rng::with_seed(3);
    let mut kinds: BTreeMap<Kind, Seen> = BTreeMap::new();
    let mut wrong = Vec::new();
    for page in 0..kept.pages() {
        for damage in [Damage::Bit, Damage::Bytes, Damage::Zeroed, Damage::Another] {
            kept.damage(page, damage, &mut random);
            let seen = kinds.entry(kept.kind(page)).or_default();
            if let Err(fault) = go_on_once(&kept, seen) {
                wrong.push(format!("page {page}, {:?}, {damage:?}: {fault}", kept.kind(page)));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    for kind in [Kind::Header, Kind::TableInterior, Kind::TableLeaf, Kind::IndexLeaf, Kind::Other] {
        assert!(kinds.contains_key(&kind), "there is no page of the kind {kind:?}");
    }
    let all = |of: fn(&Seen) -> u32| kinds.values().map(of).sum::<u32>();
    assert!(all(|seen| seen.refused) > 0 && all(|seen| seen.partly) > 0 && all(|seen| seen.whole) > 0);
}
