//! Runs whose model is a service: a strict server on loopback, asked through a provider as an agent file would.

use std::sync::Arc;

use lodestep::Runtime;
use lodestep::core::checkpoint::Phase;
use lodestep::core::definition::{Definition, ModelSpec, ToolDefinition};
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, RunKey};
use lodestep::inspect::{self, Opened};
use lodestep::model::{Message, Model, ModelError, Reply, Request};
use lodestep::store::{Clock, MemoryStore, SettableClock, Store};
use lodestep::tools::Functions;
use lodestep_model_server::{Bill, Fault, Options, Server, Shape, mind};
use serde_json::Value;

use super::requests::environment;
use super::{Ledger, agent, functions, settle, start, still_clock, tool};

/// A reply with these calls.
pub fn calls(calls: &[(&str, Value)]) -> Reply {
    let call = |(name, arguments): &(&str, Value)| lodestep::model::Call {
        id: String::new(),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    };
    Reply { calls: calls.iter().map(call).collect(), stop: lodestep::model::StopReason::ToolCalls, ..Reply::default() }
}

/// A model that follows a plan by what it is told: the n-th reply answers a request that shows n decisions.
pub fn by_decisions(replies: Vec<Reply>) -> impl Model {
    mind::from_fn(move |request: &Request| {
        let shown = request.messages.iter().filter(|message| matches!(***message, Message::Assistant { .. })).count();
        replies.get(shown).cloned().ok_or_else(|| ModelError::Rejected(format!("{shown} decisions are too many")))
    })
}

/// A strict server, and a runtime over a store in memory whose runs ask it. Time stands still until the test moves it.
pub struct Served {
    pub server: Server,
    pub clock: Arc<SettableClock>,
    pub ledger: Ledger,
    pub runtime: Runtime,
    store: Arc<dyn Store>,
    shape: Shape,
    streamed: bool,
}

impl Served {
    /// With tools `pay` and `look` that keep the ledger.
    pub fn new(way: (Shape, bool), mind: impl Model + 'static) -> Self {
        Self::over(way, Server::start(Options::new(mind)).expect("a port of loopback"))
    }

    /// As [`new`](Self::new), with the server on a thread of its own: for a test without a runtime.
    pub fn apart(way: (Shape, bool), mind: impl Model + 'static) -> Self {
        Self::over(way, Server::on_thread(Options::new(mind)).expect("a port of loopback"))
    }

    fn over((shape, streamed): (Shape, bool), server: Server) -> Self {
        let (clock, ledger) = (still_clock(), Ledger::default());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        let runtime = program(&store, &clock, functions(&ledger, &["pay", "look"]));
        Self { server, clock, ledger, runtime, store, shape, streamed }
    }

    /// Another program over the same store: what the one before knew and did not store is gone.
    pub fn restart(&mut self) {
        self.runtime = program(&self.store, &self.clock, functions(&self.ledger, &["pay", "look"]));
    }

    /// An agent that asks the server.
    pub fn definition(&self) -> Definition {
        let tools: Vec<ToolDefinition> = vec![tool("pay", Class::Unsafe), tool("look", Class::Read)];
        let mut definition = agent(tools, &[]);
        let provider = match self.shape {
            Shape::Anthropic => "anthropic",
            Shape::OpenAi => "openai",
        };
        definition.model = ModelSpec {
            provider: provider.to_owned(),
            name: "m".to_owned(),
            base_url: Some(self.server.base_url(self.shape)),
            api_key: Some("${env:MODEL_KEY}".to_owned()),
            whole: !self.streamed,
            ..definition.model
        };
        definition
    }

    /// Starts a run of this agent.
    pub async fn start(&self, definition: Definition) -> Arc<RunKey> {
        start(&self.runtime, definition).await
    }

    /// Works until nothing can be done at this time.
    pub async fn settle(&self, run: &RunKey) -> Checkpoint {
        settle(&self.runtime, run).await
    }

    /// Works until the run waits for nothing but a person, or is over; goes on at each time that it waits for.
    pub async fn end(&self, run: &RunKey) -> Checkpoint {
        for _ in 0..40 {
            let state = self.settle(run).await;
            let stands = standing(&state);
            let Some(due) = stands.due.filter(|_| stands.status == Status::Waiting) else { return state };
            self.pass_until(due.as_micros());
        }
        panic!("it still waits");
    }

    /// Lets the time come, in microseconds, that a run waits for.
    pub fn pass_until(&self, at_us: i64) {
        let left_us = at_us - self.clock.wall().as_micros();
        self.clock.advance_ms(u64::try_from(left_us.max(0)).expect("positive").div_ceil(1_000));
    }

    /// The run as people see it.
    pub async fn opened(&self, run: &RunKey) -> Opened {
        inspect::open(self.runtime.store(), run).await.expect("opened")
    }

    /// What stands in the error log, oldest first.
    pub async fn errors(&self, run: &RunKey) -> Vec<String> {
        let opened = self.opened(run).await;
        opened.checkpoint.errors.iter().map(|error| opened.text(&error.text)).collect()
    }

    /// Why the run stopped; empty when it did not.
    pub async fn stopped(&self, run: &RunKey) -> String {
        let opened = self.opened(run).await;
        match &opened.checkpoint.phase {
            Phase::Stopped { reason, text, .. } => format!("{reason:?}: {}", opened.text(text)),
            _ => String::new(),
        }
    }

    /// The server's bill, on which nothing may be refused for what it was.
    pub fn sound_bill(&self) -> Bill {
        let bill = self.server.bill();
        assert_eq!(bill.refused_malformed() + bill.refused_too_long(), 0, "{:?}", bill.entries);
        bill
    }

    /// Plans so many good answers, then this.
    pub fn plan_after(&self, good: usize, faults: impl IntoIterator<Item = Fault>) {
        self.server.plan(std::iter::repeat_n(Fault::Nothing, good).chain(faults));
    }
}

fn program(store: &Arc<dyn Store>, clock: &Arc<SettableClock>, functions: Functions) -> Runtime {
    let clock: Arc<dyn Clock> = clock.clone();
    let builder = Runtime::builder(store.clone()).clock(clock).functions(functions);
    builder.environment(environment(&[("MODEL_KEY", "test-key"), ("OTHER_KEY", "other-key")])).build()
}
