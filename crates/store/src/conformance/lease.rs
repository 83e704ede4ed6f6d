//! Claims and releases: who may advance a run, and when it is due.

use std::sync::Arc;

use lodestep_core::Timestamp;
use lodestep_core::rules::inbox::Verdict;
use lodestep_core::rules::standing::Status;

use super::script::{Held, How, RELEASE, approve, at_once, begin, cancel, code, key};
use super::{Checked, Subject, ensure, ensure_equal};
use crate::store::{Claim, Release, Want, WorkerId};

fn ids(claims: &[Claim]) -> Vec<String> {
    claims.iter().map(|claim| claim.run.key.run.to_string()).collect()
}

pub(super) async fn of_eight_workers_exactly_one_gets_each_run(subject: Arc<dyn Subject>) -> Checked {
    const RUNS: usize = 120;
    let handles = [subject.store(), subject.reopen()];
    for place in 0..RUNS {
        begin(&*handles[0], &format!("r{place}")).await?;
    }
    let taken = at_once(8, |place| {
        let store = Arc::clone(&handles[place % 2]);
        async move {
            let worker = store.enlist().await?;
            let mut taken = Vec::new();
            loop {
                let claims = store.claim(&worker, Want::Due(3)).await?;
                if claims.is_empty() {
                    return Ok::<_, super::Failed>(taken);
                }
                taken.extend(ids(&claims));
            }
        }
    })
    .await?;
    let mut all = Vec::new();
    for taken in taken {
        all.extend(taken?);
    }
    ensure_equal!(all.len(), RUNS);
    all.sort();
    all.dedup();
    ensure_equal!(all.len(), RUNS);
    Ok(())
}

pub(super) async fn each_claim_raises_the_epoch(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    begin(&*store, "one").await?;
    let worker = store.enlist().await?;
    for epoch in 1..5 {
        let held = Held::take(&store, "one", worker.clone()).await?;
        ensure_equal!(held.claim.epoch, epoch);
        ensure_equal!(subject.reopen().load(&held.key()).await?.row.epoch, epoch);
        store.release(&held.claim, Some(store.now()), Release::Idle).await?;
    }
    Ok(())
}

pub(super) async fn the_longest_due_is_claimed_first_and_no_more_than_wanted(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let worker = store.enlist().await?;
    ensure_equal!(store.claim(&worker, Want::Due(9)).await?.len(), 0);
    for id in ["a", "b", "c", "d"] {
        begin(&*store, id).await?;
    }
    // a and b are due again after the others, c before, d in the future.
    for (claim, due_ms) in store.claim(&worker, Want::Due(9)).await?.iter().zip([30, 30, 10, 5_000]) {
        store.release(claim, Some(store.now().plus_ms(due_ms)), Release::Idle).await?;
    }
    ensure_equal!(store.claim(&worker, Want::Due(9)).await?.len(), 0);
    subject.clock().advance_ms(100);
    ensure_equal!(store.claim(&worker, Want::Due(0)).await?.len(), 0);
    ensure_equal!(ids(&store.claim(&worker, Want::Due(2)).await?), ["c", "a"]);
    ensure_equal!(ids(&store.claim(&worker, Want::Due(2)).await?), ["b"]);
    ensure_equal!(store.claim(&worker, Want::Due(2)).await?.len(), 0);
    Ok(())
}

pub(super) async fn one_run_is_claimed_only_when_it_is_due_and_free(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let worker = store.enlist().await?;
    begin(&*store, "other").await?;
    begin(&*store, "one").await?;
    let wanted = || Ok::<_, super::Failed>(Want::Run(key("one")?));
    let claims = store.claim(&worker, wanted()?).await?;
    ensure_equal!(ids(&claims), ["one"]);
    ensure_equal!(store.claim(&worker, wanted()?).await?.len(), 0);
    store.release(&claims[0], Some(store.now().plus_ms(1_000)), Release::Idle).await?;
    ensure_equal!(store.claim(&worker, wanted()?).await?.len(), 0);
    subject.clock().advance_ms(1_000);
    ensure_equal!(store.claim(&worker, wanted()?).await?.len(), 1);
    ensure_equal!(store.claim(&worker, Want::Run(key("none")?)).await?.len(), 0);
    Ok(())
}

pub(super) async fn a_released_run_is_due_when_it_says(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let held = Held::begin(&store, "one").await?;
    let due = store.now().plus_ms(60_000);
    store.release(&held.claim, Some(due), Release::Idle).await?;
    let row = subject.reopen().load(&held.key()).await?.row;
    ensure_equal!((row.due, row.holder), (Some(due), None));
    // A timer follows the wall clock, whatever the boot clock says.
    subject.clock().set_wall(due);
    let held = Held::take(&store, "one", held.worker).await?;
    store.release(&held.claim, None, Release::Idle).await?;
    subject.clock().set_wall(Timestamp::from_micros(i64::MAX / 2));
    ensure_equal!(store.claim(&held.worker, Want::Due(9)).await?.len(), 0);
    ensure_equal!(store.load(&held.key()).await?.row.due, None);
    Ok(())
}

pub(super) async fn a_released_run_with_something_unread_is_due_at_once(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    for (id, by_commit) in [("released", false), ("committed", true)] {
        let mut held = Held::begin(&store, id).await?;
        let name = held.ask(How::default()).await?;
        ensure_equal!(store.send(&held.key(), "yes", &approve(name)).await?, Verdict::Accepted);
        ensure_equal!(store.load(&held.key()).await?.row.due, None);
        if by_commit {
            let draft = held.note("not read yet")?;
            held.commit(draft, RELEASE).await?;
        } else {
            store.release(&held.claim, None, Release::Idle).await?;
        }
        Held::take(&store, id, held.worker).await?;
    }
    // Where its worker failed, or can't go on with it, it rests: the same word would bring it back at once.
    for (id, how) in [("crashed", Release::Crashed), ("deferred", Release::Deferred)] {
        let mut held = Held::begin(&store, id).await?;
        let name = held.ask(How::default()).await?;
        ensure_equal!(store.send(&held.key(), "yes", &approve(name)).await?, Verdict::Accepted);
        let due = store.now().plus_ms(1_000);
        store.release(&held.claim, Some(due), how).await?;
        ensure_equal!((id, store.load(&held.key()).await?.row.due), (id, Some(due)));
    }
    Ok(())
}

pub(super) async fn a_commit_that_releases_leaves_the_run_where_it_stands(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut ready = Held::begin(&store, "ready").await?;
    let draft = ready.note("more to do")?;
    ready.commit(draft, RELEASE).await?;
    let mut waiting = Held::begin(&store, "waiting").await?;
    let name = waiting.ask(RELEASE).await?;
    let mut ended = Held::begin(&store, "ended").await?;
    let draft = ended.end()?;
    ended.commit(draft, RELEASE).await?;
    let mut rows = Vec::new();
    for held in [&ready, &waiting, &ended] {
        let row = subject.reopen().load(&held.key()).await?.row;
        ensure_equal!((row.holder, row.crashes, row.seq), (None, 0, 2));
        rows.push((row.status, row.due.is_some(), row.why));
    }
    let why = format!("approval {} since {}", &name.to_hex()[..4], Timestamp::from_micros(0));
    ensure_equal!(rows[0], (Status::Ready, true, String::new()));
    ensure_equal!(rows[1], (Status::Waiting, false, why));
    ensure_equal!(rows[2], (Status::Completed, false, String::new()));
    Ok(())
}

async fn crashes(subject: &Arc<dyn Subject>, id: &str) -> Result<u32, super::Failed> {
    Ok(subject.reopen().load(&key(id)?).await?.row.crashes)
}

pub(super) async fn crashes_count_since_the_last_outcome(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    begin(&*store, "one").await?;
    let worker = store.enlist().await?;
    let take = || Held::take(&store, "one", worker.clone());
    for before in 0..3 {
        let held = take().await?;
        ensure_equal!(held.claim.crashes, before);
        ensure_equal!(crashes(&subject, "one").await?, before + 1);
        store.release(&held.claim, Some(store.now()), Release::Crashed).await?;
        ensure_equal!(crashes(&subject, "one").await?, before + 1);
    }
    // A release that is no crash takes its own claim back, and a transition without an outcome changes nothing.
    let mut held = take().await?;
    ensure_equal!(held.claim.crashes, 3);
    let draft = held.reservation()?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(crashes(&subject, "one").await?, 4);
    store.release(&held.claim, Some(store.now()), Release::Idle).await?;
    ensure_equal!(crashes(&subject, "one").await?, 3);
    let held = take().await?;
    store.release(&held.claim, Some(store.now()), Release::Deferred).await?;
    ensure_equal!(crashes(&subject, "one").await?, 3);
    let mut held = take().await?;
    let draft = held.note("released")?;
    held.commit(draft, RELEASE).await?;
    ensure_equal!(crashes(&subject, "one").await?, 3);
    // An outcome starts the count anew, and no release takes it below zero.
    let mut held = take().await?;
    let draft = held.answer(b"a reply")?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(crashes(&subject, "one").await?, 0);
    store.release(&held.claim, Some(store.now()), Release::Idle).await?;
    let held = take().await?;
    ensure_equal!((held.claim.crashes, crashes(&subject, "one").await?), (0, 1));
    Ok(())
}

pub(super) async fn a_retired_worker_hands_over(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let one = Held::begin(&store, "one").await?;
    begin(&*store, "two").await?;
    let two = Held::take(&store, "two", one.worker.clone()).await?;
    store.retire(&one.worker).await?;
    ensure_equal!(code(&store.claim(&one.worker, Want::Due(1)).await), "lease.lost");
    let other = subject.reopen();
    let claims = other.claim(&other.enlist().await?, Want::Due(9)).await?;
    ensure_equal!(claims.len(), 2);
    for claim in claims {
        ensure_equal!((claim.epoch, claim.crashes), (2, 0));
        ensure_equal!(claim.left_tools, None);
    }
    ensure_equal!(code(&store.release(&two.claim, None, Release::Idle).await), "lease.lost");
    // A second time changes nothing.
    store.retire(&one.worker).await?;
    Ok(())
}

pub(super) async fn an_unknown_worker_gets_nothing(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    begin(&*store, "one").await?;
    let nobody = WorkerId("nobody".to_owned());
    ensure_equal!(code(&store.claim(&nobody, Want::Due(1)).await), "lease.lost");
    ensure_equal!(code(&store.renew(&nobody).await), "lease.lost");
    ensure_equal!(store.load(&key("one")?).await?.row.epoch, 0);
    ensure_equal!(store.send(&key("one")?, "stop", &cancel()).await?, Verdict::Accepted);
    ensure!(store.load(&key("one")?).await?.row.due.is_some(), "it is not due");
    Ok(())
}
