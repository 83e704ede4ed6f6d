//! What an agent is: the definition that a run is pinned to.
//!
//! A definition is data. It is compiled from an agent file or built by a program, stored as a value in
//! the run's first transition, and never changes under a run. References to inputs and secrets stay references.

mod http;
mod model;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use lodestep_model::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::effect::Class;
use crate::json::canonical;

pub use http::{HttpLookup, HttpRequest, HttpTool, Sign};
pub use model::{ModelSpec, Price};

/// An agent, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The name; runs of one agent share it.
    pub name: String,
    /// What to reach; may hold `${input:…}`.
    pub objective: String,
    /// How to work, for the model; may hold `${input:…}`.
    pub instructions: String,
    /// Which model, and its limits.
    pub model: ModelSpec,
    /// Every tool that the model may call, in the order of the file.
    pub tools: Vec<ToolDefinition>,
    /// Rules in order; the first that matches decides.
    pub policy: Vec<Rule>,
    /// What becomes of questions that nobody answers.
    #[serde(default, skip_serializing_if = "Questions::is_plain")]
    pub questions: Questions,
    /// What the run may spend.
    pub quota: QuotaLimits,
    /// The plan's fixed part, which the model can't remove.
    pub milestones: Vec<MilestoneDefinition>,
    /// When the run is complete.
    pub done: Done,
    /// Constants that shape the fold and the context.
    pub limits: Limits,
    /// The command that hears when a run needs somebody or is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// What was computed from the rest before.
    #[serde(skip)]
    pub memo: Memo,
}

/// What is computed from a definition once and asked for again and again. It is no part of what the definition says.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    digests: OnceLock<BTreeMap<String, Digest>>,
    offered: OnceLock<Offered>,
}

impl PartialEq for Memo {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A definition's tools as a model is offered them.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The tools.
    pub tools: Arc<[ToolSpec]>,
    /// The bytes of their canonical JSON.
    pub bytes: u64,
    /// The digest of their canonical JSON.
    pub digest: Digest,
}

/// One tool as the model calls it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name that the model uses.
    pub name: String,
    /// The file's table that it comes from; policy may name either.
    pub group: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input: Value,
    /// What it does to the world.
    pub class: Class,
    /// How it is performed.
    pub kind: ToolKind,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: u64,
    /// How often the runtime tries by itself.
    pub max_attempts: u32,
    /// How long the receiver keeps a key, in milliseconds.
    pub key_valid_for_ms: u64,
    /// How long after the last possible send a lookup can be believed, in milliseconds.
    pub settles_after_ms: u64,
    /// The arguments that make two effects the same; all of them when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_by: Option<Vec<String>>,
    /// What makes an effect happen once in its namespace, whichever run does it; may hold `${arg:…}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<String>,
    /// The JSON Schema of its result; anything fits when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How long after its proposal an action may be sent, first or again, in milliseconds; waiting counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl ToolDefinition {
    /// The digest that an approval binds to: another command, schema or class is another tool.
    pub fn digest(&self) -> Digest {
        let value = serde_json::to_value(self).unwrap_or(Value::Null);
        Digest::over("lodestep tool 1", &[&canonical(&value)])
    }

    /// Every text of it that may hold a reference to the environment.
    pub fn environment_texts(&self) -> Vec<&str> {
        match &self.kind {
            ToolKind::Command { env, .. } => env.values().map(String::as_str).collect(),
            ToolKind::Http(http) => http.texts().collect(),
            ToolKind::State { .. } | ToolKind::Builtin { .. } | ToolKind::Sql { .. } | ToolKind::Function => Vec::new(),
        }
    }
}

/// How a tool is performed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolKind {
    /// Acts on the run's own state; decided by the core, performed by nobody.
    State {
        /// Which act.
        act: StateAct,
    },
    /// Built in: a function over a folder or over the run's artifacts.
    Builtin {
        /// `documents`, `artifacts`, `file`.
        builtin: String,
        /// `list`, `read`, `search`, `write`, …
        function: String,
        /// The root folder, where there is one; may hold `${input:…}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<String>,
    },
    /// A program: arguments as one JSON object on stdin, the answer on stdout.
    Command {
        /// The program and its arguments; may hold `${input:…}`.
        argv: Vec<String>,
        /// Tells whether the effect of a key happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lookup: Option<Vec<String>>,
        /// What its environment has besides the allow-listed base; may hold `${env:…}`, filled in at dispatch.
        #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        env: std::collections::BTreeMap<String, String>,
        /// The folder it runs in.
        folder: String,
    },
    /// An HTTP request: arguments in its url, query or body, the answer's body is the result.
    Http(Box<HttpTool>),
    /// One statement of a SQLite database, committed there together with the action's key.
    Sql {
        /// The database's file; may hold `${input:…}`.
        database: String,
        /// The statement; its parameters are the arguments.
        statement: String,
    },
    /// A function of the embedding program, found by the tool's name.
    Function,
}

/// Acts on the run's own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateAct {
    /// Replace a note.
    Note,
    /// Change the plan.
    Plan,
    /// Ask a person.
    Ask,
    /// End the run, if the criteria hold.
    Finish,
    /// Show an artifact in the context from now on.
    OpenArtifact,
    /// Stop showing it.
    CloseArtifact,
    /// Wait for a signal.
    WaitForSignal,
    /// Wait for a time.
    Wait,
}

/// One rule of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Tool or group names, `*` standing for any run of characters. Empty: any tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Classes. Empty: any class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// What happens.
    pub decide: Decide,
    /// How long a request stays open, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// What its expiry does.
    #[serde(default)]
    pub on_expiry: OnExpiry,
    /// How often people are reminded of a request that is open, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_ms: Option<u64>,
}

/// How long the model's questions stay open, and how often people are reminded of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// How long, in milliseconds; for ever when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// What the expiry does.
    #[serde(default)]
    pub on_expiry: OnExpiry,
    /// How often, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_ms: Option<u64>,
}

impl Questions {
    fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// It may be done.
    Allow,
    /// A person is asked.
    Ask,
    /// It is not done; the model is told.
    Deny,
}

/// What happens when nobody answers in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, minicbor::Encode, minicbor::Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The action is denied, and the model is told so.
    #[default]
    #[n(0)]
    Deny,
    /// The run stops until an operator resumes it, and then asks anew.
    #[n(1)]
    Pause,
}

/// The most that a run may spend. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, minicbor::Encode, minicbor::Decode)]
#[serde(default)]
pub struct QuotaLimits {
    /// Tokens of requests and replies together.
    #[n(0)]
    pub total_tokens: Option<u64>,
    /// Tokens of requests.
    #[n(1)]
    pub input_tokens: Option<u64>,
    /// Tokens of replies.
    #[n(2)]
    pub output_tokens: Option<u64>,
    /// Money, in millionths of a usd.
    #[n(3)]
    pub usd_micro: Option<u64>,
    /// Calls of the model.
    #[n(4)]
    pub model_calls: Option<u64>,
    /// Calls of tools that the runtime performs.
    #[n(5)]
    pub tool_calls: Option<u64>,
    /// Time held by a worker, in milliseconds.
    #[n(6)]
    pub active_time_ms: Option<u64>,
    /// Time since the start, in milliseconds.
    #[n(7)]
    pub deadline_ms: Option<u64>,
}

impl QuotaLimits {
    /// These limits without what was given away. A quota without a limit stays without; none falls below zero.
    pub fn less(&self, given: &Self) -> Self {
        let less = |limit: Option<u64>, given: Option<u64>| limit.map(|limit| limit.saturating_sub(given.unwrap_or(0)));
        Self {
            total_tokens: less(self.total_tokens, given.total_tokens),
            input_tokens: less(self.input_tokens, given.input_tokens),
            output_tokens: less(self.output_tokens, given.output_tokens),
            usd_micro: less(self.usd_micro, given.usd_micro),
            model_calls: less(self.model_calls, given.model_calls),
            tool_calls: less(self.tool_calls, given.tool_calls),
            active_time_ms: less(self.active_time_ms, given.active_time_ms),
            // A span of time is nobody's to give: each run has its own, from its start.
            deadline_ms: self.deadline_ms,
        }
    }

    /// These limits with what a definition's limits changed by: what was topped up or given away since stays so. A limit
    /// that the definition did not have begins as it stands there, one that it has no more is gone.
    pub fn moved(&self, before: &Self, after: &Self) -> Self {
        let moved = |now: Option<u64>, before: Option<u64>, after: Option<u64>| match (now, before, after) {
            (now, before, after) if before == after => now,
            (Some(now), Some(before), Some(after)) => Some(now.saturating_add(after).saturating_sub(before)),
            (_, _, after) => after,
        };
        Self {
            total_tokens: moved(self.total_tokens, before.total_tokens, after.total_tokens),
            input_tokens: moved(self.input_tokens, before.input_tokens, after.input_tokens),
            output_tokens: moved(self.output_tokens, before.output_tokens, after.output_tokens),
            usd_micro: moved(self.usd_micro, before.usd_micro, after.usd_micro),
            model_calls: moved(self.model_calls, before.model_calls, after.model_calls),
            tool_calls: moved(self.tool_calls, before.tool_calls, after.tool_calls),
            active_time_ms: moved(self.active_time_ms, before.active_time_ms, after.active_time_ms),
            deadline_ms: moved(self.deadline_ms, before.deadline_ms, after.deadline_ms),
        }
    }

    /// Each limit with the name that people give it, but the deadline.
    pub fn amounts(&self) -> [(&'static str, Option<u64>); 7] {
        [
            ("total_tokens", self.total_tokens),
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
            ("usd_micro", self.usd_micro),
            ("model_calls", self.model_calls),
            ("tool_calls", self.tool_calls),
            ("active_time_ms", self.active_time_ms),
        ]
    }

    /// The limit of that name, of those that [`Self::amounts`] names.
    pub fn amount_mut(&mut self, name: &str) -> Option<&mut Option<u64>> {
        Some(match name {
            "total_tokens" => &mut self.total_tokens,
            "input_tokens" => &mut self.input_tokens,
            "output_tokens" => &mut self.output_tokens,
            "usd_micro" => &mut self.usd_micro,
            "model_calls" => &mut self.model_calls,
            "tool_calls" => &mut self.tool_calls,
            "active_time_ms" => &mut self.active_time_ms,
            _ => return None,
        })
    }
}

/// A part of the plan that the file fixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MilestoneDefinition {
    /// Its name.
    pub id: String,
    /// What it means, for people and the model.
    pub title: String,
    /// The tool whose finished action is its evidence; the runtime checks it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_action: Option<String>,
}

/// When a run is complete. All that is named must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {
    /// Every milestone is reached.
    pub all_milestones: bool,
    /// These artifacts exist.
    pub artifacts: Vec<String>,
    /// This program ends with 0 when the rest holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

/// A program that judges whether a run is complete. What it says is told to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The program and its arguments; may hold `${input:…}`.
    pub argv: Vec<String>,
    /// The folder it runs in.
    pub folder: String,
}

/// A command that hears when a run needs somebody or is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The folder that it runs in.
    pub folder: String,
    /// It is ended after so long, in milliseconds.
    pub timeout_ms: u64,
}

/// Constants that shape the fold and the context, pinned with the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, minicbor::Encode, minicbor::Decode)]
#[serde(default)]
pub struct Limits {
    /// How many settled actions a checkpoint keeps in full; older ones become counts.
    #[n(0)]
    pub recent_actions: u32,
    /// How many errors a checkpoint keeps in full.
    #[n(1)]
    pub recent_errors: u32,
    /// The most bytes of one note.
    #[n(2)]
    pub note_bytes: u32,
    /// The most bytes of all notes.
    #[n(3)]
    pub notes_bytes: u32,
    /// How many artifacts a checkpoint keeps by name.
    #[n(4)]
    pub artifacts: u32,
    /// How many artifacts may be open in the context.
    #[n(5)]
    pub open_artifacts: u32,
    /// The most milestones of a plan.
    #[n(6)]
    pub milestones: u32,
    /// How many actions of one decision are performed at once.
    #[n(7)]
    pub parallel: u32,
    /// How many refused finishes stop the run.
    #[n(8)]
    pub refused_finishes: u32,
    /// How often the same action with the same outcome in a row is a loop.
    #[n(9)]
    pub loop_repeats: u32,
    /// A transition with this many others since the last snapshot takes one.
    #[n(10)]
    pub snapshot_every: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            recent_actions: 32,
            recent_errors: 8,
            note_bytes: 8 * 1024,
            notes_bytes: 16 * 1024,
            artifacts: 64,
            open_artifacts: 8,
            milestones: 64,
            parallel: 8,
            refused_finishes: 3,
            loop_repeats: 6,
            snapshot_every: 64,
        }
    }
}

impl Definition {
    /// The tool of that exact name.
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The digest of one of its tools.
    pub fn tool_digest(&self, tool: &ToolDefinition) -> Digest {
        let all = || self.tools.iter().map(|tool| (tool.name.clone(), tool.digest())).collect();
        self.memo.digests.get_or_init(all).get(&tool.name).copied().unwrap_or_else(|| tool.digest())
    }

    /// Its tools as a model is offered them.
    pub fn offered(&self) -> &Offered {
        self.memo.offered.get_or_init(|| {
            let tools: Arc<[ToolSpec]> = self.tools.iter().map(crate::context::spec).collect();
            let json = canonical(&serde_json::to_value(&tools).unwrap_or(Value::Null));
            Offered { tools, bytes: json.len() as u64, digest: Digest::of(&json) }
        })
    }

    /// The canonical bytes that a run stores.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical(&serde_json::to_value(self).unwrap_or(Value::Null))
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// `run.definition_unreadable` when the bytes are not a definition.
    pub fn from_bytes(bytes: &[u8]) -> crate::error::Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| {
            crate::error::Error::new(
                "run.definition_unreadable",
                format!("the run's stored definition can't be read: {error}"),
                "it was written by another version; use that one",
            )
        })
    }

    /// What another definition says otherwise: each tool by its name, the rest by the name of the part.
    pub fn parts_unlike(&self, other: &Self) -> Vec<String> {
        let parts = |definition: &Self| {
            let mut value = serde_json::to_value(definition).unwrap_or(Value::Null);
            let tools = value.as_object_mut().and_then(|parts| parts.remove("tools")).unwrap_or(Value::Null);
            let named = tools.as_array().into_iter().flatten().map(|tool| {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                (format!("the tool {name}"), tool.clone())
            });
            let rest = value.as_object().into_iter().flatten().map(|(name, part)| (name.clone(), part.clone()));
            rest.chain(named).collect::<BTreeMap<String, Value>>()
        };
        let (own, others) = (parts(self), parts(other));
        let names: std::collections::BTreeSet<&String> = own.keys().chain(others.keys()).collect();
        names.into_iter().filter(|name| own.get(*name) != others.get(*name)).cloned().collect()
    }

    /// The digest that a run is pinned to.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }
}
