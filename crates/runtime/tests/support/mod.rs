//! A small world for the runtime's tests: definitions, scripted replies, tools that keep a ledger.
#![allow(dead_code, reason = "each test binary takes what it needs")]

pub mod requests;
pub mod server;
pub mod services;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lodestep::core::definition::{
    Decide, Definition, Done, Limits, ModelSpec, QuotaLimits, Rule, StateAct, ToolDefinition, ToolKind,
};
use lodestep::core::effect::Class;
use lodestep::core::{Checkpoint, RunKey, Timestamp};
use lodestep::model::ScriptModel;
use lodestep::observe::Silent;
use lodestep::store::{Clock, MemoryStore, SettableClock, Started, Store};
use lodestep::tools::{Functions, ToolCall, ToolError};
use lodestep::worker::Shutdown;
use lodestep::{Runtime, Start};
use serde_json::{Value, json};

/// A tool that is a function of the test.
pub fn tool(name: &str, class: Class) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        group: name.to_owned(),
        description: format!("The tool {name}."),
        input: json!({"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}, "additionalProperties": false}),
        class,
        kind: ToolKind::Function,
        timeout_ms: 10_000,
        max_attempts: 3,
        key_valid_for_ms: 86_400_000,
        settles_after_ms: 1_000,
        same_by: None,
        dedupe: None,
        output: None,
        deadline_ms: None,
    }
}

/// A tool that acts on the run's own state.
pub fn state_tool(name: &str, act: StateAct) -> ToolDefinition {
    ToolDefinition { kind: ToolKind::State { act }, input: json!({"type": "object"}), ..tool(name, Class::Idempotent) }
}

/// An agent with these tools and `finish`, `note`, `ask`; effects are allowed unless `asks` names them.
pub fn agent(tools: Vec<ToolDefinition>, asks: &[&str]) -> Definition {
    let mut all = tools;
    all.push(state_tool("finish", StateAct::Finish));
    all.push(state_tool("note", StateAct::Note));
    all.push(state_tool("ask", StateAct::Ask));
    let mut policy = Vec::new();
    if !asks.is_empty() {
        policy.push(rule(asks, Decide::Ask));
    }
    policy.push(rule(&["*"], Decide::Allow));
    Definition {
        name: "tested".to_owned(),
        objective: "Do what the script says.".to_owned(),
        instructions: "Follow the script.".to_owned(),
        model: ModelSpec {
            provider: "script".to_owned(),
            name: String::new(),
            max_output_tokens: 1_000,
            context_window: 64_000,
            price: None,
            max_faulty_replies: 3,
            max_attempts: 5,
            ..ModelSpec::default()
        },
        tools: all,
        policy,
        questions: Default::default(),
        quota: QuotaLimits::default(),
        milestones: Vec::new(),
        done: Done::default(),
        limits: Limits::default(),
        notify: None,
        memo: Default::default(),
    }
}

fn rule(tools: &[&str], decide: Decide) -> Rule {
    Rule {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        classes: Vec::new(),
        decide,
        expires_ms: None,
        on_expiry: lodestep::core::definition::OnExpiry::Deny,
        remind_ms: None,
    }
}

/// A script from its replies.
pub fn script(replies: Value) -> ScriptModel {
    ScriptModel::parse(&json!({ "replies": replies }).to_string()).expect("a sound script")
}

/// One reply with these calls.
pub fn says(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> =
        calls.iter().map(|(name, arguments)| json!({"name": name, "arguments": arguments})).collect();
    json!({ "calls": calls })
}

/// The ledger of what was really applied: outside of any store.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Vec<(String, String)>>>);

impl Ledger {
    /// Notes that a tool applied its effect under a key.
    pub fn apply(&self, tool: &str, call: &ToolCall) {
        self.0.lock().expect("sound").push((tool.to_owned(), call.key.clone()));
    }

    /// The keys that a tool was applied under, in order.
    pub fn keys(&self, tool: &str) -> Vec<String> {
        let all = self.0.lock().expect("sound");
        all.iter().filter(|(name, _)| name == tool).map(|(_, key)| key.clone()).collect()
    }

    /// How often each tool was applied.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.0.lock().expect("sound").iter().fold(BTreeMap::new(), |mut counts, (tool, _)| {
            *counts.entry(tool.clone()).or_default() += 1;
            counts
        })
    }
}

/// Functions that apply at once and answer `done`.
pub fn functions(ledger: &Ledger, names: &[&str]) -> Functions {
    let mut functions = Functions::default();
    for name in names {
        let (ledger, tool) = (ledger.clone(), (*name).to_owned());
        functions.add(name, move |call| {
            let (ledger, tool) = (ledger.clone(), tool.clone());
            async move {
                ledger.apply(&tool, &call);
                Ok::<_, ToolError>(format!("done {}", call.arguments).into_bytes())
            }
        });
    }
    functions
}

/// A clock that stands still.
pub fn still_clock() -> Arc<SettableClock> {
    Arc::new(SettableClock::at(Timestamp::from_micros(1_800_000_000_000_000)))
}

/// A clock that follows the test's own time, which stands still but for sleeps when it is paused.
pub struct TestTime {
    since: tokio::time::Instant,
}

/// Starts the test's clock now.
pub fn test_time() -> Arc<TestTime> {
    Arc::new(TestTime { since: tokio::time::Instant::now() })
}

impl Clock for TestTime {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(1_800_000_000_000_000 + self.since.elapsed().as_micros() as i64)
    }

    fn boot_us(&self) -> u64 {
        3_600_000_000 + self.since.elapsed().as_micros() as u64
    }
}

/// A runtime in memory.
pub fn in_memory<C: Clock + 'static>(clock: &Arc<C>, functions: Functions, model: ScriptModel) -> Runtime {
    let clock: Arc<dyn Clock> = clock.clone();
    over(Arc::new(MemoryStore::new(clock.clone())), clock, functions, model)
}

/// A runtime over a store.
pub fn over(store: Arc<dyn Store>, clock: Arc<dyn Clock>, functions: Functions, model: ScriptModel) -> Runtime {
    let next = std::sync::atomic::AtomicU64::new(1);
    Runtime::builder(store)
        .clock(clock)
        .functions(functions)
        .model(Arc::new(model))
        .ids(move || u128::from(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
        .build()
}

/// Starts a run of the agent.
pub async fn start(runtime: &Runtime, definition: Definition) -> Arc<RunKey> {
    let start = Start {
        definition,
        inputs: json!({}),
        id: None,
        labels: [("team".to_owned(), "news".to_owned())].into(),
        join_unfinished: false,
    };
    match runtime.start(start).await.expect("started") {
        Started::New(run) => run.key,
        other => panic!("{other:?}"),
    }
}

/// Works until nothing can be done now; the run's state then.
pub async fn settle(runtime: &Runtime, run: &RunKey) -> Checkpoint {
    runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
    runtime.store().load(run).await.expect("loaded").checkpoint().expect("sound")
}
