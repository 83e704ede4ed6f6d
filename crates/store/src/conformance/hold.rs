//! Dispatch holds: an intent whose worker does not know of one is refused; a run parked under one is due when it ends.

use std::sync::Arc;

use lodestep_core::Ordinal;
use lodestep_core::event::Gate;
use lodestep_core::hold::{DispatchHold, Target};
use lodestep_core::rules::standing::{Reason, Standing, Status, standing};

use super::script::{Held, How, begin};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::store::{Hold, Holding, Release, Store, Want};

fn pay() -> Target {
    Target::Tool("pay".to_owned())
}

async fn held(store: &dyn Store, target: &Target) -> Result<DispatchHold, Failed> {
    match store.hold_dispatch(target, "ada", "a fault").await? {
        Holding::New(hold) => Ok(hold),
        Holding::Existing(hold) => Err(format!("there is {hold:?} already").into()),
    }
}

pub(super) async fn a_hold_is_listed_until_it_is_released(subject: Arc<dyn Subject>) -> Checked {
    let (store, other) = (subject.store(), subject.reopen());
    ensure_equal!(store.dispatch_holds().await?.open, []);
    ensure_equal!(store.release_dispatch(&pay(), "ada").await?, None);
    let hold = held(&*store, &pay()).await?;
    ensure_equal!((hold.by.as_str(), hold.reason.as_str(), hold.since), ("ada", "a fault", store.now()));
    ensure_equal!(other.hold_dispatch(&pay(), "bob", "another").await?, Holding::Existing(hold.clone()));
    let model = held(&*other, &Target::Model("m".to_owned())).await?;
    for store in [&store, &other] {
        let holds = store.dispatch_holds().await?;
        ensure_equal!((holds.open, holds.newest), (vec![hold.clone(), model.clone()], model.number));
    }
    ensure_equal!(other.release_dispatch(&pay(), "bob").await?, Some(hold.clone()));
    let left = store.dispatch_holds().await?.open;
    ensure!(left == std::slice::from_ref(&model), "what is left is {left:?}");
    let again = held(&*store, &pay()).await?;
    ensure!(again.number > model.number, "a later hold has a higher number: {again:?}");
    Ok(())
}

pub(super) async fn no_intent_is_stored_under_a_hold_that_its_worker_does_not_know(
    subject: Arc<dyn Subject>,
) -> Checked {
    let (store, other) = (subject.store(), subject.reopen());
    let mut run = Held::begin(&store, "one").await?;
    let draft = run.proposal([Gate::Open, Gate::Open])?;
    run.commit(draft, How::default()).await?;
    begin(&*store, "two").await?;
    let hold = held(&*other, &pay()).await?;
    // A step that sends nothing goes on.
    run.step("meanwhile").await?;
    let head = store.load(&run.key()).await?.row.head;
    for how in
        [How::default(), How { release: true, ..How::default() }, How { known_hold: hold.number - 1, ..How::default() }]
    {
        let draft = run.intent(Ordinal(1))?;
        let refused = run.commit(draft, how).await;
        ensure!(refused.as_ref().is_err_and(|error| error.code() == "run.hold_unknown"), "it gives {refused:?}");
        let mut asking = Held::take(&store, "two", run.worker.clone()).await?;
        let draft = asking.reservation()?;
        let refused = asking.commit(draft, how).await;
        store.release(&asking.claim, Some(store.now()), Release::Idle).await?;
        ensure!(refused.as_ref().is_err_and(|error| error.code() == "run.hold_unknown"), "it gives {refused:?}");
    }
    ensure_equal!(store.load(&run.key()).await?.row.head, head);
    // What a hold means is the worker's to know: the store asks only whether it does.
    let draft = run.intent(Ordinal(1))?;
    run.commit(draft, How { known_hold: hold.number, ..How::default() }).await?;
    other.release_dispatch(&pay(), "ada").await?;
    let draft = run.intent(Ordinal(2))?;
    run.commit(draft, How { known_hold: hold.number, ..How::default() }).await?;
    Ok(())
}

/// Where a run stands under a hold.
fn under(hold: &DispatchHold) -> Standing {
    let DispatchHold { target, by, reason, since, .. } = hold.clone();
    Standing { status: Status::Waiting, reasons: vec![Reason::Hold { target, by, why: reason, since }], due: None }
}

pub(super) async fn a_parked_run_is_due_when_one_of_its_holds_ends(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let (tool, agent) = (held(&*store, &pay()).await?, held(&*store, &Target::Agent("agent".to_owned())).await?);
    let run = Held::begin(&store, "one").await?;
    store.park(&run.claim, &under(&tool), &[tool.number, agent.number]).await?;
    let stale = store.park(&run.claim, &under(&tool), &[tool.number]).await;
    ensure!(stale.is_err_and(|error| error.code() == "lease.lost"), "a claim is parked once");
    let row = subject.reopen().load(&run.key()).await?.row;
    ensure_equal!((row.status, row.hold, row.due, row.holder), (Status::Waiting, Some(Hold::Parked), None, None));
    ensure_equal!((row.why, row.crashes), (format!("held: tool:pay by ada since {}: a fault", tool.since), 0));
    subject.clock().advance_ms(3_600_000);
    ensure_equal!(store.claim(&run.worker, Want::Due(9)).await?.len(), 0);
    subject.reopen().release_dispatch(&agent.target, "ada").await?;
    let claims = store.claim(&run.worker, Want::Due(9)).await?;
    ensure_equal!(claims.len(), 1);
    // Given back without a hold it stands as it is given.
    store.park(&claims[0], &standing(&run.checkpoint), &[]).await?;
    let row = store.load(&run.key()).await?.row;
    ensure_equal!((row.status, row.hold, row.why.as_str()), (Status::Ready, None, ""));
    Ok(())
}

pub(super) async fn a_run_parked_under_a_hold_that_has_ended_is_due_at_once(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let hold = held(&*store, &pay()).await?;
    let mut run = Held::begin(&store, "one").await?;
    subject.reopen().release_dispatch(&pay(), "ada").await?;
    store.park(&run.claim, &under(&hold), &[hold.number]).await?;
    run = Held::take(&store, "one", run.worker).await?;
    // A transition says anew where it stands.
    run.step("on").await?;
    let row = store.load(&run.key()).await?.row;
    ensure_equal!((row.status, row.hold, row.why.as_str()), (Status::Ready, None, ""));
    Ok(())
}

pub(super) async fn a_hold_is_hinted_at_to_another_handle(subject: Arc<dyn Subject>) -> Checked {
    let (here, there) = (subject.store(), subject.reopen());
    let mut changes = there.changes();
    for act in 0..4 {
        while tokio::time::timeout(std::time::Duration::from_millis(100), changes.changed()).await.is_ok() {}
        let (before, known) = (there.holds_version(), here.holds_version());
        match act % 2 {
            0 => drop(held(&*here, &pay()).await?),
            _ => drop(here.release_dispatch(&pay(), "ada").await?),
        }
        ensure!(here.holds_version() != known, "its own change is known at once");
        let hinted = tokio::time::timeout(std::time::Duration::from_secs(10), changes.changed()).await;
        ensure!(hinted.is_ok_and(|hint| hint.is_ok()), "there is a hint");
        ensure!(there.holds_version() != before, "and the hint tells that the holds are others");
    }
    Ok(())
}
