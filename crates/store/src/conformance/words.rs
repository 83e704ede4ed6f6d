//! Words to a run as a whole: a pause holds intents back, signals and top-ups count once under their id.

use std::sync::Arc;

use lodestep_core::definition::OnExpiry;
use lodestep_core::event::{ActionWithdrawn, ApprovalLapsed, Event, Gate, QuotaGranted, Request};
use lodestep_core::quota::Quota;
use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::{Digest, Ordinal};

use super::script::{Held, How, RELEASE, approve, at_once, code, request_name, says};
use super::{Checked, Failed, Subject, ensure, ensure_equal};

fn signal() -> Message {
    says(Word::Signal { name: "paid".to_owned(), value: b"{\"cents\":5}".to_vec() })
}

pub(super) async fn no_intent_is_stored_while_a_pause_is_unread(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let draft = held.proposal([Gate::Open, Gate::Open])?;
    held.commit(draft, How::default()).await?;
    let draft = held.intent(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let pause = says(Word::Pause { reason: "lunch".to_owned() });
    ensure_equal!(subject.reopen().send(&held.key(), "pause", &pause).await?, Verdict::Accepted);
    for how in [How::default(), RELEASE] {
        let draft = held.intent(Ordinal(2))?;
        ensure_equal!(code(&held.commit(draft, how).await), "run.cancel_unread");
    }
    // What is under way ends. A resume, said and read after the pause, lets the next intent pass.
    let draft = held.outcome(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(store.send(&held.key(), "resume", &says(Word::Resume)).await?, Verdict::Accepted);
    let draft = held.reading().await?;
    held.commit(draft, How::default()).await?;
    let draft = held.intent(Ordinal(2))?;
    held.commit(draft, How::default()).await?;
    // The run's own end waits for a pause, too.
    let mut ending = Held::begin(&store, "two").await?;
    ensure_equal!(store.send(&ending.key(), "pause", &pause).await?, Verdict::Accepted);
    let draft = ending.end()?;
    ensure_equal!(code(&ending.commit(draft, RELEASE).await), "run.cancel_unread");
    Ok(())
}

pub(super) async fn of_ten_deliveries_under_one_id_one_counts(subject: Arc<dyn Subject>) -> Checked {
    let handles = [subject.store(), subject.reopen()];
    let top_up = says(Word::TopUp { quota: Quota::ModelCalls, amount: 7 });
    for (run, message) in [("signal", signal()), ("top-up", top_up)] {
        let mut held = Held::begin(&handles[0], run).await?;
        let limit = held.checkpoint.quota.limits.model_calls;
        let verdicts = at_once(10, |place| {
            let (store, run, message) = (Arc::clone(&handles[place % 2]), held.key(), message.clone());
            async move { store.send(&run, "delivery 1", &message).await }
        })
        .await?;
        let verdicts = verdicts.into_iter().collect::<Result<Vec<_>, _>>()?;
        ensure_equal!(verdicts.iter().filter(|verdict| **verdict == Verdict::Accepted).count(), 1);
        let again = |verdict: &Verdict| matches!(verdict, Verdict::AlreadyGiven(_));
        ensure_equal!(verdicts.iter().filter(|verdict| again(verdict)).count(), 9);
        let draft = held.reading().await?;
        held.commit(draft, How::default()).await?;
        ensure!(again(&handles[1].send(&held.key(), "delivery 1", &message).await?), "once more after it was read");
        match run {
            "signal" => ensure_equal!(held.checkpoint.signals.len(), 1),
            _ => ensure_equal!(held.checkpoint.quota.limits.model_calls, limit.map(|limit| limit + 7)),
        }
        let draft = held.end()?;
        held.commit(draft, RELEASE).await?;
        ensure!(again(&handles[1].send(&held.key(), "delivery 1", &message).await?), "and after the run ended");
        let late = handles[0].send(&held.key(), "delivery 2", &message).await?;
        ensure!(matches!(&late, Verdict::Refused(error) if error.code() == "run.over"), "{late:?}");
    }
    Ok(())
}

pub(super) async fn a_signal_makes_a_waiting_run_due(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let until = store.now().plus_ms(60_000);
    let draft = held.proposal([Gate::Timer(until)])?;
    held.commit(draft, RELEASE).await?;
    ensure_equal!(store.load(&held.key()).await?.row.due, Some(until));
    ensure_equal!(subject.reopen().send(&held.key(), "1", &signal()).await?, Verdict::Accepted);
    let row = store.load(&held.key()).await?.row;
    ensure!(row.due.is_some_and(|due| due <= store.now()), "it is due at {:?}", row.due);
    Ok(())
}

/// The names of the requests that the store lists as open.
async fn open(subject: &Arc<dyn Subject>) -> Result<Vec<Digest>, Failed> {
    let rows = subject.reopen().open_requests("default", 9).await?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}

pub(super) async fn an_approval_that_lapsed_is_an_open_request_again(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    for together in [false, true] {
        let mut held = Held::begin(&store, if together { "one" } else { "two" }).await?;
        let name = request_name(&held.key(), 1);
        let expires_at = Some(store.now().plus_ms(1_000));
        let (asked_at, remind_ms, window_ms) = (store.now(), None, Some(1_000));
        let request = Request { name, expires_at, on_expiry: OnExpiry::Pause, window_ms, asked_at, remind_ms };
        let draft = held.proposal([Gate::Approval(request)])?;
        held.commit(draft, How::default()).await?;
        ensure_equal!(store.send(&held.key(), "yes", &approve(name)).await?, Verdict::Accepted);
        if !together {
            let draft = held.reading().await?;
            held.commit(draft, How::default()).await?;
            ensure_equal!(open(&subject).await?, []);
        }
        subject.clock().advance_ms(1_000);
        let mut draft = held.reading().await?;
        draft.push(Event::ApprovalLapsed(ApprovalLapsed { ordinal: Ordinal(1) }))?;
        held.commit(draft, RELEASE).await?;
        ensure_equal!(open(&subject).await?, [name]);
        let rows = store.find_requests("default", &name.to_hex()).await?;
        ensure_equal!((rows.len(), rows[0].open), (1, true));
        let mut held = Held::take(&store, held.key().run.as_str(), held.worker).await?;
        let mut draft = held.draft();
        let text = draft.put("taken back");
        draft.push(Event::ActionWithdrawn(ActionWithdrawn { ordinal: Ordinal(1), text }))?;
        held.commit(draft, RELEASE).await?;
        ensure_equal!(open(&subject).await?, []);
    }
    Ok(())
}

pub(super) async fn a_call_that_waited_for_a_quota_asks_when_it_is_granted(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let draft = held.proposal([Gate::Quota])?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(open(&subject).await?, []);
    let name = request_name(&held.key(), 1);
    let mut draft = held.draft();
    let gate = super::script::approval(name);
    draft.push(Event::QuotaGranted(QuotaGranted { ordinal: Ordinal(1), gate }))?;
    held.commit(draft, How::default()).await?;
    ensure_equal!(open(&subject).await?, [name]);
    ensure_equal!(store.send(&held.key(), "yes", &approve(name)).await?, Verdict::Accepted);
    Ok(())
}
