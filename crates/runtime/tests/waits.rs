//! Pauses, waits, approvals and quotas under a worker and over restarts: signals at every moment, weeks between a request
//! and its answer, spending that no restart resets.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestep::Runtime;
use lodestep::core::checkpoint::{How, Phase};
use lodestep::core::definition::{Definition, QuotaLimits, StateAct};
use lodestep::core::effect::Class;
use lodestep::core::event::StopReason;
use lodestep::core::quota::Quota;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, RunKey};
use lodestep::fork::Fork;
use lodestep::model::ScriptModel;
use lodestep::observe::Silent;
use lodestep::store::{Clock, MemoryStore, SettableClock, SqliteStore};
use lodestep::worker::Shutdown;
use lodestep_model::{Model, ModelFuture, Request};
use serde_json::json;
use support::*;
use tokio::sync::watch;

fn waiting() -> Definition {
    let wait = |name, act| state_tool(name, act);
    let tools = vec![wait("wait_for_signal", StateAct::WaitForSignal), wait("wait", StateAct::Wait)];
    agent(tools, &[])
}

fn paid() -> Word {
    Word::Signal { name: "paid".to_owned(), value: b"5".to_vec() }
}

/// Polls until it holds.
async fn eventually(what: &str, within: Duration, holds: impl AsyncFn() -> bool) {
    let until = Instant::now() + within;
    while !holds().await {
        assert!(Instant::now() < until, "not in time: {what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sig_02_of_a_thousand_signals_at_any_moment_each_ends_its_wait_once() {
    const RUNS: usize = 1_000;
    let clock = still_clock();
    let model = script(json!([says(&[("wait_for_signal", json!({"name": "paid"}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&clock, functions(&Ledger::default(), &[]), model);
    let shutdown = Shutdown::default();
    let worker = {
        let (runtime, shutdown) = (runtime.clone(), shutdown.clone());
        tokio::spawn(async move { runtime.work(Arc::new(Silent), &shutdown).await })
    };
    let mut sent = tokio::task::JoinSet::new();
    for number in 0..RUNS {
        let runtime = runtime.clone();
        sent.spawn(async move {
            let run = start(&runtime, waiting()).await;
            // From right after the start to long after the wait began.
            for _ in 0..(number * 7919) % 97 {
                tokio::task::yield_now().await;
            }
            assert_eq!(runtime.send(&run, "bank", paid()).await.expect("sent"), Verdict::Accepted);
            run
        });
    }
    let runs = sent.join_all().await;
    for run in runs {
        eventually("the run ended", Duration::from_secs(60), async || {
            runtime.store().load(&run).await.expect("loaded").row.status == Status::Completed
        })
        .await;
        let end = runtime.store().load(&run).await.expect("loaded").checkpoint().expect("sound");
        assert!(end.signals.is_empty() && end.recent[0].how == How::Done);
    }
    shutdown.begin();
    worker.await.expect("no panic").expect("worked");
}

/// A runtime over a file, as a newly started program has it.
fn opened(path: &std::path::Path, clock: &Arc<SettableClock>, ledger: &Ledger, model: ScriptModel) -> Runtime {
    let clock: Arc<dyn Clock> = clock.clone();
    let store = SqliteStore::open(path, clock.clone()).expect("opened");
    over(Arc::new(store), clock, functions(ledger, &["pay"]), model)
}

fn paying() -> ScriptModel {
    script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apr_07_fifty_approvals_nine_days_and_a_restart_later_are_each_done_once() {
    let (folder, clock, ledger) = (tempfile::tempdir().expect("a folder"), still_clock(), Ledger::default());
    let path = folder.path().join("store.db");
    let mut runs = Vec::new();
    {
        let before = opened(&path, &clock, &ledger, paying());
        let ids = Arc::new(std::sync::atomic::AtomicU64::new(1));
        for _ in 0..50 {
            let id = ids.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let id = lodestep::core::RunId::parse(&format!("parked-{id}")).expect("sound");
            let definition = agent(vec![tool("pay", Class::Unsafe)], &["pay"]);
            let started = before
                .start(lodestep::Start {
                    definition,
                    inputs: json!({}),
                    id: Some(id),
                    join_unfinished: false,
                    labels: Default::default(),
                })
                .await
                .expect("started");
            let lodestep::store::Started::New(run) = started else { panic!("{started:?}") };
            runs.push(run.key);
        }
        before.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
    }
    clock.advance_ms(9 * 86_400_000);
    let after = opened(&path, &clock, &ledger, paying());
    let open = after.store().open_requests("default", 100).await.expect("listed");
    assert_eq!(open.len(), 50, "listed right after the start");
    for run in &runs {
        let row = after.store().load(run).await.expect("loaded").row;
        assert_eq!((row.status, row.holder, row.due), (Status::Waiting, None, None), "nothing is held for it");
    }
    for request in &open {
        let word = Word::Approve { request: request.name };
        assert_eq!(after.send(&request.run.key, "ada", word).await.expect("sent"), Verdict::Accepted);
    }
    let begun = Instant::now();
    after.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for run in &runs {
        assert_eq!(after.store().load(run).await.expect("loaded").row.status, Status::Completed);
    }
    let keys: std::collections::BTreeSet<String> = ledger.keys("pay").into_iter().collect();
    assert_eq!((keys.len(), ledger.counts()["pay"]), (50, 50), "each once");
}

#[tokio::test]
async fn tim_01_timers_that_fell_due_while_nothing_ran_fire_at_the_start() {
    let (folder, clock, ledger) = (tempfile::tempdir().expect("a folder"), still_clock(), Ledger::default());
    let path = folder.path().join("store.db");
    let waits = [10, 3_600, 3 * 86_400].map(|seconds| ("wait", json!({ "seconds": seconds })));
    let model = || script(json!([says(&waits), says(&[("finish", json!({}))])]));
    let run = {
        let before = opened(&path, &clock, &ledger, model());
        let run = start(&before, waiting()).await;
        let state = settle(&before, &run).await;
        assert_eq!(standing(&state).status, Status::Waiting);
        run
    };
    clock.advance_ms(2 * 3_600_000);
    for _ in 0..2 {
        let after = opened(&path, &clock, &ledger, model());
        let state = settle(&after, &run).await;
        assert_eq!(state.recent.iter().map(|settled| settled.ordinal.0).collect::<Vec<_>>(), [1, 2], "each once");
        let due = after.store().load(&run).await.expect("loaded").row.due;
        assert_eq!(due, Some(state.started_at.plus_ms(3 * 86_400_000)), "the later one keeps its time");
    }
    clock.advance_ms(3 * 86_400_000);
    let end = settle(&opened(&path, &clock, &ledger, model()), &run).await;
    assert_eq!(standing(&end).status, Status::Completed);
    assert_eq!(end.recent.iter().map(|settled| settled.ordinal.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn bud_01_no_restart_handover_or_wait_resets_what_was_spent() {
    let (folder, clock, ledger) = (tempfile::tempdir().expect("a folder"), still_clock(), Ledger::default());
    let path = folder.path().join("store.db");
    let replies: Vec<_> = (0..20).map(|n| says(&[("pay", json!({ "n": n }))])).collect();
    let model = || script(json!(replies));
    let mut definition = agent(vec![tool("pay", Class::Unsafe)], &["pay"]);
    definition.quota = QuotaLimits {
        model_calls: Some(10),
        tool_calls: Some(20),
        active_time_ms: Some(600_000),
        ..QuotaLimits::default()
    };
    let run = start(&opened(&path, &clock, &ledger, model()), definition).await;
    for call in 1..=10 {
        let runtime = opened(&path, &clock, &ledger, model());
        let before = settle(&runtime, &run).await.quota;
        assert_eq!((before.used.model_calls, before.used.tool_calls), (call, call - 1));
        drop(runtime);
        clock.advance_ms(3 * 86_400_000);
        let runtime = opened(&path, &clock, &ledger, model());
        let after = settle(&runtime, &run).await.quota;
        assert_eq!((after.used, after.reserved, after.limits), (before.used, before.reserved, before.limits));
        assert_eq!(after.active_us, before.active_us, "a wait for a person is no working time");
        let open = runtime.store().open_requests("default", 9).await.expect("listed");
        let (id, word) = (format!("yes {call}"), Word::Approve { request: open[0].name });
        assert_eq!(runtime.send_as(&run, &id, "ada", word).await.expect("sent"), Verdict::Accepted);
    }
    let runtime = opened(&path, &clock, &ledger, model());
    let stopped = settle(&runtime, &run).await;
    assert!(matches!(stopped.phase, Phase::Stopped { reason: StopReason::Quota, .. }), "the 11th call is refused");
    assert_eq!((stopped.quota.used.model_calls, stopped.quota.used.tool_calls), (10, 10));
    let add = Word::TopUp { quota: Quota::ModelCalls, amount: 1 };
    for expected in [true, false] {
        let verdict = runtime.send_as(&run, "ticket", "ada", add.clone()).await.expect("sent");
        assert_eq!(verdict == Verdict::Accepted, expected, "{verdict:?}");
    }
    runtime.send_as(&run, "go on", "ada", Word::Resume).await.expect("sent");
    let goes_on = settle(&runtime, &run).await;
    assert_eq!((goes_on.quota.used.model_calls, goes_on.quota.limits.model_calls), (11, Some(11)));
    assert_eq!(ledger.counts()["pay"], 10);
}

/// Starts a program for every call and approves what a run asks for, until its quota stops it.
async fn spend_all(open: &impl Fn() -> Runtime, clock: &SettableClock, run: &RunKey) -> Checkpoint {
    loop {
        let before = settle(&open(), run).await;
        clock.advance_ms(86_400_000);
        let runtime = open();
        let after = settle(&runtime, run).await;
        assert_eq!((after.quota.used, after.quota.limits), (before.quota.used, before.quota.limits), "a restart");
        if let Phase::Stopped { reason, .. } = after.phase {
            assert_eq!(reason, StopReason::Quota);
            return after;
        }
        approve(&runtime, run).await;
    }
}

/// Approves what a run asks for.
async fn approve(runtime: &Runtime, run: &RunKey) {
    let asked = runtime.store().open_requests("default", 9).await.expect("listed");
    let request = asked.iter().find(|request| *request.run.key == *run).expect("it asks").name;
    // Every program of these tests counts its own ids from one.
    let said = runtime.send_as(run, &request.to_hex(), "ada", Word::Approve { request }).await;
    assert_eq!(said.expect("sent"), Verdict::Accepted);
}

#[tokio::test]
async fn bud_01_a_fork_spends_what_its_original_has_left_whatever_is_restarted() {
    let (folder, clock, ledger) = (tempfile::tempdir().expect("a folder"), still_clock(), Ledger::default());
    let path = folder.path().join("store.db");
    let replies: Vec<_> = (0..20).map(|n| says(&[("pay", json!({ "n": n }))])).collect();
    let open = || opened(&path, &clock, &ledger, script(json!(replies)));
    let mut definition = agent(vec![tool("pay", Class::Unsafe)], &["pay"]);
    definition.quota = QuotaLimits { model_calls: Some(10), tool_calls: Some(20), ..QuotaLimits::default() };
    let origin = start(&open(), definition).await;
    for call in 1..=4 {
        let runtime = open();
        assert_eq!(settle(&runtime, &origin).await.quota.used.model_calls, call);
        approve(&runtime, &origin).await;
    }
    let fork = async |of: &RunKey, id: &str| {
        let runtime = open();
        settle(&runtime, of).await;
        let origin = runtime.find(of.run.as_str()).await.expect("found");
        let id = Some(lodestep::core::RunId::parse(id).expect("sound"));
        let grant = QuotaLimits::default();
        let fork = Fork { origin, at: None, id, inputs: None, grant, by: "ada".to_owned() };
        runtime.fork(fork).await.expect("forked")
    };
    // Of 10 calls 5 are used: half of the rest is the fork's from now on, and no longer the origin's.
    let branch = fork(&origin, "branch").await;
    let calls = |state: &Checkpoint| (state.quota.used.model_calls, state.quota.limits.model_calls);
    assert_eq!(calls(&branch.state), (0, Some(2)));
    let branch_end = spend_all(&open, &clock, &branch.run.key).await;
    let origin_end = spend_all(&open, &clock, &origin).await;
    assert_eq!((calls(&branch_end), calls(&origin_end)), ((2, Some(2)), (8, Some(8))));
    // Of nothing, nothing is left for another one.
    for (of, id) in [(&*branch.run.key, "twig"), (&*origin, "other")] {
        let late = fork(of, id).await;
        assert_eq!(calls(&spend_all(&open, &clock, &late.run.key).await), (0, Some(0)), "{id}");
    }
    let sum = calls(&branch_end).0 + calls(&origin_end).0;
    assert_eq!(sum, 10, "together they had what the first was given");
}

#[tokio::test]
async fn tim_03_a_clock_that_jumps_back_fires_nothing_again_and_revives_no_approval() {
    let (clock, ledger) = (still_clock(), Ledger::default());
    let calls = [("wait", json!({"seconds": 60})), ("pay", json!({})), ("wait", json!({"seconds": 259_200}))];
    let model = script(json!([says(&calls), says(&[("finish", json!({}))])]));
    let mut definition = waiting();
    definition.tools.push(tool("pay", Class::Unsafe));
    definition.policy[0].decide = lodestep::core::definition::Decide::Ask;
    definition.policy[0].expires_ms = Some(60_000);
    let runtime = in_memory(&clock, functions(&ledger, &["pay"]), model);
    let run = start(&runtime, definition).await;
    settle(&runtime, &run).await;
    let request = runtime.store().open_requests("default", 9).await.expect("listed")[0].name;
    clock.advance_ms(86_400_000);
    let state = settle(&runtime, &run).await;
    let seq = state.seq;
    assert_eq!(state.recent.len(), 2, "the timer fired and the request expired: {:?}", state.recent);
    let due = runtime.store().load(&run).await.expect("loaded").row.due;
    clock.set_wall(lodestep::core::Timestamp::from_micros(1_800_000_000_000_000));
    assert_eq!(settle(&runtime, &run).await.seq, seq, "nothing happens a second time");
    assert_eq!(runtime.store().load(&run).await.expect("loaded").row.due, due, "the later timer keeps its time");
    let late = runtime.send(&run, "ada", Word::Approve { request }).await.expect("sent");
    assert!(matches!(&late, Verdict::Refused(error) if error.code() == "request.expired"), "{late:?}");
    assert_eq!(ledger.counts().get("pay"), None);
}

/// A model that thinks until it may answer.
struct Thinking {
    script: ScriptModel,
    asked: watch::Sender<u32>,
    may_answer: watch::Sender<bool>,
}

impl Model for Thinking {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(async move {
            self.asked.send_modify(|asked| *asked += 1);
            self.may_answer.subscribe().wait_for(|may| *may).await.expect("the sender lives");
            self.script.ask(request).await
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_under_way_at_a_pause_is_taken_and_begun_after_the_resume() {
    let (ledger, clock) = (Ledger::default(), still_clock());
    let model =
        Arc::new(Thinking { script: paying(), asked: watch::Sender::new(0), may_answer: watch::Sender::new(false) });
    let mut asked = model.asked.subscribe();
    let store_clock: Arc<dyn Clock> = clock.clone();
    let runtime = Runtime::builder(Arc::new(MemoryStore::new(store_clock.clone())))
        .clock(store_clock)
        .functions(functions(&ledger, &["pay"]))
        .model(model.clone())
        .build();
    let run = start(&runtime, agent(vec![tool("pay", Class::Unsafe)], &[])).await;
    let shutdown = Shutdown::default();
    let worker = {
        let (runtime, shutdown) = (runtime.clone(), shutdown.clone());
        tokio::spawn(async move { runtime.work(Arc::new(Silent), &shutdown).await })
    };
    asked.wait_for(|asked| *asked == 1).await.expect("it is asked");
    let state = async || runtime.store().load(&run).await.expect("loaded").checkpoint().expect("sound");
    assert_eq!(
        runtime.send(&run, "ada", Word::Pause { reason: String::new() }).await.expect("sent"),
        Verdict::Accepted
    );
    eventually("the pause was read", Duration::from_secs(20), async || state().await.phase != Phase::Active).await;
    model.may_answer.send_replace(true);
    eventually("the reply was taken", Duration::from_secs(20), async || state().await.model.open.is_none()).await;
    assert_eq!(state().await.pending.len(), 1, "it is a decision, and nothing of it is begun");
    assert!(ledger.counts().is_empty());
    runtime.send(&run, "ada", Word::Resume).await.expect("sent");
    eventually("the run ended", Duration::from_secs(20), async || state().await.is_over()).await;
    assert_eq!((ledger.counts()["pay"], state().await.quota.used.model_calls, *asked.borrow()), (1, 2, 2));
    shutdown.begin();
    worker.await.expect("no panic").expect("worked");
}
