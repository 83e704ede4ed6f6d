//! Verdicts under contention: each question has one answer.

use std::sync::Arc;

use lodestep_core::rules::inbox::{Verdict, Word};

use super::script::{Held, How, RELEASE, approve, at_once, deny, says};
use super::{Checked, Failed, Subject, ensure, ensure_equal};

pub(super) async fn a_second_approval_is_already_given(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let name = held.ask(How::default()).await?;
    ensure_equal!(store.send(&held.key(), "first", &approve(name)).await?, Verdict::Accepted);
    for read in [false, true] {
        if read {
            let draft = held.reading().await?;
            held.commit(draft, How::default()).await?;
        }
        let again = store.send(&held.key(), "second", &approve(name)).await?;
        ensure!(matches!(again, Verdict::AlreadyGiven(_)), "read: {read}, {again:?}");
        let other = store.send(&held.key(), "third", &deny(name)).await?;
        ensure!(
            matches!(&other, Verdict::Refused(error) if error.code() == "request.decided"),
            "read: {read}, {other:?}"
        );
    }
    ensure_equal!(store.load(&held.key()).await?.row.inbox, 1);
    Ok(())
}

pub(super) async fn of_eight_parallel_approvals_one_counts(subject: Arc<dyn Subject>) -> Checked {
    let handles = [subject.store(), subject.reopen()];
    let mut held = Held::begin(&handles[0], "one").await?;
    let name = held.ask(RELEASE).await?;
    let verdicts = at_once(8, |place| {
        let (store, run) = (Arc::clone(&handles[place % 2]), held.key());
        async move { store.send(&run, &format!("m{place}"), &approve(name)).await }
    })
    .await?;
    let mut accepted = 0;
    for verdict in verdicts {
        match verdict? {
            Verdict::Accepted => accepted += 1,
            Verdict::AlreadyGiven(_) => {}
            Verdict::Refused(error) => return Err(error.into()),
        }
    }
    ensure_equal!(accepted, 1);
    ensure_equal!(handles[1].load(&held.key()).await?.unread.len(), 1);
    Ok(())
}

pub(super) async fn approve_against_deny_has_one_winner(subject: Arc<dyn Subject>) -> Checked {
    const ROUNDS: usize = 200;
    let handles = [subject.store(), subject.reopen()];
    let rounds = at_once(ROUNDS, |round| {
        let handles = handles.clone();
        async move {
            let mut held = Held::begin(&handles[0], &format!("r{round}")).await?;
            let name = held.ask(RELEASE).await?;
            let words = [approve(name), deny(name)];
            let verdicts = at_once(2, |place| {
                let (store, run) = (Arc::clone(&handles[(round + place) % 2]), held.key());
                let word = words[place].clone();
                async move { store.send(&run, &format!("m{place}"), &word).await }
            })
            .await?;
            let unread = handles[0].load(&held.key()).await?.unread;
            Ok::<_, Failed>((words, verdicts, unread))
        }
    })
    .await?;
    for round in rounds {
        let (words, verdicts, unread) = round?;
        let mut winner = None;
        for (word, verdict) in words.into_iter().zip(verdicts) {
            match verdict? {
                Verdict::Accepted if winner.is_none() => winner = Some(word),
                Verdict::Refused(error) if error.code() == "request.decided" => {}
                other => return Err(format!("{other:?} after {winner:?}").into()),
            }
        }
        ensure_equal!(unread.into_iter().map(|(_, message)| message).next(), winner);
    }
    Ok(())
}

pub(super) async fn a_message_is_judged_with_those_unread_before_it(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let name = held.ask(How::default()).await?;
    let stop = says(Word::Cancel { reason: "enough".to_owned() });
    ensure_equal!(store.send(&held.key(), "stop", &stop).await?, Verdict::Accepted);
    // No transition has read the cancel, and still the approval comes too late.
    let late = store.send(&held.key(), "yes", &approve(name)).await?;
    ensure!(matches!(&late, Verdict::Refused(error) if error.code() == "request.withdrawn"), "{late:?}");
    // With an unread approval the edit of the same request is stale.
    let mut other = Held::begin(&store, "two").await?;
    let name = other.ask(How::default()).await?;
    store.send(&other.key(), "yes", &approve(name)).await?;
    let edited = Word::ApproveEdited { request: name, arguments: b"{}".to_vec(), same: None, dedupe: None };
    let late = store.send(&other.key(), "edited", &says(edited)).await?;
    ensure!(matches!(&late, Verdict::Refused(error) if error.code() == "request.decided"), "{late:?}");
    Ok(())
}
