//! Agents whose tool is an HTTP request, and a runtime that finds the names of the tests.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lodestep::core::Checkpoint;
use lodestep::core::definition::{HttpRequest, HttpTool, ToolDefinition, ToolKind};
use lodestep::core::effect::Class;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::inspect;
use lodestep::secrets::Environment;
use lodestep::store::{MemoryStore, SettableClock};
use lodestep::tools::Functions;
use lodestep::tools::http::{HttpClient, Resolve, Resolved};
use lodestep::{Runtime, core::RunKey};
use serde_json::{Value, json};

use super::{agent, says, script, settle, start, still_clock, tool};

/// Names with their addresses; every other name is unknown.
pub struct Names(pub BTreeMap<&'static str, Vec<SocketAddr>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str, _: u16) -> Resolved<'a> {
        let found = self.0.get(host).cloned();
        Box::pin(std::future::ready(found.ok_or_else(|| io::Error::other("no such name"))))
    }
}

/// A request without headers.
pub fn request(method: &str, url: impl Into<String>) -> HttpRequest {
    HttpRequest { method: method.to_owned(), url: url.into(), headers: BTreeMap::new(), body: None }
}

/// A tool `call` that sends this and may reach the test's own servers.
pub fn http_tool(class: Class, request: HttpRequest) -> ToolDefinition {
    let http = HttpTool { request, lookup: None, allow_hosts: vec!["127.0.0.1".to_owned(), "ledger.test".to_owned()] };
    ToolDefinition {
        kind: ToolKind::Http(Box::new(http)),
        input: json!({"type": "object"}),
        timeout_ms: 400,
        ..tool("call", class)
    }
}

/// The http part of such a tool.
pub fn http_of(tool: &mut ToolDefinition) -> &mut HttpTool {
    match &mut tool.kind {
        ToolKind::Http(http) => http,
        other => panic!("{other:?}"),
    }
}

/// A run whose model calls the tool once and finishes.
pub struct Trial {
    pub runtime: Runtime,
    pub run: Arc<RunKey>,
    pub clock: Arc<SettableClock>,
}

impl Trial {
    /// Starts it.
    pub async fn new(tool: ToolDefinition, arguments: Value, client: HttpClient) -> Self {
        Self::with(vec![tool], json!([says(&[("call", arguments)]), says(&[("finish", json!({}))])]), client, &[]).await
    }

    /// Starts a run with these tools, replies and variables.
    pub async fn with(
        tools: Vec<ToolDefinition>,
        replies: Value,
        client: HttpClient,
        variables: &'static [(&'static str, &'static str)],
    ) -> Self {
        let clock = still_clock();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let runtime = Runtime::builder(store)
            .clock(clock.clone())
            .functions(Functions::default())
            .model(Arc::new(script(replies)))
            .http(client)
            .environment(environment(variables))
            .ids(|| 7)
            .build();
        let run = start(&runtime, agent(tools, &[])).await;
        Self { runtime, run, clock }
    }

    /// Works until nothing can be done now.
    pub async fn settle(&self) -> Checkpoint {
        settle(&self.runtime, &self.run).await
    }

    /// Works until the run waits for nothing but a person, or is over; passes the time of its retries.
    pub async fn end(&self) -> Checkpoint {
        for _ in 0..40 {
            let state = self.settle().await;
            if standing(&state).status != Status::Waiting {
                return state;
            }
            self.clock.advance_ms(5_000);
        }
        panic!("it still waits after 200 s");
    }

    /// The result of the n-th settled action, as the model is told it.
    pub async fn told(&self, nth: usize) -> String {
        let opened = inspect::open(self.runtime.store(), &self.run).await.expect("opened");
        opened.text(&opened.checkpoint.recent[nth].result)
    }

    /// What stands in the error log.
    pub async fn errors(&self) -> String {
        let opened = inspect::open(self.runtime.store(), &self.run).await.expect("opened");
        let texts: Vec<String> = opened.checkpoint.errors.iter().map(|error| opened.text(&error.text)).collect();
        texts.join("\n")
    }
}

/// An environment of these variables alone.
pub fn environment(variables: &'static [(&'static str, &'static str)]) -> Environment {
    Environment::new(move |name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}
