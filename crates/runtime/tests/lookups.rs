//! Lookups of functions: asked when they can be believed, and what each answer leads to. Time is paused.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestep::core::checkpoint::{Checkpoint, How};
use lodestep::core::effect::Class;
use lodestep::core::event::SettledBy;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Ordinal, RunKey};
use lodestep::tools::{Functions, LookedUp, ToolError};
use serde_json::json;
use support::*;

/// What the lookup was asked: the key, and how long after the run's start in milliseconds.
type Asked = Arc<Mutex<Vec<(String, u64)>>>;

/// `pay` applies and then says that it does not know; its lookup gives these answers in order, the last for ever.
fn pay(ledger: &Ledger, asked: &Asked, answers: &[LookedUp]) -> Functions {
    let mut functions = Functions::default();
    let (ledger, asked, answers) = (ledger.clone(), asked.clone(), answers.to_vec());
    let since = tokio::time::Instant::now();
    let function = move |call| {
        let first = ledger.counts().is_empty();
        ledger.apply("pay", &call);
        std::future::ready(if first { Err(ToolError::Unknown("reset".to_owned())) } else { Ok(b"paid".to_vec()) })
    };
    functions.add_checkable("pay", function, move |call| {
        let mut asked = asked.lock().expect("sound");
        let answer = answers[asked.len().min(answers.len() - 1)].clone();
        asked.push((call.key, since.elapsed().as_millis() as u64));
        std::future::ready(answer)
    });
    functions
}

async fn ended(functions: Functions, settles_after_ms: u64) -> (Checkpoint, Arc<RunKey>) {
    let model = script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&test_time(), functions, model);
    let mut pay = tool("pay", Class::Checkable);
    pay.settles_after_ms = settles_after_ms;
    let run = start(&runtime, agent(vec![pay], &[])).await;
    let mut state = settle(&runtime, &run).await;
    while standing(&state).status == Status::Waiting {
        tokio::time::advance(Duration::from_millis(500)).await;
        state = settle(&runtime, &run).await;
    }
    (state, run)
}

#[tokio::test(start_paused = true)]
async fn a_functions_lookup_settles_what_is_unknown() {
    let done = LookedUp::Done(b"found".to_vec());
    for (answers, sent, how, by) in [
        (vec![done.clone()], 1, How::Done, SettledBy::Lookup),
        (vec![LookedUp::Absent], 2, How::Done, SettledBy::Answer),
        (vec![LookedUp::Running, LookedUp::NotNow("away".to_owned()), done], 1, How::Done, SettledBy::Lookup),
    ] {
        let (ledger, asked) = (Ledger::default(), Asked::default());
        let (end, _) = ended(pay(&ledger, &asked, &answers), 2_000).await;
        assert_eq!(standing(&end).status, Status::Completed, "{answers:?}");
        let settled = end.settled(Ordinal(1)).expect("settled");
        assert_eq!((settled.how, settled.by), (how, Some(by)), "{answers:?}");
        assert_eq!(ledger.keys("pay").len(), sent, "{answers:?}");
        let asked = asked.lock().expect("sound");
        assert_eq!(asked.len(), answers.len(), "{answers:?}");
        assert!(asked.iter().all(|(key, at_ms)| *key == ledger.keys("pay")[0] && *at_ms >= 2_000), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_cannot_tell_or_panics_leaves_it_to_a_person() {
    let answers = [LookedUp::Unknown("no record".to_owned())];
    let (ledger, asked) = (Ledger::default(), Asked::default());
    let (state, _) = ended(pay(&ledger, &asked, &answers), 1).await;
    assert_eq!(standing(&state).status, Status::InDoubt);
    assert_eq!(ledger.keys("pay").len(), 1);
    let mut functions = Functions::default();
    let unknown = |_| std::future::ready(Err(ToolError::Unknown("reset".to_owned())));
    functions.add_checkable("pay", unknown, |_| -> std::future::Ready<LookedUp> { panic!("a fault in it") });
    let (state, _) = ended(functions, 1).await;
    assert_eq!(standing(&state).status, Status::InDoubt);
    let mut functions = Functions::default();
    functions.add("pay", unknown);
    let (state, _) = ended(functions, 1).await;
    assert_eq!(standing(&state).status, Status::InDoubt, "a function without a lookup can't tell");
}
