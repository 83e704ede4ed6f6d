//! The state machines of an action and of a run: every state against every event, compared with a table.
//!
//! `LODESTEP_WRITE_GOLDEN=1` writes `state_machine.txt` anew; what changes in it is to be read line by line.
//! docs/state-machine.md draws the same machines, and the drawing is compared with the table in both directions.

#[path = "support/every_event.rs"]
mod every_event;
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use every_event::About;
use lodestep_core::checkpoint::{ActionState, Checkpoint, Phase};
use lodestep_core::definition::{Decide, Definition, QuotaLimits, Rule, ToolKind};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{
    ActionFinished, ActionRebound, ArtifactSaved, AttemptUnknown, DedupeTaken, DoubtResolved, Event, Gate,
    LookupInconclusive, Resolution, RunStopped, RunUpgraded, SettledBy, StopReason, UnknownNext,
};
use lodestep_core::rules::dedupe::{Holder, KnownOfIt};
use lodestep_core::rules::inbox::Word;
use lodestep_core::{Digest, Ordinal, RunId, ValueRef};
use serde_json::{Value, json};
use support::{Bench, call, free, rule};

/// A second later the deadlines of its actions have passed.
fn bench() -> Bench {
    let mut bench = Bench::new(with_deadlines(Definition { quota: no_limits(), ..free() }));
    let saved = ArtifactSaved { name: "a".to_owned(), version: 1, content: ValueRef::of(b"a") };
    bench.push(Event::ArtifactSaved(saved)).expect("a first version");
    bench
}

fn with_deadlines(mut definition: Definition) -> Definition {
    let of_the_world = definition.tools.iter_mut().filter(|tool| matches!(tool.kind, ToolKind::Function));
    of_the_world.for_each(|tool| tool.deadline_ms = Some(1_000));
    definition
}

fn with(tool: &str) -> Bench {
    let mut bench = bench();
    bench.calls(vec![call(tool, &json!({"x": 1}))]);
    bench
}

/// A wait whose signal is there, and whose time has come.
fn waiting(tool: &str, arguments: &Value) -> Bench {
    let mut bench = bench();
    bench.say("ann", Word::Signal { name: "paid".to_owned(), value: b"1".to_vec() });
    bench.calls(vec![call(tool, arguments)]);
    bench
}

fn no_limits() -> QuotaLimits {
    QuotaLimits { usd_micro: Some(1_000_000), ..QuotaLimits::default() }
}

fn under_way(class: Class) -> Bench {
    let mut bench = with(class.as_str());
    bench.owed();
    bench
}

fn unknown(class: Class) -> Bench {
    let mut bench = under_way(class);
    bench.seen(1, Seen::TimedOut);
    bench
}

/// An effect that needs a dedupe key.
fn needs_a_key() -> Bench {
    let mut bench = bench();
    let tool = bench.definition.tools.iter_mut().find(|tool| tool.name == "unsafe").expect("it is there");
    tool.dedupe = Some("once-${arg:x}".to_owned());
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    bench
}

/// An effect whose dedupe key another run has.
fn held() -> Bench {
    let mut bench = needs_a_key();
    let run = RunId::parse("other").expect("sound");
    let holder = Holder { run, action: Ordinal(3), same: Digest::of(b"same"), known: KnownOfIt::Open };
    bench.dedupe.insert("once-1".to_owned(), Some(holder));
    bench.owed();
    bench
}

fn with_its_key(mut bench: Bench) -> Bench {
    let same = bench.action(1).and_then(|action| action.same).expect("an effect");
    let taken = DedupeTaken { ordinal: Ordinal(1), key: "once-1".to_owned(), same };
    bench.push(Event::DedupeTaken(taken)).expect("it is free");
    bench
}

/// Every state of an action, reached by real events, and the action that is in it.
fn action_states() -> Vec<(&'static str, Bench, u32)> {
    let mut asked = bench();
    asked.definition.policy = vec![Rule { expires_ms: Some(1_000), ..rule(&[], &[], Decide::Ask) }];
    asked.calls(vec![call("unsafe", &json!({}))]);
    let mut approved = asked.clone();
    let request = approved.request(1);
    approved.say("ann", Word::Approve { request });
    let quota = QuotaLimits { tool_calls: Some(0), ..no_limits() };
    let mut short = Bench::new(with_deadlines(Definition { quota, ..free() }));
    short.calls(vec![call("unsafe", &json!({}))]);
    let mut same = bench();
    same.calls(vec![call("unsafe", &json!({})), call("unsafe", &json!({}))]);
    let mut not_sent = under_way(Class::Unsafe);
    not_sent.seen(1, Seen::NotStarted);
    let mut settled = bench();
    settled.calls(vec![call("read", &json!({})), call("read", &json!({"x": 1}))]);
    settled.seen(1, Seen::Done);
    let states = vec![
        ("gated_approval", asked, 1),
        ("gated_answer", with("ask"), 1),
        ("gated_same", same, 2),
        ("gated_siblings", with("finish"), 1),
        ("gated_signal", waiting("wait_for_signal", &json!({"name": "paid"})), 1),
        ("gated_timer", waiting("wait", &json!({"seconds": 0})), 1),
        ("gated_quota", short, 1),
        ("ready_approved", approved, 1),
        ("ready_repeatable", with("read"), 1),
        ("ready_effect", with("unsafe"), 1),
        ("ready_effect", not_sent, 1),
        ("ready_again", unknown(Class::Keyed), 1),
        ("open", under_way(Class::Unsafe), 1),
        ("look_up", unknown(Class::Checkable), 1),
        ("doubt", unknown(Class::Unsafe), 1),
        ("ready_effect", needs_a_key(), 1),
        ("held", held(), 1),
        ("held", with_its_key(held()), 1),
        ("settled", settled, 1),
    ];
    states.into_iter().map(|(state, bench, ordinal)| (state, a_second_later(bench), ordinal)).collect()
}

fn a_second_later(mut bench: Bench) -> Bench {
    bench.wait_ms(1_000);
    bench
}

/// Every state of a run, reached by real events.
fn run_states() -> Vec<(&'static str, Bench)> {
    let mut asking = bench();
    asking.reserve().expect("the quota has room");
    let stop = |mut bench: Bench| {
        let text = ValueRef::of(b"stop");
        bench.push(Event::RunStopped(RunStopped { reason: StopReason::Operator, text })).expect("it is active");
        bench
    };
    let cancel = |mut bench: Bench| {
        bench.say("ann", Word::Cancel { reason: String::new() });
        bench
    };
    let mut over = cancel(bench());
    over.owed();
    let mut over_in_doubt = cancel(unknown(Class::Unsafe));
    over_in_doubt.owed();
    let states = vec![
        ("idle", bench()),
        ("asking", asking.clone()),
        ("deciding", with("unsafe")),
        ("stopped", stop(bench())),
        ("stopped_asking", stop(asking)),
        ("stopped_deciding", stop(with("unsafe"))),
        ("cancelling", cancel(with("unsafe"))),
        ("ended", over),
        ("ended_in_doubt", over_in_doubt),
    ];
    states.into_iter().map(|(state, bench)| (state, a_second_later(bench))).collect()
}

/// The events of a state: all of them, those with several meanings once for each.
fn events(bench: &Bench, ordinal: u32) -> Vec<(String, Event)> {
    let checkpoint = &bench.checkpoint;
    let attempts = bench.action(ordinal).map_or(0, |action| action.attempts);
    let value = ValueRef::of(b"value");
    let open = matches!(bench.action(ordinal).map(|action| &action.state), Some(ActionState::Open { .. }));
    let attempt = if open { attempts } else { attempts.max(1) };
    let ordinal = Ordinal(ordinal);
    let about = About {
        ordinal,
        next_ordinal: Ordinal(checkpoint.last_ordinal + 1),
        attempt,
        next_attempt: attempts + 1,
        call: checkpoint.model.open.map_or(checkpoint.model.calls + 1, |open| open.call),
        decision: checkpoint.model.decisions + 1,
        position: checkpoint.inbox + 1,
        value,
        at: bench.now.plus_ms(1_000),
    };
    let mut all = every_event::about(about);
    for event in &mut all {
        if let (Event::ActionRebound(rebound), Some(action)) = (event, bench.action(ordinal.0)) {
            // A key is minted once.
            rebound.key = action.key.clone().or(rebound.key.take());
        }
    }
    all.into_iter().flat_map(|event| meanings(event, about)).collect()
}

fn meanings(event: Event, it: About) -> Vec<(String, Event)> {
    let (ordinal, text, attempt, by) = (it.ordinal, it.value, it.attempt, "ann".to_owned());
    let nexts =
        [("again", UnknownNext::Again(it.at)), ("look up", UnknownNext::LookUp(it.at)), ("doubt", UnknownNext::Doubt)];
    let named = |meaning: &str| format!("{} {meaning}", event.name());
    match &event {
        Event::AttemptUnknown(_) => {
            let unknown = |next| Event::AttemptUnknown(AttemptUnknown { ordinal, attempt, text, next });
            nexts.into_iter().map(|(meaning, next)| (named(meaning), unknown(next))).collect()
        }
        Event::LookupInconclusive(_) => {
            let looked_up = |next| Event::LookupInconclusive(LookupInconclusive { ordinal, text, next });
            nexts.into_iter().map(|(meaning, next)| (named(meaning), looked_up(next))).collect()
        }
        Event::DoubtResolved(_) => [
            ("happened", Resolution::Happened(text)),
            ("send again", Resolution::SendAgain),
            ("abandoned", Resolution::Abandoned(text)),
            ("did not happen", Resolution::DidNotHappen(text)),
        ]
        .into_iter()
        .map(|(meaning, resolution)| {
            (named(meaning), Event::DoubtResolved(DoubtResolved { ordinal, by: by.clone(), resolution }))
        })
        .collect(),
        Event::ActionFinished(_) => [
            ("answer", SettledBy::Answer),
            ("lookup", SettledBy::Lookup),
            ("late report", SettledBy::LateReport),
            ("same effect", SettledBy::SameEffect),
            ("other run", SettledBy::OtherRun),
            ("core", SettledBy::Core),
        ]
        .into_iter()
        .map(|(meaning, by)| {
            (named(meaning), Event::ActionFinished(ActionFinished { ordinal, attempt, ok: true, result: text, by }))
        })
        .collect(),
        Event::RunUpgraded(upgraded) => {
            let kept = Event::RunUpgraded(RunUpgraded { kept: vec![ordinal], ..upgraded.clone() });
            let none = Event::RunUpgraded(RunUpgraded { kept: Vec::new(), ..upgraded.clone() });
            vec![(named("keeps it"), kept), (named("keeps none"), none)]
        }
        Event::ActionRebound(rebound) => {
            let gated = |gate| Event::ActionRebound(ActionRebound { gate, ..rebound.clone() });
            let asks = rebound.gate.clone();
            let gates = [("asks", asks), ("allowed", Gate::Open), ("waits for room", Gate::Quota)];
            gates.map(|(meaning, gate)| (named(meaning), gated(gate))).to_vec()
        }
        _ => vec![(event.name().to_owned(), event)],
    }
}

fn action_word(checkpoint: &Checkpoint, ordinal: u32) -> String {
    let Some(action) = checkpoint.pending.get(&Ordinal(ordinal)) else {
        assert!(checkpoint.settled(Ordinal(ordinal)).is_some(), "no action is lost");
        return "settled".to_owned();
    };
    match &action.state {
        ActionState::Gated { gate: Gate::Approval(_) } => "gated_approval",
        ActionState::Gated { gate: Gate::Answer(_) } => "gated_answer",
        ActionState::Gated { gate: Gate::Same(_) } => "gated_same",
        ActionState::Gated { gate: Gate::Signal(_) } => "gated_signal",
        ActionState::Gated { gate: Gate::Timer(_) } => "gated_timer",
        ActionState::Gated { gate: Gate::Quota } => "gated_quota",
        ActionState::Gated { .. } => "gated_siblings",
        ActionState::Ready { .. } if action.class.is_repeatable() => "ready_repeatable",
        ActionState::Ready { .. } if action.maybe_sent => "ready_again",
        ActionState::Ready { .. } if action.attempts == 0 && action.approved.is_some() => "ready_approved",
        ActionState::Ready { .. } => "ready_effect",
        ActionState::Open { .. } => "open",
        ActionState::LookUp { .. } => "look_up",
        ActionState::Doubt { .. } => "doubt",
        ActionState::Held { .. } if action.maybe_sent => "held_again",
        ActionState::Held { .. } => "held",
    }
    .to_owned()
}

fn run_word(checkpoint: &Checkpoint) -> String {
    let work = match (checkpoint.model.open.is_some(), checkpoint.decision.is_some()) {
        (true, _) => "asking",
        (false, true) => "deciding",
        (false, false) => "idle",
    };
    match (&checkpoint.phase, work) {
        (Phase::Active, work) => work.to_owned(),
        (Phase::Stopped { .. }, "idle") => "stopped".to_owned(),
        (Phase::Stopped { .. }, work) => format!("stopped_{work}"),
        (Phase::Cancelling { .. }, _) => "cancelling".to_owned(),
        (Phase::Ended { .. }, _) if checkpoint.pending.is_empty() => "ended".to_owned(),
        (Phase::Ended { .. }, _) => "ended_in_doubt".to_owned(),
    }
}

/// The transitions of both machines: machine, state before, event, state after; nothing after an illegal one.
fn transitions() -> Vec<(&'static str, &'static str, String, Option<String>)> {
    let mut rows = Vec::new();
    for (from, bench, ordinal) in action_states() {
        assert_eq!(action_word(&bench.checkpoint, ordinal), from, "the state was not reached");
        for (name, event) in events(&bench, ordinal) {
            let to = try_event(&bench, event).map(|after| action_word(&after, ordinal));
            rows.push(("action", from, name, to));
        }
    }
    for (from, bench) in run_states() {
        assert_eq!(run_word(&bench.checkpoint), from, "the state was not reached");
        for (name, event) in events(&bench, 1) {
            let to = try_event(&bench, event).map(|after| run_word(&after));
            rows.push(("run", from, name, to));
        }
    }
    rows
}

fn try_event(bench: &Bench, event: Event) -> Option<Checkpoint> {
    let mut tried = bench.clone();
    match tried.push(event) {
        Ok(()) => Some(tried.checkpoint),
        Err(error) => {
            assert_eq!(error.code(), "run.illegal_event");
            None
        }
    }
}

fn table() -> String {
    let mut text = String::new();
    let mut heading = String::new();
    for (machine, from, event, to) in transitions() {
        let now = format!("\n{machine} {from}\n");
        if now != heading {
            text.push_str(&now);
            heading = now;
        }
        text.push_str(&format!("  {event:28} {}\n", to.as_deref().unwrap_or("-")));
    }
    text
}

#[test]
fn every_state_takes_exactly_the_events_of_the_table() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/state_machine.txt");
    let table = table();
    if std::env::var_os("LODESTEP_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &table).expect("the table is written");
    }
    let golden = std::fs::read_to_string(&path).expect("the table is there");
    for (number, (found, expected)) in table.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of tests/state_machine.txt", number + 1);
    }
    assert_eq!(table.len(), golden.len());
}

/// `from --> to: Event, Event` lines of the document's drawings.
fn drawn(document: &str) -> BTreeSet<(String, String, String)> {
    let mut drawn = BTreeSet::new();
    for line in document.lines() {
        let Some((from, rest)) = line.trim().split_once(" --> ") else { continue };
        let Some((to, events)) = rest.split_once(": ") else { continue };
        for event in events.split(", ") {
            drawn.insert((from.to_owned(), event.to_owned(), to.to_owned()));
        }
    }
    drawn
}

#[test]
fn the_drawing_shows_every_change_of_state_and_no_other() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/state-machine.md");
    let drawn = drawn(&std::fs::read_to_string(path).expect("the document is there"));
    let real: BTreeSet<(String, String, String)> = transitions()
        .into_iter()
        .filter_map(|(_, from, event, to)| Some((from.to_owned(), event, to?)))
        .filter(|(from, _, to)| from != to)
        .collect();
    let missing: Vec<_> = real.difference(&drawn).collect();
    let invented: Vec<_> = drawn.difference(&real).collect();
    assert!(missing.is_empty(), "not drawn: {missing:#?}");
    assert!(invented.is_empty(), "drawn, but never taken: {invented:#?}");
}
