//! What nothing needs any more: values that no transition names, runs that ended.

use std::sync::Arc;

use lodestep_core::definition::QuotaLimits;
use lodestep_core::event::{Origin, RunForked};
use lodestep_core::rules::inbox::{Verdict, Word};
use lodestep_core::value::Values;
use lodestep_core::{Digest, Draft, INLINE_VALUE_BYTES, Ordinal, RunId, Stored, ValueRef};

use super::dedupe::{closing, needs, taking};
use super::script::{Held, How, RELEASE, SNAPSHOT, approve, cancel, code, key, labelled, request_name, says, start_of};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::garbage::{Amount, Kept, Mode, Removal, SWEEP_AFTER_MS, Sweep};
use crate::store::{Filter, RunRef, StartRun, Started, Store};

/// A value above the inline bound; another for each name.
fn large(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(INLINE_VALUE_BYTES + name.len()).collect()
}

fn amount(of: &[&[u8]]) -> Amount {
    Amount { count: of.len() as u64, bytes: of.iter().map(|bytes| bytes.len() as u64).sum() }
}

/// What a pass found, the room in the file left aside.
async fn pass(store: &Arc<dyn Store>, mode: Mode) -> Result<Sweep, Failed> {
    Ok(Sweep { free_bytes: 0, leftovers: Amount::default(), ..store.sweep(mode).await? })
}

async fn is_there(store: &Arc<dyn Store>, run: &RunRef, bytes: &[u8]) -> bool {
    let stored = Stored::at(ValueRef::of(bytes), 1);
    store.values(run, &[stored]).await.is_ok_and(|found| found.len() == 1)
}

pub(super) async fn a_value_that_nothing_names_goes_in_a_pass_a_day_after_the_first(
    subject: Arc<dyn Subject>,
) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let (named, unnamed) = (large("named"), large("unnamed"));
    for bytes in [&named, &unnamed] {
        store.put_value(bytes.clone()).await?;
    }
    let draft = held.artifact("a", 1, &named)?;
    held.commit(draft, How::default()).await?;
    let waits = Sweep { named: amount(&[&named]), waiting: amount(&[&unnamed]), ..Sweep::default() };
    let goes = Sweep { named: amount(&[&named]), swept: amount(&[&unnamed]), ..Sweep::default() };
    // A dry run is no pass: the day begins with the first that does something.
    ensure_equal!(pass(&store, Mode::DryRun).await?, waits);
    subject.clock().advance_ms(SWEEP_AFTER_MS);
    for _ in 0..3 {
        ensure_equal!(pass(&store, Mode::Apply).await?, waits);
    }
    subject.clock().advance_ms(SWEEP_AFTER_MS - 1);
    let other = subject.reopen();
    ensure_equal!(pass(&other, Mode::Apply).await?, waits);
    subject.clock().advance_ms(1);
    ensure_equal!(pass(&other, Mode::DryRun).await?, goes);
    ensure!(is_there(&store, &held.claim.run, &unnamed).await, "a dry run swept it");
    ensure_equal!(pass(&other, Mode::Apply).await?, goes);
    ensure!(!is_there(&store, &held.claim.run, &unnamed).await, "it is there still");
    ensure!(is_there(&store, &held.claim.run, &named).await, "a value that a transition names is gone");
    ensure_equal!(pass(&store, Mode::Apply).await?, Sweep { swept: Amount::default(), ..goes });
    Ok(())
}

/// A value that was put, and two passes a day apart.
async fn swept(subject: &Arc<dyn Subject>, bytes: &[u8]) -> Checked {
    let other = subject.reopen();
    pass(&other, Mode::Apply).await?;
    subject.clock().advance_ms(SWEEP_AFTER_MS);
    let swept = pass(&other, Mode::Apply).await?.swept;
    ensure_equal!(swept, amount(&[bytes]));
    Ok(())
}

pub(super) async fn a_commit_that_names_a_swept_value_fails(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let bytes = large("late");
    store.put_value(bytes.clone()).await?;
    // Its worker stands still for a day between the two.
    swept(&subject, &bytes).await?;
    let before = store.load(&held.key()).await?.row;
    let mut commit = held.sealed(held.artifact("a", 1, &bytes)?, How::default());
    // The bytes are put before, not with it.
    Arc::make_mut(&mut commit.transition).values.clear();
    let refused = held.send(commit.clone()).await;
    ensure_equal!(code(&refused), "store.value_swept");
    let says = refused.err().map(|error| error.what().to_owned()).unwrap_or_default();
    ensure!(says.contains(&Digest::of(&bytes).to_hex()), "the digest is not named: {says}");
    ensure_equal!(store.load(&held.key()).await?.row, before);
    // Put anew, the same commit goes through.
    store.put_value(bytes.clone()).await?;
    held.send(commit).await?;
    ensure!(is_there(&store, &held.claim.run, &bytes).await, "it does not come back");
    // A first transition is no exception.
    let mut start = start_of(&*store, key("two")?, "agent", &String::from_utf8_lossy(&large("inputs")))?;
    start.transition.values.retain(|bytes| bytes.len() <= INLINE_VALUE_BYTES);
    ensure_equal!(code(&store.start(start).await), "store.value_swept");
    ensure_equal!(store.find("default", "two", 1).await?.len(), 0);
    Ok(())
}

pub(super) async fn to_put_a_value_anew_begins_its_day_anew(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let bytes = large("again");
    store.put_value(bytes.clone()).await?;
    pass(&store, Mode::Apply).await?;
    subject.clock().advance_ms(SWEEP_AFTER_MS);
    subject.reopen().put_value(bytes.clone()).await?;
    for _ in 0..2 {
        ensure_equal!(pass(&store, Mode::Apply).await?.swept, Amount::default());
        subject.clock().advance_ms(SWEEP_AFTER_MS - 1);
    }
    // Named just in time.
    let draft = held.artifact("a", 1, &bytes)?;
    held.commit(draft, How::default()).await?;
    subject.clock().advance_ms(SWEEP_AFTER_MS);
    ensure_equal!(pass(&store, Mode::Apply).await?.named, amount(&[&bytes]));
    ensure!(is_there(&store, &held.claim.run, &bytes).await, "a value that a transition names is gone");
    Ok(())
}

/// A run that has ended, with a row in most tables.
async fn ended(store: &Arc<dyn Store>, id: &str) -> Result<Held, Failed> {
    store.start(labelled(&**store, key(id)?, "agent", &[("month", "11")])?).await?;
    let mut held = Held::take(store, id, store.enlist().await?).await?;
    let request = held.ask(How::default()).await?;
    store.send(&held.key(), "approval", &approve(request)).await?;
    let draft = held.reading().await?;
    held.commit(draft, SNAPSHOT).await?;
    let draft = held.intent(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let draft = held.outcome(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let draft = held.artifact("a", 1, &large(id))?;
    held.commit(draft, How::default()).await?;
    let draft = held.end()?;
    held.commit(draft, RELEASE).await?;
    Ok(held)
}

async fn removal(store: &Arc<dyn Store>, runs: &[&Held], mode: Mode) -> Result<Removal, Failed> {
    let runs: Vec<RunRef> = runs.iter().map(|held| held.claim.run.clone()).collect();
    Ok(store.remove(&runs, mode).await?)
}

pub(super) async fn a_removed_run_leaves_nothing_but_its_id(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let stays = ended(&store, "stays").await?;
    let goes = ended(&store, "goes").await?;
    let kept = store.load(&stays.key()).await?;
    let Removal::Removed(would) = removal(&store, &[&goes], Mode::DryRun).await? else {
        return Err("it is kept".into());
    };
    ensure_equal!((would.runs, would.transitions), (1, goes.checkpoint.seq));
    ensure!(would.bytes > 0, "it has no bytes");
    ensure_equal!(store.audit().await?.runs.len(), 2);
    ensure_equal!(removal(&subject.reopen(), &[&goes], Mode::Apply).await?, Removal::Removed(would));
    ensure_equal!(code(&store.load(&goes.key()).await), "run.not_found");
    ensure_equal!(code(&store.remove(std::slice::from_ref(&goes.claim.run), Mode::Apply).await), "run.not_found");
    ensure_equal!(code(&store.send(&goes.key(), "late", &cancel()).await), "run.not_found");
    let audit = store.audit().await?;
    ensure_equal!((audit.runs, audit.strays), (vec![stays.claim.run.clone()], Vec::new()));
    let request = request_name(&goes.key(), 1).to_hex();
    ensure_equal!(store.find_requests("default", &request).await?.len(), 0);
    let journal = store.journal(&goes.claim.run, 1, 99).await;
    ensure!(!journal.is_ok_and(|rows| !rows.is_empty()), "its journal is there still");
    let labels = vec![("month".to_owned(), "11".to_owned())];
    let filter = Filter { labels, still_since: Some(store.now().plus_ms(1)), ..Filter::default() };
    let listed = store.list("default", &filter).await?;
    ensure_equal!(listed.iter().map(|row| row.run.key.run.as_str()).collect::<Vec<_>>(), ["stays"]);
    // The other one is what it was, and its values stay. Those of the removed run go like any that nothing names.
    let after = store.load(&stays.key()).await?;
    ensure_equal!((after.row, after.tail), (kept.row, kept.tail));
    swept(&subject, &large("goes")).await?;
    ensure!(is_there(&store, &stays.claim.run, &large("stays")).await, "a value of another run is gone");
    // Under its id everything would be done again; and no number is given twice.
    let again = store.start(start_of(&*store, goes.key(), "agent", "{}")?).await;
    ensure_equal!(code(&again), "run.removed");
    let next = Held::begin(&store, "next").await?;
    ensure!(next.claim.run.number > goes.claim.run.number, "a number is used again");
    Ok(())
}

/// The first transition of a fork of a run as it stands.
fn fork_of(store: &dyn Store, origin: &Held, id: &str) -> Result<StartRun, Failed> {
    let mut values = Values::new();
    let state = &origin.checkpoint;
    let forked = RunForked {
        run: RunId::parse(id)?,
        origin: Origin { run: state.run.clone(), seq: state.seq, head: state.head },
        state: Box::new(state.clone()),
        inputs: values.put("{}"),
        quota: QuotaLimits::default(),
        by: "ada".to_owned(),
        withdrawn: values.put("withdrawn"),
        left: values.put("left"),
        labels: None,
    };
    let transition = Draft::fork(forked, values, store.now())?.seal();
    let first = &transition.checkpoint;
    let (definition, inputs) = (first.definition.digest, first.inputs.digest);
    let (key, agent) = (key(id)?, first.agent.clone());
    Ok(StartRun { key, agent, definition, inputs, transition, join_unfinished: false })
}

pub(super) async fn a_run_that_is_needed_is_kept(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let done = ended(&store, "done").await?;
    // One that goes on, and one to which a word came that nobody has read yet.
    let open = Held::begin(&store, "open").await?;
    ensure_equal!(removal(&store, &[&open], Mode::Apply).await?, Removal::Kept(Kept::NotOver(open.key().run)));
    let told = ended(&store, "told").await?;
    let amounts = QuotaLimits { model_calls: Some(1), ..QuotaLimits::default() };
    let grant = Word::Grant { to: RunId::parse("another")?, amounts };
    ensure_equal!(store.send(&told.key(), "grant", &says(grant)).await?, Verdict::Accepted);
    ensure_equal!(removal(&store, &[&told], Mode::Apply).await?, Removal::Kept(Kept::Unread(told.key().run)));
    // One whose effect has a dedupe key: whoever meets it gets the outcome from here.
    let mut keyed = needs(&store, "keyed").await?;
    for draft in [taking, |held: &Held| closing(held, true)] {
        let draft = draft(&keyed)?;
        keyed.commit(draft, How::default()).await?;
    }
    let draft = keyed.end()?;
    keyed.commit(draft, RELEASE).await?;
    let kept = removal(&store, &[&keyed], Mode::Apply).await?;
    ensure!(matches!(&kept, Removal::Kept(Kept::DedupeKey(run, _)) if *run == keyed.key().run), "{kept:?}");
    // Whatever one is, none of those named with it goes.
    let both = removal(&store, &[&done, &open], Mode::Apply).await?;
    ensure_equal!(both, Removal::Kept(Kept::NotOver(open.key().run)));
    for held in [&done, &open, &told, &keyed] {
        ensure_equal!(store.load(&held.key()).await?.checkpoint()?, held.checkpoint);
    }
    Ok(())
}

pub(super) async fn a_lineage_goes_whole_or_not_at_all(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let origin = ended(&store, "origin").await?;
    let made = store.start(fork_of(&*store, &origin, "fork")?).await?;
    ensure!(matches!(made, Started::New(_)), "the fork gives {made:?}");
    let mut fork = Held::take(&store, "fork", store.enlist().await?).await?;
    let relative = |run: &str| RunId::parse(run).map(|run| Removal::Kept(Kept::Relative(run)));
    // What the origin did is what the fork must not do again, and the other way round.
    ensure_equal!(removal(&store, &[&origin], Mode::Apply).await?, relative("fork")?);
    let both = [&origin, &fork];
    ensure_equal!(removal(&store, &both, Mode::Apply).await?, Removal::Kept(Kept::NotOver(fork.key().run)));
    let draft = fork.end()?;
    fork.commit(draft, RELEASE).await?;
    ensure_equal!(removal(&store, &[&origin], Mode::Apply).await?, relative("fork")?);
    ensure_equal!(removal(&store, &[&fork], Mode::Apply).await?, relative("origin")?);
    // Another fork was about to be started.
    let late = fork_of(&*store, &origin, "late")?;
    let gone = removal(&store, &[&origin, &fork], Mode::Apply).await?;
    ensure!(matches!(gone, Removal::Removed(removed) if removed.runs == 2), "{gone:?}");
    ensure_equal!(code(&store.start(late).await), "run.not_found");
    ensure_equal!(store.audit().await?.runs.len(), 0);
    Ok(())
}
