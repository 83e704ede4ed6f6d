//! The entry point: a store, the tools and models of this program, and what can be done with runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use lodestep_core::context::Blobs;
use lodestep_core::event::RunStarted;
use lodestep_core::json::{canonical, inexact};
use lodestep_core::label;
use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::rules::upgrade::planned;
use lodestep_core::value::Values;
use lodestep_core::{Definition, Draft, Error, INLINE_VALUE_BYTES, Labels, Result, RunId, RunKey, Stored, ValueRef};
use lodestep_model::Model;
use lodestep_store::{Clock, Filter, RunRef, RunRow, StartRun, Started, Store, SystemClock};
use serde_json::Value;

use crate::fault::{self, Point};
use crate::model::model_of;
use crate::process::{Cage, Demand, Holder};
use crate::rehearsal::Rehearsal;
use crate::secrets::Environment;
use crate::tools::Functions;
use crate::tools::http::HttpClient;
use crate::worker::pinned::Compiled;

type Tasks = Arc<dyn Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store, and how this program performs what runs need.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) functions: Functions,
    /// The one model of all agents, if a program gave one.
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) holder: Option<Holder>,
    pub(crate) cage: Demand,
    pub(crate) ids: Arc<dyn Fn() -> u128 + Send + Sync>,
    pub(crate) compiled: Compiled,
    pub(crate) environment: Environment,
    pub(crate) http: HttpClient,
    pub(crate) tasks: Option<Tasks>,
    pub(crate) rehearsal: Option<Rehearsal>,
    pub(crate) keep_out: Vec<PathBuf>,
}

/// Builds a [`Runtime`].
pub struct RuntimeBuilder {
    runtime: Runtime,
}

/// A mistyped id is compared with so many runs.
const NEAREST_OF: usize = 1_000;

/// A run to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The agent.
    pub definition: Definition,
    /// Its inputs, an object.
    pub inputs: Value,
    /// The run's id; a new one is made when `None`.
    pub id: Option<RunId>,
    /// What people find the run by.
    pub labels: Labels,
    /// When true, an unfinished run of the same agent and inputs is returned instead of a new one.
    pub join_unfinished: bool,
}

impl Runtime {
    /// A runtime over a store.
    pub fn builder(store: Arc<dyn Store>) -> RuntimeBuilder {
        RuntimeBuilder {
            runtime: Self {
                store,
                clock: Arc::new(SystemClock),
                functions: Functions::default(),
                model: None,
                holder: None,
                cage: Demand::default(),
                ids: Arc::new(|| uuid::Uuid::now_v7().as_u128()),
                compiled: Compiled::default(),
                environment: Environment::default(),
                http: HttpClient::default(),
                tasks: None,
                rehearsal: None,
                keep_out: Vec::new(),
            },
        }
    }

    /// A task of a worker, ready to be spawned.
    pub(crate) fn task(&self, task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        match &self.tasks {
            Some(tasks) => tasks(Box::pin(task)),
            None => Box::pin(task),
        }
    }

    /// The model of a definition's runs.
    pub(crate) fn model_of(&self, definition: &Definition) -> Result<Arc<dyn Model>> {
        match &self.model {
            Some(model) => Ok(model.clone()),
            None => model_of(definition, &self.environment),
        }
    }

    /// Where the values of variables come from.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Starts a run. After Ok it is durable.
    ///
    /// # Errors
    ///
    /// `run.label_invalid`; `input.invalid` for a number that can't be held exactly; `run.id_taken` when the id is another agent's or has other inputs; the store's own errors.
    pub async fn start(&self, start: Start) -> Result<Started> {
        label::check(&start.labels)?;
        let id = start.id.unwrap_or_else(|| RunId::from_uuid((self.ids)()));
        let key = RunKey::new(id);
        let definition = start.definition.to_bytes();
        let inputs = exact(&start.inputs)?;
        let mut values = Values::new();
        let definition_value = self.keep_value(&mut values, definition).await?;
        let inputs_value = self.keep_value(&mut values, inputs).await?;
        let started = RunStarted {
            namespace: key.namespace.clone(),
            run: key.run.clone(),
            agent: start.definition.name.clone(),
            definition: definition_value,
            inputs: inputs_value,
            limits: start.definition.limits,
            quota: start.definition.quota,
            milestones: planned(&start.definition),
            labels: Some(start.labels).filter(|labels| !labels.is_empty()),
        };
        let draft = Draft::start(started, values, self.store.now())?;
        let outcome = self
            .store
            .start(StartRun {
                key,
                agent: start.definition.name,
                definition: definition_value.digest,
                inputs: inputs_value.digest,
                transition: draft.seal(),
                join_unfinished: start.join_unfinished,
            })
            .await?;
        if matches!(outcome, Started::New(_)) {
            fault::reach("run", Point::Accepted);
        }
        Ok(outcome)
    }

    pub(crate) async fn keep_value(&self, values: &mut Values, bytes: Vec<u8>) -> Result<ValueRef> {
        if bytes.len() > INLINE_VALUE_BYTES {
            return self.store.put_value(bytes).await;
        }
        Ok(values.put(bytes))
    }

    /// Says a word to a run. After Ok(Accepted) it is durable, whether or not a worker is there.
    ///
    /// # Errors
    ///
    /// `run.not_found`, `message.too_large`, `message.inbox_full`.
    pub async fn send(&self, run: &RunKey, by: &str, word: Word) -> Result<Verdict> {
        let id = format!("{:032x}", (self.ids)());
        self.send_as(run, &id, by, word).await
    }

    /// Says a word under an id of the sender's own: the same word under the same id counts once, however often it is
    /// sent and wherever it comes in. Another word under it is refused.
    ///
    /// # Errors
    ///
    /// As [`Self::send`].
    pub async fn send_as(&self, run: &RunKey, id: &str, by: &str, word: Word) -> Result<Verdict> {
        let message = Message { by: by.to_owned(), word };
        self.store.send(run, id, &message).await
    }

    /// The one run that an id or the end of one names.
    ///
    /// # Errors
    ///
    /// `run.not_found` names the nearest, `run.ambiguous` lists those that fit.
    pub async fn find(&self, id_end: &str) -> Result<RunRow> {
        let found = self.store.find(lodestep_core::ids::DEFAULT_NAMESPACE, id_end, 5).await?;
        match found.len() {
            1 => found.into_iter().next().ok_or_else(|| not_found(id_end, None)),
            0 => Err(not_found(id_end, self.nearest(id_end).await?.as_deref())),
            _ => {
                let ids: Vec<&str> = found.iter().map(|row| row.run.key.run.as_str()).collect();
                let what = format!("`{id_end}` is the end of more than one run: {}", ids.join(", "));
                Err(Error::new("run.ambiguous", what, "give more of the id"))
            }
        }
    }

    /// Of the newest runs the end of an id, as long as the one given, that is nearest to it and near enough.
    async fn nearest(&self, id_end: &str) -> Result<Option<String>> {
        let newest = Filter { limit: Some(NEAREST_OF), ..Filter::default() };
        let rows = self.store.list(lodestep_core::ids::DEFAULT_NAMESPACE, &newest).await?;
        let given = id_end.to_lowercase();
        let length = given.chars().count();
        let ends = rows.iter().map(|row| {
            let id = row.run.key.run.as_str();
            &id[id.len().saturating_sub(length.max(4))..]
        });
        Ok(nearest(&given, ends).map(str::to_owned))
    }

    /// Why this machine can't keep a tool that runs in `folder` from the store's files; `None` when it can.
    ///
    /// It starts a process to find out, which ends at once.
    pub async fn cage_fault(&self, folder: &Path) -> Option<String> {
        let cage = Cage { keep_out: self.own_paths(), demand: Demand::Required };
        match self.holder.clone().map_or_else(Holder::of_this_binary, Ok) {
            Ok(holder) => holder.cage_fault(cage, folder).await,
            Err(error) => Some(format!("this program's own binary can't be found: {error}")),
        }
    }

    /// What no tool may get at: what is the store's alone, and what was named besides.
    pub(crate) fn own_paths(&self) -> Vec<PathBuf> {
        self.store.own_paths().into_iter().chain(self.keep_out.iter().cloned()).collect()
    }

    /// Reads values of a run; one that was erased is an error that names it.
    ///
    /// # Errors
    ///
    /// `store.value_missing`, or the store's own errors.
    pub(crate) async fn value(&self, run: &RunRef, stored: Stored) -> Result<Vec<u8>> {
        let mut blobs: Blobs = self.store.values(run, &[stored]).await?;
        blobs.remove(&stored.digest).ok_or_else(|| {
            let what = format!("value {} of run {} is gone", stored.digest, run.key.run);
            Error::new("store.value_missing", what, "`lodestep verify` says what else is missing")
        })
    }
}

/// The canonical bytes of inputs, which are what was given.
pub(crate) fn exact(inputs: &Value) -> Result<Vec<u8>> {
    match inexact(inputs) {
        None => Ok(canonical(inputs)),
        Some(number) => {
            let what = format!("the number {number} in the inputs can't be held exactly");
            Err(Error::new("input.invalid", what, "give it as a string"))
        }
    }
}

/// The known name that is closest to a given one, if no more than a third of its characters are other ones.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (given.chars().count() / 3).max(1);
    let scored = known.into_iter().map(|name| (strsim::osa_distance(given, name), name));
    scored.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn not_found(id_end: &str, nearest: Option<&str>) -> Error {
    let what = format!("there is no run `{}` in this store", id_end.escape_default());
    if let Some(nearest) = nearest {
        return Error::new("run.not_found", what, format!("did you mean `{nearest}`? `lodestep ls` lists the runs"));
    }
    Error::new("run.not_found", what, "`lodestep ls` lists the runs; `--store` or LODESTEP_STORE names another store")
}

impl RuntimeBuilder {
    /// Takes times from this clock; the store has to have the same.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.runtime.clock = clock;
        self
    }

    /// Performs these functions as tools.
    pub fn functions(mut self, functions: Functions) -> Self {
        self.runtime.functions = functions;
        self
    }

    /// Asks this model, whatever a definition names.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.runtime.model = Some(model);
        self
    }

    /// Makes run ids from this, in place of version 7 UUIDs.
    pub fn ids(mut self, ids: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        self.runtime.ids = Arc::new(ids);
        self
    }

    /// Runs commands under this holder. Without one, this program's own binary is used, whose `main` has to begin
    /// with [`process::hidden_main`](crate::process::hidden_main).
    pub fn holder(mut self, holder: Holder) -> Self {
        self.runtime.holder = Some(holder);
        self
    }

    /// Takes the values of `${env:X}` from this, in place of the process's environment.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.runtime.environment = environment;
        self
    }

    /// Sends the requests of HTTP tools by this.
    pub fn http(mut self, client: HttpClient) -> Self {
        self.runtime.http = client;
        self
    }

    /// What happens on a machine that can't keep tool processes from the store; without it they run all the same.
    pub fn cage(mut self, demand: Demand) -> Self {
        self.runtime.cage = demand;
        self
    }

    /// Makes each task of a worker into what this gives for it: a simulation decides when one is polled.
    #[cfg(feature = "testing")]
    pub(crate) fn tasks(
        mut self,
        tasks: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.runtime.tasks = Some(Arc::new(tasks));
        self
    }

    /// Keeps tools from these paths, too; the store's own need not be named.
    pub fn keep_out(mut self, paths: Vec<PathBuf>) -> Self {
        self.runtime.keep_out = paths;
        self
    }

    /// Sends nothing but reads: what would be sent is told here, and counts as done. See [`rehearsal`](crate::rehearsal).
    pub fn rehearsal(mut self, rehearsal: Rehearsal) -> Self {
        self.runtime.rehearsal = Some(rehearsal);
        self
    }

    /// The runtime.
    pub fn build(self) -> Runtime {
        self.runtime
    }
}
