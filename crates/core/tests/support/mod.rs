//! A run on a bench: the real rules drive it, and every transition is folded again from its bytes.
//!
//! It holds what a store and a worker would: the journal, the values, a clock that the test moves, an epoch.

#![allow(dead_code)]

use std::collections::BTreeMap;

use lodestep_core::checkpoint::{Action, ActionState, Checkpoint, Settled};
use lodestep_core::context::{Blobs, assemble};
use lodestep_core::definition::{
    Decide, Definition, Done, Limits, ModelSpec, QuotaLimits, Rule, StateAct, ToolDefinition, ToolKind,
};
use lodestep_core::draft::{Draft, Transition};
use lodestep_core::effect::{Class, Seen, dedupe_key, effect_key, sameness};
use lodestep_core::event::{Event, Gate, RunStarted};
use lodestep_core::hold::Held;
use lodestep_core::rules::decide::{Prior, Question, decide};
use lodestep_core::rules::dedupe::DedupeKeys;
use lodestep_core::rules::inbox::{Message, Verdict, Word, judge, read};
use lodestep_core::rules::owed::{Hands, owed};
use lodestep_core::rules::recover::recover;
use lodestep_core::rules::settle::{Attempt, LookedUp, settle, settle_lookup};
use lodestep_core::rules::standing::{Standing, standing};
use lodestep_core::rules::upgrade::{Binding, Upgrade, planned};
use lodestep_core::value::Values;
use lodestep_core::{Digest, Ordinal, Result, RunId, Timestamp, ValueRef, fold, rules};
use lodestep_model::{Call, Reply, StopReason, Usage};
use serde_json::{Value, json};

/// A tool of this class, performed by a function.
pub fn tool(name: &str, class: Class) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        group: name.to_owned(),
        description: format!("The tool {name}."),
        input: json!({"type": "object", "properties": {"x": {}}}),
        class,
        kind: ToolKind::Function,
        timeout_ms: 30_000,
        max_attempts: 3,
        key_valid_for_ms: 3_600_000,
        settles_after_ms: 30_000,
        same_by: None,
        dedupe: None,
        output: None,
        deadline_ms: None,
    }
}

fn state_tool(name: &str, act: StateAct) -> ToolDefinition {
    ToolDefinition { kind: ToolKind::State { act }, ..tool(name, Class::Idempotent) }
}

/// An agent with a tool of each class, named after it, and the state acts; without rules, effects are asked for.
pub fn definition() -> Definition {
    let mut tools: Vec<ToolDefinition> = Class::ALL.into_iter().map(|class| tool(class.as_str(), class)).collect();
    tools.extend([
        state_tool("note", StateAct::Note),
        state_tool("plan", StateAct::Plan),
        state_tool("ask", StateAct::Ask),
        state_tool("finish", StateAct::Finish),
        state_tool("open_artifact", StateAct::OpenArtifact),
        state_tool("close_artifact", StateAct::CloseArtifact),
        state_tool("wait_for_signal", StateAct::WaitForSignal),
        state_tool("wait", StateAct::Wait),
    ]);
    Definition {
        name: "bench".to_owned(),
        objective: "Do ${input:what}.".to_owned(),
        instructions: "Work.".to_owned(),
        model: ModelSpec {
            provider: "script".to_owned(),
            name: String::new(),
            max_output_tokens: 1_000,
            context_window: 30_000,
            price: None,
            max_faulty_replies: 3,
            max_attempts: 3,
            ..ModelSpec::default()
        },
        tools,
        policy: Vec::new(),
        questions: Default::default(),
        quota: QuotaLimits::default(),
        milestones: Vec::new(),
        done: Done::default(),
        limits: Limits::default(),
        notify: None,
        memo: Default::default(),
    }
}

/// The same agent with every tool allowed.
pub fn free() -> Definition {
    Definition { policy: vec![rule(&[], &[], Decide::Allow)], ..definition() }
}

/// A rule without an expiry.
pub fn rule(tools: &[&str], classes: &[Class], decide: Decide) -> Rule {
    Rule {
        tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
        classes: classes.to_vec(),
        decide,
        expires_ms: None,
        on_expiry: lodestep_core::definition::OnExpiry::Deny,
        remind_ms: None,
    }
}

/// A call of a reply; its id is its name.
pub fn call(name: &str, arguments: &Value) -> Call {
    raw_call(name, &arguments.to_string())
}

/// A call whose arguments need not be JSON.
pub fn raw_call(name: &str, arguments: &str) -> Call {
    Call { id: format!("id-{name}"), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// A whole reply with these calls.
pub fn reply(calls: Vec<Call>) -> Reply {
    let usage = Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() });
    Reply { text: String::new(), calls, stop: StopReason::ToolCalls, usage, ..Reply::default() }
}

/// The start of a run of this definition.
pub fn started(definition: &Definition, values: &mut Values) -> RunStarted {
    RunStarted {
        namespace: "default".to_owned(),
        run: RunId::parse("bench").expect("sound"),
        agent: definition.name.clone(),
        definition: values.put(definition.to_bytes()),
        inputs: values.put("{\"what\":\"it\"}"),
        limits: definition.limits,
        quota: definition.quota,
        milestones: planned(definition),
        labels: None,
    }
}

/// A run, its store and its worker.
#[derive(Clone)]
pub struct Bench {
    pub definition: Definition,
    pub checkpoint: Checkpoint,
    pub journal: Vec<Vec<u8>>,
    pub blobs: Blobs,
    pub priors: BTreeMap<Digest, Prior>,
    pub now: Timestamp,
    pub epoch: u64,
    /// What is known of dedupe keys.
    pub dedupe: DedupeKeys,
    pub position: u64,
    /// Refuses arguments that have a member `bad`, as a schema would.
    pub check: fn(&ToolDefinition, &Value) -> std::result::Result<(), String>,
}

fn no_bad_member(_: &ToolDefinition, arguments: &Value) -> std::result::Result<(), String> {
    if arguments.get("bad").is_some() { Err("`bad` is not allowed".to_owned()) } else { Ok(()) }
}

impl Bench {
    pub fn new(definition: Definition) -> Self {
        let mut values = Values::new();
        let started = started(&definition, &mut values);
        let now = Timestamp::from_micros(1_000_000);
        let sealed = Draft::start(started, values, now).expect("a sound start").seal();
        let (folded, _) = fold::fold_first(&sealed.envelope).expect("it folds");
        assert_eq!(folded, sealed.checkpoint);
        let mut bench = Self {
            definition,
            checkpoint: folded,
            journal: Vec::new(),
            blobs: Blobs::default(),
            priors: BTreeMap::new(),
            now,
            epoch: 1,
            dedupe: DedupeKeys::new(),
            position: 0,
            check: no_bad_member,
        };
        bench.keep(sealed);
        bench
    }

    fn keep(&mut self, sealed: Transition) {
        for value in sealed.values {
            self.blobs.insert(Digest::of(&value), value);
        }
        self.journal.push(sealed.envelope);
        self.checkpoint = sealed.checkpoint;
    }

    /// A draft of the next transition.
    pub fn draft(&self) -> Draft {
        Draft::next(self.checkpoint.clone(), self.now, self.epoch, 7)
    }

    /// Seals a draft, folds its bytes on the state before, and keeps it. Gives its events.
    pub fn commit(&mut self, draft: Draft) -> Vec<Event> {
        if draft.is_empty() {
            return Vec::new();
        }
        let sealed = draft.seal();
        let mut folded = self.checkpoint.clone();
        fold::fold(&mut folded, &sealed.envelope).expect("what a draft sealed folds");
        assert_eq!(folded, sealed.checkpoint, "the fold of the bytes is the draft's state");
        let events = sealed.events.clone();
        self.keep(sealed);
        events
    }

    /// One transition made by these rules.
    pub fn step(&mut self, rules: impl FnOnce(&mut Draft, &Definition) -> Result<()>) -> Vec<Event> {
        let mut draft = self.draft();
        rules(&mut draft, &self.definition).expect("rules only push what fits");
        self.commit(draft)
    }

    /// Pushes an event of the test's own.
    pub fn push(&mut self, event: Event) -> Result<()> {
        let mut draft = self.draft();
        draft.push(event)?;
        self.commit(draft);
        Ok(())
    }

    pub fn wait_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    pub fn send_by(&self) -> Timestamp {
        self.now.plus_ms(20_000)
    }

    pub fn inputs(&self) -> Value {
        json!({"what": "it"})
    }

    /// Reserves a call of the model for the request that the state gives.
    pub fn reserve(&mut self) -> Option<u64> {
        let assembled = assemble(&self.checkpoint, &self.definition, &self.inputs(), &self.blobs).expect("it fits");
        let mut call = None;
        self.step(|draft, definition| {
            call = rules::ask::reserve(draft, definition, &assembled)?;
            Ok(())
        });
        call
    }

    /// The model is asked and answers; what is owed is not drawn yet.
    pub fn answer(&mut self, reply: &Reply) -> Vec<Event> {
        let call = self.reserve().expect("the quota has room");
        self.take(call, reply)
    }

    /// A reply to an open call is decided on.
    pub fn take(&mut self, call: u64, reply: &Reply) -> Vec<Event> {
        let mut draft = self.draft();
        let transcript: ValueRef = draft.put(serde_json::to_vec(reply).expect("it is JSON"));
        let question = Question {
            definition: &self.definition,
            call,
            reply,
            transcript,
            check: &self.check,
            priors: &self.priors,
            apart: &Default::default(),
        };
        decide(&mut draft, &question).expect("a reply never contradicts the state");
        self.commit(draft)
    }

    /// The model calls these tools.
    pub fn calls(&mut self, calls: Vec<Call>) -> Vec<Event> {
        self.answer(&reply(calls))
    }

    /// What is owed, with these many hands free.
    pub fn owed_with(&mut self, free: u32) -> Vec<Event> {
        self.owed_under(free, &Held::default())
    }

    /// What is owed under these holds.
    pub fn owed_under(&mut self, free: u32, held: &Held) -> Vec<Event> {
        let (send_by, busy) = (self.send_by(), Default::default());
        let dedupe = self.dedupe.clone();
        let hands = Hands { free, send_by, busy: &busy, held, dedupe: &dedupe };
        self.step(|draft, definition| owed(draft, definition, hands))
    }

    pub fn owed(&mut self) -> Vec<Event> {
        self.owed_with(8)
    }

    /// A worker saw this of the action's newest attempt.
    pub fn seen(&mut self, ordinal: u32, seen: Seen) -> Vec<Event> {
        let attempt = self.action(ordinal).map_or(1, |action| match action.state {
            ActionState::Ready { .. } if action.class.is_repeatable() => action.attempts + 1,
            _ => action.attempts,
        });
        self.seen_of(ordinal, attempt, seen)
    }

    pub fn seen_of(&mut self, ordinal: u32, attempt: u32, seen: Seen) -> Vec<Event> {
        let text = format!("saw {seen:?} of {ordinal}.{attempt}").into_bytes();
        let attempt = Attempt { ordinal: Ordinal(ordinal), attempt, seen, text, artifact: None, retry_after_ms: None };
        self.step(|draft, _| settle(draft, attempt))
    }

    pub fn looked_up(&mut self, ordinal: u32, said: LookedUp) -> Vec<Event> {
        self.step(|draft, _| settle_lookup(draft, Ordinal(ordinal), said))
    }

    /// The worker dies, another one takes over.
    pub fn crash(&mut self) -> Vec<Event> {
        self.epoch += 1;
        self.step(|draft, _| recover(draft))
    }

    /// Judges a word, and reads it if it counts.
    pub fn say(&mut self, by: &str, word: Word) -> Verdict {
        let message = Message { by: by.to_owned(), word };
        let before = self.checkpoint.to_bytes();
        let verdict = judge(self.draft(), &[], &message).expect("judging never fails");
        assert_eq!(before, self.checkpoint.to_bytes(), "judging changes nothing");
        if verdict == Verdict::Accepted {
            self.position += 1;
            let mut draft = self.draft();
            assert_eq!(read(&mut draft, self.position, &message), Ok(Verdict::Accepted));
            self.commit(draft);
            if let Word::Upgrade(upgrade) = &message.word {
                self.definition = Definition::from_bytes(&upgrade.definition).expect("it was judged");
            }
        }
        verdict
    }

    /// The word that moves the run to this definition, with what its actions' arguments mean there.
    pub fn upgrade_to(&self, definition: &Definition) -> Word {
        let run = self.checkpoint.key();
        let bound = self.checkpoint.pending.values().filter_map(|action| {
            let tool = definition.tool(&action.tool)?;
            let bytes = &self.blobs[&action.arguments.digest];
            let arguments: Value = serde_json::from_slice(bytes).expect("canonical JSON");
            Some(Binding {
                ordinal: action.ordinal,
                arguments: action.arguments.digest,
                misfit: (self.check)(tool, &arguments).err(),
                key: effect_key(&run, action.ordinal, &action.tool, bytes),
                same: sameness(&action.tool, &arguments, tool.same_by.as_deref()),
                dedupe: tool.dedupe.as_deref().and_then(|text| dedupe_key(text, &arguments).ok()),
            })
        });
        Word::Upgrade(Box::new(Upgrade {
            from: self.checkpoint.definition.digest,
            definition: definition.to_bytes(),
            quota: Some(self.definition.quota),
            bindings: bound.collect(),
        }))
    }

    pub fn action(&self, ordinal: u32) -> Option<&Action> {
        self.checkpoint.pending.get(&Ordinal(ordinal))
    }

    pub fn state(&self, ordinal: u32) -> ActionState {
        self.action(ordinal).expect("it is pending").state.clone()
    }

    pub fn settled(&self, ordinal: u32) -> &Settled {
        self.checkpoint.settled(Ordinal(ordinal)).expect("it is settled")
    }

    /// What the model is told of a settled action.
    pub fn told(&self, ordinal: u32) -> String {
        let result = self.settled(ordinal).result;
        String::from_utf8_lossy(&self.blobs[&result.digest]).into_owned()
    }

    /// The name of the request that an action waits for.
    pub fn request(&self, ordinal: u32) -> Digest {
        match self.state(ordinal) {
            ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => request.name,
            other => panic!("action {ordinal} asks nobody: {other:?}"),
        }
    }

    pub fn standing(&self) -> Standing {
        standing(&self.checkpoint)
    }
}

/// The names of events.
pub fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::name).collect()
}

/// The stable code of a refusal.
pub fn code(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Refused(error) => error.code(),
        Verdict::Accepted => "accepted",
        Verdict::AlreadyGiven(_) => "already given",
    }
}
