//! One event of each kind, with fixed fields.

#![allow(dead_code)]

use lodestep_core::definition::{Limits, OnExpiry, QuotaLimits};
use lodestep_core::effect::Class;
use lodestep_core::event::{
    ActionApproved, ActionDenied, ActionFinished, ActionHeld, ActionProposed, ActionRebound, ActionRefused,
    ActionWithdrawn, ApprovalLapsed, ArtifactSaved, ArtifactShown, AttemptNotSent, AttemptStarted, AttemptUnknown,
    CallAnswered, CallFailed, CallFailure, CallLost, CallReserved, CancelRequested, CheckStarted, DeadlinePassed,
    DecisionOpened, DedupeClosed, DedupeEnd, DedupeTaken, DeniedBy, DoubtResolved, Ending, ErrorKind, ErrorLogged,
    Event, Evidence, FinishRefused, Gate, GuidanceGiven, HandedOver, InboxRead, LookupInconclusive, MilestoneMarked,
    NoteTaken, Origin, PlannedMilestone, QuestionAnswered, QuotaGiven, QuotaGranted, QuotaRaised, RefusalKind, Request,
    Resolution, RunEnded, RunForked, RunResumed, RunStarted, RunStopped, RunUpgraded, SettledBy, SignalArrived,
    SignalTaken, SignalWait, StopReason, TimerFired, UnknownNext,
};
use lodestep_core::quota::{Amounts, Quota};
use lodestep_core::{Digest, Ordinal, RunId, Timestamp, ValueRef};

/// What the events of a test are about.
#[derive(Clone, Copy)]
pub struct About {
    pub ordinal: Ordinal,
    pub next_ordinal: Ordinal,
    pub attempt: u32,
    pub next_attempt: u32,
    pub call: u64,
    pub decision: u32,
    pub position: u64,
    pub value: ValueRef,
    pub at: Timestamp,
}

fn fixed() -> About {
    About {
        ordinal: Ordinal(1),
        next_ordinal: Ordinal(2),
        attempt: 1,
        next_attempt: 2,
        call: 7,
        decision: 3,
        position: 5,
        value: ValueRef::of(b"value"),
        at: Timestamp::from_micros(1_700_000_000_000_000),
    }
}

/// All of them, with fixed fields.
pub fn all() -> Vec<Event> {
    about(fixed())
}

/// All of them, with numbers at their ends.
pub fn at_the_end_of_counting() -> Vec<Event> {
    let end = Ordinal(u32::MAX);
    about(About {
        ordinal: Ordinal(2),
        next_ordinal: end,
        attempt: u32::MAX,
        next_attempt: u32::MAX,
        call: u64::MAX,
        decision: u32::MAX,
        position: u64::MAX,
        value: ValueRef { len: u64::MAX, ..fixed().value },
        at: Timestamp::from_micros(i64::MAX),
    })
}

/// All of them, as they would follow on a run with one ready action, with this value everywhere.
pub fn with_value(value: ValueRef) -> Vec<Event> {
    about(About { call: 2, decision: 2, value, ..fixed() })
}

/// All of them, in the order of their numbers.
pub fn about(it: About) -> Vec<Event> {
    run_started(it)
        .into_iter()
        .chain(calls(it))
        .chain(actions(it))
        .chain(words(it))
        .chain(states(it))
        .chain(run(it))
        .chain(later(it))
        .chain(dedupe(it))
        .chain(forks(it))
        .chain(upgrades(it))
        .collect()
}

fn run_started(it: About) -> [Event; 1] {
    [Event::RunStarted(RunStarted {
        namespace: "default".to_owned(),
        run: RunId::parse("golden").expect("sound"),
        agent: "bench".to_owned(),
        definition: it.value,
        inputs: it.value,
        limits: Limits::default(),
        quota: QuotaLimits { usd_micro: Some(9), deadline_ms: Some(8), ..QuotaLimits::default() },
        milestones: vec![PlannedMilestone { id: "m".to_owned(), requires_action: Some("keyed".to_owned()) }],
        labels: None,
    })]
}

fn calls(it: About) -> [Event; 5] {
    let amounts = Amounts { input_tokens: 1, output_tokens: 2, usd_micro: 3, model_calls: 1, tool_calls: 0 };
    let value = it.value;
    [
        Event::CallReserved(CallReserved { call: it.call, amounts, request: value.digest, manifest: value }),
        Event::CallAnswered(CallAnswered {
            call: it.call,
            used: amounts,
            reported: true,
            reply: value,
            faulty: false,
            about: None,
        }),
        Event::CallFailed(CallFailed {
            call: it.call,
            why: CallFailure::Lost,
            text: value,
            not_before: it.at,
            charged: None,
        }),
        Event::CallLost(CallLost { call: it.call, charged: None }),
        Event::DecisionOpened(DecisionOpened { decision: it.decision, text: Some(value), actions: 1, blocks: None }),
    ]
}

/// A proposal that waits for an approval.
pub fn proposed(it: About, gate: Gate) -> Event {
    let (ordinal, value) = (it.next_ordinal, it.value);
    Event::ActionProposed(ActionProposed {
        ordinal,
        call_id: "id".to_owned(),
        tool: "keyed".to_owned(),
        class: Class::Keyed,
        arguments: value,
        tool_digest: value.digest,
        same: Some(value.digest),
        key: Some("k1:0".to_owned()),
        gate,
        key_valid_for_ms: 1_000,
        settles_after_ms: 500,
        max_attempts: 3,
        proposed_by: Some("ann".to_owned()),
        counted: true,
        dedupe: None,
        elsewhere: None,
        deadline: Some(it.at),
    })
}

/// A request that stays open for a second.
pub fn request(at: Timestamp) -> Request {
    Request {
        name: Digest::of(b"request"),
        expires_at: Some(at.plus_ms(1_000)),
        on_expiry: OnExpiry::Pause,
        window_ms: Some(1_000),
        asked_at: at,
        remind_ms: Some(400),
    }
}

fn actions(it: About) -> [Event; 7] {
    let (ordinal, attempt, text) = (it.ordinal, it.attempt, it.value);
    [
        proposed(it, Gate::Approval(request(it.at))),
        Event::ActionRefused(ActionRefused {
            ordinal: it.next_ordinal,
            call_id: "id".to_owned(),
            tool: "nope".to_owned(),
            kind: RefusalKind::UnknownTool,
            arguments: it.value,
            text,
        }),
        Event::AttemptStarted(AttemptStarted { ordinal, attempt: it.next_attempt, send_by: it.at }),
        Event::ActionFinished(ActionFinished { ordinal, attempt, ok: true, result: text, by: SettledBy::Answer }),
        Event::AttemptNotSent(AttemptNotSent { ordinal, attempt, text, not_before: it.at }),
        Event::AttemptUnknown(AttemptUnknown { ordinal, attempt, text, next: UnknownNext::LookUp(it.at) }),
        Event::LookupInconclusive(LookupInconclusive { ordinal, text, next: UnknownNext::Doubt }),
    ]
}

fn words(it: About) -> [Event; 6] {
    let (ordinal, text, by) = (it.ordinal, it.value, "ann".to_owned());
    [
        Event::DoubtResolved(DoubtResolved { ordinal, by: by.clone(), resolution: Resolution::SendAgain }),
        Event::ActionApproved(ActionApproved { ordinal, by: by.clone() }),
        Event::ActionDenied(ActionDenied { ordinal, why: DeniedBy::Person, by: Some(by.clone()), text }),
        Event::QuestionAnswered(QuestionAnswered { ordinal, by, answer: text }),
        Event::ActionWithdrawn(ActionWithdrawn { ordinal, text }),
        Event::InboxRead(InboxRead { position: it.position }),
    ]
}

fn dedupe(it: About) -> [Event; 3] {
    let ordinal = it.ordinal;
    [
        Event::DedupeTaken(DedupeTaken { ordinal, key: "invoice-7".to_owned(), same: it.value.digest }),
        Event::DedupeClosed(DedupeClosed { ordinal, end: DedupeEnd::Done(it.value) }),
        Event::ActionHeld(ActionHeld { ordinal, run: RunId::parse("other").expect("sound"), action: ordinal }),
    ]
}

/// What a fork begins with, and what its origin gave it.
fn forks(it: About) -> [Event; 2] {
    let [Event::RunStarted(started)] = run_started(it) else { unreachable!("it is a start") };
    let mut state = lodestep_core::fold::begin(&started, it.at).expect("sound");
    state.lineage.push(Origin { run: RunId::parse("first").expect("sound"), seq: 4, head: it.value.digest });
    let amounts = QuotaLimits { model_calls: Some(2), ..QuotaLimits::default() };
    let (run, by) = (RunId::parse("fork").expect("sound"), "ann".to_owned());
    [
        Event::RunForked(RunForked {
            run: run.clone(),
            origin: Origin { run: state.run.clone(), seq: state.seq, head: state.head },
            state: Box::new(state),
            inputs: it.value,
            quota: amounts,
            by: by.clone(),
            withdrawn: it.value,
            left: it.value,
            labels: None,
        }),
        Event::QuotaGiven(QuotaGiven { to: run, amounts, by }),
    ]
}

fn states(it: About) -> [Event; 7] {
    let (ordinal, text) = (it.ordinal, it.value);
    let name = "a".to_owned();
    [
        Event::NoteTaken(NoteTaken { key: name.clone(), text: Some(text) }),
        Event::MilestoneMarked(MilestoneMarked {
            id: "m".to_owned(),
            title: Some(text),
            reached: Some(Evidence::Artifact(name.clone(), 2)),
        }),
        Event::ArtifactSaved(ArtifactSaved { name: name.clone(), version: 2, content: text }),
        Event::ArtifactShown(ArtifactShown { name, open: true }),
        Event::ErrorLogged(ErrorLogged { kind: ErrorKind::Tool, ordinal: Some(ordinal), text }),
        Event::FinishRefused(FinishRefused { ordinal }),
        Event::CheckStarted(CheckStarted { ordinal }),
    ]
}

fn run(it: About) -> [Event; 5] {
    let (text, by) = (it.value, "ann".to_owned());
    [
        Event::RunStopped(RunStopped { reason: StopReason::Operator, text }),
        Event::RunResumed(RunResumed { by: by.clone() }),
        Event::CancelRequested(CancelRequested { by, reason: text, grace_until: it.at }),
        Event::RunEnded(RunEnded { ending: Ending::Completed, text }),
        Event::HandedOver(HandedOver { unsent_call: Some(it.call) }),
    ]
}

fn later(it: About) -> [Event; 8] {
    let (ordinal, value, by, name) = (it.ordinal, it.value, "ann".to_owned(), "paid".to_owned());
    [
        Event::GuidanceGiven(GuidanceGiven { by: by.clone(), text: value }),
        Event::SignalArrived(SignalArrived { name, by: by.clone(), value }),
        Event::SignalTaken(SignalTaken { ordinal }),
        Event::TimerFired(TimerFired { ordinal, result: value }),
        Event::QuotaRaised(QuotaRaised { by, quota: Quota::Usd, amount: 9 }),
        Event::QuotaGranted(QuotaGranted { ordinal, gate: Gate::Approval(request(it.at)) }),
        Event::ApprovalLapsed(ApprovalLapsed { ordinal }),
        Event::DeadlinePassed(DeadlinePassed { ordinal, text: value }),
    ]
}

fn upgrades(it: About) -> [Event; 2] {
    let (ordinal, value) = (it.ordinal, it.value);
    [
        Event::RunUpgraded(RunUpgraded {
            by: "ann".to_owned(),
            definition: value,
            limits: Limits::default(),
            quota: QuotaLimits { usd_micro: Some(9), deadline_ms: Some(8), ..QuotaLimits::default() },
            milestones: vec![PlannedMilestone { id: "m".to_owned(), requires_action: Some("keyed".to_owned()) }],
            kept: vec![ordinal],
        }),
        Event::ActionRebound(ActionRebound {
            ordinal,
            class: Class::Unsafe,
            tool_digest: value.digest,
            same: Some(value.digest),
            key: Some("k1:key".to_owned()),
            gate: Gate::Approval(request(it.at)),
            key_valid_for_ms: 1_000,
            settles_after_ms: 2_000,
            max_attempts: 3,
            dedupe: Some("once-1".to_owned()),
            deadline: Some(it.at),
        }),
    ]
}

/// Proposals with the gates that [`all`] does not have.
pub fn gates() -> Vec<Event> {
    let it = fixed();
    let wait = |until| Gate::Signal(SignalWait { name: "paid".to_owned(), until });
    let gates = [
        Gate::Open,
        Gate::Answer(request(it.at)),
        Gate::Same(it.ordinal),
        Gate::Siblings,
        wait(None),
        wait(Some(it.at)),
        Gate::Timer(it.at),
        Gate::Quota,
    ];
    gates.map(|gate| proposed(it, gate)).to_vec()
}
