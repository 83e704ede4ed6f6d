//! What a service is asked after kills (scenario CTX-01): every call of a request has its one result, which is the one that was
//! stored, and no request is refused for its form. The number of random kills is `LODESTEP_ROUNDS`, else 200.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lodestep::Runtime;
use lodestep::core::definition::Definition;
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, Event, RunKey};
use lodestep::model::{Call, CallResult, Message, Model, Reply, Request};
use lodestep::observe::Observer;
use lodestep::worker::Shutdown;
use lodestep_model_server::{Shape, WAYS, mind};
use serde_json::{Value, json};
use support::services::*;
use tokio::sync::Notify;

/// What is easily changed on its way; each payment says it, and its tool with it.
const ODD: &str = "é\t\"x\" \\ 🦀\r\n'";

/// How many calls each decision makes, and how many decisions a run takes: more than its window shows.
const CALLS: u64 = 3;
const DECISIONS: u64 = 6;

/// In this time a lease of a program that is gone has ended.
const LEASE_MS: u64 = 31_000;

fn arguments(n: u64) -> Value {
    json!({"n": n, "text": ODD.repeat(60)})
}

/// The calls of a decision, counted from one, and the end behind the last.
fn decision(number: u64) -> Reply {
    if number > DECISIONS {
        return calls(&[("finish", json!({"summary": "done"}))]);
    }
    let all: Vec<(&str, Value)> = (1..=CALLS).map(|n| ("pay", arguments((number - 1) * CALLS + n))).collect();
    Reply { text: format!("Decision {number}."), ..calls(&all) }
}

/// What a model saw in its requests.
#[derive(Default)]
struct Seen {
    faults: Vec<String>,
    /// The most decisions that a request did not show any more.
    left_out: u64,
}

impl Seen {
    /// Looks at all pairs of a request; the last payment that it shows.
    fn look_at(&mut self, request: &Request) -> u64 {
        let (mut last, mut shown) = (0, 0);
        for (at, message) in request.messages.iter().enumerate() {
            let Message::Assistant { calls, .. } = &**message else { continue };
            let results: &[CallResult] = match request.messages.get(at + 1).map(|next| &**next) {
                Some(Message::Results { results }) => results,
                _ => &[],
            };
            if calls.len() != results.len() || calls.len() as u64 != CALLS {
                self.faults.push(format!("{} results of {} calls: {calls:?}", results.len(), calls.len()));
            }
            self.faults.extend(calls.iter().zip(results).filter_map(|(call, result)| pair_fault(call, result)));
            last = calls.iter().map(number).fold(last, u64::max);
            shown += 1;
        }
        self.left_out = self.left_out.max((last / CALLS).saturating_sub(shown));
        last
    }
}

fn number(call: &Call) -> u64 {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    arguments["n"].as_u64().unwrap_or_default()
}

/// What is wrong with a call and its result: that is what the tool said, to the byte.
fn pair_fault(call: &Call, result: &CallResult) -> Option<String> {
    let stored = format!("done {}", arguments(number(call)));
    let is_true = result.id == call.id && result.text == stored && !result.is_error;
    (!is_true).then(|| format!("{call:?} has the result {result:?}"))
}

/// A model that pays all that there is to pay, and looks at all that it is shown.
fn paying() -> (impl Model, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mine = seen.clone();
    let model = mind::from_fn(move |request: &Request| {
        let last = mine.lock().expect("sound").look_at(request);
        Ok(decision(last / CALLS + 1))
    });
    (model, seen)
}

fn payer(served: &Served) -> Definition {
    let mut definition = served.definition();
    definition.tools[0].class = Class::Keyed;
    (definition.model.max_output_tokens, definition.model.context_window) = (4_000, 18_000);
    definition
}

/// Tells when the program has committed so often.
struct Commits {
    left: AtomicU64,
    reached: Notify,
}

impl Observer for Commits {
    fn committed(&self, _: &RunKey, _: &[Event], _: &[Vec<u8>], _: &Checkpoint) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.reached.notify_one();
        }
    }
}

/// Works on a run and is killed so many polls after so many commits; false when it was idle before that.
fn is_killed(runtime: &Runtime, commits: u64, polls: u64) -> bool {
    let commits = Arc::new(Commits { left: AtomicU64::new(commits), reached: Notify::new() });
    // What the program has begun ends with it.
    let program = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    program.block_on(async {
        let shutdown = Shutdown::default();
        tokio::select! {
            biased;
            worked = runtime.work_until_idle(commits.clone(), &shutdown) => {
                worked.expect("worked");
                false
            }
            () = async {
                commits.reached.notified().await;
                for _ in 0..polls {
                    tokio::task::yield_now().await;
                }
            } => true,
        }
    })
}

/// So many kills, over as many runs as that takes.
fn random_kills(way: (Shape, bool), kills: u64, seed: u64) {
    let mut chance = fastrand::Rng::with_seed(seed);
    let calm = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (model, seen) = paying();
    let mut served = Served::apart(way, model);
    let (mut killed, mut runs) = (0, 0);
    while killed < kills {
        runs += 1;
        let run = calm.block_on(served.start(payer(&served)));
        while killed < kills && is_killed(&served.runtime, chance.u64(2..7), chance.u64(0..8)) {
            killed += 1;
            served.restart();
            served.clock.advance_ms(LEASE_MS);
        }
        let (state, why) = calm.block_on(async { (served.end(&run).await, served.stopped(&run).await) });
        assert_eq!(standing(&state).status, Status::Completed, "{way:?} seed {seed}: {why}");
    }
    let bill = served.sound_bill();
    let seen = seen.lock().expect("sound");
    assert!(seen.faults.is_empty(), "{way:?} seed {seed}: {:#?}", seen.faults);
    assert!(seen.left_out > 0, "{way:?} seed {seed}: the window had room for all");
    let keys: BTreeSet<String> = served.ledger.keys("pay").into_iter().collect();
    assert_eq!(keys.len() as u64, runs * DECISIONS * CALLS, "{way:?} seed {seed}: each effect under its one key");
    println!("{way:?}: {killed} kills of {runs} runs, {} requests, none refused", bill.entries.len());
}

#[test]
fn ctx_01_after_random_kills_every_request_has_each_call_with_its_true_result() {
    let kills = std::env::var("LODESTEP_ROUNDS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(200_u64);
    for (seed, way) in WAYS.into_iter().enumerate() {
        random_kills(way, kills.div_ceil(4), seed as u64);
    }
}
