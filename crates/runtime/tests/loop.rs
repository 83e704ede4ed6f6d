//! The one loop over the memory store: a run from start to end, waits, failures, handovers.

mod support;

use lodestep::core::checkpoint::Phase;
use lodestep::core::effect::Class;
use lodestep::core::event::Ending;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use serde_json::{Value, json};
use support::*;

#[tokio::test]
async fn a_run_goes_from_start_to_its_end() {
    let (ledger, clock) = (Ledger::default(), still_clock());
    let model = script(json!([
        says(&[("look", json!({"n": 1})), ("pay", json!({"n": 2}))]),
        says(&[("note", json!({"key": "k", "text": "paid"})), ("mail", json!({"text": "hello"}))]),
        says(&[("finish", json!({"summary": "all done"}))]),
    ]));
    let runtime = in_memory(&clock, functions(&ledger, &["look", "pay", "mail"]), model);
    let agent = agent(vec![tool("look", Class::Read), tool("pay", Class::Keyed), tool("mail", Class::Unsafe)], &[]);
    let run = start(&runtime, agent).await;
    let end = settle(&runtime, &run).await;
    assert!(matches!(end.phase, Phase::Ended { ending: Ending::Completed, .. }), "{:?}", end.phase);
    assert_eq!(ledger.counts(), [("look".into(), 1), ("pay".into(), 1), ("mail".into(), 1)].into());
    assert_eq!(end.quota.reserved, Default::default());
    assert_eq!(end.quota.used.model_calls, 3);
    assert_eq!(end.quota.used.tool_calls, 3);
}

#[tokio::test]
async fn apr_01_nothing_before_an_approval_is_done_again() {
    let (ledger, clock) = (Ledger::default(), still_clock());
    let model = script(json!([
        says(&[("a", json!({"n": 1}))]),
        says(&[("b", json!({"n": 1}))]),
        says(&[("c", json!({"n": 1}))]),
        says(&[("finish", json!({}))]),
    ]));
    let runtime = in_memory(&clock, functions(&ledger, &["a", "b", "c"]), model);
    let agent = agent(vec![tool("a", Class::Keyed), tool("b", Class::Unsafe), tool("c", Class::Unsafe)], &["b", "c"]);
    let run = start(&runtime, agent).await;
    for (waits_for, counts) in [("b", vec![("a", 1)]), ("c", vec![("a", 1), ("b", 1)])] {
        let state = settle(&runtime, &run).await;
        assert_eq!(standing(&state).status, Status::Waiting);
        let expected = counts.into_iter().map(|(tool, count)| (tool.to_owned(), count)).collect();
        assert_eq!(ledger.counts(), expected);
        let open = runtime.store().open_requests("default", 10).await.expect("listed");
        assert_eq!(open.len(), 1);
        let action = &state.pending[&open[0].ordinal];
        assert_eq!(action.tool, waits_for);
        let word = Word::Approve { request: open[0].name };
        assert_eq!(runtime.send(&run, "ada", word.clone()).await.expect("sent"), Verdict::Accepted);
        assert!(matches!(runtime.send(&run, "ada", word).await.expect("sent"), Verdict::AlreadyGiven(_)));
    }
    let end = settle(&runtime, &run).await;
    assert_eq!(standing(&end).status, Status::Completed);
    assert_eq!(ledger.counts(), [("a".into(), 1), ("b".into(), 1), ("c".into(), 1)].into());
}

#[tokio::test]
async fn g04_an_effect_that_left_the_checkpoint_in_the_same_claim_is_not_sent_again() {
    let clock = still_clock();
    let ledger = Ledger::default();
    let pay = |n: u64| says(&[("pay", json!({ "n": n }))]);
    let mut replies = vec![pay(1)];
    // Reads push each payment out of the two that are kept in full.
    let mut read = 0;
    let mut reads = |replies: &mut Vec<Value>| {
        for _ in 0..3 {
            read += 1;
            replies.push(says(&[("look", json!({ "n": read }))]));
        }
    };
    reads(&mut replies);
    replies.push(pay(2));
    reads(&mut replies);
    replies.extend([pay(2), pay(1), says(&[("finish", json!({"summary": "done"}))])]);
    let mut definition = agent(vec![tool("pay", Class::Unsafe), tool("look", Class::Read)], &[]);
    definition.limits.recent_actions = 2;
    let runtime = in_memory(&clock, functions(&ledger, &["pay", "look"]), script(Value::Array(replies)));
    let run = start(&runtime, definition).await;
    let state = settle(&runtime, &run).await;
    assert_eq!(standing(&state).status, Status::Completed);
    assert_eq!(ledger.keys("pay").len(), 2, "each was paid once");
}
