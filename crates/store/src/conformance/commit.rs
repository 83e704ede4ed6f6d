//! Transitions: whole, durable, fenced, each alone.

use std::sync::Arc;

use lodestep_core::event::Gate;
use lodestep_core::rules::inbox::Verdict;
use lodestep_core::{Checkpoint, Ordinal};

use super::script::{Held, How, RELEASE, SNAPSHOT, approve, begin, cancel, code, key, start_of};
use super::{Checked, Subject, ensure, ensure_equal};
use crate::store::{Release, Started, Want};

pub(super) async fn what_was_committed_is_loaded(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    for step in 2..12_u64 {
        subject.clock().advance_ms(1);
        held.step(&format!("step {step}")).await?;
        for store in [subject.store(), subject.reopen()] {
            let loaded = store.load(&held.key()).await?;
            ensure_equal!(loaded.checkpoint()?, held.checkpoint);
            ensure_equal!((loaded.row.seq, loaded.row.head), (step, held.checkpoint.head));
            ensure_equal!(loaded.row.updated_at, store.now());
            ensure_equal!(loaded.row.holder.as_ref(), Some(&held.worker));
            ensure_equal!(loaded.row.due, None);
        }
    }
    Ok(())
}

pub(super) async fn a_load_begins_at_the_newest_snapshot(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    for (step, how) in [SNAPSHOT, How::default(), SNAPSHOT, How::default(), How::default()].into_iter().enumerate() {
        let draft = held.note(format!("step {step}"))?;
        held.commit(draft, how).await?;
    }
    let loaded = subject.reopen().load(&held.key()).await?;
    ensure_equal!(loaded.tail.len(), 2);
    ensure_equal!(loaded.checkpoint()?, held.checkpoint);
    let snapshots = store.snapshots(&held.claim.run).await?;
    ensure_equal!(snapshots.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [2, 4]);
    for (seq, bytes) in snapshots {
        ensure_equal!(Checkpoint::from_bytes(&bytes)?.seq, seq);
    }
    Ok(())
}

pub(super) async fn old_snapshots_thin_out(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    for step in 0..100 {
        let draft = held.note(format!("step {step}"))?;
        held.commit(draft, SNAPSHOT).await?;
    }
    let kept: Vec<u64> = store.snapshots(&held.claim.run).await?.into_iter().map(|(seq, _)| seq).collect();
    ensure!(kept.ends_with(&[100, 101]), "the newest two are not kept: {kept:?}");
    ensure!(kept.starts_with(&[2]), "the first is not kept: {kept:?}");
    ensure!(kept.len() <= 16, "{} of 100 are kept: {kept:?}", kept.len());
    ensure_equal!(store.load(&held.key()).await?.checkpoint()?, held.checkpoint);
    Ok(())
}

pub(super) async fn a_stale_epoch_changes_nothing(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut old = Held::begin(&store, "one").await?;
    store.release(&old.claim, Some(store.now()), Release::Idle).await?;
    let other = subject.reopen();
    let mut new = Held::take(&other, "one", other.enlist().await?).await?;
    ensure_equal!(new.claim.epoch, old.claim.epoch + 1);
    let before = store.load(&old.key()).await?;
    for how in [How::default(), RELEASE, SNAPSHOT] {
        let draft = old.note("from the past")?;
        ensure_equal!(code(&old.commit(draft, how).await), "lease.lost");
    }
    ensure_equal!(code(&store.release(&old.claim, None, Release::Idle).await), "lease.lost");
    let after = store.load(&old.key()).await?;
    ensure_equal!((after.row, after.tail), (before.row, before.tail));
    ensure_equal!(store.snapshots(&old.claim.run).await?.len(), 0);
    new.step("from the present").await?;
    Ok(())
}

pub(super) async fn a_number_that_does_not_follow_changes_nothing(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let again = held.sealed(held.note("twice")?, How::default());
    held.send(again.clone()).await?;
    // The answer to the first may have been lost: the same again is refused, whoever loads finds it stored.
    ensure_equal!(code(&store.commit(vec![again]).await.remove(0)), "lease.lost");
    let skipped = held.checkpoint.clone();
    held.checkpoint.seq += 1;
    let draft = held.note("after a gap")?;
    ensure_equal!(code(&held.commit(draft, How::default()).await), "lease.lost");
    ensure_equal!(store.load(&held.key()).await?.checkpoint()?, skipped);
    ensure_equal!(store.journal(&held.claim.run, 1, 99).await?.len(), 2);
    Ok(())
}

pub(super) async fn a_lease_ends_with_its_release(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut committed = Held::begin(&store, "committed").await?;
    let draft = committed.note("the last")?;
    committed.commit(draft, RELEASE).await?;
    let mut released = Held::begin(&store, "released").await?;
    store.release(&released.claim, None, Release::Idle).await?;
    let mut retired = Held::begin(&store, "retired").await?;
    store.retire(&retired.worker).await?;
    for held in [&mut committed, &mut released, &mut retired] {
        let draft = held.note("one more")?;
        ensure_equal!(code(&held.commit(draft, How::default()).await), "lease.lost");
        ensure_equal!(code(&store.release(&held.claim, None, Release::Idle).await), "lease.lost");
    }
    Ok(())
}

pub(super) async fn each_transition_of_a_batch_stands_or_falls_alone(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut helds = Vec::new();
    for id in ["one", "two", "three", "four"] {
        helds.push(Held::begin(&store, id).await?);
    }
    store.release(&helds[1].claim, None, Release::Idle).await?;
    store.send(&helds[2].key(), "m", &cancel()).await?;
    let mut batch = Vec::new();
    for (place, held) in helds.iter_mut().enumerate() {
        let draft = match place {
            2 => {
                // An intent, and the cancel is unread.
                held.checkpoint = held.proposal([Gate::Open])?.checkpoint().clone();
                held.intent(Ordinal(1))?
            }
            _ => held.note("mine")?,
        };
        batch.push(held.sealed(draft, How::default()));
    }
    let wanted: Vec<_> = batch.iter().map(|commit| commit.transition.checkpoint.clone()).collect();
    let results = store.commit(batch).await;
    ensure_equal!(results.iter().map(code).collect::<Vec<_>>(), ["", "lease.lost", "run.cancel_unread", ""]);
    for (place, held) in helds.iter().enumerate() {
        let loaded = subject.reopen().load(&held.key()).await?;
        if results[place].is_ok() {
            ensure_equal!(loaded.checkpoint()?, wanted[place]);
        } else {
            ensure_equal!(loaded.row.seq, 1);
        }
    }
    ensure_equal!(store.commit(Vec::new()).await.len(), 0);
    Ok(())
}

pub(super) async fn no_intent_is_stored_while_a_cancel_is_unread(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let name = super::script::request_name(&held.key(), 3);
    let draft = held.proposal([Gate::Open, Gate::Open, super::script::approval(name)])?;
    held.commit(draft, How::default()).await?;
    // Another word does not hold an intent back.
    ensure_equal!(store.send(&held.key(), "yes", &approve(name)).await?, Verdict::Accepted);
    let draft = held.intent(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(subject.reopen().send(&held.key(), "stop", &cancel()).await?, Verdict::Accepted);
    let before = store.load(&held.key()).await?;
    for how in [How::default(), RELEASE] {
        let draft = held.intent(Ordinal(2))?;
        ensure_equal!(code(&held.commit(draft, how).await), "run.cancel_unread");
    }
    let after = store.load(&held.key()).await?;
    ensure_equal!((after.row, after.tail), (before.row, before.tail));
    // The run's own end does not overtake it either.
    let mut ending = Held::begin(&store, "two").await?;
    ensure_equal!(store.send(&ending.key(), "stop", &cancel()).await?, Verdict::Accepted);
    let draft = ending.end()?;
    ensure_equal!(code(&ending.commit(draft, RELEASE).await), "run.cancel_unread");
    // What was sent has an outcome whatever is unread, and the cancel can be read.
    let draft = held.outcome(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let draft = held.reading().await?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(store.load(&held.key()).await?.unread.len(), 0);
    // From here on the rules hold intents back themselves.
    ensure_equal!(held.intent(Ordinal(3)).is_err(), true);
    Ok(())
}

pub(super) async fn a_commit_tells_what_the_inbox_holds(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    ensure_equal!(held.step("a").await?.inbox, 0);
    let name = held.ask(How::default()).await?;
    ensure_equal!(held.step("b").await?.inbox, 0);
    store.send(&held.key(), "yes", &approve(name)).await?;
    ensure_equal!(held.step("c").await?.inbox, 1);
    let draft = held.reading().await?;
    ensure_equal!(held.commit(draft, How::default()).await?.inbox, 1);
    ensure_equal!(held.checkpoint.inbox, 1);
    Ok(())
}

pub(super) async fn a_commit_of_a_thousand_runs_is_whole(subject: Arc<dyn Subject>) -> Checked {
    const RUNS: usize = 1_000;
    let store = subject.store();
    let starts = super::script::at_once(RUNS, |place| {
        let store = Arc::clone(&store);
        async move { store.start(start_of(&*store, key(&format!("r{place}"))?, "agent", "{}")?).await }
    })
    .await?;
    for started in starts {
        ensure!(matches!(started?, Started::New(_)), "a start is not New");
    }
    let worker = store.enlist().await?;
    let mut helds = Vec::new();
    for claim in store.claim(&worker, Want::Due(RUNS)).await? {
        let checkpoint = store.load(&claim.run.key).await?.checkpoint()?;
        helds.push(Held { store: Arc::clone(&store), worker: worker.clone(), claim, checkpoint });
    }
    ensure_equal!(helds.len(), RUNS);
    let batch = helds.iter().map(|held| Ok(held.sealed(held.note("together")?, How::default())));
    let results = store.commit(batch.collect::<Result<_, super::Failed>>()?).await;
    ensure_equal!(results.iter().filter(|result| result.is_ok()).count(), RUNS);
    // One more run, so that the suite notices a store that counts wrong.
    begin(&*store, "last").await?;
    for held in helds.iter().step_by(97) {
        ensure_equal!(store.load(&held.key()).await?.row.seq, 2);
    }
    Ok(())
}
