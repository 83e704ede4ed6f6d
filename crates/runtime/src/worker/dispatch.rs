//! One action performed, off the loop: what was committed is sent, and what was seen is reported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lodestep_core::checkpoint::Action;
use lodestep_core::definition::{HttpTool, StateAct, ToolDefinition, ToolKind};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::event::Origin;
use lodestep_core::json::canonical;
use lodestep_core::reference::with_inputs;
use lodestep_core::rules::deadline;
use lodestep_core::rules::decide::artifacts::pinned;
use lodestep_core::rules::settle::LookedUp;
use lodestep_core::{Digest, Error, Result, Stored};
use lodestep_store::RunRef;
use serde_json::{Map, Value};

use crate::fault::{self, Point};
use crate::inspect;
use crate::process::Holder;
use crate::rehearsal::{self, Rehearsal, Unsent};
use crate::runtime::Runtime;
use crate::secrets::{Removed, Secrets};
use crate::tools::command::Program;
use crate::tools::http::Call;
use crate::tools::{Sight, ToolCall, artifacts, builtin, sql};
use crate::worker::Shutdown;
use crate::worker::lease::Shared;
use crate::worker::pinned::Pinned;
use crate::worker::trouble::{Tries, will_pass};

/// Everything that one attempt needs.
pub(super) struct Dispatch {
    pub runtime: Runtime,
    pub lease: Shared,
    pub run: RunRef,
    pub epoch: u64,
    pub pinned: Arc<Pinned>,
    pub action: Action,
    pub attempt: u32,
    /// Where the run comes from, if it is a fork.
    pub lineage: Vec<Origin>,
    /// Had the lineage another run when its intent was committed, or later?
    pub has_kin: bool,
    /// The arguments' bytes, when they are at hand.
    pub arguments: Option<Vec<u8>>,
    /// The newest versions that the checkpoint knew, for arguments and searches.
    pub artifacts: Vec<(String, Stored)>,
    pub stop: Shutdown,
    pub secrets: Arc<Secrets>,
}

impl Dispatch {
    /// Performs the attempt. It never fails: what can't be done is something that was seen.
    pub async fn attempt(self) -> (Sight, Removed) {
        let tool = self.action.tool.clone();
        let mut removed = Removed::default();
        let sight = match self.perform(&mut removed).await {
            Ok(sight) => sight,
            // Nothing was sent: the store could not be read.
            Err(error) => Sight::new(Seen::NotStarted, error.to_string()),
        };
        if !matches!(sight.seen, Seen::NotStarted) {
            fault::reach(&tool, Point::Applied);
        }
        (sight, removed)
    }

    async fn perform(&self, removed: &mut Removed) -> Result<Sight> {
        let tool = self.tool()?;
        let arguments = self.arguments().await?;
        if let Some(rehearsal) = self.runtime.rehearsal.as_ref().filter(|_| rehearsal::passes_over(tool)) {
            return self.rehearsed(rehearsal, tool, arguments).await;
        }
        if !self.action.class.is_repeatable() {
            fault::reach(&self.action.tool, Point::Intent);
        }
        if let Some(apart) = self.apart().await? {
            return Ok(Sight::new(Seen::Refused, apart));
        }
        if self.lease.is_too_late() {
            return Ok(Sight::new(Seen::NotStarted, "the lease ended before it was sent"));
        }
        if deadline::is_past(&self.action, self.runtime.store.now()) {
            return Ok(Sight::new(Seen::NotStarted, "its deadline passed before it was sent"));
        }
        let mut sight = match &tool.kind {
            ToolKind::Builtin { builtin, function, root } => {
                self.builtin(builtin, function, root.as_deref(), arguments).await?
            }
            ToolKind::Command { argv, .. } => {
                let stdin = self.with_artifacts(tool, arguments).await?;
                self.program(tool, argv, stdin).attempt(&self.holder()?, self.stopped(), removed).await
            }
            ToolKind::Http(http) => {
                let artifacts = self.artifact_bytes(tool, &arguments).await?;
                let identity = self.http_identity();
                let call = self.http_call(tool, http, &arguments, &artifacts, &identity);
                call.attempt(self.stopped(), removed).await
            }
            ToolKind::Sql { database, statement } => {
                self.statement(tool, database, statement, arguments).await?.attempt(self.stopped()).await
            }
            ToolKind::Function => self.function(tool, arguments).await?,
            ToolKind::State { act: StateAct::Finish } => self.check(tool, arguments, removed).await?,
            ToolKind::State { .. } => Sight::new(Seen::Refused, "the core decides this one"),
        };
        removed.add(self.secrets.scrubber.scrub(&mut sight.text));
        let (sight, fault) = self.fitting(tool, sight);
        let sight = self.bounded(sight).await;
        Ok(match fault {
            Some(fault) => Sight { text: [fault.as_bytes(), b"\n", &sight.text].concat(), ..sight },
            None => sight,
        })
    }

    /// Says what would be sent, in place of sending it.
    async fn rehearsed(&self, rehearsal: &Rehearsal, tool: &ToolDefinition, arguments: Value) -> Result<Sight> {
        let arguments = serde_json::from_slice(&self.with_artifacts(tool, arguments).await?).unwrap_or_default();
        let (action, class) = (self.action.ordinal, self.action.class);
        rehearsal(Unsent { action, tool: tool.name.clone(), class, arguments });
        Ok(Sight::new(Seen::Done, rehearsal::RESULT))
    }

    /// What was seen, short enough for a checkpoint. It was seen whatever the store says now: a result that can't be kept
    /// for a while is held until it can; one that can't be kept at all, or by the time that the worker is told to stop, is
    /// shortened and says why.
    async fn bounded(&self, sight: Sight) -> Sight {
        let Some(long) = artifacts::Long::of(&sight, self.action.ordinal) else { return sight };
        match self.kept(|| long.keep(self.runtime.store.as_ref(), &self.run)).await {
            Ok(kept) => kept,
            Err(error) => long.cut(&format!("the rest could not be kept: {}", error.what())),
        }
    }

    /// Keeps something, trying again while the store can't for now.
    async fn kept<T, F: Future<Output = Result<T>>>(&self, keep: impl Fn() -> F) -> Result<T> {
        let mut tries = Tries::new(&self.lease.trouble);
        loop {
            match keep().await {
                Err(error) if will_pass(&error) && !self.stop.is_begun() => {
                    tries.refused(&error);
                    tokio::select! {
                        biased;
                        () = tries.pause() => {}
                        () = self.stopped() => {}
                    }
                }
                Ok(kept) => {
                    tries.taken();
                    return Ok(kept);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A result against the tool's schema of it. A read without a sound result has failed. An effect has happened all
    /// the same: its result stands, and what is wrong with it is told before it.
    fn fitting(&self, tool: &ToolDefinition, sight: Sight) -> (Sight, Option<String>) {
        if sight.seen != Seen::Done || sight.artifact.is_some() {
            return (sight, None);
        }
        match self.pinned.schemas.check_output(tool, &sight.text) {
            Ok(()) => (sight, None),
            Err(why) if self.action.class == Class::Read => {
                let text =
                    format!("tool.output_invalid: the result of `{}` does not fit its `output`: {why}", tool.name);
                (Sight::new(Seen::Refused, text), None)
            }
            Err(why) => {
                let fault =
                    format!("[tool.output_invalid: it was done, but its result does not fit its `output`: {why}]");
                (sight, Some(fault))
            }
        }
    }

    /// Has another branch of the lineage an equal effect that no person was shown? Each branch commits its intent before
    /// it looks, so that of two that want the same at once at least one sees the other.
    async fn apart(&self) -> Result<Option<String>> {
        let action = &self.action;
        let Some(same) = action.same.filter(|_| self.has_kin && !action.maybe_sent && action.elsewhere.is_none())
        else {
            return Ok(None);
        };
        let kin = inspect::kin(&self.runtime, &self.run, &self.lineage, &same).await?;
        Ok(kin.apart.map(|apart| {
            format!(
                "not sent: run {}, which comes from the same start, has the same effect as its action {}. Call the tool \
                 again to have a person decide",
                apart.run, apart.ordinal
            )
        }))
    }

    /// Asks the tool's own lookup.
    pub async fn look_up(self) -> (LookedUp, Removed) {
        let mut removed = Removed::default();
        let asked = async {
            let tool = self.tool()?;
            let arguments = self.arguments().await?;
            match &tool.kind {
                ToolKind::Command { lookup: Some(lookup), .. } => {
                    let stdin = self.with_artifacts(tool, arguments).await?;
                    let mut program = self.program(tool, lookup, stdin);
                    program.identity.push(("LODESTEP_LOOKUP", "1".to_owned()));
                    Ok(program.look_up(&self.holder()?, self.stopped(), &mut removed).await)
                }
                ToolKind::Http(http) if http.lookup.is_some() => {
                    let artifacts = self.artifact_bytes(tool, &arguments).await?;
                    let identity = self.http_identity();
                    let call = self.http_call(tool, http, &arguments, &artifacts, &identity);
                    Ok(call.look_up(self.stopped(), &mut removed).await)
                }
                ToolKind::Sql { database, statement } => {
                    Ok(self.statement(tool, database, statement, arguments).await?.look_up().await)
                }
                ToolKind::Function => Ok(self.look_up_function(tool, arguments).await),
                _ => Ok(LookedUp::Unknown(format!("`{}` has no lookup", tool.name))),
            }
        };
        let mut said = asked.await.unwrap_or_else(|error: Error| LookedUp::Unknown(error.to_string()));
        removed.add(match &mut said {
            LookedUp::Done(result) => self.secrets.scrubber.scrub(result),
            LookedUp::NoAnswer(why) | LookedUp::NotNow(why) | LookedUp::Unknown(why) => {
                self.secrets.scrubber.scrub_text(why)
            }
            LookedUp::Absent | LookedUp::Running => Removed::default(),
        });
        (said, removed)
    }

    fn tool(&self) -> Result<&ToolDefinition> {
        self.pinned.definition.tool(&self.action.tool).ok_or_else(|| {
            let what = format!("the definition has no tool `{}`", self.action.tool);
            Error::new("tool.not_found", what, "the run goes on with its own definition")
        })
    }

    /// The bytes that were committed, and approved where that was asked; anything else is not sent.
    async fn arguments(&self) -> Result<Value> {
        let bytes = match &self.arguments {
            Some(bytes) => bytes.clone(),
            None => self.runtime.value(&self.run, self.action.arguments).await?,
        };
        let differs = |what: String| Error::new("action.altered", what, "nothing was sent");
        if Digest::of(&bytes) != self.action.arguments.digest {
            return Err(differs(format!(
                "the stored arguments of action {} are not what was proposed",
                self.action.ordinal
            )));
        }
        let arguments: Value = serde_json::from_slice(&bytes).map_err(|error| {
            differs(format!("the arguments of action {} can't be read: {error}", self.action.ordinal))
        })?;
        if canonical(&arguments) != bytes {
            return Err(differs(format!("the arguments of action {} are not canonical", self.action.ordinal)));
        }
        Ok(arguments)
    }

    async fn builtin(&self, builtin: &str, function: &str, root: Option<&str>, arguments: Value) -> Result<Sight> {
        let store = self.runtime.store.as_ref();
        match (builtin, function) {
            ("artifacts", "save") => self.kept(|| artifacts::save(store, &self.run, &arguments)).await,
            ("artifacts", "search") => {
                let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
                let known = self.artifacts.iter().find(|(known, _)| known == name).map(|(_, stored)| *stored);
                artifacts::search(store, &self.run, &arguments, known).await
            }
            _ => {
                let root = PathBuf::from(with_inputs(root.unwrap_or("."), &self.pinned.inputs));
                let (builtin, function) = (builtin.to_owned(), function.to_owned());
                let own = self.runtime.own_paths();
                let performed = tokio::task::spawn_blocking(move || {
                    builtin::beside_the_store(&builtin, &root, &own)
                        .unwrap_or_else(|| builtin::perform(&builtin, &function, &root, &arguments))
                });
                Ok(performed.await.unwrap_or_else(|_| Sight::new(Seen::Interrupted, "the built-in tool panicked")))
            }
        }
    }

    /// The statement as it is performed; only an effect has a key.
    async fn statement(
        &self,
        tool: &ToolDefinition,
        database: &str,
        text: &str,
        arguments: Value,
    ) -> Result<sql::Statement> {
        let arguments = self.with_artifacts(tool, arguments).await?;
        let key = self.action.key.clone().filter(|_| !self.action.class.is_repeatable());
        Ok(sql::Statement {
            database: PathBuf::from(with_inputs(database, &self.pinned.inputs)),
            text: text.to_owned(),
            arguments: serde_json::from_slice(&arguments).unwrap_or_default(),
            key: key.map(|key| sql::Key {
                key,
                epoch: self.epoch,
                tool: tool.name.clone(),
                run: self.run.key.run.to_string(),
                action: self.action.ordinal.0,
            }),
            timeout: Duration::from_millis(tool.timeout_ms),
        })
    }

    fn call(&self, arguments: Value) -> ToolCall {
        ToolCall {
            arguments,
            key: self.action.key.clone().unwrap_or_default(),
            run: self.run.key.run.to_string(),
            action: self.action.ordinal.0,
            attempt: self.attempt,
            epoch: self.epoch,
        }
    }

    async fn look_up_function(&self, tool: &ToolDefinition, arguments: Value) -> LookedUp {
        let timeout = Duration::from_millis(tool.timeout_ms);
        tokio::select! {
            biased;
            said = self.runtime.functions.look_up(&tool.name, self.call(arguments)) => said,
            () = tokio::time::sleep(timeout) => LookedUp::NotNow(format!("no answer within {} ms", tool.timeout_ms)),
            () = self.stopped() => LookedUp::NotNow("stopped by the worker".to_owned()),
        }
    }

    async fn function(&self, tool: &ToolDefinition, arguments: Value) -> Result<Sight> {
        let call = self.call(arguments);
        let timeout = Duration::from_millis(tool.timeout_ms);
        Ok(tokio::select! {
            biased;
            sight = self.runtime.functions.perform(&tool.name, call) => sight,
            () = tokio::time::sleep(timeout) => Sight::new(Seen::TimedOut, format!("no answer within {} ms", tool.timeout_ms)),
            () = self.stopped() => Sight::new(Seen::Interrupted, "stopped by the worker"),
        })
    }

    /// The definition's check of a finish: it gets the summary, and the texts of the artifacts that the definition requires.
    async fn check(&self, tool: &ToolDefinition, mut arguments: Value, removed: &mut Removed) -> Result<Sight> {
        let done = &self.pinned.definition.done;
        let Some(check) = &done.check else {
            return Ok(Sight::new(Seen::Refused, "the core decides this one"));
        };
        let mut texts = Map::new();
        for (name, stored) in self.artifacts.iter().filter(|(name, _)| done.artifacts.contains(name)) {
            let bytes = self.runtime.value(&self.run, *stored).await?;
            // What is no text is named all the same; the check then knows that it can't judge it.
            texts.insert(name.clone(), String::from_utf8(bytes).map_or(Value::Null, Value::String));
        }
        arguments["artifacts"] = Value::Object(texts);
        let mut program = self.program(tool, &check.argv, canonical(&arguments));
        program.folder = &check.folder;
        let mut sight = program.attempt(&self.holder()?, self.stopped(), removed).await;
        if sight.seen == Seen::Refused {
            sight.text = [b"not complete yet, says the check: ".as_slice(), &sight.text].concat();
        }
        Ok(sight)
    }

    /// The arguments with the texts of pinned artifacts in their places, as a program gets them.
    async fn with_artifacts(&self, tool: &ToolDefinition, mut arguments: Value) -> Result<Vec<u8>> {
        for (property, bytes) in self.artifact_bytes(tool, &arguments).await? {
            let text = String::from_utf8(bytes).map_err(|_| {
                let what =
                    format!("the artifact of the argument {property} is not UTF-8 and can't be given to a program");
                Error::new("artifact.not_text", what, "nothing was sent")
            })?;
            arguments[property] = Value::String(text);
        }
        Ok(canonical(&arguments))
    }

    /// The bytes of the arguments that are artifacts: those of the versions that were pinned.
    async fn artifact_bytes(&self, tool: &ToolDefinition, arguments: &Value) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut all = BTreeMap::new();
        for (property, pinned) in pinned(tool, arguments) {
            let known = self.artifacts.iter().map(|(_, stored)| *stored).find(|stored| stored.digest == pinned.digest);
            let stored = match known {
                Some(stored) => Some(stored),
                None => {
                    let rows = self.runtime.store.artifacts(&self.run).await?;
                    rows.into_iter().map(|row| row.content).find(|content| content.digest == pinned.digest)
                }
            };
            let stored = stored.ok_or_else(|| {
                let what = format!("version {} of artifact {} is gone", pinned.version, pinned.name);
                Error::new("artifact.not_found", what, "nothing was sent")
            })?;
            all.insert(property, self.runtime.value(&self.run, stored).await?);
        }
        Ok(all)
    }

    fn http_call<'a>(
        &'a self,
        tool: &'a ToolDefinition,
        http: &'a HttpTool,
        arguments: &'a Value,
        artifacts: &'a BTreeMap<String, Vec<u8>>,
        identity: &'a [(&'static str, String)],
    ) -> Call<'a> {
        Call {
            client: &self.runtime.http,
            environment: &self.runtime.environment,
            scrubber: &self.secrets.scrubber,
            tool: http,
            class: self.action.class,
            maybe_sent: self.action.maybe_sent,
            inputs: &self.pinned.inputs,
            arguments,
            artifacts,
            key: self.action.key.as_deref().unwrap_or_default(),
            identity,
            timeout: Duration::from_millis(tool.timeout_ms),
            now: self.runtime.store.now(),
            too_late: Box::new(|| self.lease.is_too_late()),
        }
    }

    /// Who asks, for a receiver that refuses what is older than what it has seen.
    fn http_identity(&self) -> Vec<(&'static str, String)> {
        vec![
            ("lodestep-run", self.run.key.run.to_string()),
            ("lodestep-action", self.action.ordinal.to_string()),
            ("lodestep-attempt", self.attempt.to_string()),
            ("lodestep-epoch", self.epoch.to_string()),
        ]
    }

    fn program<'a>(&'a self, tool: &'a ToolDefinition, argv: &'a [String], stdin: Vec<u8>) -> Program<'a> {
        let (environment, agent) = (&self.runtime.environment, &self.pinned.definition.name);
        let (env, folder) = match &tool.kind {
            ToolKind::Command { env, folder, .. } => (environment.of_program(agent, &tool.group, env), folder.as_str()),
            _ => (BTreeMap::new(), "."),
        };
        Program {
            argv,
            env,
            environment,
            scrubber: &self.secrets.scrubber,
            folder,
            inputs: &self.pinned.inputs,
            stdin,
            timeout: Duration::from_millis(tool.timeout_ms),
            lock_file: self.lease.tools_lock.clone(),
            cage: &self.lease.cage,
            identity: vec![
                ("LODESTEP_TOOL", tool.name.clone()),
                ("LODESTEP_IDEMPOTENCY_KEY", self.action.key.clone().unwrap_or_default()),
                ("LODESTEP_RUN", self.run.key.run.to_string()),
                ("LODESTEP_ACTION", self.action.ordinal.to_string()),
                ("LODESTEP_ATTEMPT", self.attempt.to_string()),
                ("LODESTEP_EPOCH", self.epoch.to_string()),
            ],
        }
    }

    fn holder(&self) -> Result<Holder> {
        match &self.runtime.holder {
            Some(holder) => Ok(holder.clone()),
            None => Holder::of_this_binary().map_err(|error| {
                Error::new(
                    "tool.no_holder",
                    format!("this program's own binary can't be found: {error}"),
                    "nothing was sent",
                )
            }),
        }
    }

    async fn stopped(&self) {
        self.stop.begun().await;
    }
}
