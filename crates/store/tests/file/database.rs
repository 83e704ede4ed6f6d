//! What only a store in a file can get wrong: the file itself, its permissions, its log.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::script::{Run, runtime, start};
use lodestep_core::Error;
use lodestep_store::{Filter, SqliteStore, Store, SystemClock, Want};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    (folder, path)
}

fn open(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(path, Arc::new(SystemClock))
}

fn refusal(path: &Path) -> Error {
    match open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

/// A store with a few runs, closed.
fn filled(path: &Path) {
    let store: Arc<dyn Store> = Arc::new(open(path).expect("opened"));
    runtime().block_on(async {
        for place in 0..50 {
            start(&*store, &format!("run-{place}")).await;
        }
    });
}

#[test]
fn a_newer_format_is_refused_with_both_versions() {
    let (_folder, path) = folder();
    filled(&path);
    Connection::open(&path).expect("opened").pragma_update(None, "user_version", 99).expect("set");
    let error = refusal(&path);
    assert_eq!(error.code(), "store.newer_format");
    assert!(error.what().contains("99") && error.what().contains("up to 6"), "{error}");
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let (folder, path) = folder();
    let foreign = folder.path().join("foreign.db");
    Connection::open(&foreign).expect("opened").execute_batch("CREATE TABLE other (x)").expect("made");
    let foreign = fs::read(foreign).expect("read");
    let text = b"not a database, but long enough to have a header of a hundred bytes: ".repeat(3);
    for content in [b"short".to_vec(), text, vec![0; 4096], foreign] {
        fs::write(&path, &content).expect("written");
        assert_eq!(refusal(&path).code(), "store.corrupt");
        assert!(fs::read(&path).expect("read").starts_with(&content[..5]), "it was changed");
    }
    assert_eq!(refusal(folder.path()).code(), "store.unavailable");
}

#[test]
fn a_file_that_was_cut_off_is_refused() {
    let (_folder, path) = folder();
    filled(&path);
    let whole = fs::metadata(&path).expect("there").len();
    for length in [whole - 1, whole / 2, 4096, 100, 50] {
        OpenOptions::new().write(true).open(&path).expect("opened").set_len(length).expect("cut");
        assert_eq!(refusal(&path).code(), "store.corrupt", "{length} of {whole} bytes");
    }
}

#[test]
fn a_damaged_page_is_an_error_and_never_an_empty_list() {
    let (_folder, path) = folder();
    filled(&path);
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
    for page in 1..file.metadata().expect("there").len() / 4096 {
        file.write_all_at(&[0x5a; 4096], page * 4096).expect("damaged");
    }
    let code = match open(&path) {
        Err(error) => error.code(),
        Ok(store) => runtime().block_on(store.list("default", &Filter::default())).expect_err("damaged").code(),
    };
    assert_eq!(code, "store.corrupt");
}

/// Where in the file the root page of a table or an index begins.
fn root_of(path: &Path, name: &str) -> u64 {
    let db = Connection::open(path).expect("opened");
    let root: i64 = db
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?", [name], |row| row.get(0))
        .expect("it is in the schema");
    (root as u64 - 1) * 4096
}

fn integrity(path: &Path) -> Vec<String> {
    runtime().block_on(open(path).expect("opened").integrity()).expect("checked")
}

#[test]
fn a_sound_file_has_no_faults_and_each_damaged_page_is_named() {
    let (_folder, path) = folder();
    filled(&path);
    assert_eq!(integrity(&path), [""; 0]);
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
    let (journal, pages) = (root_of(&path, "journal"), file.metadata().expect("there").len() / 4096);
    let mut refused = 0;
    for at in (1..pages).map(|page| page * 4096) {
        let mut sound = [0; 512];
        file.read_exact_at(&mut sound, at).expect("read");
        file.write_all_at(&[0x5a; 512], at).expect("damaged");
        let opened = open(&path);
        if let Err(error) = opened {
            // The pages that the schema needs beyond the first: without it no table is known.
            assert_eq!(error.code(), "store.corrupt", "at {at}");
            refused += 1;
            file.write_all_at(&sound, at).expect("mended");
            continue;
        }
        drop(opened);
        let faults = integrity(&path);
        assert!(!faults.is_empty() && faults.len() <= 20, "at {at}: {faults:?}");
        assert!(faults.iter().any(|fault| fault.starts_with("table ") || fault.starts_with("index ")), "{faults:?}");
        assert!(at != journal || faults.iter().any(|fault| fault.starts_with("table journal ")), "{faults:?}");
        file.write_all_at(&sound, at).expect("mended");
    }
    assert!(refused <= 3, "{refused} pages keep the store from being looked at");
    assert_eq!(integrity(&path), [""; 0]);
}

#[test]
fn a_run_that_its_index_has_lost_is_a_fault() {
    let (_folder, path) = folder();
    filled(&path);
    let last = root_of(&path, "head_due") + 4095;
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, last).expect("read");
    // The number of the run in the index's first row: the page is well-formed, and says something else than the table.
    file.write_all_at(&[byte[0] ^ 0x40], last).expect("damaged");
    let faults = integrity(&path);
    assert!(faults.iter().any(|fault| fault.contains("missing from index head_due")), "{faults:?}");
}

#[test]
fn a_link_to_a_store_is_the_same_store() {
    let (folder, path) = folder();
    let direct: Arc<dyn Store> = Arc::new(open(&path).expect("opened"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    let linked = open(&link).expect("opened");
    assert_eq!(linked.path(), fs::canonicalize(&path).expect("there"));
    assert!(!folder.path().join("link-files").exists());
    runtime().block_on(async {
        let held = Run::begin(&direct, "one").await;
        let other = linked.enlist().await.expect("enlisted");
        // The holder's lock is looked for in the one folder, and found.
        assert_eq!(linked.claim(&other, Want::Due(1)).await.expect("claimed").len(), 0);
        assert_eq!(linked.load(&held.key).await.expect("loaded").row.holder.as_ref(), Some(&held.worker));
    });
}

#[test]
fn its_files_are_their_owner_s_only() {
    let (_folder, path) = folder();
    let store = open(&path).expect("opened");
    runtime().block_on(store.put_value(vec![7; 100_000])).expect("put");
    let worker = runtime().block_on(store.enlist()).expect("enlisted");
    let files = PathBuf::from(format!("{}-files", path.display()));
    let lock = files.join(format!("workers/{}.lock", worker.0));
    let shown = |name: &str| path.with_file_name(format!("store.db{name}"));
    for (file, mode) in [
        (path.clone(), 0o600),
        (shown("-wal"), 0o600),
        (shown("-shm"), 0o600),
        (files.clone(), 0o700),
        (files.join("values"), 0o700),
        (lock, 0o600),
    ] {
        let found = fs::metadata(&file).expect("there").permissions().mode() & 0o777;
        assert_eq!(found, mode, "{} has {found:o}", file.display());
    }
}

#[test]
fn a_retired_worker_leaves_no_file_behind() {
    let (_folder, path) = folder();
    let store = open(&path).expect("opened");
    runtime().block_on(async {
        let worker = store.enlist().await.expect("enlisted");
        let tools = store.tools_lock(&worker).expect("a file");
        File::create(&tools).expect("made");
        store.retire(&worker).await.expect("retired");
        let left = fs::read_dir(tools.parent().expect("a folder")).expect("read").count();
        assert_eq!(left, 0);
    });
}

#[test]
fn a_claim_names_the_tools_of_the_worker_that_died() {
    let (_folder, path) = folder();
    let store: Arc<SqliteStore> = Arc::new(open(&path).expect("opened"));
    let as_store: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
    runtime().block_on(async {
        let mut dead = Run::begin(&as_store, "one").await;
        dead.step("what it did").await;
        let tools = store.tools_lock(&dead.worker).expect("a file");
        let holder = File::create(&tools).expect("made");
        flock(&holder, FlockOperation::LockShared).expect("locked");
        store.kill(&dead.worker);
        // The heir dies before it does anything: the tools in question are still the first one's.
        let heir = store.enlist().await.expect("enlisted");
        let claims = store.claim(&heir, Want::Due(1)).await.expect("claimed");
        assert_eq!(claims[0].left_tools.as_ref(), Some(&tools));
        store.kill(&heir);
        let next = store.enlist().await.expect("enlisted");
        let claims = store.claim(&next, Want::Due(1)).await.expect("claimed");
        assert_eq!(claims[0].left_tools.as_ref(), Some(&tools));
        // Once it has done something, they are no longer asked for.
        let mut next = Run::of(&as_store, &next, &claims[0]).await;
        next.step("what it did").await;
        store.kill(&next.worker);
        let last = store.enlist().await.expect("enlisted");
        let claims = store.claim(&last, Want::Due(1)).await.expect("claimed");
        assert_eq!(claims[0].left_tools, None);
        // The file stays while it is held, and is swept afterwards.
        assert!(tools.exists());
        drop(holder);
        store.enlist().await.expect("enlisted");
        assert!(!tools.exists());
    });
}

#[test]
fn an_idle_claim_writes_nothing() {
    let (_folder, path) = folder();
    let store: Arc<dyn Store> = Arc::new(open(&path).expect("opened"));
    runtime().block_on(async {
        let held = Run::begin(&store, "one").await;
        let eye = Connection::open(&path).expect("opened");
        let version = || eye.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).expect("read");
        let before = version();
        for want in [Want::Due(9), Want::Run((*held.key).clone())] {
            assert_eq!(store.claim(&held.worker, want).await.expect("claimed").len(), 0);
        }
        assert_eq!(version(), before);
        // It does not even ask for the right to write.
        eye.execute_batch("BEGIN IMMEDIATE").expect("begun");
        assert_eq!(store.claim(&held.worker, Want::Due(9)).await.expect("claimed").len(), 0);
        eye.execute_batch("ROLLBACK").expect("ended");
        store.renew(&held.worker).await.expect("renewed");
        assert_ne!(version(), before, "the eye sees nothing");
    });
}

#[test]
fn the_witness_sees_what_was_committed_when_a_lease_is_renewed() {
    let (_folder, path) = folder();
    let store: Arc<dyn Store> = Arc::new(open(&path).expect("opened"));
    let witness = PathBuf::from(format!("{}-files/witness", path.display()));
    runtime().block_on(async {
        let mut held = Run::begin(&store, "one").await;
        store.renew(&held.worker).await.expect("renewed");
        let before = fs::read(&witness).expect("there is one");
        held.step("one step").await;
        assert_eq!(fs::read(&witness).expect("there"), before, "a commit pays for it");
        store.renew(&held.worker).await.expect("renewed");
        assert_ne!(fs::read(&witness).expect("there"), before, "it saw nothing");
    });
    let mode = fs::metadata(&witness).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn the_log_stays_short_over_twenty_thousand_commits() {
    const RUNS: usize = 40;
    const STEPS: usize = 500;
    // The cap, what one transaction adds to it, and the header.
    const MOST_BYTES: u64 = (4_000 + 300) * (4_096 + 24) + 32;
    let (_folder, path) = folder();
    let store: Arc<dyn Store> = Arc::new(open(&path).expect("opened"));
    let log = path.with_file_name("store.db-wal");
    runtime().block_on(async {
        let mut runs = Vec::new();
        for place in 0..RUNS {
            runs.push(Run::begin(&store, &format!("run-{place}")).await);
        }
        let mut longest = 0;
        for step in 0..STEPS {
            let batch: Vec<_> =
                runs.iter().map(|run| run.sealed(&format!("step {step} {}", "x".repeat(200)))).collect();
            let after: Vec<_> = batch.iter().map(|commit| commit.transition.checkpoint.clone()).collect();
            assert!(store.commit(batch).await.iter().all(Result::is_ok));
            runs.iter_mut().zip(after).for_each(|(run, after)| run.checkpoint = after);
            longest = longest.max(fs::metadata(&log).expect("there").len());
        }
        assert!(longest <= MOST_BYTES, "the log grew to {longest} bytes");
    });
}
