//! A value that is swept between its put and the commit that names it: the commit is refused, the value made anew.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lodestep::core::Timestamp;
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::inspect;
use lodestep::store::{Clock, SqliteStore, Store};
use lodestep::tools::{Functions, ToolError};
use serde_json::json;
use support::*;

/// The test's time. The store asks for it within the transaction of a commit, before it looks at anything: files that go
/// then are what a sweep takes while the worker stands still between the put and the commit.
struct Sweeping {
    time: Arc<TestTime>,
    values: PathBuf,
    /// How often yet.
    left: AtomicU32,
}

impl Clock for Sweeping {
    fn wall(&self) -> Timestamp {
        // Whole values alone: a draft that is being written beside one is no sweep's to take.
        let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_whole = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 64);
        let values: Vec<_> = below(&self.values).flat_map(|folder| below(&folder)).filter(is_whole).collect();
        let sweeps = |left: u32| left.checked_sub(u32::from(!values.is_empty()));
        if !values.is_empty() && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, sweeps).is_ok() {
            values.iter().for_each(|value| std::fs::remove_file(value).expect("swept"));
        }
        self.time.wall()
    }

    fn boot_us(&self) -> u64 {
        self.time.boot_us()
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_was_swept_before_its_commit_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, values) = (folder.path().join("store.db"), folder.path().join("store.db-files/values"));
    let clock = Arc::new(Sweeping { time: test_time(), values, left: AtomicU32::new(1) });
    let store = Arc::new(SqliteStore::open(&path, clock.clone()).expect("opened"));
    let read = Arc::new(AtomicU32::new(0));
    let counted = read.clone();
    let mut functions = Functions::default();
    functions.add("look", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, ToolError>(b"0123456789".repeat(10_000)) }
    });
    let model = script(json!([says(&[("look", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let runtime = over(store.clone(), clock.clone(), functions, model);
    let run = start(&runtime, agent(vec![tool("look", Class::Read)], &[])).await;
    let mut state = settle(&runtime, &run).await;
    while standing(&state).status == Status::Ready {
        // The claim was given back for a moment.
        tokio::time::advance(Duration::from_secs(2)).await;
        state = settle(&runtime, &run).await;
    }
    assert_eq!(clock.left.load(Ordering::SeqCst), 0, "nothing was swept");
    assert_eq!(standing(&state).status, Status::Completed);
    assert_eq!(read.load(Ordering::SeqCst), 2, "what was swept was not made anew");
    let row = store.find("default", run.run.as_str(), 1).await.expect("found").remove(0);
    assert_eq!((inspect::verify(store.as_ref(), &row.run).await.expect("verified").faults, row.crashes), (vec![], 0));
}
