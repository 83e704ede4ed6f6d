//! A run that comes whole from another store is here as it was there, or not at all.

use std::sync::Arc;

use lodestep_core::rules::inbox::Verdict;

use super::dedupe::{KEY, closing, needs, taking};
use super::script::{Held, How, approve, code, key};
use super::value::content;
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::clock::SettableClock;
use crate::memory::MemoryStore;
use crate::replay::Replay;
use crate::store::{Adopt, Filter, Store};

/// A run of another store that has an effect under a dedupe key, an artifact, a request that waits, and an unread word.
async fn elsewhere(subject: &dyn Subject) -> Result<(Held, Adopt), Failed> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SettableClock::at(subject.store().now()))));
    let mut held = needs(&store, "one").await?;
    let draft = taking(&held)?;
    held.commit(draft, How::default()).await?;
    let draft = closing(&held, true)?;
    held.commit(draft, How::default()).await?;
    let draft = held.artifact("report", 1, &content(5_000))?;
    held.commit(draft, How::default()).await?;
    let asked = held.ask(How::default()).await?;
    let sent = store.send(&held.key(), "yes", &approve(asked)).await?;
    ensure!(matches!(sent, Verdict::Accepted), "the word is {sent:?}");
    let labels = [("team".to_owned(), "news".to_owned())].into_iter().collect();
    let copy = copy_of(&*store, "one").await?;
    Ok((held, Adopt { labels, ..copy }))
}

/// A run of another store, as it is carried.
pub(super) async fn copy_of(store: &dyn Store, id: &str) -> Result<Adopt, Failed> {
    let loaded = store.load(&key(id)?).await?;
    let (run, state) = (loaded.row.run.clone(), loaded.checkpoint()?);
    let mut replay = Replay::default();
    let rows = store.journal(&run, 1, 99).await?;
    for row in &rows {
        replay.take_in(&row.envelope)?;
    }
    let letters = store.beside(&run).await?.letters;
    let definition = replay.definition.unwrap_or(state.definition.digest);
    let (epoch, tables) = (replay.epoch, replay.tables);
    Ok(Adopt { rows, state, definition, epoch, tables, labels: Default::default(), letters })
}

pub(super) async fn an_adopted_run_is_as_it_was(subject: Arc<dyn Subject>) -> Checked {
    let (origin, adopt) = elsewhere(&*subject).await?;
    let (state, before) = (adopt.state.clone(), origin.store.beside(&origin.claim.run).await?);
    let run = subject.store().adopt(adopt.clone()).await?;
    let store = subject.reopen();
    ensure_equal!(store.load(&run.key).await?.checkpoint()?, state);
    let rows = store.journal(&run, 1, 99).await?;
    ensure_equal!(rows.len(), adopt.rows.len());
    for (found, given) in rows.iter().zip(&adopt.rows) {
        ensure_equal!((found.seq, &found.envelope, &found.values), (given.seq, &given.envelope, &given.values));
    }
    let after = store.beside(&run).await?;
    ensure_equal!(after.tables, before.tables);
    ensure_equal!((after.inbox_read, after.row.inbox), (before.inbox_read, before.row.inbox));
    ensure_equal!(
        (&after.row.agent, after.row.status, after.row.head),
        (&before.row.agent, before.row.status, state.head)
    );
    ensure_equal!(store.unread(&run, state.inbox).await?.len(), 1);
    let open = store.open_requests("default", 9).await?;
    ensure_equal!(open.iter().map(|row| (&row.run, row.open)).collect::<Vec<_>>(), [(&run, true)]);
    let keys = store.dedupe_keys("default", &[KEY.to_owned()]).await?;
    ensure_equal!(keys.iter().map(|key| &key.run).collect::<Vec<_>>(), [&run]);
    let filter = Filter { labels: adopt.labels.clone().into_iter().collect(), ..Filter::default() };
    ensure_equal!(store.list("default", &filter).await?.len(), 1);
    // Its next claim is one that no worker of the other store ever had.
    let worker = store.enlist().await?;
    store.send(&run.key, "on", &super::script::cancel()).await?;
    let mut held = Held::take(&store, "one", worker).await?;
    ensure!(held.claim.epoch > adopt.epoch, "epoch {} follows {}", held.claim.epoch, adopt.epoch);
    held.step("it goes on").await?;
    Ok(())
}

pub(super) async fn a_run_that_can_not_be_adopted_leaves_nothing(subject: Arc<dyn Subject>) -> Checked {
    let (_origin, adopt) = elsewhere(&*subject).await?;
    let store = subject.store();
    let mut other = needs(&store, "other").await?;
    let draft = taking(&other)?;
    other.commit(draft, How::default()).await?;
    ensure_equal!(code(&store.adopt(adopt.clone()).await), "effect.held");
    let key = adopt.state.key();
    ensure_equal!(code(&subject.reopen().load(&key).await), "run.not_found");
    ensure_equal!(store.open_requests("default", 9).await?.len(), 0);
    ensure_equal!(store.list("default", &Filter::default()).await?.len(), 1);
    let draft = closing(&other, false)?;
    other.commit(draft, How::default()).await?;
    let run = store.adopt(adopt.clone()).await?;
    ensure_equal!(code(&store.adopt(adopt).await), "run.id_taken");
    ensure_equal!(subject.reopen().load(&key).await?.row.run, run);
    Ok(())
}
