//! Random agents: a definition, and a model that says what its script has for the turn.

use std::sync::Arc;
use std::time::Duration;

use lodestep_core::Definition;
use lodestep_core::definition::{
    Decide, Done, Limits, ModelSpec, OnExpiry, QuotaLimits, Rule, StateAct, ToolDefinition, ToolKind,
};
use lodestep_core::effect::Class;
use lodestep_model::{Call, Model, ModelError, ModelFuture, Reply, Request, StopReason, Usage};
use serde_json::{Value, json};

use super::chance::Chance;
use super::outside::{SETTLES_AFTER_MS, TIMEOUT_MS, tool_of};
use super::witness::Witness;

/// One reply's calls: tool and arguments.
pub type Turn = Vec<(&'static str, Value)>;

/// What an agent's model says, turn by turn; after the last it finishes.
#[derive(Clone, Debug)]
pub struct Script {
    /// The calls of each reply.
    pub turns: Vec<Turn>,
    /// The tools that a person has to approve.
    pub asks: Vec<String>,
}

impl Script {
    /// A small random one.
    pub(super) fn random(chance: &Chance) -> Self {
        let turns =
            (0..1 + chance.below(4)).map(|_| (0..1 + chance.below(3)).map(|_| call(chance)).collect()).collect();
        let asks = Class::ALL.into_iter().filter(|_| chance.permille(250)).map(|class| tool_of(class).to_owned());
        Self { turns, asks: asks.collect() }
    }

    /// One call of each class, one after the other, none asked for.
    pub fn of_each_class() -> Self {
        let turns = Class::ALL.map(|class| vec![(tool_of(class), json!({ "n": 1 }))]).to_vec();
        Self { turns, asks: Vec::new() }
    }

    /// One call of each class at once, the keyed one asked for.
    pub fn all_at_once() -> Self {
        let turn = Class::ALL.map(|class| (tool_of(class), json!({ "n": 1 }))).to_vec();
        Self { turns: vec![turn], asks: vec![tool_of(Class::Keyed).to_owned()] }
    }

    /// A question, a note, and two effects that a person has to approve, one of them at most once.
    pub fn of_words() -> Self {
        let effects = [Class::Unsafe, Class::Checkable].map(tool_of);
        let turns = vec![
            vec![("ask", json!({ "question": "Which?" })), ("note", json!({ "key": "k", "text": "asked" }))],
            effects.map(|tool| (tool, json!({ "n": 1 }))).to_vec(),
        ];
        Self { turns, asks: effects.map(str::to_owned).to_vec() }
    }

    /// Small ones that together have what an agent can do here.
    pub fn small() -> Vec<(&'static str, Self)> {
        vec![
            ("one call of each class after the other", Self::of_each_class()),
            ("one call of each class at once", Self::all_at_once()),
            ("a question, a note and approvals", Self::of_words()),
        ]
    }

    /// The definition. Its instructions name the run, for a model has nothing else to tell runs apart.
    pub(crate) fn definition(&self, run: &str, limits: Limits) -> Definition {
        let mut tools: Vec<ToolDefinition> =
            Class::ALL.map(|class| tool(tool_of(class), class, ToolKind::Function)).to_vec();
        let acts = [("finish", StateAct::Finish), ("note", StateAct::Note), ("ask", StateAct::Ask)];
        tools.extend(acts.map(|(name, act)| ToolDefinition {
            input: json!({ "type": "object" }),
            ..tool(name, Class::Idempotent, ToolKind::State { act })
        }));
        let rule = |tools: Vec<String>, decide| Rule {
            tools,
            classes: Vec::new(),
            decide,
            expires_ms: None,
            on_expiry: OnExpiry::Deny,
            remind_ms: None,
        };
        let mut policy = vec![rule(vec!["*".to_owned()], Decide::Allow)];
        if !self.asks.is_empty() {
            policy.insert(0, rule(self.asks.clone(), Decide::Ask));
        }
        Definition {
            name: "simulated".to_owned(),
            objective: "Do what the script says.".to_owned(),
            instructions: format!("{MARK}{run}"),
            model: ModelSpec {
                provider: "simulated".to_owned(),
                name: String::new(),
                max_output_tokens: 1_000,
                context_window: 64_000,
                price: None,
                max_faulty_replies: 5,
                max_attempts: 20,
                ..ModelSpec::default()
            },
            tools,
            policy,
            quota: QuotaLimits::default(),
            milestones: Vec::new(),
            done: Done::default(),
            limits,
            memo: Default::default(),
            notify: None,
            questions: Default::default(),
        }
    }
}

const MARK: &str = "simulated run ";

fn tool(name: &str, class: Class, kind: ToolKind) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        group: name.to_owned(),
        description: format!("The tool {name}."),
        input: json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
        class,
        kind,
        timeout_ms: TIMEOUT_MS,
        max_attempts: 4,
        key_valid_for_ms: 86_400_000,
        settles_after_ms: SETTLES_AFTER_MS,
        deadline_ms: None,
        same_by: None,
        dedupe: None,
        output: None,
    }
}

fn call(chance: &Chance) -> (&'static str, Value) {
    match chance.below(12) {
        0 => ("note", json!({ "key": "k", "text": "a note" })),
        1 => ("ask", json!({ "question": "Which?" })),
        at => (tool_of(Class::ALL[at % Class::ALL.len()]), json!({ "n": chance.below(4) })),
    }
}

/// The model of every simulated run.
pub(super) struct SimModel {
    pub scripts: Arc<Vec<(String, Script)>>,
    pub witness: Arc<Witness>,
    pub chance: Arc<Chance>,
    /// Of so many of a thousand calls comes no reply, or a faulty one.
    pub fails: u32,
}

impl Model for SimModel {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(async move {
            let marked = request.system.split(MARK).nth(1).and_then(|rest| rest.split_whitespace().next());
            let found = self.scripts.iter().find(|(run, _)| Some(run.as_str()) == marked);
            let Some((run, script)) = found else {
                return Err(ModelError::Rejected(format!("no script is marked {marked:?}")));
            };
            self.witness.asks_model(run, request.turn);
            tokio::time::sleep(self.chance.ms_below(200)).await;
            if self.chance.permille(self.fails) {
                match self.chance.below(4) {
                    0 => return Err(ModelError::NotSent("no connection".to_owned())),
                    1 => return Err(ModelError::lost("reset")),
                    2 => return Err(ModelError::Busy { message: "busy".to_owned(), retry_after_ms: Some(700) }),
                    _ => tokio::time::sleep(Duration::from_secs(60)).await,
                }
            }
            Ok(reply(script, request.turn))
        })
    }
}

fn reply(script: &Script, turn: u64) -> Reply {
    let finish = vec![("finish", json!({ "summary": "done" }))];
    let turn = usize::try_from(turn).ok().and_then(|turn| script.turns.get(turn)).unwrap_or(&finish);
    let calls = turn.iter().enumerate().map(|(at, (name, arguments))| Call {
        id: format!("call-{at}"),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    });
    Reply {
        text: String::new(),
        calls: calls.collect(),
        stop: StopReason::ToolCalls,
        usage: Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() }),
        ..Reply::default()
    }
}
