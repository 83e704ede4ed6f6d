//! Messages: stored when they count, deduplicated, bounded.

use std::sync::Arc;

use lodestep_core::rules::inbox::{MESSAGE_BYTES, Message, UNREAD_MESSAGES, Verdict, Word};

use super::script::{Held, How, RELEASE, approval, approve, cancel, code, deny, key, request_name, says};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::store::Want;

fn refusal(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Refused(error) => error.code(),
        _ => "",
    }
}

pub(super) async fn an_accepted_message_is_stored_and_makes_the_run_due(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let name = held.ask(RELEASE).await?;
    ensure_equal!(store.claim(&held.worker, Want::Due(9)).await?.len(), 0);
    ensure_equal!(subject.reopen().send(&held.key(), "yes", &approve(name)).await?, Verdict::Accepted);
    let loaded = store.load(&held.key()).await?;
    ensure_equal!(loaded.unread, [(1, approve(name))]);
    ensure_equal!(loaded.row.inbox, 1);
    ensure!(loaded.row.due.is_some_and(|due| due <= store.now()), "it is due at {:?}", loaded.row.due);
    ensure_equal!(store.claim(&held.worker, Want::Due(9)).await?.len(), 1);
    Ok(())
}

pub(super) async fn a_held_run_stays_with_its_worker(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    ensure_equal!(store.send(&held.key(), "stop", &cancel()).await?, Verdict::Accepted);
    let row = store.load(&held.key()).await?.row;
    ensure_equal!((row.due, row.holder.as_ref()), (None, Some(&held.worker)));
    let other = subject.reopen();
    ensure_equal!(other.claim(&other.enlist().await?, Want::Due(9)).await?.len(), 0);
    held.step("still its own").await?;
    Ok(())
}

pub(super) async fn an_id_deduplicates(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let name = held.ask(How::default()).await?;
    // What was refused is not remembered under its id.
    let nonsense = approve(lodestep_core::Digest::of(b"no such request"));
    ensure_equal!(refusal(&store.send(&held.key(), "m1", &nonsense).await?), "request.over");
    ensure_equal!(store.send(&held.key(), "m1", &approve(name)).await?, Verdict::Accepted);
    for store in [subject.store(), subject.reopen()] {
        let again = store.send(&held.key(), "m1", &approve(name)).await?;
        ensure!(matches!(again, Verdict::AlreadyGiven(_)), "the same again is {again:?}");
        for other in [deny(name), Message { by: "bob".to_owned(), word: approve(name).word }] {
            ensure_equal!(refusal(&store.send(&held.key(), "m1", &other).await?), "message.id_reused");
        }
    }
    // The same holds once it was read, and an id means nothing in another run.
    let draft = held.reading().await?;
    held.commit(draft, How::default()).await?;
    let again = store.send(&held.key(), "m1", &approve(name)).await?;
    ensure!(matches!(again, Verdict::AlreadyGiven(_)), "the same again after it was read is {again:?}");
    ensure_equal!(store.load(&held.key()).await?.row.inbox, 1);
    let other = Held::begin(&store, "two").await?;
    ensure_equal!(store.send(&other.key(), "m1", &cancel()).await?, Verdict::Accepted);
    Ok(())
}

pub(super) async fn an_inbox_takes_no_more_than_its_limits(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let names: Vec<_> = (1..=UNREAD_MESSAGES as u32 + 1).map(|ordinal| request_name(&held.key(), ordinal)).collect();
    let draft = held.proposal(names.iter().map(|name| approval(*name)))?;
    held.commit(draft, RELEASE).await?;
    let large = |bytes: usize| says(Word::Deny { request: names[0], reason: "n".repeat(bytes) });
    let frame = large(0).to_bytes().len() + 4;
    ensure_equal!(code(&store.send(&held.key(), "large", &large(MESSAGE_BYTES)).await), "message.too_large");
    ensure_equal!(store.send(&held.key(), "m0", &large(MESSAGE_BYTES - frame)).await?, Verdict::Accepted);
    for (place, name) in names.iter().enumerate().skip(1).take(UNREAD_MESSAGES - 1) {
        ensure_equal!(store.send(&held.key(), &format!("m{place}"), &approve(*name)).await?, Verdict::Accepted);
    }
    let last = approve(names[UNREAD_MESSAGES]);
    ensure_equal!(code(&store.send(&held.key(), "last", &last).await), "message.inbox_full");
    ensure_equal!(store.load(&held.key()).await?.unread.len(), UNREAD_MESSAGES);
    // Known ids are still answered, and a cancel always has room.
    let again = store.send(&held.key(), "m1", &approve(names[1])).await?;
    ensure!(matches!(again, Verdict::AlreadyGiven(_)), "{again:?}");
    ensure_equal!(store.send(&held.key(), "stop", &cancel()).await?, Verdict::Accepted);
    let again = store.send(&held.key(), "stop again", &cancel()).await?;
    ensure!(matches!(again, Verdict::AlreadyGiven(_)), "{again:?}");
    let mut held = Held::take(&store, "one", held.worker).await?;
    let draft = held.reading().await?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(store.load(&held.key()).await?.unread.len(), 0);
    Ok(())
}

pub(super) async fn a_run_that_is_not_there_takes_no_message(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    ensure_equal!(code(&store.send(&key("none")?, "m", &cancel()).await), "run.not_found");
    ensure_equal!(code(&store.load(&key("none")?).await), "run.not_found");
    Ok(())
}

pub(super) async fn a_message_is_unread_until_a_transition_read_it(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let names = [1, 2, 3].map(|ordinal| request_name(&held.key(), ordinal));
    let draft = held.proposal(names.map(approval))?;
    held.commit(draft, How::default()).await?;
    for (place, name) in names.iter().enumerate() {
        store.send(&held.key(), &format!("m{place}"), &approve(*name)).await?;
    }
    let positions = |unread: Vec<(u64, Message)>| unread.into_iter().map(|(position, _)| position).collect::<Vec<_>>();
    ensure_equal!(positions(store.unread(&held.claim.run, 0).await?), [1, 2, 3]);
    ensure_equal!(positions(subject.reopen().unread(&held.claim.run, 2).await?), [3]);
    let mut draft = held.draft();
    for (position, message) in store.unread(&held.claim.run, 0).await?.iter().take(2) {
        lodestep_core::rules::inbox::read(&mut draft, *position, message)?;
    }
    held.commit(draft, How::default()).await?;
    ensure_equal!(positions(store.load(&held.key()).await?.unread), [3]);
    ensure_equal!(positions(store.unread(&held.claim.run, held.checkpoint.inbox).await?), [3]);
    Ok(())
}

pub(super) async fn a_run_that_is_over_refuses(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let draft = held.end()?;
    held.commit(draft, RELEASE).await?;
    for word in [Word::Cancel { reason: String::new() }, Word::Resume] {
        let verdict = store.send(&held.key(), "m", &says(word)).await?;
        ensure_equal!(refusal(&verdict), "run.over");
    }
    let row = store.load(&held.key()).await.map_err(Failed::from)?.row;
    ensure_equal!((row.inbox, row.due), (0, None));
    Ok(())
}
