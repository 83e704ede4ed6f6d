//! What is swept and removed of a store in a file: the files, the file's own room, the witness.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::script::{Run, runtime, start};
use lodestep_core::{Digest, INLINE_VALUE_BYTES, Stored, Timestamp, ValueRef};
use lodestep_store::garbage::{Mode, Removal, SWEEP_AFTER_MS};
use lodestep_store::{Clock, Hold, RunRef, SettableClock, SqliteStore, Store};
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// A place for a store, and its clock.
struct Place {
    folder: TempDir,
    clock: Arc<SettableClock>,
}

impl Place {
    fn new() -> Self {
        Self::at(1_796_000_000_000_000)
    }

    fn at(micros: i64) -> Self {
        let clock = Arc::new(SettableClock::at(Timestamp::from_micros(micros)));
        Self { folder: tempfile::tempdir().expect("a folder"), clock }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join("store.db-files")
    }

    /// A handle, as another process would have it.
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.path(), Arc::clone(&self.clock) as Arc<dyn Clock>).expect("opened"))
    }

    /// The bytes of the database and its log.
    fn size(&self) -> u64 {
        ["store.db", "store.db-wal"]
            .map(|name| fs::metadata(self.folder.path().join(name)).map_or(0, |it| it.len()))
            .iter()
            .sum()
    }
}

fn large(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(INLINE_VALUE_BYTES / 8 + 1)
}

async fn remove(store: &Arc<dyn Store>, run: &RunRef) {
    let removal = store.remove(std::slice::from_ref(run), Mode::Apply).await.expect("removed");
    assert!(matches!(removal, Removal::Removed(_)), "{removal:?}");
}

#[test]
fn no_value_is_gone_that_a_transition_names_however_puts_commits_and_sweeps_fall() {
    const STEPS: u64 = 80;
    // Long ago: however many days go by, no draft of this very process looks like one of a dead one.
    let place = Place::at(0);
    let (store, sweeper) = (place.open(), place.open());
    let (clock, is_over) = (Arc::clone(&place.clock), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&is_over);
    // Each pass comes a day after the one before: a value may be swept at any moment between its put and its commit.
    let sweeping = std::thread::spawn(move || {
        let mut swept = 0;
        while !ended.load(Ordering::Acquire) {
            clock.advance_ms(SWEEP_AFTER_MS);
            swept += runtime().block_on(sweeper.sweep(Mode::Apply)).expect("swept").swept.count;
        }
        swept
    });
    let (mut named, mut refused) = (Vec::new(), 0);
    runtime().block_on(async {
        let mut run = Run::begin(&store, "one").await;
        for step in 0..STEPS {
            // One that nobody names, so that there is always something to sweep, and one put long before it is named.
            store.put_value(large(1_000_000 + step)).await.expect("put");
            let value = store.put_value(large(step)).await.expect("put");
            for pause in 0..step % 8 {
                store.put_value(large(2_000_000 + 8 * step + pause)).await.expect("put");
            }
            let version = u32::try_from(named.len()).expect("few") + 1;
            match run.save(version, value).await {
                Ok(()) => named.push(Stored::at(value, run.checkpoint.seq)),
                Err(error) => {
                    assert_eq!(error.code(), "store.value_swept");
                    refused += 1;
                }
            }
        }
        is_over.store(true, Ordering::Release);
        let swept = sweeping.join().expect("sound");
        assert!(swept > 0 && refused < STEPS, "nothing was shown: {swept} swept, {refused} refused");
        let run = RunRef { key: Arc::clone(&run.key), number: 1 };
        let found = store.values(&run, &named).await.expect("all of them are there");
        assert_eq!(found.len(), named.len());
    });
}

#[test]
fn a_damaged_journal_keeps_every_value() {
    let place = Place::new();
    let store = place.open();
    runtime().block_on(async {
        let mut run = Run::begin(&store, "one").await;
        let value = store.put_value(large(1)).await.expect("put");
        run.save(1, value).await.expect("saved");
        let db = Connection::open(place.path()).expect("opened");
        let envelope: Vec<u8> =
            db.query_row("SELECT envelope FROM journal WHERE seq = 2", [], |row| row.get(0)).expect("read");
        let at = envelope.windows(32).position(|window| window == value.digest.as_bytes()).expect("it names it");
        let mut altered = envelope.clone();
        altered[at] ^= 1;
        for (envelope, answer) in [(&altered, "store.corrupt"), (&envelope, "")] {
            db.execute("UPDATE journal SET envelope = ? WHERE seq = 2", params![envelope]).expect("altered");
            for _ in 0..2 {
                place.clock.advance_ms(SWEEP_AFTER_MS);
                let swept = store.sweep(Mode::Apply).await;
                assert_eq!(swept.as_ref().err().map_or("", |error| error.code()), answer, "{swept:?}");
            }
        }
        db.execute("UPDATE journal SET run = 7 WHERE seq = 2", []).expect("altered");
        assert_eq!(store.sweep(Mode::Apply).await.expect_err("refused").code(), "store.corrupt");
        let stored = Stored::at(value, 2);
        assert_eq!(store.values(&RunRef { key: run.key, number: 1 }, &[stored]).await.expect("read").len(), 1);
    });
}

#[test]
fn a_file_that_a_crash_took_first_is_put_anew() {
    let place = Place::new();
    let store = place.open();
    runtime().block_on(async {
        let mut run = Run::begin(&store, "one").await;
        let value = store.put_value(large(1)).await.expect("put");
        store.sweep(Mode::Apply).await.expect("marked");
        // The process that swept it died before its transaction was committed.
        let hex = value.digest.to_hex();
        fs::remove_file(place.files().join("values").join(&hex[..2]).join(&hex)).expect("removed");
        assert_eq!(run.save(1, value).await.expect_err("refused").code(), "store.value_swept");
        assert_eq!(store.put_value(large(1)).await.expect("put"), ValueRef::of(&large(1)));
        run.save(1, value).await.expect("saved");
    });
}

#[test]
fn what_is_removed_does_not_look_like_an_older_copy_and_an_older_copy_does() {
    let place = Place::new();
    let copy = place.folder.path().join("copy.db");
    let held = |store: &Arc<dyn Store>| {
        let rows = runtime().block_on(store.find("default", "goes-on", 1)).expect("found");
        rows[0].hold
    };
    {
        let store = place.open();
        runtime().block_on(async {
            start(&*store, "goes-on").await;
            // It has the newest transitions.
            let mut run = Run::begin(&store, "ended").await;
            for _ in 0..20 {
                run.step("note").await;
            }
            let ended = run.end().await;
            drop(store);
            fs::copy(place.path(), &copy).expect("copied");
            let store = place.open();
            remove(&store, &ended).await;
        });
    }
    assert_eq!(held(&place.open()), None, "a removal was taken for a rewind");
    {
        let store = place.open();
        runtime().block_on(Run::begin(&store, "another"));
    }
    assert_eq!(held(&place.open()), None, "a removal was taken for a rewind");
    for end in ["-wal", "-shm"] {
        // They are gone unless somebody has the store open.
        assert!(!place.folder.path().join(format!("store.db{end}")).exists());
    }
    fs::copy(&copy, place.path()).expect("put back");
    assert_eq!(held(&place.open()), Some(Hold::Rewound), "a copy from before the removal was not noticed");
}

fn touch(path: &Path, at: Timestamp) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    let file = File::create(path).expect("made");
    let micros = u64::try_from(at.as_micros()).expect("after 1970");
    let at: SystemTime = UNIX_EPOCH + Duration::from_micros(micros);
    file.set_modified(at).expect("set");
}

#[test]
fn what_dead_processes_left_goes_after_a_day() {
    let place = Place::new();
    let store = place.open();
    let now = store.now();
    let (old, new) = (now, now.plus_ms(1));
    let files = place.files();
    let drafts = ["values/3f/.4711-0", "witness.4711-3", "workers/0123456789ab.new"];
    drafts.iter().for_each(|name| touch(&files.join(name), old));
    let kept = ["values/3f/.4711-1", "witness", "workers/strange", "made"];
    kept.iter().for_each(|name| touch(&files.join(name), new));
    touch(&files.join("workers/0123456789ab.lock"), new);
    runtime().block_on(async {
        let worker = store.enlist().await.expect("enlisted");
        place.clock.advance_ms(SWEEP_AFTER_MS);
        let drafts_are_there = || drafts.iter().filter(|name| files.join(name).exists()).count();
        assert_eq!(store.sweep(Mode::DryRun).await.expect("looked").leftovers.count, 3);
        assert_eq!(drafts_are_there(), 3);
        assert_eq!(store.sweep(Mode::Apply).await.expect("swept").leftovers.count, 3);
        assert_eq!(drafts_are_there(), 0);
        assert!(kept.iter().all(|name| files.join(name).exists()));
        assert!(store.is_alive(&worker), "a living worker's lock is gone");
        assert!(files.join(format!("workers/{}.lock", worker.0)).exists());
    });
}

#[test]
fn the_room_of_removed_runs_is_given_back_while_nobody_works() {
    let place = Place::new();
    let store = place.open();
    runtime().block_on(async {
        let mut run = Run::begin(&store, "large").await;
        for step in 0..20_u64 {
            let digests = (0..500_u64).map(|number| Digest::of(&(1_000 * step + number).to_le_bytes()).to_hex());
            run.step(&digests.collect::<String>()).await;
        }
        let worker = run.worker.clone();
        let ended = run.end().await;
        let Removal::Removed(removed) =
            store.remove(std::slice::from_ref(&ended), Mode::DryRun).await.expect("weighed")
        else {
            panic!("it has to stay")
        };
        assert!(removed.bytes > 20 * 500 * 32, "{} bytes would go: the long values are not among them", removed.bytes);
        remove(&store, &ended).await;
        assert_eq!(store.audit().await.expect("audited").strays, Vec::<String>::new());
        let free = store.sweep(Mode::Apply).await.expect("swept").free_bytes;
        assert!(free > 100_000, "{free} bytes are free");
        let before = place.size();
        assert_eq!(store.compact().await.expect_err("refused").code(), "store.in_use");
        store.retire(&worker).await.expect("retired");
        assert_eq!(store.compact().await.expect("compacted"), free);
        let after = place.size();
        assert!(after + free <= before, "{before} bytes before, {after} after");
        assert_eq!(store.integrity().await.expect("checked"), Vec::<String>::new());
    });
}
