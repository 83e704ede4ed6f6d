//! What attempts come to: parallel siblings, timeouts, odd bytes, cancels. Time is paused: sleeps cost nothing.

mod support;

use std::sync::Arc;
use std::time::Duration;

use lodestep::core::checkpoint::{ActionState, Checkpoint, How, Phase};
use lodestep::core::effect::Class;
use lodestep::core::event::Ending;
use lodestep::core::rules::inbox::{Became, Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Digest, Ordinal, RunKey};
use lodestep::inspect;
use lodestep::tools::{Functions, ToolError};
use serde_json::json;
use support::*;

fn how(state: &Checkpoint, ordinal: u32) -> How {
    state.settled(Ordinal(ordinal)).expect("settled").how
}

async fn results(runtime: &lodestep::Runtime, run: &RunKey) -> Vec<String> {
    let opened = inspect::open(runtime.store(), run).await.expect("opened");
    opened.checkpoint.recent.iter().map(|settled| opened.text(&settled.result)).collect()
}

/// `ok` and `slow` apply; `refuse` says no without a word; `hang` never answers.
fn mixed(ledger: &Ledger) -> Functions {
    let mut all = functions(ledger, &["ok"]);
    let slow = ledger.clone();
    all.add("slow", move |call| {
        let ledger = slow.clone();
        async move {
            tokio::task::yield_now().await;
            ledger.apply("slow", &call);
            Ok(b"slow but done".to_vec())
        }
    });
    all.add("refuse", |_| async { Err(ToolError::Rejected(String::new())) });
    all.add("hang", |_| std::future::pending::<Result<Vec<u8>, ToolError>>());
    all
}

#[tokio::test(start_paused = true)]
async fn tol_01_each_of_several_calls_has_its_own_outcome() {
    let ledger = Ledger::default();
    let model = script(json!([
        says(&[("ok", json!({"n": 1})), ("refuse", json!({})), ("hang", json!({})), ("slow", json!({}))]),
        says(&[("finish", json!({}))]),
    ]));
    let runtime = in_memory(&test_time(), mixed(&ledger), model);
    let tools = vec![
        tool("ok", Class::Keyed),
        tool("refuse", Class::Unsafe),
        tool("hang", Class::Read),
        tool("slow", Class::Unsafe),
    ];
    let run = start(&runtime, agent(tools, &[])).await;
    // The one that hangs is tried three times, with pauses between.
    let mut end = settle(&runtime, &run).await;
    while standing(&end).status == Status::Waiting {
        tokio::time::advance(Duration::from_secs(2)).await;
        end = settle(&runtime, &run).await;
    }
    assert!(matches!(end.phase, Phase::Ended { ending: Ending::Completed, .. }), "{:?}", end.phase);
    assert_eq!([1, 2, 3, 4].map(|ordinal| how(&end, ordinal)), [How::Done, How::Failed, How::Failed, How::Done]);
    assert!(results(&runtime, &run).await.iter().all(|text| !text.is_empty()), "no result is empty");
    assert_eq!(ledger.counts(), [("ok".into(), 1), ("slow".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn eff_02_a_timeout_of_an_effect_is_a_doubt_and_not_a_failure() {
    for class in [Class::Unsafe, Class::Keyed] {
        let ledger = Ledger::default();
        let applied = ledger.clone();
        let mut hang_after_apply = Functions::default();
        hang_after_apply.add("pay", move |call| {
            applied.apply("pay", &call);
            std::future::pending::<Result<Vec<u8>, ToolError>>()
        });
        let model = script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
        let runtime = in_memory(&test_time(), hang_after_apply, model);
        let run = start(&runtime, agent(vec![tool("pay", class)], &[])).await;
        let mut state = settle(&runtime, &run).await;
        while standing(&state).status == Status::Waiting {
            tokio::time::advance(Duration::from_secs(2)).await;
            state = settle(&runtime, &run).await;
        }
        assert_eq!(standing(&state).status, Status::InDoubt, "{class}");
        assert_eq!(state.model.calls, 1, "the model is not asked while the outcome is unknown");
        let keys = ledger.keys("pay");
        assert_eq!(keys.len(), if class == Class::Unsafe { 1 } else { 3 }, "{class}");
        assert!(keys.iter().all(|key| *key == keys[0]), "one key for all attempts");
        let word = Word::Resolve { ordinal: Ordinal(1), became: Became::Happened(b"paid".to_vec()), attempt: None };
        assert_eq!(runtime.send(&run, "ada", word).await.expect("sent"), Verdict::Accepted);
        let end = settle(&runtime, &run).await;
        assert_eq!(standing(&end).status, Status::Completed);
        assert_eq!(ledger.keys("pay").len(), keys.len(), "nothing was sent after the word");
    }
}

#[tokio::test(start_paused = true)]
async fn eff_02_what_was_not_sent_is_tried_again() {
    let ledger = Ledger::default();
    let (applied, tries) = (ledger.clone(), Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let mut functions = Functions::default();
    functions.add("mail", move |call| {
        let first = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let ledger = applied.clone();
        async move {
            if first {
                return Err(ToolError::NotSent("connection refused".to_owned()));
            }
            ledger.apply("mail", &call);
            Ok(b"sent".to_vec())
        }
    });
    let model = script(json!([says(&[("mail", json!({}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&test_time(), functions, model);
    let run = start(&runtime, agent(vec![tool("mail", Class::Unsafe)], &[])).await;
    assert_eq!(standing(&settle(&runtime, &run).await).status, Status::Waiting);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(standing(&settle(&runtime, &run).await).status, Status::Completed);
    assert_eq!(ledger.counts(), [("mail".into(), 1)].into());
}

#[tokio::test(start_paused = true)]
async fn dat_01_nul_bytes_are_kept_exactly() {
    let odd: Vec<u8> = b"a\0b \xff\xfe \\u0000 end".to_vec();
    let mut functions = Functions::default();
    let given = odd.clone();
    functions.add("odd", move |_| std::future::ready(Ok::<_, ToolError>(given.clone())));
    let model = script(json!([
        { "calls": [{ "name": "odd", "raw": "{\"text\":\"x\\u0000y\"}" }] },
        says(&[("finish", json!({}))]),
    ]));
    let runtime = in_memory(&test_time(), functions, model);
    let run = start(&runtime, agent(vec![tool("odd", Class::Unsafe)], &[])).await;
    let end = settle(&runtime, &run).await;
    assert_eq!(standing(&end).status, Status::Completed);
    let settled = end.settled(Ordinal(1)).expect("settled");
    let row = runtime.find(run.run.as_str()).await.expect("found");
    let blobs = runtime.store().values(&row.run, &[settled.result, settled.arguments]).await.expect("read");
    assert_eq!(blobs[&settled.result.digest], odd);
    assert_eq!(blobs[&settled.arguments.digest], b"{\"text\":\"x\\u0000y\"}");
}

#[tokio::test(start_paused = true)]
async fn apr_06_nothing_is_sent_after_a_cancel_and_late_words_are_refused() {
    let ledger = Ledger::default();
    let model = script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&test_time(), functions(&ledger, &["pay"]), model);
    let run = start(&runtime, agent(vec![tool("pay", Class::Unsafe)], &["pay"])).await;
    settle(&runtime, &run).await;
    let request = runtime.store().open_requests("default", 1).await.expect("listed")[0].name;
    let cancel = Word::Cancel { reason: "wrong".to_owned() };
    assert_eq!(runtime.send(&run, "ada", cancel.clone()).await.expect("sent"), Verdict::Accepted);
    // Judged with the cancel that is still unread before it.
    let approve = runtime.send(&run, "bob", Word::Approve { request }).await.expect("sent");
    assert!(matches!(&approve, Verdict::Refused(error) if error.code() == "request.withdrawn"), "{approve:?}");
    let end = settle(&runtime, &run).await;
    assert_eq!(standing(&end).status, Status::Cancelled);
    let again = runtime.send(&run, "bob", Word::Approve { request }).await.expect("sent");
    assert!(matches!(&again, Verdict::Refused(error) if error.code() == "request.withdrawn"), "{again:?}");
    assert!(runtime.store().open_requests("default", 1).await.expect("listed").is_empty());
    assert!(ledger.counts().is_empty());
}

/// Lets every request that a run opens be denied, or expire where requests do; the name of its first one.
async fn end_without_an_approval(runtime: &lodestep::Runtime, run: &RunKey, expires_ms: Option<u64>) -> Digest {
    let mut first = None;
    loop {
        settle(runtime, run).await;
        let requests = runtime.store().open_requests("default", 100).await.expect("listed");
        match (requests.first(), expires_ms) {
            (None, _) => return first.expect("it asked"),
            (Some(_), Some(expires_ms)) => tokio::time::advance(Duration::from_millis(expires_ms)).await,
            (Some(_), None) => {
                for request in &requests {
                    let deny = Word::Deny { request: request.name, reason: String::new() };
                    assert_eq!(runtime.send(run, "ada", deny).await.expect("sent"), Verdict::Accepted);
                }
            }
        }
        first.get_or_insert(requests[0].name);
    }
}

#[tokio::test(start_paused = true)]
async fn apr_06_an_approval_for_a_run_that_ended_another_way_says_how_it_ended() {
    // One more than a run remembers, in two decisions.
    let many: &[u32] = &[lodestep::core::checkpoint::CLOSED_REQUESTS as u32, 1];
    for (expires_ms, decisions, code, happened) in [
        (None, [1].as_slice(), "request.decided", "it was denied by ada, and its run has completed"),
        (Some(1_000), &[1], "request.expired", "it expired, and its run has completed"),
        (None, many, "request.over", "its run has completed"),
    ] {
        let ledger = Ledger::default();
        let calls =
            |count: u32| (0..count).map(|n| ("pay", json!({"n": n, "text": count.to_string()}))).collect::<Vec<_>>();
        let mut replies: Vec<_> = decisions.iter().map(|count| says(&calls(*count))).collect();
        replies.push(says(&[("finish", json!({}))]));
        let runtime = in_memory(&test_time(), functions(&ledger, &["pay"]), script(json!(replies)));
        let mut definition = agent(vec![tool("pay", Class::Unsafe)], &["pay"]);
        definition.policy[0].expires_ms = expires_ms;
        let run = start(&runtime, definition).await;
        let request = end_without_an_approval(&runtime, &run, expires_ms).await;
        let late = runtime.send(&run, "bob", Word::Approve { request }).await.expect("sent");
        let Verdict::Refused(error) = late else { panic!("{late:?}") };
        assert_eq!(error.code(), code);
        assert!(error.what().ends_with(happened), "{error}");
        assert_eq!(standing(&settle(&runtime, &run).await).status, Status::Completed);
        assert!(ledger.counts().is_empty(), "{code}");
    }
}

/// A run whose `mail` was sent, and is cancelled while it works: its end, and how long that took in its own time.
async fn cancelled_under_way(class: Class, takes_ms: u64) -> (Checkpoint, Ledger, u128) {
    let ledger = Ledger::default();
    let applied = ledger.clone();
    let mut functions = Functions::default();
    let (sent, was_sent) = tokio::sync::oneshot::channel::<()>();
    let sent = Arc::new(std::sync::Mutex::new(Some(sent)));
    functions.add("mail", move |call| {
        let (ledger, sent) = (applied.clone(), sent.lock().expect("sound").take());
        async move {
            sent.map(|sent| sent.send(()));
            let _ = tokio::time::timeout(Duration::from_millis(takes_ms), std::future::pending::<()>()).await;
            ledger.apply("mail", &call);
            Ok::<_, ToolError>(b"sent".to_vec())
        }
    });
    let model = script(json!([says(&[("mail", json!({}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&test_time(), functions, model);
    let mail = lodestep::core::definition::ToolDefinition { timeout_ms: 60_000, ..tool("mail", class) };
    let run = start(&runtime, agent(vec![mail], &[])).await;
    let since = tokio::time::Instant::now();
    let cancelling = async {
        was_sent.await.expect("sent");
        runtime.send(&run, "ada", Word::Cancel { reason: String::new() }).await.expect("said")
    };
    let (end, verdict) = tokio::join!(settle(&runtime, &run), cancelling);
    assert_eq!(verdict, Verdict::Accepted);
    assert!(!end.pending.values().any(|action| matches!(action.state, ActionState::Open { .. })));
    (end, ledger, since.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_waits_for_what_was_sent_and_tells_the_truth() {
    for class in [Class::Unsafe, Class::Idempotent, Class::Read] {
        let (end, ledger, _) = cancelled_under_way(class, 3_000).await;
        assert_eq!(standing(&end).status, Status::Cancelled, "{class}");
        assert_eq!(how(&end, 1), How::Done, "{class}: what happened is recorded as what happened");
        assert_eq!(ledger.counts(), [("mail".into(), 1)].into(), "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_s_grace_what_is_under_way_is_stopped() {
    for class in [Class::Unsafe, Class::Idempotent, Class::Read] {
        let (end, ledger, took_ms) = cancelled_under_way(class, 50_000).await;
        assert!((10_000..20_000).contains(&took_ms), "{class}: {took_ms} ms");
        assert!(ledger.counts().is_empty(), "{class}: it was stopped");
        assert!(matches!(end.phase, Phase::Ended { ending: Ending::Cancelled, .. }), "{class}: {:?}", end.phase);
        let doubt = end.pending.get(&Ordinal(1)).map(|action| matches!(action.state, ActionState::Doubt { .. }));
        let withdrawn = end.settled(Ordinal(1)).map(|settled| settled.how == How::Withdrawn);
        let expected = if class == Class::Unsafe { (Some(true), None) } else { (None, Some(true)) };
        assert_eq!((doubt, withdrawn), expected, "{class}: the truth about it");
    }
}
