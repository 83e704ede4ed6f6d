//! What stands beside the head: journal, transcripts, effects, artifacts, requests.

use std::sync::Arc;

use lodestep_core::event::Gate;
use lodestep_core::{Digest, Ordinal, Stored, ValueRef};

use super::script::{Held, How, approve, request_name, same};
use super::value::content;
use super::{Checked, Subject, ensure, ensure_equal};
use crate::garbage::{Amount, Mode};
use crate::store::{ArtifactRow, EffectRow};

pub(super) async fn a_journal_gives_back_what_was_committed(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let mut commits = Vec::new();
    for step in 0..5 {
        // Some that pack well, and some that don't: short and long ones.
        let text = if step < 3 { "words ".repeat(step * 200).into_bytes() } else { content(step * 1_500) };
        let mut commit = held.sealed(held.note(text.clone())?, How::default());
        commit.transcript = (step % 2 == 0).then(|| [format!("reply {step} ").as_bytes(), &text].concat());
        commits.push(commit.clone());
        held.send(commit).await?;
    }
    let rows = subject.reopen().journal(&held.claim.run, 2, 99).await?;
    ensure_equal!(rows.len(), commits.len());
    for (row, commit) in rows.iter().zip(&commits) {
        ensure_equal!(row.seq, commit.transition.checkpoint.seq);
        ensure_equal!(row.envelope, commit.transition.envelope);
        ensure_equal!(row.values.as_ref(), Some(&commit.transition.values));
        ensure_equal!(row.transcript, commit.transcript);
    }
    let some = store.journal(&held.claim.run, 3, 2).await?;
    ensure_equal!(some.iter().map(|row| row.seq).collect::<Vec<_>>(), [3, 4]);
    ensure_equal!(store.journal(&held.claim.run, 99, 9).await?.len(), 0);
    Ok(())
}

pub(super) async fn transcripts_can_be_emptied_and_nothing_needs_them(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let other = Held::begin(&store, "two").await?;
    for step in 0..4 {
        let draft = if step % 2 == 0 { held.reservation()? } else { held.answer(b"a reply")? };
        let mut commit = held.sealed(draft, How::default());
        commit.transcript = (step % 2 == 1).then(|| content(step * step * 1_000));
        held.send(commit).await?;
        let there = store.forget_transcripts(&held.claim.run, Mode::DryRun).await?;
        ensure_equal!((there.count, there.bytes > 0), (u64::from(step % 2 == 1), step % 2 == 1));
        ensure_equal!(store.forget_transcripts(&held.claim.run, Mode::Apply).await?, there);
        ensure_equal!(store.load(&held.key()).await?.checkpoint()?, held.checkpoint);
    }
    let rows = subject.reopen().journal(&held.claim.run, 1, 99).await?;
    ensure!(rows.iter().all(|row| row.transcript.is_none()), "a transcript is still there");
    ensure!(rows.iter().all(|row| row.values.is_some()), "values went with the transcripts");
    ensure_equal!(store.audit().await?.strays, Vec::<String>::new());
    ensure_equal!(store.forget_transcripts(&other.claim.run, Mode::Apply).await?, Amount::default());
    Ok(())
}

pub(super) async fn an_effect_is_listed_from_its_first_intent_on(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let draft = held.proposal([Gate::Open, Gate::Open])?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(store.effects(&held.claim.run, Some(&same(Ordinal(1)))).await?.len(), 0);
    let draft = held.intent(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let draft = held.outcome(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let effects = subject.reopen().effects(&held.claim.run, Some(&same(Ordinal(1)))).await?;
    ensure_equal!(effects, [EffectRow { same: same(Ordinal(1)), ordinal: Ordinal(1), seq: 3 }]);
    ensure_equal!(store.effects(&held.claim.run, Some(&same(Ordinal(2)))).await?.len(), 0);
    Ok(())
}

pub(super) async fn every_version_of_an_artifact_is_listed(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let mut wanted = Vec::new();
    for (name, version, content) in [("b", 1, "first"), ("a", 1, ""), ("b", 2, "second")] {
        let draft = held.artifact(name, version, content.as_bytes())?;
        held.commit(draft, How::default()).await?;
        let content = Stored::at(ValueRef::of(content.as_bytes()), held.checkpoint.seq);
        wanted.push(ArtifactRow { name: name.to_owned(), version, content });
    }
    ensure_equal!(subject.reopen().artifacts(&held.claim.run).await?, wanted);
    let contents: Vec<Stored> = wanted.iter().map(|row| row.content).collect();
    let blobs = store.values(&held.claim.run, &contents).await?;
    ensure_equal!(blobs.get(&Digest::of(b"second")).map(Vec::as_slice), Some(&b"second"[..]));
    Ok(())
}

pub(super) async fn a_request_is_open_until_a_transition_closes_it(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    ensure_equal!(store.open_requests("default", 9).await?.len(), 0);
    let names = [1, 2].map(|ordinal| request_name(&held.key(), ordinal));
    let draft = held.proposal(names.map(super::script::approval))?;
    held.commit(draft, How::default()).await?;
    let open = subject.reopen().open_requests("default", 9).await?;
    ensure_equal!(open.iter().map(|row| row.name).collect::<Vec<_>>(), names);
    ensure_equal!(open.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [Ordinal(1), Ordinal(2)]);
    ensure!(open.iter().all(|row| row.open && row.run == held.claim.run), "{open:?}");
    ensure_equal!(store.open_requests("default", 1).await?.len(), 1);
    ensure_equal!(store.open_requests("theirs", 9).await?.len(), 0);
    // The word alone closes nothing: the transition that reads it does.
    store.send(&held.key(), "yes", &approve(names[0])).await?;
    ensure_equal!(store.open_requests("default", 9).await?.len(), 2);
    let draft = held.reading().await?;
    held.commit(draft, How::default()).await?;
    let open = store.open_requests("default", 9).await?;
    ensure_equal!(open.iter().map(|row| row.name).collect::<Vec<_>>(), [names[1]]);
    let closed = store.find_requests("default", &names[0].to_hex()).await?;
    ensure_equal!(closed.iter().map(|row| row.open).collect::<Vec<_>>(), [false]);
    Ok(())
}
