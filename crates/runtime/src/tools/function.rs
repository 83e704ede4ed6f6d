//! Tools that are functions of the embedding program.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use lodestep_core::effect::Seen;
use serde_json::Value;

use crate::tools::Sight;

/// One attempt of an action, as a function sees it.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The arguments.
    pub arguments: Value,
    /// The idempotency key; empty for repeatable tools.
    pub key: String,
    /// The run.
    pub run: String,
    /// The action's place in its run.
    pub action: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The worker's fencing number: a receiver that knows a higher one should refuse.
    pub epoch: u64,
}

/// What a tool knows of the world when it has no result. A guess is not possible: there is no `From`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolError {
    /// Nothing was sent: it may be tried again.
    NotSent(String),
    /// A final no: the model is told.
    Rejected(String),
    /// It may have happened: the class decides.
    Unknown(String),
}

type ToolFuture = Pin<Box<dyn Future<Output = Result<Vec<u8>, ToolError>> + Send>>;
type Function = Arc<dyn Fn(ToolCall) -> ToolFuture + Send + Sync>;

/// Functions by the name of their tool.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<String, Function>);

impl Functions {
    /// Adds a function under a tool's name. It runs on the run's own task and must not block: what blocks or computes
    /// for long belongs into `tokio::task::spawn_blocking`.
    pub fn add<F, Fut>(&mut self, name: &str, function: F)
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<u8>, ToolError>> + Send + 'static,
    {
        let function: Function = Arc::new(move |call| Box::pin(function(call)));
        self.0.insert(name.to_owned(), function);
    }

    /// Performs one attempt. A panic is not an outcome: what it did before is unknown.
    pub(crate) async fn perform(&self, name: &str, call: ToolCall) -> Sight {
        let Some(function) = self.0.get(name) else {
            return Sight::new(Seen::NotStarted, format!("the program has no function `{name}`"));
        };
        let ended = AssertUnwindSafe(function(call)).catch_unwind().await;
        match ended {
            Ok(Ok(result)) => Sight::new(Seen::Done, result),
            Ok(Err(ToolError::NotSent(why))) => Sight::new(Seen::NotStarted, why),
            Ok(Err(ToolError::Rejected(why))) => Sight::new(Seen::Refused, why),
            Ok(Err(ToolError::Unknown(why))) => Sight::new(Seen::Interrupted, why),
            Err(_) => Sight::new(Seen::Interrupted, format!("the function `{name}` panicked")),
        }
    }
}
