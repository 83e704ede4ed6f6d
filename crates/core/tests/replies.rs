//! What a reply says besides its calls: that it was cut, what its provider wants back, and how long to wait for the next.

mod support;

use lodestep_core::checkpoint::Phase;
use lodestep_core::context::{assemble, wants};
use lodestep_core::effect::Seen;
use lodestep_core::event::{CallFailure, Event, StopReason};
use lodestep_core::rules::ask::fail;
use lodestep_core::rules::inbox::{Verdict, Word};
use lodestep_core::rules::settle::{Attempt, settle};
use lodestep_core::{Definition, Ordinal};
use lodestep_model::{Blocks, Message, Reply, StopReason as ModelStop, Usage};
use serde_json::json;
use support::{Bench, call, free, names, reply};

fn stopped(bench: &Bench) -> Option<(StopReason, String)> {
    let Phase::Stopped { reason, text, .. } = &bench.checkpoint.phase else { return None };
    Some((*reason, String::from_utf8_lossy(&bench.blobs[&text.digest]).into_owned()))
}

#[test]
fn a_second_cut_reply_stops_the_run_and_a_whole_one_between_begins_anew() {
    let cut = || Reply { stop: ModelStop::OutputLimit, ..reply(vec![call("unsafe", &json!({}))]) };
    let mut bench = Bench::new(free());
    bench.answer(&cut());
    bench.calls(vec![call("note", &json!({"key": "a", "text": "b"}))]);
    bench.answer(&cut());
    assert_eq!((stopped(&bench), bench.checkpoint.model.cut_in_row), (None, Some(1)));
    bench.answer(&cut());
    let (reason, text) = stopped(&bench).expect("the second in a row");
    assert_eq!(reason, StopReason::Model);
    assert!(text.contains("max_output_tokens = 1000"), "{text}");
    assert!(bench.action(2).is_none(), "nothing of them was done");
}

#[test]
fn a_reply_as_long_as_the_limit_is_cut_whatever_the_provider_says() {
    let limit = free().model.max_output_tokens;
    for (output_tokens, done) in [(limit - 1, true), (limit, false), (limit + 1, false)] {
        let usage = Some(Usage { input_tokens: 100, output_tokens, ..Usage::default() });
        let mut bench = Bench::new(free());
        bench.answer(&Reply { usage, ..reply(vec![call("unsafe", &json!({}))]) });
        assert_eq!(bench.action(1).is_some(), done, "{output_tokens} of {limit}");
        assert_eq!(bench.checkpoint.model.cut_in_row, (!done).then_some(1));
    }
}

#[test]
fn the_reply_after_a_cut_one_has_the_limit_of_the_retry_and_the_next_the_usual_one() {
    let mut definition = free();
    definition.model.max_output_tokens_retry = Some(3_000);
    let said = |output_tokens| Reply {
        usage: Some(Usage { input_tokens: 100, output_tokens, ..Usage::default() }),
        ..reply(vec![call("note", &json!({"key": "a", "text": "b"}))])
    };
    // What is asked for is what is held back, and what the reply is judged by.
    let answer = |bench: &mut Bench, limit: u64, output_tokens: u64| {
        let asked = assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).expect("it fits");
        let call = bench.reserve().expect("the quota has room");
        assert_eq!((asked.request.max_output_tokens, bench.checkpoint.quota.reserved.output_tokens), (limit, limit));
        assert!(asked.manifest.budget <= bench.definition.model.context_window - limit);
        bench.take(call, &said(output_tokens));
    };
    let mut bench = Bench::new(definition);
    answer(&mut bench, 1_000, 1_000);
    assert_eq!(bench.checkpoint.model.cut_in_row, Some(1));
    let told = bench.checkpoint.errors.back().map(|error| &bench.blobs[&error.text.digest]).expect("it is told");
    assert!(String::from_utf8_lossy(told).contains("The next reply alone may have 3000 tokens"), "{told:?}");
    // A reply that got lost between them takes none of the room.
    let call = bench.reserve().expect("the quota has room");
    bench.step(|draft, definition| fail(draft, definition, call, CallFailure::Lost, "reset", None));
    bench.wait_ms(200_000);
    answer(&mut bench, 3_000, 2_999);
    assert_eq!((bench.checkpoint.model.decisions, bench.checkpoint.model.cut_in_row), (1, None), "it is whole");
    answer(&mut bench, 1_000, 1_000);
    answer(&mut bench, 3_000, 3_000);
    let (reason, text) = stopped(&bench).expect("the second in a row");
    assert_eq!(reason, StopReason::Model);
    assert!(text.contains("max_output_tokens_retry = 3000 is too little"), "{text}");
    bench.say("ann", Word::Resume);
    answer(&mut bench, 1_000, 999);
}

#[test]
fn blocks_go_back_with_their_decision_byte_for_byte_and_only_with_the_newest() {
    let blocks =
        |text: &str| Blocks { of: "anthropic m".into(), json: format!("[{{\"thinking\":\"{text}\\u00e9\"}}]") };
    let note = |key: &str| vec![call("note", &json!({"key": key, "text": "b"}))];
    let shown = |bench: &Bench| -> Vec<Option<Blocks>> {
        assert!(wants(&bench.checkpoint, &bench.definition).iter().all(|one| bench.blobs.contains_key(&one.digest)));
        let assembled = assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).unwrap();
        let of = |message: &Message| match message {
            Message::Assistant { blocks, .. } => Some(blocks.clone()),
            _ => None,
        };
        assembled.request.messages.iter().filter_map(|message| of(message)).collect()
    };
    let mut bench = Bench::new(free());
    bench.answer(&Reply { blocks: Some(blocks("one")), ..reply(note("a")) });
    assert_eq!(shown(&bench), [Some(blocks("one"))]);
    bench.answer(&Reply { blocks: Some(blocks("two")), ..reply(note("b")) });
    assert_eq!(shown(&bench), [None, Some(blocks("two"))]);
    bench.answer(&Reply { stop: ModelStop::Refused, ..reply(Vec::new()) });
    assert_eq!(shown(&bench), [None, Some(blocks("two"))], "a reply that is no decision changes nothing");
    bench.answer(&reply(note("c")));
    assert_eq!(shown(&bench), [None, None, None]);
    assert!(bench.checkpoint.model.blocks.is_none());
}

#[test]
fn what_a_provider_says_of_a_call_is_recorded_with_its_answer() {
    let mut bench = Bench::new(free());
    let usage = Usage { input_tokens: 900, output_tokens: 10, cache_read_tokens: 700, cache_write_tokens: 100 };
    let answered = bench.answer(&Reply {
        usage: Some(usage),
        model: Some("m-2".into()),
        request_id: Some("req_7".into()),
        ..reply(vec![call("note", &json!({"key": "a", "text": "b"}))])
    });
    let about = answered.iter().find_map(|event| match event {
        Event::CallAnswered(answered) => answered.about.clone(),
        _ => None,
    });
    let about = about.expect("it is in the event");
    assert_eq!((about.model.as_deref(), about.request_id.as_deref()), (Some("m-2"), Some("req_7")));
    assert_eq!((about.cache_read_tokens, about.cache_write_tokens), (700, 100));
    assert_eq!(bench.checkpoint.quota.cached.map(|cached| (cached.read, cached.written)), Some((700, 100)));
    assert_eq!(bench.checkpoint.quota.unconfirmed, None);
    bench.answer(&Reply { usage: None, ..reply(vec![call("note", &json!({"key": "a", "text": "c"}))]) });
    let unconfirmed = bench.checkpoint.quota.unconfirmed.expect("an estimate is no report");
    assert!(unconfirmed.input_tokens > 0 && unconfirmed.model_calls == 1, "{unconfirmed:?}");
}

#[test]
fn a_wait_that_was_asked_for_is_never_shorter_and_at_most_a_twentieth_longer() {
    let mut spread = std::collections::BTreeSet::new();
    for asked in [0, 2_000, 60_000, 171_000, 7_200_000, u64::MAX] {
        let mut bench = Bench::new(free());
        for nth in 1..=4 {
            let call = bench.reserve().expect("a call");
            let before = bench.draft().now();
            bench.step(|draft, definition| fail(draft, definition, call, CallFailure::Busy, "slow down", Some(asked)));
            // Who says `now` a fourth time in a row is not asked without a pause.
            let pause = if nth == 4 && asked < 500 { 750 } else { 0 };
            let (least, most) = (before.plus_ms(asked), before.plus_ms(asked.saturating_add(asked / 20).max(pause)));
            let not_before = bench.checkpoint.model.not_before;
            assert!(least <= not_before && not_before <= most, "{asked}: {least} {not_before} {most}");
            spread.insert(not_before);
            if asked == u64::MAX {
                break;
            }
            assert!(pause == 0 || not_before >= before.plus_ms(500), "{asked}: {not_before}");
            bench.wait_ms(asked + asked / 20);
        }
    }
    assert!(spread.len() > 15, "those that wait for the same time do not come at once");
}

#[test]
fn lost_replies_are_counted_alone_and_a_service_that_has_answered_is_waited_for() {
    let failing = |bench: &mut Bench, why: CallFailure| {
        bench.wait_ms(200_000);
        let call = bench.reserve().expect("the quota has room");
        bench.step(|draft, definition| fail(draft, definition, call, why, "said", None));
    };
    let most = free().model.max_attempts;
    let mut bench = Bench::new(free());
    for n in 1..=most {
        assert_eq!(stopped(&bench), None, "{n}");
        failing(&mut bench, CallFailure::NotSent);
    }
    assert!(stopped(&bench).is_some(), "it never answered");
    let mut bench = Bench::new(free());
    bench.calls(vec![call("note", &json!({"key": "a", "text": "b"}))]);
    for why in [CallFailure::NotSent, CallFailure::Busy].into_iter().cycle().take(40) {
        failing(&mut bench, why);
    }
    for n in 1..=most {
        assert_eq!(stopped(&bench), None, "{n}: only lost ones are charged, and counted");
        failing(&mut bench, CallFailure::Lost);
    }
    assert!(stopped(&bench).is_some());
}

#[test]
fn a_resume_does_not_shorten_a_wait_that_was_asked_for_unless_another_definition_asks() {
    // One that waits is shortened as well as one that stopped for its deadline.
    for (upgraded, deadline_ms) in [(false, 60_000), (true, 60_000), (true, 600_000)] {
        let mut definition: Definition = free();
        definition.quota.deadline_ms = Some(deadline_ms);
        let mut bench = Bench::new(definition.clone());
        let call = bench.reserve().expect("a call");
        bench.step(|draft, definition| fail(draft, definition, call, CallFailure::Busy, "429", Some(90_000)));
        let asked = bench.checkpoint.model.not_before;
        definition.model.name = "another".to_owned();
        // An upgrade resumes the run, too.
        let word = if upgraded { bench.upgrade_to(&definition) } else { Word::Resume };
        assert_eq!(bench.say("ann", word), Verdict::Accepted);
        let not_before = bench.checkpoint.model.not_before;
        assert_eq!(not_before < asked, upgraded, "{not_before} after {asked}");
    }
}

#[test]
fn a_limit_that_ends_after_the_runs_deadline_stops_it_and_says_until_when() {
    for (asked, is_stopped) in [(50_000, false), (60_000, true)] {
        let mut definition: Definition = free();
        definition.quota.deadline_ms = Some(60_000);
        let mut bench = Bench::new(definition);
        let call = bench.reserve().expect("a call");
        let events =
            bench.step(|draft, definition| fail(draft, definition, call, CallFailure::Busy, "429", Some(asked)));
        assert_eq!(names(&events).contains(&"RunStopped"), is_stopped, "{asked}");
        if let Some((reason, text)) = stopped(&bench) {
            assert_eq!(reason, StopReason::Model);
            assert!(text.starts_with("rate limited until ") && text.ends_with("429"), "{text}");
        }
    }
}

#[test]
fn what_goes_round_is_told_to_the_model_and_then_stopped() {
    for (files, times_told, said) in [
        (&["a"][..], 3, "the same action had the same outcome 3 times in a row"),
        (&["a", "b"], 3, "the same 2 actions in turn had the same outcomes 3 times in a row"),
        (&["a", "b", "c", "d"], 3, "the same 4 actions in turn had the same outcomes 3 times in a row"),
    ] {
        let mut bench = Bench::new(free());
        let mut told = None;
        let rounds = bench.checkpoint.limits.loop_repeats * files.len() as u32;
        for n in 0..rounds {
            assert_eq!(stopped(&bench), None, "{files:?} {n}");
            let file = files[n as usize % files.len()];
            bench.calls(vec![call("read", &json!({ "file": file }))]);
            let (ordinal, text) = (Ordinal(n + 1), b"the same".to_vec());
            let attempt = Attempt { ordinal, attempt: 1, seen: Seen::Done, text, artifact: None, retry_after_ms: None };
            bench.step(|draft, _| settle(draft, attempt));
            bench.owed();
            let assembled = assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).unwrap();
            let text = serde_json::to_string(&assembled.request.messages).unwrap();
            if told.is_none() && text.contains(" in a row. It will not come out differently") {
                assert!(text.contains(said), "{files:?}: {text}");
                told = Some((n + 1) / files.len() as u32);
            }
        }
        assert_eq!(told, Some(times_told), "{files:?}: before it is stopped");
        assert_eq!(stopped(&bench).map(|(reason, _)| reason), Some(StopReason::Loop), "{files:?}");
    }
}
