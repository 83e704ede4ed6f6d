//! Workers that die, hang and come back.

use std::sync::Arc;

use super::script::{Held, How, begin, code};
use super::{Checked, Subject, ensure, ensure_equal};
use crate::store::{LEASE_US, Release, SUSPECT_CRASHES, Want};

const LEASE_MS: u64 = LEASE_US / 1_000;

pub(super) async fn a_dead_worker_s_runs_are_taken_over_at_once(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut dead = Held::begin(&store, "one").await?;
    dead.step("the last that it did").await?;
    let other = subject.reopen();
    let worker = other.enlist().await?;
    ensure_equal!(other.claim(&worker, Want::Due(9)).await?.len(), 0);
    ensure!(other.is_alive(&dead.worker) && other.is_alive(&worker), "both live");
    subject.kill(&dead.worker);
    ensure!(!other.is_alive(&dead.worker) && other.is_alive(&worker), "one of them is dead, claimed or not");
    let mut heir = Held::take(&other, "one", worker).await?;
    ensure_equal!((heir.claim.epoch, heir.claim.crashes), (2, 1));
    ensure_equal!(heir.checkpoint, dead.checkpoint);
    ensure_equal!(code(&dead.step("from beyond").await), "lease.lost");
    heir.step("on it goes").await?;
    Ok(())
}

pub(super) async fn a_hanging_worker_keeps_its_runs_until_its_lease_ends(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut hanging = Held::begin(&store, "one").await?;
    let other = subject.reopen();
    subject.clock().advance_ms(LEASE_MS / 2);
    let worker = other.enlist().await?;
    subject.clock().advance_ms(LEASE_MS / 2 - 1);
    ensure_equal!(other.claim(&worker, Want::Due(9)).await?.len(), 0);
    // Its own lease is not what stops a worker: nobody has taken it for dead yet.
    hanging.step("late, and still in time").await?;
    subject.clock().advance_ms(1);
    let heir = Held::take(&other, "one", worker).await?;
    ensure_equal!((heir.claim.epoch, heir.claim.crashes), (2, 1));
    ensure_equal!(code(&hanging.step("too late").await), "lease.lost");
    Ok(())
}

pub(super) async fn a_renewed_lease_holds_longer(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let held = Held::begin(&store, "one").await?;
    let other = subject.reopen();
    let worker = other.enlist().await?;
    let mut until_us = 0;
    for _ in 0..4 {
        subject.clock().advance_ms(LEASE_MS - 1);
        until_us = store.renew(&held.worker).await?;
        other.renew(&worker).await?;
        ensure_equal!(other.claim(&worker, Want::Due(9)).await?.len(), 0);
    }
    let clock: &dyn crate::Clock = subject.clock();
    ensure_equal!(until_us, clock.boot_us() + LEASE_US);
    // The wall clock may jump: a lease does not follow it.
    subject.clock().set_wall(store.now().plus_ms(86_400_000));
    ensure_equal!(other.claim(&worker, Want::Due(9)).await?.len(), 0);
    Ok(())
}

pub(super) async fn a_worker_taken_for_dead_can_do_nothing_more(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut lost = Held::begin(&store, "one").await?;
    let other = subject.reopen();
    subject.clock().advance_ms(LEASE_MS);
    let worker = other.enlist().await?;
    ensure_equal!(other.claim(&worker, Want::Due(9)).await?.len(), 1);
    begin(&*store, "two").await?;
    ensure_equal!(code(&store.renew(&lost.worker).await), "lease.lost");
    ensure_equal!(code(&store.claim(&lost.worker, Want::Due(9)).await), "lease.lost");
    let draft = lost.note("too late")?;
    ensure_equal!(code(&lost.commit(draft, How::default()).await), "lease.lost");
    ensure_equal!(code(&store.release(&lost.claim, None, Release::Idle).await), "lease.lost");
    // It is welcome under a new name.
    let again = store.enlist().await?;
    ensure!(again != lost.worker, "it has its old name");
    ensure_equal!(store.claim(&again, Want::Due(9)).await?.len(), 1);
    Ok(())
}

pub(super) async fn a_suspect_is_claimed_beside_no_other(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    for run in ["one", "two", "three"] {
        begin(&*store, run).await?;
    }
    for _ in 0..SUSPECT_CRASHES {
        let worker = store.enlist().await?;
        ensure_equal!(store.claim(&worker, Want::Due(9)).await?.len(), 3);
        subject.kill(&worker);
    }
    begin(&*store, "sound").await?;
    let worker = store.enlist().await?;
    let claims = store.claim(&worker, Want::Due(9)).await?;
    let suspects = claims.iter().filter(|claim| claim.crashes >= SUSPECT_CRASHES).count();
    ensure_equal!((claims.len(), suspects), (2, 1));
    ensure_equal!(store.claim(&worker, Want::Unsuspected(9)).await?.len(), 0);
    let next = store.claim(&worker, Want::Due(9)).await?;
    ensure_equal!(next.iter().map(|claim| claim.crashes).collect::<Vec<_>>(), [SUSPECT_CRASHES]);
    Ok(())
}
