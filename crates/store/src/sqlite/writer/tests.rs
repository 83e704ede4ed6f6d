//! Transactions that fail: whoever has no part in it is stored, and the connection goes on.

use super::*;
use crate::sqlite::settings;
use tempfile::TempDir;

/// A writer over a table of texts.
fn writer() -> (TempDir, Writer) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.db");
    std::fs::write(&path, "").expect("made");
    let (patience, log) = (Patience::default(), Arc::new(Log::default()));
    let db = settings::writer(&path, patience.clone(), log.pages()).expect("opened");
    db.execute_batch("CREATE TABLE x (text TEXT UNIQUE)").expect("made");
    let side = Side { path, newest: None, reserve: None };
    (folder, Writer::start(db, side, patience, log).expect("started"))
}

fn insert(text: String) -> impl FnMut(&Connection) -> Done<usize> + Send + 'static {
    move |db| Ok(db.execute("INSERT INTO x VALUES (?)", [&text])?)
}

fn count(writer: &Writer) -> i64 {
    lock(&writer.shared.db).query_row("SELECT count(*) FROM x", [], |row| row.get(0)).expect("counted")
}

fn pragma(writer: &Writer, text: &str) {
    lock(&writer.shared.db).query_row(text, [], |_| Ok(())).expect("set");
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime").block_on(future)
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let (_folder, writer) = writer();
    block_on(async {
        pragma(&writer, "PRAGMA max_page_count = 10");
        let acts = [10, 100_000, 11].map(|len| (Room::Free, insert("x".repeat(len)))).into_iter().collect();
        let results = writer.write_all(0, acts).await;
        let codes: Vec<_> = results.iter().map(|result| result.as_ref().map_err(Error::code)).collect();
        assert_eq!(codes, [Ok(&1), Err("store.unavailable"), Ok(&1)], "whoever has room is stored");
        assert!(results[1].as_ref().expect_err("full").next().contains("room"));
        assert!(lock(&writer.shared.db).is_autocommit(), "a transaction is left open");
        assert_eq!(count(&writer), 2);
        pragma(&writer, "PRAGMA max_page_count = 10000");
        assert_eq!(writer.write(insert("x".repeat(100_000))).await, Ok(1));
    });
    assert_eq!(count(&writer), 3);
}

#[test]
fn a_store_that_cannot_be_written_refuses_and_is_usable_afterwards() {
    let (_folder, writer) = writer();
    block_on(async {
        lock(&writer.shared.db).pragma_update(None, "query_only", 1).expect("set");
        let error = writer.write(insert("a".to_owned())).await.expect_err("refused");
        assert_eq!(error.code(), "store.unavailable");
        assert!(lock(&writer.shared.db).is_autocommit(), "a transaction is left open");
        lock(&writer.shared.db).pragma_update(None, "query_only", 0).expect("set");
        assert_eq!(writer.write(insert("a".to_owned())).await, Ok(1));
    });
    assert_eq!(count(&writer), 1);
}

#[test]
fn a_refused_act_and_a_failed_one_leave_the_others_be() {
    let (_folder, writer) = writer();
    let acts: Vec<_> = (0..30)
        .map(|place| {
            let mut insert = insert(format!("{}", place.min(20)));
            let act = move |db: &Connection| match place {
                7 => Err(Error::new("test.refused", "no", "").into()),
                _ => insert(db),
            };
            (Room::Free, act)
        })
        .collect();
    let results = block_on(writer.write_all(0, acts));
    for (place, result) in results.iter().enumerate() {
        assert_eq!(result.is_ok(), place != 7 && place <= 20, "{place}: {result:?}");
    }
    assert_eq!(count(&writer), 20);
    // Alone, too: nothing is left open that would keep other processes from writing.
    assert!(block_on(writer.write(insert("1".to_owned()))).is_err());
    assert!(lock(&writer.shared.db).is_autocommit(), "a transaction is left open");
}

#[test]
fn many_callers_share_transactions_and_each_learns_its_outcome() {
    let (_folder, writer) = writer();
    let writer = Arc::new(writer);
    let served = Arc::clone(&writer);
    block_on(async move {
        let tasks: Vec<_> = (0..500)
            .map(|place| {
                let writer = Arc::clone(&served);
                tokio::spawn(async move { writer.write(insert(format!("{}", place / 2))).await.is_ok() })
            })
            .collect();
        let mut stored = 0;
        for task in tasks {
            stored += i64::from(task.await.expect("no panic"));
        }
        assert_eq!(stored, 250);
    });
    assert_eq!(count(&writer), 250);
}

#[test]
fn a_panic_in_one_act_is_an_error_and_not_the_end() {
    let (_folder, writer) = writer();
    block_on(async {
        // Enqueued, as the connection is taken: the thread meets it.
        let db = lock(&writer.shared.db);
        let answer = writer.shared.enqueue(vec![Act {
            act: |_: &Connection| -> Done<usize> { panic!("on purpose") },
            room: Room::Free,
            outcome: None,
            reply: None,
        }]);
        drop(db);
        for answer in answer {
            assert_eq!(
                answer.await.expect("an answer").0.expect("an outcome").expect_err("failed").code(),
                "store.unavailable"
            );
        }
        assert_eq!(writer.write(insert("a".to_owned())).await, Ok(1));
    });
}
