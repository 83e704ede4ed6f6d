//! Starts: ids, joining, durability.

use std::sync::Arc;

use lodestep_core::rules::standing::Status;
use lodestep_core::{RunId, RunKey};

use super::script::{Held, RELEASE, at_once, begin, code, key, start_of};
use super::{Checked, Subject, ensure, ensure_equal};
use crate::store::{Filter, Started, Want};

pub(super) async fn a_started_run_is_there_and_due(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let start = begin(&*store, "one").await?;
    for store in [subject.store(), subject.reopen()] {
        let loaded = store.load(&start.key).await?;
        ensure_equal!(loaded.checkpoint()?, start.transition.checkpoint);
        ensure_equal!(loaded.unread.len(), 0);
        let row = loaded.row;
        ensure_equal!(*row.run.key, start.key);
        ensure_equal!((row.agent, row.definition, row.inputs), (start.agent.clone(), start.definition, start.inputs));
        ensure_equal!((row.status, row.why.as_str()), (Status::Ready, ""));
        ensure_equal!((row.seq, row.epoch, row.crashes, row.inbox), (1, 0, 0, 0));
        ensure_equal!((row.started_at, row.updated_at), (store.now(), store.now()));
        ensure!(row.due.is_some_and(|due| due <= store.now()), "it is due at {:?}", row.due);
        ensure_equal!(row.holder, None);
    }
    let worker = store.enlist().await?;
    ensure_equal!(store.claim(&worker, Want::Due(9)).await?.len(), 1);
    Ok(())
}

pub(super) async fn the_same_start_again_gives_the_run_that_exists(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let start = begin(&*store, "one").await?;
    let mut held = Held::take(&store, "one", store.enlist().await?).await?;
    for act in ["claimed", "ended"] {
        if act == "ended" {
            let draft = held.end()?;
            held.commit(draft, RELEASE).await?;
        }
        let before = store.load(&start.key).await?.row;
        for store in [subject.store(), subject.reopen()] {
            let mut again = start.clone();
            again.join_unfinished = act == "claimed";
            let Started::Existing(row) = store.start(again).await? else {
                return Err(format!("a start of a run that is {act} is not Existing").into());
            };
            ensure_equal!(row, before);
        }
        ensure_equal!(store.load(&start.key).await?.row, before);
    }
    Ok(())
}

pub(super) async fn an_id_of_another_agent_or_other_inputs_is_refused(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let start = begin(&*store, "one").await?;
    let before = store.load(&start.key).await?;
    for (agent, inputs) in [("other", "{}"), ("agent", r#"{"a":1}"#)] {
        let result = store.start(start_of(&*store, key("one")?, agent, inputs)?).await;
        ensure_equal!(code(&result), "run.id_taken");
    }
    let after = store.load(&start.key).await?;
    ensure_equal!((after.row, after.tail), (before.row, before.tail));
    // The same id in another namespace is another run.
    let other = RunKey { namespace: "theirs".to_owned(), run: RunId::parse("one")? };
    let started = store.start(start_of(&*store, other, "other", "{}")?).await?;
    ensure!(matches!(started, Started::New(_)), "{started:?}");
    Ok(())
}

pub(super) async fn fifty_parallel_starts_with_one_id_make_one_run(subject: Arc<dyn Subject>) -> Checked {
    let handles = [subject.store(), subject.reopen()];
    let start = start_of(&*handles[0], key("one")?, "agent", "{}")?;
    let results = at_once(50, |place| {
        let (store, start) = (Arc::clone(&handles[place % 2]), start.clone());
        async move { store.start(start).await }
    })
    .await?;
    let mut new = 0;
    let mut numbers = Vec::new();
    for result in results {
        match result? {
            Started::New(run) => {
                new += 1;
                numbers.push(run.number);
            }
            Started::Existing(row) => numbers.push(row.run.number),
            other => return Err(format!("{other:?}").into()),
        }
    }
    numbers.dedup();
    ensure_equal!((new, numbers.len()), (1, 1));
    ensure_equal!(handles[1].list("default", &Filter::default()).await?.len(), 1);
    Ok(())
}

pub(super) async fn a_start_that_joins_finds_the_unfinished_runs(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let join = |id: &str, agent: &str, inputs: &str| {
        let mut start = start_of(&*store, key(id)?, agent, inputs)?;
        start.join_unfinished = true;
        Ok::<_, super::Failed>(start)
    };
    let first = store.start(join("one", "agent", "{}")?).await?;
    ensure!(matches!(first, Started::New(_)), "{first:?}");
    for (agent, inputs) in [("other", "{}"), ("agent", "[]")] {
        let other = store.start(join(&format!("not-{agent}"), agent, inputs)?).await?;
        ensure!(matches!(other, Started::New(_)), "{agent} with {inputs} joined {other:?}");
    }
    begin(&*store, "two").await?;
    let unfinished = |started: Started| match started {
        Started::Unfinished(rows) => rows.iter().map(|row| row.run.key.run.to_string()).collect(),
        other => vec![format!("{other:?}")],
    };
    ensure_equal!(unfinished(store.start(join("three", "agent", "{}")?).await?), ["two", "one"]);
    ensure_equal!(code(&store.load(&key("three")?).await), "run.not_found");
    let mut held = Held::take(&store, "two", store.enlist().await?).await?;
    let draft = held.end()?;
    held.commit(draft, RELEASE).await?;
    ensure_equal!(unfinished(store.start(join("three", "agent", "{}")?).await?), ["one"]);
    Ok(())
}

pub(super) async fn a_start_without_a_first_transition_is_refused(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut start = start_of(&*store, key("one")?, "agent", "{}")?;
    start.key = key("two")?;
    ensure_equal!(code(&store.start(start).await), "run.illegal_event");
    ensure_equal!(store.list("default", &Filter::default()).await?.len(), 0);
    Ok(())
}
