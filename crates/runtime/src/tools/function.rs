//! Tools that are functions of the embedding program.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use lodestep_core::effect::Seen;
use lodestep_core::rules::settle::LookedUp;
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
type LookupFuture = Pin<Box<dyn Future<Output = LookedUp> + Send>>;
type Lookup = Arc<dyn Fn(ToolCall) -> LookupFuture + Send + Sync>;
type Function = Arc<dyn Fn(ToolCall) -> ToolFuture + Send + Sync>;

/// Functions by the name of their tool.
#[derive(Clone, Default)]
pub struct Functions {
    performed: BTreeMap<String, Function>,
    lookups: BTreeMap<String, Lookup>,
}

impl Functions {
    /// Adds a function under a tool's name. It runs on the run's own task and must not block: what blocks or computes
    /// for long belongs into `tokio::task::spawn_blocking`.
    pub fn add<F, Fut>(&mut self, name: &str, function: F)
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<u8>, ToolError>> + Send + 'static,
    {
        let function: Function = Arc::new(move |call| Box::pin(function(call)));
        self.performed.insert(name.to_owned(), function);
    }

    /// Adds a function with its lookup: the tool can then be of class checkable. The lookup gets the call whose outcome is
    /// unknown, and says whether its effect happened. It is believed, and asked only once the definition's
    /// `settles_after_ms` has passed since the last moment at which the call could have been sent.
    pub fn add_checkable<F, Fut, L, Said>(&mut self, name: &str, function: F, lookup: L)
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<u8>, ToolError>> + Send + 'static,
        L: Fn(ToolCall) -> Said + Send + Sync + 'static,
        Said: Future<Output = LookedUp> + Send + 'static,
    {
        self.add(name, function);
        let lookup: Lookup = Arc::new(move |call| Box::pin(lookup(call)));
        self.lookups.insert(name.to_owned(), lookup);
    }

    /// Asks a function's lookup. A panic tells nothing.
    pub(crate) async fn look_up(&self, name: &str, call: ToolCall) -> LookedUp {
        let Some(lookup) = self.lookups.get(name) else {
            return LookedUp::Unknown(format!("the program has no lookup for `{name}`"));
        };
        let said = AssertUnwindSafe(async { lookup(call).await }).catch_unwind().await;
        said.unwrap_or_else(|_| LookedUp::Unknown(format!("the lookup of `{name}` panicked")))
    }

    /// Performs one attempt. A panic is not an outcome: what it did before is unknown.
    pub(crate) async fn perform(&self, name: &str, call: ToolCall) -> Sight {
        let Some(function) = self.performed.get(name) else {
            return Sight::new(Seen::NotStarted, format!("the program has no function `{name}`"));
        };
        let ended = AssertUnwindSafe(async { function(call).await }).catch_unwind().await;
        match ended {
            Ok(Ok(result)) => Sight::new(Seen::Done, result),
            Ok(Err(ToolError::NotSent(why))) => Sight::new(Seen::NotStarted, why),
            Ok(Err(ToolError::Rejected(why))) => Sight::new(Seen::Refused, why),
            Ok(Err(ToolError::Unknown(why))) => Sight::new(Seen::Interrupted, why),
            Err(_) => Sight::new(Seen::Interrupted, format!("the function `{name}` panicked")),
        }
    }
}
