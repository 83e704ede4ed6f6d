//! A worker dies or hands over, and another goes on: nothing lost, nothing done twice.

mod support;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lodestep::core::checkpoint::{Checkpoint, How};
use lodestep::core::effect::Class;
use lodestep::core::rules::inbox::{Became, Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Event, Ordinal, RunKey};
use lodestep::observe::{Observer, Silent};
use lodestep::store::garbage::Mode;
use lodestep::store::{Clock, MemoryStore, Store};
use lodestep::tools::{Functions, ToolError};
use lodestep::worker::Shutdown;
use serde_json::json;
use support::*;
use tokio::sync::mpsc;

/// A tool that applies its effect the first time and never answers; later it answers.
fn dies_after_apply(ledger: &Ledger, applied: mpsc::UnboundedSender<()>) -> Functions {
    let mut functions = Functions::default();
    let ledger = ledger.clone();
    functions.add("pay", move |call| {
        let first = ledger.counts().is_empty();
        // A receiver that knows the key applies it once.
        if !ledger.keys("pay").contains(&call.key) {
            ledger.apply("pay", &call);
        }
        let applied = applied.clone();
        async move {
            if first {
                applied.send(()).map_err(|_| ToolError::Unknown("nobody waits".to_owned()))?;
                std::future::pending::<()>().await;
            }
            Ok(b"paid".to_vec())
        }
    });
    functions
}

async fn killed_after_apply(class: Class) -> (lodestep::Runtime, Arc<RunKey>, Ledger, Checkpoint) {
    let clock: Arc<dyn Clock> = test_time();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let ledger = Ledger::default();
    let (applied, mut was_applied) = mpsc::unbounded_channel();
    let model = || script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let first = over(store.clone(), clock.clone(), dies_after_apply(&ledger, applied.clone()), model());
    let run = start(&first, agent(vec![tool("pay", class)], &[])).await;
    let worker = tokio::spawn(async move { first.work(Arc::new(Silent), &Shutdown::default()).await });
    was_applied.recv().await.expect("applied");
    let holder = store.list("default", &Default::default()).await.expect("listed")[0].holder.clone().expect("held");
    worker.abort();
    store.kill(&holder);
    let second = over(store, clock, dies_after_apply(&ledger, applied), model());
    let state = settle(&second, &run).await;
    (second, run, ledger, state)
}

#[tokio::test(start_paused = true)]
async fn eff_01_a_keyed_effect_is_sent_again_under_its_key() {
    let (_, _, ledger, end) = killed_after_apply(Class::Keyed).await;
    assert_eq!(standing(&end).status, Status::Completed);
    assert_eq!(ledger.counts(), [("pay".into(), 1)].into());
    assert_eq!(end.settled(Ordinal(1)).expect("settled").attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn eff_01_an_unsafe_effect_is_never_sent_again_by_the_machine() {
    let (runtime, run, ledger, state) = killed_after_apply(Class::Unsafe).await;
    assert_eq!(standing(&state).status, Status::InDoubt);
    assert_eq!(ledger.counts(), [("pay".into(), 1)].into());
    let word = Word::Resolve { ordinal: Ordinal(1), became: Became::Happened(Vec::new()), attempt: None };
    assert_eq!(runtime.send(&run, "ada", word).await.expect("sent"), Verdict::Accepted);
    let end = settle(&runtime, &run).await;
    assert_eq!(standing(&end).status, Status::Completed);
    assert_eq!(ledger.counts(), [("pay".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn eff_01_a_read_is_done_again_without_a_word() {
    let (_, _, _, end) = killed_after_apply(Class::Read).await;
    assert_eq!(standing(&end).status, Status::Completed);
}

/// Tells of each outcome once it is stored.
struct Outcomes(mpsc::UnboundedSender<Ordinal>);

impl Observer for Outcomes {
    fn committed(&self, _: &RunKey, events: &[Event], _: &[Vec<u8>], _: &Checkpoint) {
        for event in events {
            if let Event::ActionFinished(finished) = event {
                self.0.send(finished.ordinal).expect("the test listens");
            }
        }
    }
}

/// `ok` applies and `refuse` says no, both at once; `slow` and `look` answer only when told. Each notes that it was sent.
fn two_of_four_answer(sent: &Ledger, paid: &Ledger, all_answer: bool) -> Functions {
    let mut functions = functions(sent, &["ok"]);
    let note = sent.clone();
    functions.add("refuse", move |call| {
        note.apply("refuse", &call);
        std::future::ready(Err(ToolError::Rejected("no".to_owned())))
    });
    for name in ["slow", "look"] {
        let (sent, paid) = (sent.clone(), paid.clone());
        functions.add(name, move |call| {
            sent.apply(name, &call);
            // A receiver that knows the key applies it once.
            if !paid.keys(name).contains(&call.key) {
                paid.apply(name, &call);
            }
            async move {
                if !all_answer {
                    std::future::pending::<()>().await;
                }
                Ok::<_, ToolError>(b"late".to_vec())
            }
        });
    }
    functions
}

#[tokio::test(start_paused = true)]
async fn tol_01_a_kill_behind_two_of_four_outcomes_sends_only_the_other_two_again() {
    let clock: Arc<dyn Clock> = test_time();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let (sent, paid) = (Ledger::default(), Ledger::default());
    let calls = ["ok", "refuse", "slow", "look"].map(|name| (name, json!({"n": 1})));
    let model = || script(json!([says(&calls), says(&[("finish", json!({}))])]));
    let first = over(store.clone(), clock.clone(), two_of_four_answer(&sent, &paid, false), model());
    let tools = [("ok", Class::Unsafe), ("refuse", Class::Unsafe), ("slow", Class::Keyed), ("look", Class::Read)];
    let run = start(&first, agent(tools.map(|(name, class)| tool(name, class)).into(), &[])).await;
    let (stored, mut was_stored) = mpsc::unbounded_channel();
    let worker = tokio::spawn(async move { first.work(Arc::new(Outcomes(stored)), &Shutdown::default()).await });
    for number in ["first", "second"] {
        // The siblings are under way for ten seconds: an outcome that waits for them comes too late.
        let outcome = tokio::time::timeout(Duration::from_secs(5), was_stored.recv()).await;
        assert!(outcome.is_ok(), "the {number} outcome was not stored by itself");
    }
    let holder = store.list("default", &Default::default()).await.expect("listed")[0].holder.clone().expect("held");
    worker.abort();
    store.kill(&holder);
    let times = |ok, refuse, slow, look| {
        [("ok", ok), ("refuse", refuse), ("slow", slow), ("look", look)].map(|(name, n)| (name.to_owned(), n)).into()
    };
    assert_eq!(sent.counts(), times(1, 1, 1, 1), "all four were under way");
    let second = over(store, clock, two_of_four_answer(&sent, &paid, true), model());
    let end = settle(&second, &run).await;
    assert_eq!(standing(&end).status, Status::Completed);
    assert_eq!(sent.counts(), times(1, 1, 2, 2), "only those without an outcome are sent again");
    assert_eq!(paid.keys("slow").len(), 1, "under the key that the receiver knows");
    let how = [1, 2, 3, 4].map(|ordinal| end.settled(Ordinal(ordinal)).expect("settled").how);
    assert_eq!(how, [How::Done, How::Failed, How::Done, How::Done]);
}

#[tokio::test(start_paused = true)]
async fn eff_10_a_graceful_stop_leaves_what_a_kill_leaves() {
    let clock: Arc<dyn Clock> = test_time();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let ledger = Ledger::default();
    let (applied, mut was_applied) = mpsc::unbounded_channel();
    let model = || script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let first = over(store.clone(), clock.clone(), dies_after_apply(&ledger, applied.clone()), model());
    let run = start(&first, agent(vec![tool("pay", Class::Unsafe)], &[])).await;
    let shutdown = Shutdown::default();
    let stopping = shutdown.clone();
    let worker = tokio::spawn(async move { first.work(Arc::new(Silent), &stopping).await });
    was_applied.recv().await.expect("applied");
    shutdown.begin();
    worker.await.expect("joined").expect("handed over");
    let row = store.list("default", &Default::default()).await.expect("listed").remove(0);
    assert_eq!((row.holder, row.crashes), (None, 0), "handed over, and no crash counted");
    let second = over(store, clock, dies_after_apply(&ledger, applied), model());
    let state = settle(&second, &run).await;
    assert_eq!(standing(&state).status, Status::InDoubt, "as after a kill");
    assert_eq!(ledger.counts(), [("pay".into(), 1)].into());
}

/// Empties all transcripts after every commit.
struct Forgetful {
    store: Arc<MemoryStore>,
    emptied: std::sync::atomic::AtomicU64,
}

impl Observer for Forgetful {
    fn committed(&self, run: &RunKey, _: &[Event], _: &[Vec<u8>], _: &Checkpoint) {
        let mut found = self.store.find("default", run.run.as_str(), 1);
        let Poll::Ready(Ok(rows)) = found.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the memory store answers at once");
        };
        let mut emptied = self.store.forget_transcripts(&rows[0].run, Mode::Apply);
        let Poll::Ready(Ok(count)) = emptied.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the memory store answers at once");
        };
        self.emptied.fetch_add(count.count, std::sync::atomic::Ordering::SeqCst);
    }
}

async fn run_with(forget: bool) -> (Checkpoint, u64) {
    let clock = still_clock();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let ledger = Ledger::default();
    let model = script(json!([
        says(&[("look", json!({"n": 1}))]),
        says(&[("note", json!({"key": "a", "text": "seen"})), ("pay", json!({"n": 2}))]),
        says(&[("look", json!({"n": 3}))]),
        says(&[("finish", json!({}))]),
    ]));
    let runtime = over(store.clone(), clock, functions(&ledger, &["look", "pay"]), model);
    let run = start(&runtime, agent(vec![tool("look", Class::Read), tool("pay", Class::Keyed)], &[])).await;
    let forgetful = Arc::new(Forgetful { store, emptied: Default::default() });
    let observer: Arc<dyn Observer> = if forget { forgetful.clone() } else { Arc::new(Silent) };
    runtime.work_until_idle(observer, &Shutdown::default()).await.expect("worked");
    let end = runtime.store().load(&run).await.expect("loaded").checkpoint().expect("sound");
    (end, forgetful.emptied.load(std::sync::atomic::Ordering::SeqCst))
}

#[tokio::test]
async fn g08_transcripts_are_never_needed() {
    let (kept, _) = run_with(false).await;
    let (emptied, count) = run_with(true).await;
    assert_eq!(count, 4, "there were transcripts to empty");
    assert_eq!(standing(&kept).status, Status::Completed);
    assert_eq!(kept.head, emptied.head);
    assert_eq!(kept.state_digest(), emptied.state_digest());
}

#[tokio::test]
async fn a_damaged_value_stops_the_run_by_name_and_nothing_is_sent_again() {
    let clock = still_clock();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let ledger = Ledger::default();
    let model = script(json!([
        says(&[("note", json!({"key": "a", "text": "what was seen"}))]),
        says(&[("pay", json!({"n": 2}))]),
        says(&[("finish", json!({}))]),
    ]));
    let runtime = over(store.clone(), clock, functions(&ledger, &["pay"]), model);
    let run = start(&runtime, agent(vec![tool("pay", Class::Keyed)], &["pay"])).await;
    let waiting = settle(&runtime, &run).await;
    assert!(store.damage_value(&waiting.notes["a"].digest));
    let request = store.open_requests("default", 1).await.expect("listed")[0].name;
    runtime.send(&run, "ada", Word::Approve { request }).await.expect("sent");
    let stopped = settle(&runtime, &run).await;
    assert_eq!(standing(&stopped).status, Status::Quarantined);
    assert_eq!(ledger.counts(), [("pay".into(), 1)].into());
    let settled = stopped.settled(Ordinal(2)).expect("its outcome was kept");
    assert_eq!((settled.attempts, settled.how), (1, lodestep::core::checkpoint::How::Done));
    let opened = lodestep::inspect::open(store.as_ref(), &run).await.expect("it can be looked at");
    let lodestep::core::checkpoint::Phase::Stopped { text, .. } = &opened.checkpoint.phase else { panic!("stopped") };
    assert!(opened.text(text).contains("damaged"), "{}", opened.text(text));
    assert_eq!(opened.row.crashes, 0, "no worker crashed");
}

#[tokio::test(start_paused = true)]
async fn apr_03_arguments_that_changed_under_their_approval_are_not_sent() {
    let clock: Arc<dyn Clock> = test_time();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let ledger = Ledger::default();
    let model = script(json!([says(&[("pay", json!({"n": 10}))]), says(&[("finish", json!({}))])]));
    let runtime = over(store.clone(), clock, functions(&ledger, &["pay"]), model);
    let run = start(&runtime, agent(vec![tool("pay", Class::Unsafe)], &["pay"])).await;
    let waiting = settle(&runtime, &run).await;
    let request = store.open_requests("default", 1).await.expect("listed")[0].name;
    assert_eq!(runtime.send(&run, "ada", Word::Approve { request }).await.expect("sent"), Verdict::Accepted);
    assert!(store.damage_value(&waiting.pending[&Ordinal(1)].arguments.digest));
    let mut end = settle(&runtime, &run).await;
    while standing(&end).status == Status::Waiting {
        tokio::time::advance(Duration::from_secs(2)).await;
        end = settle(&runtime, &run).await;
    }
    assert!(ledger.counts().is_empty(), "neither the approved arguments nor others");
    let settled = end.settled(Ordinal(1)).expect("settled");
    let opened = lodestep::inspect::open(store.as_ref(), &run).await.expect("it can be looked at");
    assert_eq!(settled.how, How::Failed);
    assert!(opened.text(&settled.result).contains("damaged"), "{}", opened.text(&settled.result));
    assert_eq!(standing(&end).status, Status::Quarantined, "and the model is not asked to go on");
}
