//! A store that was put back to an older copy of its file: noticed, and nothing is done twice before a person says so.

mod damaged_store;
mod support;

use std::sync::Arc;

use damaged_store::*;
use lodestep::core::checkpoint::Phase;
use lodestep::core::event::StopReason;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::inspect;
use lodestep::observe::Silent;
use lodestep::store::Hold;

/// Approves the payment and sees the run to its end; how often it was paid.
async fn pay(kept: &Kept) -> usize {
    let (runtime, ledger) = kept.open();
    let request = kept.request().await;
    runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("sent");
    assert_eq!(standing(&support::settle(&runtime, &kept.run).await).status, Status::Completed);
    ledger.keys("pay").len()
}

#[tokio::test]
async fn g15_a_store_that_was_put_back_sends_nothing_before_a_person_releases_it() {
    let kept = Kept::with_an_open_request().await;
    let older = kept.bytes();
    assert_eq!(pay(&kept).await, 1);
    kept.put_back(&older);
    let (runtime, ledger) = kept.open();
    // Held from the first look on, before any worker has seen it.
    let row = kept.row(&runtime).await;
    assert_eq!((row.status, row.why.as_str(), row.hold), (Status::Quarantined, "rewound", Some(Hold::Rewound)));
    let opened = inspect::open(runtime.store(), &kept.run).await.expect("shown");
    assert_eq!(opened.standing.status, Status::Quarantined);
    assert_eq!(inspect::verify(runtime.store(), &row.run).await.expect("verified").faults, Vec::<String>::new());
    // Neither the approval nor a resume lets it go on.
    let request = kept.request().await;
    let approved = runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("answered");
    assert_eq!(approved, Verdict::Accepted);
    let Verdict::Refused(error) = runtime.send(&kept.run, "ada", Word::Resume).await.expect("answered") else {
        panic!("it was resumed")
    };
    assert_eq!(error.code(), "run.quarantined");
    let held = support::settle(&runtime, &kept.run).await;
    assert!(matches!(held.phase, Phase::Stopped { reason: StopReason::Rewound, .. }), "{:?}", held.phase);
    assert_eq!(ledger.counts().len(), 0, "it was paid again");
    assert_eq!(kept.row(&runtime).await.hold, None, "its journal says it now");
    // A person who has looked lets it go on, and that is in the journal.
    assert_eq!(runtime.send(&kept.run, "ada", Word::Release).await.expect("answered"), Verdict::Accepted);
    assert_eq!(standing(&support::settle(&runtime, &kept.run).await).status, Status::Completed);
    assert_eq!(ledger.keys("pay").len(), 1);
}

#[tokio::test]
async fn a_rewound_store_is_told_once_and_again_when_it_is_put_back_again() {
    let kept = Kept::with_an_open_request().await;
    let older = kept.bytes();
    assert_eq!(pay(&kept).await, 1);
    for _ in 0..2 {
        kept.put_back(&older);
        let (runtime, _) = kept.open();
        assert_eq!(kept.row(&runtime).await.hold, Some(Hold::Rewound));
        // A release counts before any worker was there.
        assert_eq!(runtime.send(&kept.run, "ada", Word::Release).await.expect("answered"), Verdict::Accepted);
        assert_eq!(standing(&support::settle(&runtime, &kept.run).await).status, Status::Waiting);
        drop(runtime);
        let (runtime, _) = kept.open();
        assert_eq!(kept.row(&runtime).await.hold, None, "it was told again");
    }
}

#[tokio::test]
async fn a_rewound_run_can_be_cancelled_and_one_that_had_stopped_is_held_too() {
    let kept = Kept::with_an_open_request().await;
    let older = kept.bytes();
    assert_eq!(pay(&kept).await, 1);
    kept.put_back(&older);
    let (runtime, ledger) = kept.open();
    runtime.work_until_idle(Arc::new(Silent), &Default::default()).await.expect("worked");
    drop(runtime);
    // Stopped as rewound already, and put back once more.
    let stopped = kept.bytes();
    let (runtime, _) = kept.open();
    runtime.send(&kept.run, "ada", Word::Release).await.expect("answered");
    support::settle(&runtime, &kept.run).await;
    drop(runtime);
    kept.put_back(&stopped);
    let (runtime, _) = kept.open();
    assert_eq!(kept.row(&runtime).await.hold, Some(Hold::Rewound));
    let word = Word::Cancel { reason: "paid already".to_owned() };
    assert_eq!(runtime.send(&kept.run, "ada", word).await.expect("answered"), Verdict::Accepted);
    assert_eq!(standing(&support::settle(&runtime, &kept.run).await).status, Status::Cancelled);
    assert_eq!(ledger.counts().len(), 0, "it was paid again");
}

#[tokio::test]
async fn a_witness_that_lags_behind_is_no_rewind() {
    let kept = Kept::with_an_open_request().await;
    let witness = kept.witness();
    let before = std::fs::read(&witness).expect("there is one");
    assert_eq!(pay(&kept).await, 1);
    let after = std::fs::read(&witness).expect("there is one");
    assert_ne!(before, after, "it saw nothing");
    // As a crash between a commit and the next look leaves it; damaged; gone.
    for bytes in [Some(before.as_slice()), Some(&after[..after.len() / 2]), Some(b""), None] {
        match bytes {
            Some(bytes) => std::fs::write(&witness, bytes).expect("written"),
            None => std::fs::remove_file(&witness).expect("removed"),
        }
        let (runtime, _) = kept.open();
        assert_eq!(kept.row(&runtime).await.hold, None, "{bytes:?}");
        assert_eq!(kept.row(&runtime).await.status, Status::Completed);
        drop(runtime);
        assert_eq!(std::fs::read(&witness).expect("there is one"), after, "it has caught up");
    }
}

#[tokio::test]
async fn the_file_of_another_store_is_no_copy_of_this_one() {
    let kept = Kept::with_an_open_request().await;
    let other = Kept::with_an_open_request().await;
    assert_eq!(pay(&other).await, 1);
    let third = Kept::with_an_open_request().await;
    kept.put_back(&third.bytes());
    let (runtime, _) = kept.open();
    assert_eq!(kept.row(&runtime).await.hold, Some(Hold::Rewound));
    drop(runtime);
    // What is over sends nothing, whatever store it is in.
    kept.put_back(&other.bytes());
    let (runtime, _) = kept.open();
    assert_eq!((kept.row(&runtime).await.hold, kept.row(&runtime).await.status), (None, Status::Completed));
}
