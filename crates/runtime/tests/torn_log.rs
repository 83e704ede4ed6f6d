//! A log that was torn, or that belongs to another time than its database: nothing that was done is done again.

mod damaged_store;
mod support;

use std::sync::Arc;

use damaged_store::*;
use lodestep::core::rules::inbox::Word;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::observe::Silent;
use lodestep::store::Hold;

/// A store in which everything was done, at two times of it.
struct Done {
    kept: Kept,
    /// Before the payment was approved, at rest.
    before: Vec<u8>,
    /// Its database and its log when all was done and somebody had it open, as a kill leaves them.
    open: (Vec<u8>, Vec<u8>),
    /// At rest again.
    after: Vec<u8>,
    witness: Vec<u8>,
}

impl Done {
    async fn new() -> Self {
        let kept = Kept::with_an_open_request().await;
        let before = kept.bytes();
        let (runtime, ledger) = kept.open();
        let request = kept.request().await;
        runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("sent");
        let end = support::settle(&runtime, &kept.run).await;
        assert_eq!((standing(&end).status, ledger.keys("pay").len()), (Status::Completed, 1));
        let open = (kept.bytes(), kept.log_bytes());
        drop(runtime);
        let (after, witness) = (kept.bytes(), std::fs::read(kept.witness()).expect("there is one"));
        Self { kept, before, open, after, witness }
    }

    /// What a worker makes of these files: nothing that was done is done again, and what is gone is missed.
    async fn look(&self, database: &[u8], log: &[u8], case: &str) -> Seen {
        self.kept.put_back_with_log(database, log);
        std::fs::write(self.kept.witness(), &self.witness).expect("written");
        let (runtime, ledger) = match self.kept.try_open() {
            Ok(opened) => opened,
            Err(error) => {
                assert_eq!(error.code(), "store.corrupt", "{case}: {error}");
                return Seen::Refused;
            }
        };
        let worked = runtime.work_until_idle(Arc::new(Silent), &Default::default()).await;
        assert!(ledger.counts().is_empty(), "{case}: it was paid again");
        let rows = runtime.store().find("default", self.kept.run.run.as_str(), 1).await;
        match (worked, rows) {
            (Err(error), _) | (_, Err(error)) => {
                assert_eq!(error.code(), "store.corrupt", "{case}: {error}");
                Seen::Refused
            }
            (Ok(()), Ok(rows)) => match rows.first() {
                None => panic!("{case}: an empty list"),
                Some(row) if row.status == Status::Quarantined => {
                    assert!(row.why == "rewound" || row.hold == Some(Hold::Undecodable), "{case}: {}", row.why);
                    Seen::Held
                }
                // What was sent and has no outcome any more: a person says what became of it.
                Some(row) if row.status == Status::InDoubt => Seen::Held,
                Some(row) if row.status == Status::Completed => Seen::Whole,
                // Its row is an older one, and its journal is not: whoever wants to act on it is refused.
                Some(row) => {
                    let read = runtime.store().load(&row.run.key).await.and_then(|loaded| loaded.checkpoint());
                    let error = read.expect_err(&format!("{case}: it goes on from an older state, {}", row.why));
                    assert!(matches!(error.code(), "store.corrupt" | "store.undecodable"), "{case}: {error}");
                    Seen::Refused
                }
            },
        }
    }
}

#[derive(Debug, PartialEq)]
enum Seen {
    Whole,
    Held,
    Refused,
}

#[tokio::test]
async fn sql_03_a_log_that_is_cut_anywhere_is_missed() {
    let done = Done::new().await;
    let (database, log) = &done.open;
    assert!(log.len() > 50_000, "the log has {} bytes", log.len());
    let mut seen = Vec::new();
    for length in (0..=log.len()).step_by(512) {
        seen.push(done.look(database, &log[..length], &format!("{length} of {} bytes", log.len())).await);
    }
    assert_eq!(done.look(database, log, "all of it").await, Seen::Whole);
    assert_eq!(seen[0], Seen::Held, "without a log");
    let held = seen.iter().filter(|seen| **seen == Seen::Held).count();
    assert!(held * 2 > seen.len(), "{held} of {} cuts were noticed: {seen:?}", seen.len());
}

#[tokio::test]
async fn sql_03_a_log_of_another_time_is_no_way_back() {
    let done = Done::new().await;
    let log = &done.open.1;
    // The newer database with a log that was left over, whole and in part; the older one with a log that is not its own.
    for length in [log.len(), log.len() / 2, log.len() / 5, 4_152, 512, 0] {
        done.look(&done.after, &log[..length], &format!("the newer one and {length} bytes")).await;
        done.look(&done.before, &log[..length], &format!("the older one and {length} bytes")).await;
    }
    assert_eq!(done.look(&done.after, b"", "at rest").await, Seen::Whole);
    assert_eq!(done.look(&done.before, b"", "put back").await, Seen::Held);
}
