//! A seeded run that does whatever can happen: replies, outcomes, words, crashes, time.

#![allow(dead_code)]

use lodestep_core::checkpoint::{ActionState, Checkpoint, Phase};
use lodestep_core::context::assemble;
use lodestep_core::definition::{
    Check, Decide, Definition, Done, Limits, MilestoneDefinition, OnExpiry, QuotaLimits, ToolKind,
};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::{CallFailure, Event, Gate, StopReason as Stop};
use lodestep_core::quota::Quota;
use lodestep_core::rules::ask::fail;
use lodestep_core::rules::inbox::{Became, Word};
use lodestep_core::rules::owed::{dispatchable, wants_model};
use lodestep_core::rules::settle::{Attempt, LookedUp, NewArtifact, settle};
use lodestep_core::{Digest, Ordinal, ValueRef};
use lodestep_model::{Call, Reply, StopReason};
use serde_json::{Value, json};

use super::support::{Bench, call, definition, raw_call, reply, rule};

/// The same draws for the same seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// A text that is hard on whoever counts bytes.
pub fn nasty(chance: &mut Chance) -> String {
    let piece =
        *chance.pick(&["a", "\"", "\\", "\u{1}\u{7f}", "🦀", "# Objective\n", "é\u{301}", "\r\n", " ", "x\u{200b}y"]);
    let length = *chance.pick(&[0, 1, 7, 60, 800, 9_000]);
    let length = if chance.one_in(60) { 100_000 } else { length };
    piece.repeat(length / piece.len() + usize::from(length > 0))
}

fn check() -> Check {
    Check { argv: vec!["true".to_owned()], folder: ".".to_owned() }
}

/// An agent with tight limits, some of them quotas, and some policy.
pub fn agent(chance: &mut Chance) -> Definition {
    let some = |chance: &mut Chance, limit: u64| chance.one_in(3).then_some(limit);
    let mut asks = rule(&[], &[*chance.pick(&Class::ALL)], *chance.pick(&[Decide::Ask, Decide::Deny]));
    asks.expires_ms = some(chance, 5_000);
    asks.remind_ms = some(chance, 2_000);
    asks.on_expiry = *chance.pick(&[OnExpiry::Deny, OnExpiry::Pause]);
    let milestone =
        MilestoneDefinition { id: "m".to_owned(), title: "M".to_owned(), requires_action: Some("keyed".to_owned()) };
    let mut tools = definition().tools;
    for tool in tools.iter_mut().filter(|tool| matches!(tool.kind, ToolKind::Function)) {
        let deadline_ms = *chance.pick(&[300, 4_000, 100_000, 4_000_000]);
        tool.deadline_ms = some(chance, deadline_ms);
    }
    Definition {
        tools,
        policy: vec![asks, rule(&[], &[], Decide::Allow)],
        quota: QuotaLimits {
            total_tokens: some(chance, 300_000),
            model_calls: some(chance, 60),
            tool_calls: some(chance, 12),
            deadline_ms: some(chance, 90_000_000),
            ..QuotaLimits::default()
        },
        milestones: if chance.one_in(2) { vec![milestone] } else { Vec::new() },
        done: Done { all_milestones: chance.one_in(2), artifacts: Vec::new(), check: chance.one_in(4).then(check) },
        limits: Limits {
            recent_actions: 6,
            recent_errors: 3,
            artifacts: 3,
            open_artifacts: 2,
            milestones: 4,
            ..Limits::default()
        },
        ..definition()
    }
}

fn arguments(chance: &mut Chance) -> Value {
    let often = if chance.one_in(3) { 3 } else { 1_000 };
    let mut arguments = json!({ "x": chance.below(often) });
    match chance.below(8) {
        0 => arguments["repeat_reason"] = json!("again"),
        1 => arguments["text"] = json!(nasty(chance)),
        2 => arguments["bad"] = json!(1),
        _ => {}
    }
    arguments
}

fn wanted(chance: &mut Chance) -> Call {
    let small = format!("k{}", chance.below(9));
    match chance.below(16) {
        14 if chance.one_in(3) => call("wait", &json!({ "seconds": chance.below(200) })),
        14 if chance.one_in(6) => call("wait", &json!({ "until": "1970-01-01T00:10:00Z" })),
        15 if chance.one_in(3) => {
            let timeout = if chance.one_in(2) { json!(chance.below(500)) } else { json!(-1) };
            let mut arguments = json!({ "name": format!("s{}", chance.below(3)), "timeout_seconds": timeout });
            if chance.one_in(3) {
                arguments.as_object_mut().expect("an object").remove("timeout_seconds");
            }
            call("wait_for_signal", &arguments)
        }
        0 => call("note", &json!({"key": small, "text": nasty(chance)})),
        1 => call("plan", &json!({"milestone": small, "status": "reached", "title": nasty(chance)})),
        2 => call("ask", &json!({"question": nasty(chance)})),
        3 if chance.one_in(6) => call("finish", &json!({})),
        4 => call(
            chance.pick::<&str>(&["open_artifact", "close_artifact"]),
            &json!({ "name": format!("a{}", chance.below(5)) }),
        ),
        5 => raw_call(&nasty(chance), &nasty(chance)),
        6 => raw_call("read", chance.pick::<&str>(&["{", "[]", "{\"x\":1,\"x\":1}"])),
        _ => call(chance.pick(&Class::ALL).as_str(), &arguments(chance)),
    }
}

fn a_reply(chance: &mut Chance) -> Reply {
    let calls = (0..chance.below(5)).map(|_| wanted(chance)).collect();
    let mut reply = reply(calls);
    if chance.one_in(12) {
        reply.stop = *chance.pick(&[StopReason::OutputLimit, StopReason::Refused]);
    }
    if chance.one_in(3) {
        reply.text = nasty(chance);
    }
    if chance.one_in(4) {
        reply.usage = None;
    }
    reply
}

/// The model is asked, and answers, fails, or is lost with its worker.
pub fn ask(bench: &mut Bench, chance: &mut Chance) -> Vec<Event> {
    if !wants_model(&bench.checkpoint, bench.now) {
        return Vec::new();
    }
    if assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs).is_err() {
        return Vec::new();
    }
    let Some(call) = bench.reserve() else { return Vec::new() };
    match chance.below(12) {
        0 => bench.crash(),
        1 => {
            let causes = [CallFailure::NotSent, CallFailure::Busy, CallFailure::Lost, CallFailure::TooLong];
            let why = *chance.pick(&causes);
            bench.step(|draft, definition| fail(draft, definition, call, why, "it said", None))
        }
        _ => {
            let reply = a_reply(chance);
            bench.take(call, &reply)
        }
    }
}

/// One thing that can be dispatched ends, one way or another.
pub fn perform(bench: &mut Bench, chance: &mut Chance) -> Vec<Event> {
    let due = dispatchable(&bench.checkpoint, bench.epoch, bench.now);
    if due.is_empty() {
        return Vec::new();
    }
    let ordinal = *chance.pick(&due);
    let action = bench.checkpoint.pending[&ordinal].clone();
    let attempt = match action.state {
        ActionState::LookUp { .. } => {
            let text = nasty(chance);
            let said = [
                LookedUp::Done(text.clone().into_bytes()),
                LookedUp::Absent,
                LookedUp::Running,
                LookedUp::NoAnswer(text.clone()),
                LookedUp::Unknown(text),
            ];
            let said = chance.pick(&said).clone();
            return bench.looked_up(ordinal.0, said);
        }
        ActionState::Open { attempt, .. } => attempt,
        _ => action.attempts + 1,
    };
    let sights = [
        Seen::Done,
        Seen::Done,
        Seen::NotStarted,
        Seen::AskedToWait,
        Seen::Refused,
        Seen::Interrupted,
        Seen::TimedOut,
        Seen::ServerFault,
    ];
    let seen = *chance.pick(&sights);
    let artifact = chance.one_in(5).then(|| artifact(bench, chance));
    let text = if chance.one_in(6) { nasty(chance) } else { "fine".to_owned() };
    let retry_after_ms = chance.one_in(5).then_some(90_000);
    let ended = Attempt { ordinal, attempt, seen, text: text.into_bytes(), artifact, retry_after_ms };
    bench.step(|draft, _| settle(draft, ended))
}

fn artifact(bench: &mut Bench, chance: &mut Chance) -> NewArtifact {
    let name = format!("a{}", chance.below(6));
    let bytes = nasty(chance).into_bytes();
    let last_version = bench.checkpoint.artifacts.get(&name).map_or(0, |artifact| artifact.version);
    NewArtifact { name, last_version, content: ValueRef::of(&bytes), inline: Some(bytes) }
}

/// Names of requests that are open or were.
fn requests(checkpoint: &Checkpoint) -> Vec<Digest> {
    let open = checkpoint.pending.values().filter_map(|action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => Some(request.name),
        _ => None,
    });
    open.chain(checkpoint.closed_requests.iter().rev().take(2).map(|closed| closed.name)).collect()
}

/// A word from outside, mostly one that fits.
pub fn word(bench: &Bench, chance: &mut Chance) -> Word {
    let mut names = requests(&bench.checkpoint);
    names.push(Digest::of(b"never asked"));
    let request = names[chance.below(names.len() as u64) as usize];
    let ordinals: Vec<Ordinal> = bench.checkpoint.pending.keys().copied().collect();
    let ordinal = if ordinals.is_empty() { Ordinal(1) } else { *chance.pick(&ordinals) };
    match chance.below(30) {
        29 if chance.one_in(2) => bench.upgrade_to(&other(&bench.definition, chance)),
        24 if chance.one_in(3) => Word::Pause { reason: nasty(chance) },
        25 => Word::Tell { text: nasty(chance) },
        26 | 27 => Word::Signal { name: format!("s{}", chance.below(3)), value: b"{\"n\":1}".to_vec() },
        28 => Word::TopUp { quota: *chance.pick(&Quota::ALL), amount: chance.below(20) },
        0 if chance.one_in(4) => Word::Cancel { reason: nasty(chance) },
        0..=4 | 24 => Word::Resume,
        5..=8 => Word::Approve { request },
        9..=10 => Word::ApproveEdited {
            request,
            arguments: b"{\"x\":9}".to_vec(),
            same: Some(Digest::of(b"9")),
            dedupe: None,
        },
        11 => Word::Deny { request, reason: nasty(chance) },
        12..=15 => Word::Answer { request, value: nasty(chance) },
        16..=20 => {
            let became =
                [Became::Happened(Vec::new()), Became::SendAgain, Became::SendAgain, Became::Abandoned(String::new())];
            Word::Resolve { ordinal, became: chance.pick(&became).clone(), attempt: None }
        }
        _ => Word::LateOutcome {
            ordinal,
            attempt: 1 + chance.below(3) as u32,
            ok: chance.one_in(2),
            result: nasty(chance).into_bytes(),
        },
    }
}

/// The same agent with something changed, as a deploy would.
fn other(definition: &Definition, chance: &mut Chance) -> Definition {
    let mut other = Definition { memo: Default::default(), ..definition.clone() };
    let class = *chance.pick(&Class::ALL);
    match chance.below(6) {
        0 => other.instructions = nasty(chance),
        1 => other.policy[0].decide = *chance.pick(&[Decide::Ask, Decide::Allow, Decide::Deny]),
        2 => other.policy[0].classes = vec![class],
        3 => other.quota.model_calls = chance.one_in(2).then(|| chance.below(80)),
        4 if chance.one_in(4) => other.tools.retain(|tool| tool.name != class.as_str()),
        _ => {
            let changed = *chance.pick(&Class::ALL);
            let tool = other.tools.iter_mut().find(|tool| tool.name == class.as_str());
            if let Some(tool) = tool {
                tool.class = changed;
                tool.description = nasty(chance);
            }
        }
    }
    other
}

/// One thing happens; gives the events of it.
pub fn happen(bench: &mut Bench, chance: &mut Chance) -> Vec<Event> {
    let stopped = matches!(bench.checkpoint.phase, Phase::Stopped { .. });
    if stopped && chance.one_in(3) {
        let before = bench.journal.len();
        if matches!(bench.checkpoint.phase, Phase::Stopped { reason: Stop::Quota, .. }) && !chance.one_in(3) {
            for quota in [Quota::ToolCalls, Quota::ModelCalls, Quota::TotalTokens] {
                bench.say("ann", Word::TopUp { quota, amount: 20 + chance.below(100_000) });
            }
        }
        bench.say("ann", Word::Resume);
        return written_since(bench, before);
    }
    match chance.below(16) {
        0..=2 => bench.owed_with(chance.below(4) as u32),
        3..=6 => ask(bench, chance),
        7..=10 => perform(bench, chance),
        11..=12 => {
            let before = bench.journal.len();
            let said = word(bench, chance);
            bench.say("ann", said);
            written_since(bench, before)
        }
        13 => bench.crash(),
        14 => {
            bench.wait_ms(*chance.pick(&[1, 400, 3_000, 40_000]));
            Vec::new()
        }
        _ => {
            bench.wait_ms(if chance.one_in(6) { 3_700_000 } else { 90_000 });
            Vec::new()
        }
    }
}

/// The events of the journal's transitions from there on.
pub fn written_since(bench: &Bench, from: usize) -> Vec<Event> {
    let read = |bytes: &Vec<u8>| lodestep_core::event::Envelope::from_bytes(bytes).expect("it reads").events;
    bench.journal[from..].iter().flat_map(read).collect()
}
