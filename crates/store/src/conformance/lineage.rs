//! The runs of a lineage, and their equal effects.

use std::sync::Arc;

use lodestep_core::definition::QuotaLimits;
use lodestep_core::event::{Gate, Origin, RunForked};
use lodestep_core::value::Values;
use lodestep_core::{Draft, Ordinal, RunId, RunKey};

use super::adopt::copy_of;
use super::script::{Held, How, key, same, start_of};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::clock::SettableClock;
use crate::memory::MemoryStore;
use crate::store::{EffectRow, Release, RunRef, StartRun, Started, Store};

/// A fork of a run as it stands.
async fn fork(store: &Arc<dyn Store>, of: &Held, id: &str) -> Result<Held, Failed> {
    let key = key(id)?;
    let mut values = Values::new();
    let state = of.checkpoint.clone();
    let forked = RunForked {
        run: key.run.clone(),
        origin: Origin { run: state.run.clone(), seq: state.seq, head: state.head },
        inputs: values.put("{}"),
        quota: QuotaLimits::default(),
        by: "ada".to_owned(),
        withdrawn: values.put("it was not sent"),
        left: values.put("its origin has it"),
        labels: None,
        state: Box::new(state),
    };
    let draft = Draft::fork(forked, values, store.now())?;
    let state = draft.checkpoint();
    let start = StartRun {
        key,
        agent: state.agent.clone(),
        definition: state.definition.digest,
        inputs: state.inputs.digest,
        transition: draft.seal(),
        join_unfinished: false,
    };
    let started = store.start(start).await?;
    ensure!(matches!(started, Started::New(_)), "the start of the fork {id} gives {started:?}");
    let worker = store.enlist().await?;
    Held::take(store, id, worker).await
}

/// Proposes an effect with the sameness of place 1 or beyond, and commits its intent.
async fn pays(held: &mut Held) -> Result<EffectRow, Failed> {
    let draft = held.proposal([Gate::Open])?;
    held.commit(draft, How::default()).await?;
    let ordinal = Ordinal(held.checkpoint.last_ordinal);
    let draft = held.intent(ordinal)?;
    held.commit(draft, How::default()).await?;
    Ok(EffectRow { same: same(ordinal), ordinal, seq: held.checkpoint.seq })
}

async fn kin(store: &dyn Store, run: &Held, root: &RunId) -> Result<Vec<String>, Failed> {
    let rows = store.kin(&run.claim.run, root).await?;
    Ok(rows.iter().map(|row| row.run.key.run.to_string()).collect())
}

pub(super) async fn a_lineage_is_its_root_and_every_fork_that_goes_back_to_it(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let one = Held::begin(&store, "one").await?;
    let two = fork(&store, &one, "two").await?;
    let three = fork(&store, &two, "three").await?;
    let stranger = Held::begin(&store, "stranger").await?;
    let theirs = RunKey { namespace: "theirs".to_owned(), ..key("one")? };
    store.start(start_of(&*store, theirs, "agent", "{}")?).await?;
    let (root, store) = (RunId::parse("one")?, subject.reopen());
    ensure_equal!(kin(&*store, &one, &root).await?, ["two", "three"]);
    ensure_equal!(kin(&*store, &two, &root).await?, ["one", "three"]);
    ensure_equal!(kin(&*store, &three, &root).await?, ["one", "two"]);
    ensure_equal!(kin(&*store, &stranger, &RunId::parse("stranger")?).await?.len(), 0);
    Ok(())
}

pub(super) async fn equal_effects_of_the_other_runs_of_a_lineage_are_found(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut one = Held::begin(&store, "one").await?;
    let mut two = fork(&store, &one, "two").await?;
    let mut stranger = Held::begin(&store, "stranger").await?;
    let root = RunId::parse("one")?;
    ensure_equal!(store.kin_effects(&two.claim.run, &root, &same(Ordinal(1))).await?.len(), 0);
    let (of_one, of_two) = (pays(&mut one).await?, pays(&mut two).await?);
    pays(&mut stranger).await?;
    let three = fork(&store, &two, "three").await?;
    ensure_equal!((of_one.same, of_two.same), (same(Ordinal(1)), same(Ordinal(1))));
    let found = |all: Vec<(RunRef, EffectRow)>| -> Vec<(String, EffectRow)> {
        all.into_iter().map(|(run, row)| (run.key.run.to_string(), row)).collect()
    };
    let store = subject.reopen();
    let wanted = [("one".to_owned(), of_one), ("two".to_owned(), of_two)];
    for (run, wanted) in [(&one, &wanted[1..]), (&two, &wanted[..1]), (&three, &wanted[..])] {
        ensure_equal!(found(store.kin_effects(&run.claim.run, &root, &same(Ordinal(1))).await?), wanted);
        ensure_equal!(store.kin_effects(&run.claim.run, &root, &same(Ordinal(9))).await?.len(), 0);
    }
    Ok(())
}

/// Does a step say that the lineage has another run? The same whatever its worker thought, and on each path of a commit.
async fn has_kin(held: &mut Held) -> Result<bool, Failed> {
    let mut said = Vec::new();
    for known_kin in [false, true, true, false] {
        let draft = held.note(format!("{}", held.checkpoint.seq))?;
        said.push(held.commit(draft, How { known_kin, ..How::default() }).await?.has_kin);
    }
    let all = said.iter().filter(|has_kin| **has_kin).count();
    ensure!(all == 0 || all == said.len(), "of four steps {all} have kin");
    Ok(all > 0)
}

pub(super) async fn a_commit_says_whether_the_lineage_has_another_run(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut one = Held::begin(&store, "one").await?;
    let mut stranger = Held::begin(&store, "stranger").await?;
    ensure!(!has_kin(&mut one).await?, "it is alone");
    let mut two = fork(&store, &one, "two").await?;
    let mut three = fork(&store, &two, "three").await?;
    for held in [&mut one, &mut two, &mut three] {
        ensure!(has_kin(held).await?, "{} has kin", held.checkpoint.run);
    }
    ensure!(!has_kin(&mut stranger).await?, "it is alone still");
    Ok(())
}

/// From another store, in each order: its origin, a fork that goes back to it, and a fork of a run that is not there.
pub(super) async fn a_run_that_comes_in_is_kin(subject: Arc<dyn Subject>) -> Checked {
    let away: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SettableClock::at(subject.store().now()))));
    for (first, second) in [("a", "a-fork"), ("b-fork", "b")] {
        let root = first.trim_end_matches("-fork");
        let origin = Held::begin(&away, root).await?;
        let fork = fork(&away, &origin, &format!("{root}-fork")).await?;
        for held in [origin, fork] {
            away.release(&held.claim, Some(away.now()), Release::Idle).await?;
        }
        let store = subject.store();
        store.adopt(copy_of(&*away, first).await?).await?;
        let mut earlier = Held::take(&store, first, store.enlist().await?).await?;
        ensure!(!has_kin(&mut earlier).await? || first.ends_with("-fork"), "{first} is alone");
        store.adopt(copy_of(&*away, second).await?).await?;
        let mut later = Held::take(&store, second, store.enlist().await?).await?;
        ensure!(has_kin(&mut earlier).await? && has_kin(&mut later).await?, "{first} and {second} are kin");
    }
    Ok(())
}
