//! How long the write-ahead log of a store gets, whoever reads beside the writer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lodestep_core::Digest;
use lodestep_store::{SqliteStore, Store, SystemClock};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::script::{Run, runtime};

/// What a log is shorter than after any load: it is restarted at 16 MiB, or a little later when somebody reads just then.
const SHORT: u64 = 32 << 20;

/// Bytes of a commit's text that nothing makes smaller. As text they are half as many again, and so are those of the log.
const COMMIT: u64 = 40_000;

/// Commits that would make a log of twice what is allowed, if it only grew.
const LOAD: u64 = 2 * SHORT / (COMMIT * 3 / 2);

/// A store looks each second whether it can shorten its log; on a busy machine that takes longer.
const LONG_ENOUGH: Duration = Duration::from_secs(30);

fn place() -> (TempDir, PathBuf, Arc<dyn Store>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Arc::new(SqliteStore::open(&path, Arc::new(SystemClock)).expect("opened"));
    (folder, path, store)
}

fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(path.with_file_name("store.db-wal")).map_or(0, |log| log.len())
}

/// So many commits, each of another text.
async fn load(run: &mut Run, commits: u64) {
    for _ in 0..commits {
        let seq = run.checkpoint.seq;
        let noise = (0..COMMIT / 32).flat_map(|part| *Digest::of(format!("{seq} {part}").as_bytes()).as_bytes());
        let text: String = noise.map(char::from).collect();
        run.step(&text).await;
    }
}

/// The run is what its commits made of it.
async fn is_whole(store: &Arc<dyn Store>, run: &Run) {
    let loaded = store.load(&run.key).await.expect("loaded");
    assert_eq!(loaded.checkpoint().expect("sound"), run.checkpoint);
}

#[test]
fn scl_01_the_log_stays_short_under_a_load_beside_a_store_that_is_read_all_the_while() {
    let (_folder, path, store) = place();
    let reading = SqliteStore::open(&path, Arc::new(SystemClock)).expect("opened");
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    runtime().block_on(async {
        let mut run = Run::begin(&store, "one").await;
        let key = (*run.key).clone();
        let reader = std::thread::spawn(move || {
            let mut reads = 0;
            while !ended.load(Ordering::Acquire) {
                runtime().block_on(reading.load(&key)).expect("loaded");
                reads += 1;
            }
            reads
        });
        let mut longest = 0;
        for _ in 0..LOAD / 50 {
            load(&mut run, 50).await;
            longest = longest.max(log_bytes(&path));
        }
        is_over.store(true, Ordering::Release);
        let reads = reader.join().expect("sound");
        assert!(reads > 10, "it was read {reads} times");
        assert!(longest < SHORT, "the log had {longest} bytes");
        is_whole(&store, &run).await;
    });
}

/// Loads the store while another program reads one state of it, which it gives back then; how long the log is.
async fn load_beside_one_state(path: &Path, run: &mut Run) -> u64 {
    let other = Connection::open(path).expect("opened");
    let read = || other.query_row("SELECT count(*) FROM journal", [], |row| row.get::<_, i64>(0)).expect("read");
    other.execute_batch("BEGIN").expect("begun");
    let before = read();
    // No page of the log may be written over: it grows by what is committed, and every commit goes through.
    load(run, LOAD).await;
    let long = log_bytes(path);
    assert!(long > SHORT && long < 4 * SHORT, "the log has {long} bytes");
    assert_eq!(read(), before, "it reads one state");
    long
}

#[test]
fn scl_01_a_log_that_a_reader_kept_long_is_cut_by_the_commits_after_it() {
    let (_folder, path, store) = place();
    runtime().block_on(async {
        let mut run = Run::begin(&store, "one").await;
        let long = load_beside_one_state(&path, &mut run).await;
        load(&mut run, LOAD / 4).await;
        let short = log_bytes(&path);
        assert!(short < SHORT, "the log has {short} bytes, {long} before");
        is_whole(&store, &run).await;
    });
}

#[test]
fn scl_01_a_log_that_a_reader_kept_long_is_cut_though_nothing_is_written_any_more() {
    let (_folder, path, store) = place();
    runtime().block_on(async {
        let mut run = Run::begin(&store, "one").await;
        load_beside_one_state(&path, &mut run).await;
        let long = Instant::now() + LONG_ENOUGH;
        while log_bytes(&path) >= SHORT {
            assert!(Instant::now() < long, "the log has {} bytes for ever", log_bytes(&path));
            std::thread::yield_now();
        }
        is_whole(&store, &run).await;
    });
}
