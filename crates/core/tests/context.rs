//! What the model sees: within its budget, valid for every provider, the same each time, and bounded in what it loads.

#[path = "support/random.rs"]
mod random;
mod support;

use std::sync::Arc;

use lodestep_core::context::budget::Budget;
use lodestep_core::context::memo::Memo;
use lodestep_core::context::{Assembled, Blobs, assemble, assemble_from, estimate, request_digest, wants};
use lodestep_core::definition::Definition;
use lodestep_core::event::{ArtifactSaved, ArtifactShown, Event};
use lodestep_core::{Checkpoint, ValueRef};
use lodestep_model::{Message, Request};
use random::{Chance, agent, happen};
use serde_json::json;
use support::{Bench, call, free};

/// Valid for every provider: see `lodestep_model::request`.
fn check_valid(request: &Request) {
    assert!(
        matches!(request.messages.first().map(|first| &**first), Some(Message::User { .. })),
        "the first message is the user's"
    );
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for (at, message) in request.messages.iter().enumerate() {
        match &**message {
            Message::User { text } => assert!(!text.trim().is_empty(), "an empty text"),
            Message::Assistant { text, calls, .. } => {
                assert!(!calls.is_empty() || !text.is_empty());
                let Some(Message::Results { results }) = request.messages.get(at + 1).map(|next| &**next) else {
                    panic!("calls without results");
                };
                let ids: Vec<_> = results.iter().map(|result| &result.id).collect();
                assert_eq!(calls.iter().map(|call| &call.id).collect::<Vec<_>>(), ids);
                for call in calls {
                    assert!((1..=64).contains(&call.name.len()) && call.name.chars().all(plain), "{}", call.name);
                    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).expect("JSON");
                    assert!(arguments.is_object());
                }
            }
            Message::Results { results } => {
                assert!(at > 0 && matches!(*request.messages[at - 1], Message::Assistant { .. }));
                assert!(results.iter().all(|result| !result.text.trim().is_empty()), "an empty result");
            }
        }
    }
}

/// Only what is wanted.
fn loaded(checkpoint: &Checkpoint, definition: &Definition, all: &Blobs) -> Blobs {
    let wanted = wants(checkpoint, definition);
    wanted.iter().filter_map(|stored| Some((stored.digest, all.get(&stored.digest)?.clone()))).collect()
}

#[test]
fn every_request_is_valid_fits_and_is_the_same_again() {
    let mut made = 0;
    for seed in 1..=120 {
        let mut chance = Chance::new(seed);
        let mut bench = Bench::new(agent(&mut chance));
        for _ in 0..60 {
            happen(&mut bench, &mut chance);
            let mut definition = bench.definition.clone();
            definition.model.context_window =
                *chance.pick(&[0, 900, 1_500, 2_500, 4_000, 9_000, 50_000, 400_000, u64::MAX]);
            definition.model.max_output_tokens = 100;
            let blobs = loaded(&bench.checkpoint, &definition, &bench.blobs);
            let budget = Budget::of(&bench.checkpoint, &definition);
            let Ok(Assembled { request, digest, manifest }) =
                assemble(&bench.checkpoint, &definition, &bench.inputs(), &blobs)
            else {
                assert!(definition.model.context_window < 9_000, "seed {seed}: it would have fitted");
                continue;
            };
            made += 1;
            let bytes = estimate::bytes_of(&request);
            assert!(bytes.len() as u64 <= budget.bytes, "seed {seed}: {} of {}", bytes.len(), budget.bytes);
            assert!(manifest.tokens <= budget.tokens.max(1), "seed {seed}");
            check_valid(&request);
            assert_eq!(digest, request_digest(&definition, &request), "seed {seed}");
            let again = assemble(&bench.checkpoint, &definition, &bench.inputs(), &blobs).expect("it fits again");
            assert_eq!((estimate::bytes_of(&again.request), again.manifest), (bytes, manifest), "seed {seed}");
        }
    }
    assert!(made > 3_000, "{made}");
}

/// With windows that change at each step, so that decisions are shown whole, shortened, not at all, and whole again; and
/// with values that can't be read for a while.
#[test]
fn g08_what_was_rendered_for_earlier_requests_changes_nothing() {
    let mut shared = 0;
    for seed in 1..=120 {
        let mut chance = Chance::new(seed);
        let mut bench = Bench::new(agent(&mut chance));
        let mut memo = Memo::default();
        let mut before: Vec<Arc<Message>> = Vec::new();
        for _ in 0..60 {
            happen(&mut bench, &mut chance);
            let mut definition = bench.definition.clone();
            definition.model.context_window = *chance.pick(&[2_500, 9_000, 50_000, 50_000, 400_000]);
            definition.model.max_output_tokens = 100;
            let wanted = wants(&bench.checkpoint, &definition);
            let mut blobs = loaded(&bench.checkpoint, &definition, &bench.blobs);
            if chance.below(8) == 0 && !wanted.is_empty() {
                blobs.remove(&wanted[chance.below(wanted.len() as u64) as usize].digest);
            }
            let (checkpoint, inputs) = (&bench.checkpoint, bench.inputs());
            let anew = assemble(checkpoint, &definition, &inputs, &blobs);
            let again = assemble_from(&mut memo, &wanted, checkpoint, &definition, &inputs, &blobs);
            assert_eq!(again, anew, "seed {seed}");
            let Ok(made) = again else { continue };
            let is_shared = |message: &&Arc<Message>| before.iter().any(|old| Arc::ptr_eq(old, message));
            shared += made.request.messages.iter().filter(is_shared).count();
            before = made.request.messages;
        }
    }
    assert!(shared > 10_000, "decisions are rendered once: {shared}");
}

#[test]
fn g08_what_is_not_wanted_changes_nothing() {
    for seed in 1..=60 {
        let mut chance = Chance::new(seed);
        let mut bench = Bench::new(agent(&mut chance));
        for _ in 0..60 {
            happen(&mut bench, &mut chance);
        }
        let blobs = loaded(&bench.checkpoint, &bench.definition, &bench.blobs);
        let make = |blobs: &Blobs| assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), blobs);
        let request = |blobs: &Blobs| make(blobs).ok().map(|made| estimate::bytes_of(&made.request));
        assert!(request(&blobs) == request(&bench.blobs), "seed {seed}: transcripts and old values are never needed");
    }
}

#[test]
fn g08_values_that_are_there_but_not_wanted_are_not_shown() {
    let mut bench = Bench::new(free());
    let ends = |bench: &mut Bench, ordinal: u32, bytes: usize| {
        let (ordinal, text) = (lodestep_core::Ordinal(ordinal), vec![b'y'; bytes]);
        let seen = lodestep_core::effect::Seen::Done;
        let ended = lodestep_core::rules::settle::Attempt {
            ordinal,
            attempt: 1,
            seen,
            text,
            artifact: None,
            retry_after_ms: None,
        };
        bench.step(|draft, _| lodestep_core::rules::settle::settle(draft, ended));
    };
    bench.calls(vec![call("read", &json!({ "x": "older".repeat(2_000) }))]);
    ends(&mut bench, 1, 10);
    bench.calls(vec![call("read", &json!({"x": 2}))]);
    ends(&mut bench, 2, 400_000);
    let wanted = loaded(&bench.checkpoint, &bench.definition, &bench.blobs);
    let make = |blobs: &Blobs| assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), blobs).expect("it fits");
    assert_eq!(text_of(&make(&wanted).request), text_of(&make(&bench.blobs).request));
    assert!(!wanted.contains_key(&bench.settled(1).arguments.digest), "the case is the one that is meant");
}

fn with_artifact(bytes: &[u8]) -> Bench {
    let mut bench = Bench::new(free());
    let content = ValueRef::of(bytes);
    bench.blobs.insert(content.digest, bytes.to_vec());
    let name = "big.txt".to_owned();
    let saved = ArtifactSaved { name: name.clone(), version: 1, content };
    bench.push(Event::ArtifactSaved(saved)).expect("a first version");
    bench.push(Event::ArtifactShown(ArtifactShown { name, open: true })).expect("it is known");
    bench
}

fn text_of(request: &Request) -> String {
    String::from_utf8(estimate::bytes_of(request)).expect("UTF-8")
}

#[test]
fn an_open_artifact_that_cannot_fit_is_named_and_not_loaded() {
    let bench = with_artifact(&vec![b'z'; 10 << 20]);
    assert!(wants(&bench.checkpoint, &bench.definition).iter().all(|stored| stored.len < 1 << 20));
    let Assembled { request, .. } =
        assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).expect("it fits");
    let text = text_of(&request);
    assert!(text.contains("big.txt (version 1, 10485760 bytes)") && text.contains("too large to show"), "{text}");
    assert!(!text.contains("zzzz"), "also when its bytes happen to be there");
    let bench = with_artifact(b"short and sweet");
    let Assembled { request, .. } =
        assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).expect("it fits");
    assert!(text_of(&request).contains("short and sweet"));
}

#[test]
fn the_newest_decision_is_shown_whole_though_one_result_is_huge() {
    use lodestep_core::effect::Seen;
    use lodestep_core::rules::settle::{Attempt, settle};
    let mut bench = Bench::new(free());
    bench.calls((0..3).map(|n| call("read", &json!({ "x": n }))).collect());
    for n in 1..=3_u32 {
        let text = if n == 3 { vec![b'y'; 2 << 20] } else { format!("result {n}").into_bytes() };
        let ordinal = lodestep_core::Ordinal(n);
        let ended = Attempt { ordinal, attempt: 1, seen: Seen::Done, text, artifact: None, retry_after_ms: None };
        bench.step(|draft, _| settle(draft, ended));
    }
    let blobs = loaded(&bench.checkpoint, &bench.definition, &bench.blobs);
    let Assembled { request, .. } =
        assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &blobs).expect("it fits");
    let text = text_of(&request);
    assert!(text.contains("result 1") && text.contains("result 2") && text.contains("bytes left out"), "{text}");
}

#[test]
fn made_up_names_and_empty_states_give_valid_requests() {
    let mut bench = Bench::new(Definition { objective: String::new(), ..free() });
    bench.definition.objective = String::new();
    let empty = assemble(&bench.checkpoint, &bench.definition, &json!({}), &bench.blobs).expect("it fits");
    check_valid(&empty.request);
    bench.calls(vec![call("rm -rf /; 🦀", &json!({})), call("", &json!({})), call(&"x".repeat(300), &json!({}))]);
    let Assembled { request, .. } =
        assemble(&bench.checkpoint, &bench.definition, &json!({}), &bench.blobs).expect("it fits");
    check_valid(&request);
}

#[test]
fn a_request_is_as_large_after_four_hundred_decisions_as_after_forty() {
    let mut bench = Bench::new(free());
    let mut sizes = Vec::new();
    for n in 0..400 {
        bench.calls(vec![call("note", &json!({"key": "a", "text": format!("step {n:04} {}", "x".repeat(500))}))]);
        if n == 40 || n == 399 {
            let blobs = loaded(&bench.checkpoint, &bench.definition, &bench.blobs);
            assert!(blobs.len() < 120, "{}", blobs.len());
            let made = assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &blobs).expect("it fits");
            sizes.push(estimate::bytes_of(&made.request).len());
        }
    }
    assert!(sizes[1] < sizes[0] * 11 / 10, "{sizes:?}");
}
