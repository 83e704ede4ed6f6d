//! Agents whose model is a service: a strict server that this test runs, and the program on the other side of a port.

use std::path::PathBuf;

use lodestep_model::{Call, Message, Model, ModelError, Reply, Request, StopReason};
use lodestep_model_server::{Bill, Options, Server, Shape, mind};
use serde_json::Value;

use super::World;

/// The key that the server takes.
pub const KEY: &str = "sk-canary-Wq7Zr20bNc-right";

/// A reply with these calls.
pub fn calls(calls: &[(&str, Value)]) -> Reply {
    let call = |(name, arguments): &(&str, Value)| Call {
        id: String::new(),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    };
    Reply { calls: calls.iter().map(call).collect(), stop: StopReason::ToolCalls, ..Reply::default() }
}

/// How many decisions a request shows.
pub fn decisions(request: &Request) -> usize {
    request.messages.iter().filter(|message| matches!(***message, Message::Assistant { .. })).count()
}

/// A model that follows a plan by what it is told: the n-th reply answers a request that shows n decisions.
pub fn by_decisions(replies: Vec<Reply>) -> impl Model {
    mind::from_fn(move |request: &Request| {
        let shown = decisions(request);
        replies.get(shown).cloned().ok_or_else(|| ModelError::Rejected(format!("{shown} decisions are too many")))
    })
}

/// A strict server that takes [`KEY`], and agents that ask it in one way.
pub struct Service {
    pub server: Server,
    shape: Shape,
    streamed: bool,
}

impl Service {
    /// Any model is there.
    pub fn new(way: (Shape, bool), mind: impl Model + 'static) -> Self {
        Self::of(way, Options::new(mind))
    }

    /// With these options, but for the key.
    pub fn of((shape, streamed): (Shape, bool), options: Options) -> Self {
        let options = Options { key: KEY.to_owned(), ..options };
        Self { server: Server::on_thread(options).expect("a port of loopback"), shape, streamed }
    }

    /// `anthropic` or `openai`.
    pub fn provider(&self) -> &'static str {
        match self.shape {
            Shape::Anthropic => "anthropic",
            Shape::OpenAi => "openai",
        }
    }

    /// An agent file of the world that asks the server, with further lines of `[model]` and these tables. Its key is taken
    /// from the file `key`, which is written, too.
    pub fn agent(&self, world: &World, model: &str, tables: &str) -> PathBuf {
        world.write("key", &format!("{KEY}\n"));
        world.write("lodestep.toml", "[env]\nMODEL_KEY = { file = \"key\" }\n");
        let (provider, url, stream) = (self.provider(), self.server.base_url(self.shape), self.streamed);
        world.write(
            "agent.toml",
            &format!(
                "format = 1\n[agent]\nname = \"served\"\nobjective = \"Do as you are told.\"\ninstructions = \"Do it.\"\n\
                 [model]\nprovider = \"{provider}\"\nname = \"m\"\nbase_url = \"{url}\"\napi_key = \"${{env:MODEL_KEY}}\"\n\
                 context_window = 64_000\nstream = {stream}\n{model}{tables}"
            ),
        )
    }

    /// Its bill, on which nothing may be refused for what it was.
    pub fn sound_bill(&self) -> Bill {
        let bill = self.server.bill();
        assert_eq!(bill.refused_malformed() + bill.refused_too_long(), 0, "{:?}", bill.entries);
        bill
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.server.bill().entries.len()
    }
}
