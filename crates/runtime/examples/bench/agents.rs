//! The measured agents: a tool that answers 200 bytes, and a model that wants it again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lodestep::core::definition::{
    Decide, Definition, Done, Limits, ModelSpec, OnExpiry, QuotaLimits, Rule, StateAct, ToolDefinition, ToolKind,
};
use lodestep::core::effect::Class;
use lodestep::tools::{Functions, ToolError};
use lodestep_model::{Call, Model, ModelFuture, Reply, Request, StopReason, Usage};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

/// An agent whose tool `step` has this class; so many actions of a decision are performed at once.
pub fn agent(class: Class, parallel: u32) -> Definition {
    let tool = |name: &str, class, kind| ToolDefinition {
        name: name.to_owned(),
        group: name.to_owned(),
        description: "A measured step.".to_owned(),
        input: json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}),
        class,
        kind,
        timeout_ms: 60_000,
        max_attempts: 3,
        key_valid_for_ms: 86_400_000,
        settles_after_ms: 1_000,
        same_by: None,
        dedupe: None,
        output: None,
        deadline_ms: None,
    };
    Definition {
        name: "bench".to_owned(),
        objective: "Step.".to_owned(),
        instructions: "Step.".to_owned(),
        model: ModelSpec {
            provider: "bench".to_owned(),
            name: String::new(),
            max_output_tokens: 1_000,
            context_window: 16_000,
            price: None,
            max_faulty_replies: 3,
            max_attempts: 3,
            ..ModelSpec::default()
        },
        tools: vec![
            tool("step", class, ToolKind::Function),
            tool("finish", Class::Idempotent, ToolKind::State { act: StateAct::Finish }),
        ],
        policy: vec![Rule {
            tools: vec!["*".to_owned()],
            classes: Vec::new(),
            decide: Decide::Allow,
            expires_ms: None,
            on_expiry: OnExpiry::Deny,
            remind_ms: None,
        }],
        quota: QuotaLimits::default(),
        milestones: Vec::new(),
        done: Done::default(),
        limits: Limits { parallel, ..Limits::default() },
        notify: None,
        questions: Default::default(),
        memo: Default::default(),
    }
}

/// The tool: 200 bytes at once.
pub fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.add("step", |_| std::future::ready(Ok::<_, ToolError>(vec![b'x'; 200])));
    functions
}

/// A model that asks for `calls` steps each turn, waits at its gate every `turns_a_block` turns, and finishes after `turns`.
pub struct Stepper {
    /// Calls of each reply.
    pub calls: u64,
    /// Turns before it finishes.
    pub turns: u64,
    /// Turns between two waits at the gate; 0 for none.
    pub turns_a_block: u64,
    /// Lets it pass.
    pub gate: Arc<Semaphore>,
    /// Is told when it arrives at the gate, or at its end.
    pub arrived: mpsc::UnboundedSender<()>,
    /// The model has no memory: a number makes each call another one.
    pub next: AtomicU64,
}

impl Model for Stepper {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(async move {
            if self.turns_a_block > 0 && request.turn.is_multiple_of(self.turns_a_block) {
                let _ = self.arrived.send(());
                if let Ok(permit) = self.gate.acquire().await {
                    permit.forget();
                }
            }
            let call = |name: &str, arguments: String| Call { id: "c".to_owned(), name: name.to_owned(), arguments };
            let calls = if request.turn >= self.turns {
                vec![call("finish", "{}".to_owned())]
            } else {
                let number = || self.next.fetch_add(1, Ordering::Relaxed);
                (0..self.calls).map(|_| call("step", format!("{{\"n\":{}}}", number()))).collect()
            };
            let usage = Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() });
            Ok(Reply { text: String::new(), calls, stop: StopReason::ToolCalls, usage, ..Reply::default() })
        })
    }
}
