//! A dedupe key is one action's of its namespace, and who waits for it is due once it is let go of.

use std::sync::Arc;

use lodestep_core::event::{
    ActionFinished, ActionHeld, AttemptStarted, DedupeClosed, DedupeEnd, DedupeTaken, Event, Gate, RunStopped,
    SettledBy, StopReason,
};
use lodestep_core::{Draft, Ordinal, Stored, ValueRef};

use super::script::{Held, How, RELEASE, code, same};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::replay::Replay;
use crate::rows::{KeyFate, Tables};
use crate::store::{Store, Want};

pub(super) const KEY: &str = "invoice-7 \u{0} é";
const PAID: &[u8] = b"paid 7";
const FIRST: Ordinal = Ordinal(1);

/// A claimed run with an effect that needs the key.
pub(super) async fn needs(store: &Arc<dyn Store>, id: &str) -> Result<Held, Failed> {
    let mut held = Held::begin(store, id).await?;
    let draft = held.proposal_with([Gate::Open], Some(KEY))?;
    held.commit(draft, How::default()).await?;
    Ok(held)
}

pub(super) fn taking(held: &Held) -> Result<Draft, Failed> {
    let mut draft = held.draft();
    let (ordinal, send_by) = (FIRST, draft.now().plus_ms(1_000));
    draft.push(Event::DedupeTaken(DedupeTaken { ordinal, key: KEY.to_owned(), same: same(ordinal) }))?;
    let attempt = held.checkpoint.pending.get(&ordinal).map_or(1, |action| action.attempts + 1);
    draft.push(Event::AttemptStarted(AttemptStarted { ordinal, attempt, send_by }))?;
    Ok(draft)
}

/// The outcome of its attempt, and what it means for the key.
pub(super) fn closing(held: &Held, ok: bool) -> Result<Draft, Failed> {
    let mut draft = held.draft();
    let result = draft.put(PAID);
    let (ordinal, by) = (FIRST, SettledBy::Answer);
    draft.push(Event::ActionFinished(ActionFinished { ordinal, attempt: 1, ok, result, by }))?;
    let end = if ok { DedupeEnd::Done(result) } else { DedupeEnd::Free };
    draft.push(Event::DedupeClosed(DedupeClosed { ordinal, end }))?;
    Ok(draft)
}

fn waiting(held: &Held, of: &Held) -> Result<Draft, Failed> {
    let mut draft = held.draft();
    let run = of.checkpoint.run.clone();
    draft.push(Event::ActionHeld(ActionHeld { ordinal: FIRST, run, action: FIRST }))?;
    Ok(draft)
}

async fn fate(store: &dyn Store) -> Result<Option<(String, KeyFate)>, Failed> {
    let asked = ["other".to_owned(), KEY.to_owned()];
    ensure_equal!(store.dedupe_keys("elsewhere", &asked).await?.len(), 0);
    let found = store.dedupe_keys("default", &asked).await?;
    ensure!(found.len() < 2, "a key has two holders: {found:?}");
    Ok(found.into_iter().next().map(|it| (it.run.key.run.to_string(), it.row.fate)))
}

/// What stands beside the journal is what a replay gives.
async fn agrees(store: &dyn Store, held: &Held) -> Result<Tables, Failed> {
    let found = store.beside(&held.claim.run).await?.tables;
    let mut replay = Replay::default();
    for row in store.journal(&held.claim.run, 1, 99).await? {
        replay.take_in(&row.envelope)?;
    }
    ensure_equal!(found, replay.tables);
    Ok(found)
}

pub(super) async fn a_dedupe_key_is_one_run_s(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let (mut one, mut two) = (needs(&store, "one").await?, needs(&store, "two").await?);
    ensure_equal!(fate(&*store).await?, None);
    let draft = taking(&one)?;
    one.commit(draft, How::default()).await?;
    ensure_equal!(fate(&*subject.reopen()).await?, Some(("one".to_owned(), KeyFate::Open)));
    let late = taking(&two)?;
    let refused = two.commit(late, How::default()).await;
    ensure_equal!(code(&refused), "effect.held");
    ensure_equal!(store.load(&two.key()).await?.row.seq, two.checkpoint.seq);
    // Nothing of that one is stored, and others of its batch stand.
    let (wrong, right) = (two.sealed(taking(&two)?, How::default()), one.sealed(one.note("on")?, How::default()));
    let results = store.commit(vec![wrong, right.clone()]).await;
    ensure_equal!(results.iter().map(code).collect::<Vec<_>>(), ["effect.held", ""]);
    one.checkpoint = right.transition.checkpoint.clone();
    ensure_equal!(agrees(&*store, &two).await?, Tables::default());
    let draft = closing(&one, false)?;
    one.commit(draft, How::default()).await?;
    ensure_equal!(fate(&*subject.reopen()).await?, None);
    let draft = taking(&two)?;
    two.commit(draft, How::default()).await?;
    ensure_equal!(fate(&*subject.reopen()).await?, Some(("two".to_owned(), KeyFate::Open)));
    ensure_equal!(agrees(&*store, &one).await?.keys.len(), 0);
    ensure_equal!(agrees(&*store, &two).await?.keys.len(), 1);
    Ok(())
}

pub(super) async fn who_waits_for_a_key_is_due_when_it_is_free(subject: Arc<dyn Subject>) -> Checked {
    wakes(subject, false).await
}

pub(super) async fn who_waits_for_a_key_is_due_when_its_effect_is_known(subject: Arc<dyn Subject>) -> Checked {
    wakes(subject, true).await
}

async fn wakes(subject: Arc<dyn Subject>, done: bool) -> Checked {
    let store = subject.store();
    let (mut one, mut two) = (needs(&store, "one").await?, needs(&store, "two").await?);
    let draft = taking(&one)?;
    one.commit(draft, How::default()).await?;
    let draft = waiting(&two, &one)?;
    two.commit(draft, RELEASE).await?;
    ensure_equal!(store.load(&two.key()).await?.row.why, "held by one 1");
    ensure_equal!(agrees(&*store, &two).await?.waits, [(FIRST, KEY.to_owned())]);
    let worker = store.enlist().await?;
    ensure_equal!(store.claim(&worker, Want::Due(9)).await?.len(), 0);
    let draft = closing(&one, done)?;
    one.commit(draft, How::default()).await?;
    let result = Stored::at(ValueRef::of(PAID), one.checkpoint.seq);
    ensure_equal!(fate(&*subject.reopen()).await?, done.then(|| ("one".to_owned(), KeyFate::Done(result))));
    ensure_equal!(store.values(&one.claim.run, &[result]).await?.len(), 1);
    agrees(&*store, &one).await?;
    let mut claims = store.claim(&worker, Want::Due(9)).await?;
    ensure_equal!(claims.iter().map(|claim| claim.run.key.run.as_str()).collect::<Vec<_>>(), ["two"]);
    // A stop is not undone by it: that run waits for a person first.
    two.claim = claims.remove(0);
    let mut draft = two.draft();
    let text = draft.put("stop");
    draft.push(Event::RunStopped(RunStopped { reason: StopReason::Operator, text }))?;
    two.commit(draft, RELEASE).await?;
    ensure_equal!(store.claim(&worker, Want::Due(9)).await?.len(), 0);
    ensure_equal!(store.audit().await?.strays.len(), 0);
    Ok(())
}
