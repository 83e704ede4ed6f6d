//! Dedupe keys: what an action meets, what it takes, and when it lets go.

mod support;

use lodestep_core::checkpoint::{ActionState, Checkpoint, How};
use lodestep_core::definition::Decide;
use lodestep_core::effect::{Class, Seen, dedupe_key};
use lodestep_core::event::{DedupeEnd, Event, SettledBy};
use lodestep_core::rules::dedupe::{Holder, KnownOfIt, wanted};
use lodestep_core::rules::inbox::{Became, Word};
use lodestep_core::rules::standing::{Reason, Status, standing};
use lodestep_core::{Digest, Ordinal, RunId};
use serde_json::json;
use support::{Bench, call, free, rule};

const KEY: &str = "invoice-7";

/// A run with one effect that needs the key.
fn needs(class: Class) -> Bench {
    let mut bench = Bench::new(free());
    for tool in bench.definition.tools.iter_mut().filter(|tool| tool.name == class.as_str()) {
        tool.dedupe = Some("invoice-${arg:x}".to_owned());
    }
    bench.calls(vec![call(class.as_str(), &json!({"x": 7}))]);
    bench
}

fn holder(same: Digest, known: KnownOfIt) -> Option<Holder> {
    Some(Holder { run: RunId::parse("other").expect("sound"), action: Ordinal(3), same, known })
}

fn meets(bench: &mut Bench, held: Option<Holder>) {
    bench.dedupe.insert(KEY.to_owned(), held);
    bench.owed();
}

fn same(bench: &Bench) -> Digest {
    bench.action(1).expect("pending").same.expect("an effect")
}

fn is_open(checkpoint: &Checkpoint) -> bool {
    matches!(checkpoint.pending.get(&Ordinal(1)).map(|action| &action.state), Some(ActionState::Open { .. }))
}

fn ends(events: &[Event]) -> Vec<DedupeEnd> {
    let end = |event: &Event| match event {
        Event::DedupeClosed(closed) => Some(closed.end),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

#[test]
fn a_key_is_made_of_the_arguments_or_the_call_is_refused() {
    for (text, arguments, expected) in [
        ("invoice-${arg:id}", json!({"id": "a b"}), Ok("invoice-a b")),
        ("${arg:a}/${arg:b}", json!({"a": 1.0, "b": true}), Ok("1/true")),
        ("${arg:a}", json!({"a": [1, {"z": 1, "y": 2}]}), Ok(r#"[1,{"y":2,"z":1}]"#)),
        ("all", json!({}), Ok("all")),
        ("${arg:a}", json!({"a": null}), Err("`a` is missing")),
        ("${arg:a}", json!({}), Err("`a` is missing")),
        ("${arg:a}", json!({"a": "x".repeat(300)}), Err("300 bytes")),
    ] {
        match (dedupe_key(text, &arguments), expected) {
            (Ok(key), Ok(expected)) => assert_eq!(key, expected),
            (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{fault}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
    let mut bench = needs(Class::Unsafe);
    bench.definition.tools.iter_mut().for_each(|tool| tool.dedupe = Some("${arg:y}".to_owned()));
    bench.dedupe.insert(KEY.to_owned(), None);
    bench.owed();
    bench.seen(1, Seen::Done);
    bench.calls(vec![call("unsafe", &json!({"x": 8}))]);
    assert!(matches!(bench.checkpoint.settled(Ordinal(2)).map(|it| it.how), Some(How::Refused(_))));
}

#[test]
fn a_key_that_is_not_known_to_be_free_is_not_taken() {
    let mut bench = needs(Class::Unsafe);
    assert_eq!(wanted(&bench.checkpoint), [KEY]);
    bench.owed();
    assert!(!is_open(&bench.checkpoint), "it was not asked for");
    meets(&mut bench, None);
    assert!(is_open(&bench.checkpoint));
    assert_eq!(wanted(&bench.checkpoint), [""; 0]);
    let mine: Vec<_> = bench.checkpoint.dedupe_keys.clone().unwrap_or_default().into_iter().collect();
    assert_eq!(mine, [(Ordinal(1), KEY.to_owned())]);
}

#[test]
fn what_another_run_did_decides() {
    let mut bench = needs(Class::Unsafe);
    let same = same(&bench);
    meets(&mut bench, holder(same, KnownOfIt::Open));
    let stands = standing(&bench.checkpoint);
    assert_eq!((stands.status, stands.due), (Status::Waiting, None));
    let [Reason::Held { run, by, until: None, .. }] = stands.reasons.as_slice() else { panic!("{:?}", stands.reasons) };
    assert_eq!((run.as_str(), *by), ("other", Ordinal(3)));
    for (of, known, how, says) in [
        (same, KnownOfIt::Done(b"paid".to_vec()), How::Done, "paid"),
        (Digest::of(b"x"), KnownOfIt::Done(b"paid".to_vec()), How::Failed, "effect.conflict"),
        (same, KnownOfIt::Unknown, How::Failed, "effect.conflict"),
    ] {
        let mut bench = bench.clone();
        meets(&mut bench, holder(of, known));
        let settled = bench.checkpoint.settled(Ordinal(1)).expect("settled").clone();
        assert_eq!((settled.how, settled.by, settled.attempts), (how, Some(SettledBy::OtherRun), 0));
        assert!(String::from_utf8_lossy(&bench.blobs[&settled.result.digest]).contains(says));
    }
    meets(&mut bench, None);
    assert!(is_open(&bench.checkpoint), "free again, and taken");
}

#[test]
fn a_key_is_let_go_of_when_it_is_known_what_became_of_the_effect() {
    for (seen, expected) in
        [(Seen::Refused, Some("free")), (Seen::NotStarted, Some("free")), (Seen::Done, Some("done"))]
    {
        let mut bench = needs(Class::Unsafe);
        meets(&mut bench, None);
        bench.seen(1, seen);
        let closed = ends(&bench.owed());
        let word = closed.first().map(|end| match end {
            DedupeEnd::Free => "free",
            DedupeEnd::Done(_) => "done",
            DedupeEnd::Unknown => "unknown",
        });
        assert_eq!((word, closed.len(), &bench.checkpoint.dedupe_keys), (expected, 1, &None), "{seen:?}");
    }
    // What may have been sent keeps it: in doubt, to be looked up, to be sent again, and after a crash.
    for class in [Class::Unsafe, Class::Checkable, Class::Keyed] {
        let mut bench = needs(class);
        meets(&mut bench, None);
        bench.seen(1, Seen::TimedOut);
        assert_eq!(ends(&bench.owed()), []);
        bench.crash();
        assert_eq!(ends(&bench.owed()), [], "{class}");
        assert!(bench.checkpoint.has_dedupe_key(Ordinal(1)), "{class}");
    }
}

#[test]
fn a_persons_word_on_a_doubt_is_what_the_key_keeps() {
    for (became, expected) in [
        (Became::Happened(b"paid".to_vec()), "done"),
        (Became::Abandoned("nobody knows".to_owned()), "unknown"),
        (Became::SendAgain, "taken again"),
        (Became::DidNotHappen, "free"),
    ] {
        for cancelled in [false, true] {
            let mut bench = needs(Class::Unsafe);
            meets(&mut bench, None);
            bench.seen(1, Seen::TimedOut);
            if cancelled {
                bench.say("ann", Word::Cancel { reason: String::new() });
                bench.owed();
                assert!(bench.checkpoint.is_over(), "in doubt, and over");
                if became == Became::SendAgain {
                    continue;
                }
            }
            assert!(bench.checkpoint.has_dedupe_key(Ordinal(1)));
            bench.say("ann", Word::Resolve { ordinal: Ordinal(1), became: became.clone(), attempt: None });
            let own = Holder {
                run: bench.checkpoint.run.clone(),
                action: Ordinal(1),
                same: Digest::of(b""),
                known: KnownOfIt::Open,
            };
            bench.dedupe.insert(KEY.to_owned(), Some(own));
            let closed = ends(&bench.owed());
            let word = match closed.as_slice() {
                [DedupeEnd::Done(_)] => "done",
                [DedupeEnd::Unknown] => "unknown",
                [DedupeEnd::Free] if is_open(&bench.checkpoint) => "taken again",
                [DedupeEnd::Free] => "free",
                other => panic!("{other:?}"),
            };
            assert_eq!(word, expected, "cancelled: {cancelled}");
        }
    }
}

#[test]
fn who_waits_is_withdrawn_by_a_cancel_and_by_the_end_of_its_approval() {
    let mut bench = needs(Class::Unsafe);
    meets(&mut bench, holder(Digest::of(b"x"), KnownOfIt::Open));
    bench.say("ann", Word::Cancel { reason: String::new() });
    bench.owed();
    assert!(bench.checkpoint.is_over());
    assert_eq!(bench.checkpoint.settled(Ordinal(1)).map(|it| it.how), Some(How::Withdrawn));
    let mut bench = needs(Class::Unsafe);
    meets(&mut bench, holder(Digest::of(b"x"), KnownOfIt::Open));
    bench.definition.policy = vec![rule(&[], &[], Decide::Deny)];
    meets(&mut bench, None);
    assert_eq!(
        bench.checkpoint.settled(Ordinal(1)).map(|it| it.how),
        Some(How::Withdrawn),
        "the policy is asked again"
    );
}

#[test]
fn two_actions_of_one_run_with_one_key_are_one_effect_or_a_conflict() {
    let mut bench = Bench::new(free());
    bench.definition.tools.iter_mut().for_each(|tool| tool.dedupe = Some("once".to_owned()));
    bench.calls(vec![call("unsafe", &json!({"x": 7})), call("unsafe", &json!({"x": 8}))]);
    bench.dedupe.insert("once".to_owned(), None);
    bench.owed();
    let states =
        [1, 2].map(|ordinal| matches!(bench.action(ordinal).expect("pending").state, ActionState::Open { .. }));
    assert_eq!(states, [true, false], "one intent");
}
