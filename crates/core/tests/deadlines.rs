//! Deadlines of actions: what each state comes to when one passes, and how it goes together with an approval's expiry.

mod support;

use std::collections::BTreeSet;

use lodestep_core::checkpoint::{ActionState, How, Phase};
use lodestep_core::definition::{Decide, Definition, OnExpiry, QuotaLimits, Rule, ToolKind};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::SettledBy;
use lodestep_core::hold::{DispatchHold, Held, Target};
use lodestep_core::rules::dedupe::{Holder, KnownOfIt};
use lodestep_core::rules::inbox::{Became, Word};
use lodestep_core::rules::owed::{Hands, dispatchable, owed};
use lodestep_core::rules::settle::LookedUp;
use lodestep_core::rules::standing::{Reason, Status, standing_under};
use lodestep_core::{Digest, Ordinal, RunId};
use serde_json::json;
use support::{Bench, call, code, definition, free, names, rule};

const DEADLINE_MS: u64 = 10_000;

fn with_deadlines(mut definition: Definition) -> Definition {
    let of_the_world = definition.tools.iter_mut().filter(|tool| matches!(tool.kind, ToolKind::Function));
    of_the_world.for_each(|tool| tool.deadline_ms = Some(DEADLINE_MS));
    definition
}

/// A run whose action 1 is of this class and may be done.
fn ready(class: Class) -> Bench {
    let mut bench = Bench::new(with_deadlines(free()));
    bench.calls(vec![call(class.as_str(), &json!({"x": 1}))]);
    bench
}

fn under_way(class: Class) -> Bench {
    let mut bench = ready(class);
    bench.owed();
    bench
}

fn seen(class: Class, seen: Seen) -> Bench {
    let mut bench = under_way(class);
    bench.seen(1, seen);
    bench
}

/// An action that asks for an approval which expires after so long.
fn asked(expires_ms: u64, on_expiry: OnExpiry) -> Bench {
    let asks = Rule { expires_ms: Some(expires_ms), on_expiry, ..rule(&[], &[], Decide::Ask) };
    let mut bench = Bench::new(with_deadlines(Definition { policy: vec![asks], ..definition() }));
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    bench
}

fn held() -> Bench {
    let mut definition = with_deadlines(free());
    let tool = definition.tools.iter_mut().find(|tool| tool.name == "unsafe").expect("it is there");
    tool.dedupe = Some("once-${arg:x}".to_owned());
    let mut bench = Bench::new(definition);
    let run = RunId::parse("other").expect("sound");
    let holder = Holder { run, action: Ordinal(3), same: Digest::of(b"same"), known: KnownOfIt::Open };
    bench.dedupe.insert("once-1".to_owned(), Some(holder));
    bench.calls(vec![call("unsafe", &json!({"x": 1}))]);
    bench.owed();
    bench
}

/// What became of action 1, in a word.
fn became(bench: &Bench) -> &'static str {
    let Some(action) = bench.action(1) else {
        let settled = bench.settled(1);
        return match (settled.how, settled.by) {
            (How::Failed, Some(SettledBy::Deadline)) => "failed",
            (How::Failed, Some(SettledBy::Lookup)) => "failed by its lookup",
            (How::Done, _) => "done",
            (How::Denied(_), _) => "denied",
            _ => "other",
        };
    };
    match action.state {
        ActionState::Gated { .. } => "gated",
        ActionState::Ready { .. } => "ready",
        ActionState::Open { .. } => "open",
        ActionState::LookUp { .. } => "look up",
        ActionState::Doubt { .. } => "doubt",
        ActionState::Held { .. } => "held",
    }
}

#[test]
fn tim_01_what_a_deadline_makes_of_each_state() {
    let nothing = "; nothing of it happened";
    for (what, mut bench, before, after, told) in [
        ("never asked to be sent", ready(Class::Unsafe), "ready", "failed", nothing),
        ("a read that was not begun", ready(Class::Read), "ready", "failed", "it was not done"),
        ("an approval that nobody gave", asked(99_000, OnExpiry::Deny), "gated", "failed", nothing),
        ("another run's dedupe key", held(), "held", "failed", nothing),
        ("not sent", seen(Class::Unsafe, Seen::NotStarted), "ready", "failed", "in 1 attempt within 10s"),
        ("a keyed one that was not sent", seen(Class::Keyed, Seen::AskedToWait), "ready", "failed", nothing),
        ("a read without an answer", seen(Class::Read, Seen::TimedOut), "ready", "failed", "no outcome in 1 attempt"),
        ("a keyed one without an answer", seen(Class::Keyed, Seen::TimedOut), "ready", "doubt", ""),
        ("a keyed one under way", under_way(Class::Keyed), "open", "open", ""),
        ("an unsafe one under way", under_way(Class::Unsafe), "open", "open", ""),
        ("a lookup", seen(Class::Checkable, Seen::TimedOut), "look up", "look up", ""),
        ("a doubt", seen(Class::Unsafe, Seen::TimedOut), "doubt", "doubt", ""),
    ] {
        bench.wait_ms(DEADLINE_MS - 1);
        bench.owed_with(0);
        assert_eq!(became(&bench), before, "{what}: a millisecond before");
        bench.wait_ms(1);
        bench.owed_with(0);
        assert_eq!(became(&bench), after, "{what}");
        if after == "failed" {
            let told_of = bench.told(1);
            assert!(told_of.starts_with("deadline: ") && told_of.contains(told), "{what}: {told_of}");
        }
    }
}

#[test]
fn tim_01_what_was_under_way_when_the_deadline_passed_goes_by_its_class() {
    for (class, seen, after) in [
        (Class::Read, Seen::TimedOut, "failed"),
        (Class::Idempotent, Seen::Done, "done"),
        (Class::Keyed, Seen::Done, "done"),
        (Class::Keyed, Seen::NotStarted, "failed"),
        (Class::Keyed, Seen::TimedOut, "doubt"),
        (Class::Keyed, Seen::WorkerDied, "doubt"),
        (Class::Checkable, Seen::TimedOut, "look up"),
        (Class::Unsafe, Seen::NotStarted, "failed"),
        (Class::Unsafe, Seen::TimedOut, "doubt"),
    ] {
        let mut bench = under_way(class);
        bench.wait_ms(DEADLINE_MS);
        bench.seen(1, seen);
        bench.owed();
        assert_eq!(became(&bench), after, "{class} {seen:?}");
    }
}

#[test]
fn a_lookup_that_says_absent_after_the_deadline_settles_it_as_failed() {
    let mut bench = seen(Class::Checkable, Seen::TimedOut);
    bench.wait_ms(DEADLINE_MS);
    bench.looked_up(1, LookedUp::Absent);
    assert_eq!(became(&bench), "failed by its lookup");
    assert!(bench.told(1).ends_with("its deadline has passed"), "{}", bench.told(1));
    let mut found = seen(Class::Checkable, Seen::TimedOut);
    found.wait_ms(DEADLINE_MS);
    found.looked_up(1, LookedUp::Done(b"paid".to_vec()));
    assert_eq!((became(&found), found.told(1).as_str()), ("done", "paid"));
}

#[test]
fn a_repeatable_action_that_is_under_way_is_waited_for() {
    let mut bench = ready(Class::Read);
    bench.wait_ms(DEADLINE_MS);
    assert_eq!(dispatchable(&bench.checkpoint, bench.epoch, bench.now), [], "it is not begun any more");
    let (busy, send_by, dedupe) = (BTreeSet::from([Ordinal(1)]), bench.send_by(), bench.dedupe.clone());
    let hands = Hands { free: 8, send_by, busy: &busy, held: &Held::default(), dedupe: &dedupe };
    let events = bench.step(|draft, definition| owed(draft, definition, hands));
    assert_eq!(names(&events), [] as [&str; 0]);
    bench.seen(1, Seen::Done);
    assert_eq!(became(&bench), "done");
}

#[test]
fn an_action_without_room_in_a_quota_has_its_deadline_too() {
    let quota = QuotaLimits { tool_calls: Some(1), ..QuotaLimits::default() };
    let mut bench = Bench::new(with_deadlines(Definition { quota, ..free() }));
    bench.calls(vec![call("keyed", &json!({})), call("unsafe", &json!({}))]);
    bench.owed();
    bench.wait_ms(DEADLINE_MS);
    assert_eq!(names(&bench.owed()), ["DeadlinePassed"]);
    assert_eq!((became(&bench), bench.settled(2).by), ("open", Some(SettledBy::Deadline)));
}

#[test]
fn nothing_is_sent_after_the_deadline_whatever_the_lease_allows() {
    let mut bench = ready(Class::Unsafe);
    let proposed_at = bench.now;
    bench.wait_ms(DEADLINE_MS - 500);
    bench.owed();
    let ActionState::Open { send_by, .. } = bench.state(1) else { panic!("it is sent") };
    assert_eq!(send_by, proposed_at.plus_ms(DEADLINE_MS), "the lease would last longer");
}

#[test]
fn a_worker_is_due_at_the_deadline_and_at_no_time_after_it() {
    for (what, bench) in [
        ("an approval", asked(99_000, OnExpiry::Deny)),
        ("a key of another run", held()),
        ("a retry", seen(Class::Keyed, Seen::TimedOut)),
    ] {
        let deadline = bench.action(1).and_then(|action| action.deadline).expect("it has one");
        let due = bench.standing().due.expect("a worker is due");
        assert!(due <= deadline, "{what}");
        let mut late = bench.clone();
        late.wait_ms(10 * DEADLINE_MS);
        late.owed_with(0);
        assert_ne!(became(&late), became(&bench), "{what}: it fired");
        assert_eq!(names(&late.owed_with(0)), [] as [&str; 0], "{what}: once");
    }
    let bench = ready(Class::Unsafe);
    let deadline = bench.action(1).and_then(|action| action.deadline);
    let hold = DispatchHold {
        number: 1,
        target: Target::parse("tool:unsafe").expect("sound"),
        by: "ann".to_owned(),
        reason: String::new(),
        since: bench.now,
    };
    let stands = standing_under(&bench.checkpoint, &Held::of(&[hold], &bench.definition));
    assert_eq!((stands.status, stands.due), (Status::Waiting, deadline), "a hold does not stop the time");
    assert!(matches!(stands.reasons[0], Reason::Hold { .. }));
}

/// The earlier of the two counts, also when both have passed while no worker was there.
#[test]
fn tim_01_the_earlier_of_expiry_and_deadline_counts() {
    for (expires_ms, on_expiry, late_ms, after, phase) in [
        (5_000, OnExpiry::Deny, 6_000, "denied", "active"),
        (5_000, OnExpiry::Deny, 60_000, "denied", "active"),
        (5_000, OnExpiry::Pause, 60_000, "gated", "stopped"),
        (DEADLINE_MS, OnExpiry::Pause, 60_000, "failed", "active"),
        (20_000, OnExpiry::Deny, 15_000, "failed", "active"),
        (20_000, OnExpiry::Pause, 60_000, "failed", "active"),
    ] {
        let mut bench = asked(expires_ms, on_expiry);
        bench.wait_ms(late_ms);
        bench.owed();
        let stopped = if matches!(bench.checkpoint.phase, Phase::Stopped { .. }) { "stopped" } else { "active" };
        assert_eq!((became(&bench), stopped), (after, phase), "{expires_ms} {on_expiry:?} {late_ms}");
    }
}

#[test]
fn a_resume_after_the_expiry_asks_nobody_for_what_can_only_fail() {
    let mut bench = asked(5_000, OnExpiry::Pause);
    bench.wait_ms(60_000);
    bench.owed();
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["DeadlinePassed"]);
}

#[test]
fn an_approval_after_the_deadline_is_refused_and_says_why() {
    let mut bench = asked(99_000, OnExpiry::Deny);
    let request = bench.request(1);
    bench.wait_ms(DEADLINE_MS);
    for settled in [false, true] {
        let verdict = bench.say("ann", Word::Approve { request });
        assert_eq!(code(&verdict), "request.expired", "settled: {settled}");
        assert!(format!("{verdict:?}").contains("the deadline of its action passed"), "{verdict:?}");
        bench.owed();
    }
}

#[test]
fn an_approval_that_came_in_time_sends_nothing_after_the_deadline() {
    let mut bench = asked(99_000, OnExpiry::Deny);
    let request = bench.request(1);
    bench.say("ann", Word::Approve { request });
    bench.wait_ms(DEADLINE_MS);
    assert_eq!(names(&bench.owed()), ["DeadlinePassed"]);
}

#[test]
fn an_edit_has_a_deadline_of_its_own_of_the_same_length() {
    let mut bench = asked(99_000, OnExpiry::Deny);
    let request = bench.request(1);
    bench.wait_ms(4_000);
    let arguments = b"{\"x\":2}".to_vec();
    bench.say("ann", Word::ApproveEdited { request, arguments, same: None, dedupe: None });
    let edited = bench.action(2).expect("it took the other's place");
    assert_eq!(edited.deadline, Some(bench.now.plus_ms(DEADLINE_MS)));
}

#[test]
fn a_persons_word_to_send_it_again_lifts_the_deadline() {
    let mut bench = seen(Class::Unsafe, Seen::TimedOut);
    bench.wait_ms(5 * DEADLINE_MS);
    bench.owed();
    bench.say("ann", Word::Resolve { ordinal: Ordinal(1), became: Became::SendAgain, attempt: None });
    assert_eq!(names(&bench.owed()), ["AttemptStarted"]);
}

#[test]
fn a_key_is_free_again_after_a_deadline() {
    let mut bench = held();
    bench.dedupe.insert("once-1".to_owned(), None);
    bench.owed();
    assert_eq!(became(&bench), "open");
    bench.seen(1, Seen::NotStarted);
    bench.wait_ms(DEADLINE_MS);
    let events = bench.owed();
    assert!(names(&events).contains(&"DedupeClosed") && names(&events).contains(&"DeadlinePassed"), "{events:?}");
    assert_eq!(bench.checkpoint.dedupe_keys.clone().unwrap_or_default().len(), 0);
}

#[test]
fn a_stopped_run_keeps_its_actions_until_it_is_resumed() {
    let mut bench = asked(99_000, OnExpiry::Deny);
    bench.say("ann", Word::Pause { reason: String::new() });
    bench.wait_ms(DEADLINE_MS);
    assert_eq!(names(&bench.owed()), [] as [&str; 0]);
    bench.say("ann", Word::Resume);
    assert_eq!(names(&bench.owed()), ["DeadlinePassed"]);
}
