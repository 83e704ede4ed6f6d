//! Small valid runs, made through the core's own draft: what the cases commit is what a worker could.

use std::future::Future;
use std::sync::Arc;

use lodestep_core::definition::{Limits, QuotaLimits};
use lodestep_core::effect::Class;
use lodestep_core::event::{
    ActionFinished, ActionProposed, ArtifactSaved, AttemptStarted, AttemptUnknown, CallAnswered, CallReserved,
    DecisionOpened, Ending, Event, Gate, NoteTaken, Request, RunEnded, RunStarted, SettledBy, UnknownNext,
};
use lodestep_core::quota::Amounts;
use lodestep_core::rules::inbox::{Message, Word, read};
use lodestep_core::rules::standing::standing;
use lodestep_core::value::Values;
use lodestep_core::{Checkpoint, Digest, Draft, Labels, Ordinal, Result, RunId, RunKey};

use super::{Failed, ensure};
use crate::store::{Claim, Commit, Committed, StartRun, Started, Store, Want, WorkerId};

/// A run's key in the default namespace.
pub(super) fn key(id: &str) -> Result<RunKey> {
    Ok(RunKey::new(RunId::parse(id)?))
}

/// A start of agent `agent` with these inputs.
pub(super) fn start_of(store: &dyn Store, key: RunKey, agent: &str, inputs: &str) -> Result<StartRun> {
    start_with(store, key, agent, inputs, None)
}

/// A start with these labels.
pub(super) fn labelled(store: &dyn Store, key: RunKey, agent: &str, labels: &[(&str, &str)]) -> Result<StartRun> {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    start_with(store, key, agent, "{}", Some(labels.collect::<Labels>()).filter(|labels| !labels.is_empty()))
}

fn start_with(store: &dyn Store, key: RunKey, agent: &str, inputs: &str, labels: Option<Labels>) -> Result<StartRun> {
    let mut values = Values::new();
    let started = RunStarted {
        namespace: key.namespace.clone(),
        run: key.run.clone(),
        agent: agent.to_owned(),
        definition: values.put(format!("the definition of {agent}")),
        inputs: values.put(inputs),
        limits: Limits::default(),
        quota: QuotaLimits { model_calls: Some(1_000), ..QuotaLimits::default() },
        milestones: Vec::new(),
        labels,
    };
    Ok(StartRun {
        key,
        agent: agent.to_owned(),
        definition: started.definition.digest,
        inputs: started.inputs.digest,
        transition: Draft::start(started, values, store.now())?.seal(),
        join_unfinished: false,
    })
}

/// Starts a run of that id.
pub(super) async fn begin(store: &dyn Store, id: &str) -> Result<StartRun, Failed> {
    let start = start_of(store, key(id)?, "agent", "{}")?;
    let started = store.start(start.clone()).await?;
    ensure!(matches!(started, Started::New(_)), "the start of {id} gives {started:?}");
    Ok(start)
}

/// A run that a worker holds, and the state after its last transition.
pub(super) struct Held {
    pub(super) store: Arc<dyn Store>,
    pub(super) worker: WorkerId,
    pub(super) claim: Claim,
    pub(super) checkpoint: Checkpoint,
}

/// How a transition is committed.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    pub(super) snapshot: bool,
    pub(super) release: bool,
    pub(super) known_hold: u64,
    pub(super) known_kin: bool,
}

impl Held {
    /// Starts a run of that id and claims it with a new worker.
    pub(super) async fn begin(store: &Arc<dyn Store>, id: &str) -> Result<Self, Failed> {
        begin(&**store, id).await?;
        let worker = store.enlist().await?;
        Self::take(store, id, worker).await
    }

    /// Claims a run that is due.
    pub(super) async fn take(store: &Arc<dyn Store>, id: &str, worker: WorkerId) -> Result<Self, Failed> {
        let key = key(id)?;
        let mut claims = store.claim(&worker, Want::Run(key.clone())).await?;
        ensure!(claims.len() == 1, "claiming {id} gives {} runs", claims.len());
        let checkpoint = store.load(&key).await?.checkpoint()?;
        Ok(Self { store: Arc::clone(store), worker, claim: claims.remove(0), checkpoint })
    }

    pub(super) fn key(&self) -> RunKey {
        self.checkpoint.key()
    }

    /// The next transition.
    pub(super) fn draft(&self) -> Draft {
        Draft::next(self.checkpoint.clone(), self.store.now(), self.claim.epoch, 0)
    }

    /// A transition as it would be committed.
    pub(super) fn sealed(&self, draft: Draft, how: How) -> Commit {
        let transition = draft.seal();
        Commit {
            run: self.claim.run.clone(),
            epoch: self.claim.epoch,
            standing: standing(&transition.checkpoint),
            transition: Arc::new(transition),
            known_hold: how.known_hold,
            known_kin: how.known_kin,
            transcript: None,
            snapshot: how.snapshot,
            release: how.release,
        }
    }

    /// Commits; the state follows when it went through.
    pub(super) async fn send(&mut self, commit: Commit) -> Result<Committed> {
        let after = commit.transition.checkpoint.clone();
        let committed = self.store.commit(vec![commit]).await.remove(0)?;
        self.checkpoint = after;
        Ok(committed)
    }

    pub(super) async fn commit(&mut self, draft: Draft, how: How) -> Result<Committed> {
        let commit = self.sealed(draft, how);
        self.send(commit).await
    }

    /// A step that changes one note.
    pub(super) fn note(&self, text: impl Into<Vec<u8>>) -> Result<Draft> {
        let mut draft = self.draft();
        let text = Some(draft.put(text));
        draft.push(Event::NoteTaken(NoteTaken { key: "note".to_owned(), text }))?;
        Ok(draft)
    }

    pub(super) async fn step(&mut self, text: &str) -> Result<Committed> {
        let draft = self.note(text)?;
        self.commit(draft, How::default()).await
    }

    /// Opens a decision with actions of these gates, each an unsafe effect with the sameness of its place.
    pub(super) fn proposal(&self, gates: impl IntoIterator<Item = Gate>) -> Result<Draft> {
        self.proposal_with(gates, None)
    }

    /// As [`Self::proposal`], all with this dedupe key.
    pub(super) fn proposal_with(&self, gates: impl IntoIterator<Item = Gate>, dedupe: Option<&str>) -> Result<Draft> {
        let mut draft = self.draft();
        let decision = draft.checkpoint().model.decisions + 1;
        let gates: Vec<Gate> = gates.into_iter().collect();
        let actions = u32::try_from(gates.len()).unwrap_or(u32::MAX);
        draft.push(Event::DecisionOpened(DecisionOpened { decision, text: None, actions, blocks: None }))?;
        for gate in gates {
            let ordinal = Ordinal(draft.checkpoint().last_ordinal + 1);
            let arguments = draft.put(format!(r#"{{"place":{ordinal}}}"#));
            draft.push(Event::ActionProposed(ActionProposed {
                ordinal,
                call_id: format!("call-{ordinal}"),
                tool: "pay".to_owned(),
                class: Class::Unsafe,
                arguments,
                tool_digest: Digest::of(b"pay"),
                same: Some(same(ordinal)),
                key: None,
                gate,
                key_valid_for_ms: 86_400_000,
                settles_after_ms: 1_000,
                max_attempts: 3,
                proposed_by: None,
                elsewhere: None,
                deadline: None,
                counted: true,
                dedupe: dedupe.map(str::to_owned),
            }))?;
        }
        Ok(draft)
    }

    /// Asks for an approval, and commits that; returns the request's name.
    pub(super) async fn ask(&mut self, how: How) -> Result<Digest> {
        let name = request_name(&self.key(), self.checkpoint.last_ordinal + 1);
        let draft = self.proposal([approval(name)])?;
        self.commit(draft, how).await?;
        Ok(name)
    }

    /// The intent of an action's first attempt.
    pub(super) fn intent(&self, ordinal: Ordinal) -> Result<Draft> {
        let mut draft = self.draft();
        let send_by = draft.now().plus_ms(1_000);
        draft.push(Event::AttemptStarted(AttemptStarted { ordinal, attempt: 1, send_by }))?;
        Ok(draft)
    }

    /// Sends an action of which nobody learns what became, and commits that.
    pub(super) async fn doubt(&mut self) -> Result<Committed> {
        let draft = self.proposal([Gate::Open])?;
        self.commit(draft, How::default()).await?;
        let ordinal = Ordinal(self.checkpoint.last_ordinal);
        let draft = self.intent(ordinal)?;
        self.commit(draft, How::default()).await?;
        let mut draft = self.draft();
        let text = draft.put("nobody knows");
        draft.push(Event::AttemptUnknown(AttemptUnknown { ordinal, attempt: 1, text, next: UnknownNext::Doubt }))?;
        self.commit(draft, How::default()).await
    }

    /// Its outcome.
    pub(super) fn outcome(&self, ordinal: Ordinal) -> Result<Draft> {
        let mut draft = self.draft();
        let result = draft.put("paid");
        draft.push(Event::ActionFinished(ActionFinished {
            ordinal,
            attempt: 1,
            ok: true,
            result,
            by: SettledBy::Answer,
        }))?;
        Ok(draft)
    }

    /// A call of the model that is reserved.
    pub(super) fn reservation(&self) -> Result<Draft> {
        let mut draft = self.draft();
        let call = draft.checkpoint().model.calls + 1;
        let manifest = draft.put("manifest");
        let request = Digest::of(b"request");
        draft.push(Event::CallReserved(CallReserved { call, amounts: Amounts::default(), request, manifest }))?;
        Ok(draft)
    }

    /// Its answer: an outcome, too.
    pub(super) fn answer(&self, reply: &[u8]) -> Result<Draft> {
        let mut draft = self.draft();
        let call = draft.checkpoint().model.calls;
        let reply = draft.put(reply);
        let used = Amounts::default();
        draft.push(Event::CallAnswered(CallAnswered {
            call,
            used,
            reported: true,
            reply,
            faulty: false,
            about: None,
        }))?;
        Ok(draft)
    }

    /// A version of an artifact.
    pub(super) fn artifact(&self, name: &str, version: u32, content: &[u8]) -> Result<Draft> {
        let mut draft = self.draft();
        let content = draft.put(content);
        draft.push(Event::ArtifactSaved(ArtifactSaved { name: name.to_owned(), version, content }))?;
        Ok(draft)
    }

    /// What reading the whole inbox means.
    pub(super) async fn reading(&self) -> Result<Draft> {
        let mut draft = self.draft();
        for (position, message) in self.store.unread(&self.claim.run, self.checkpoint.inbox).await? {
            read(&mut draft, position, &message)?;
        }
        Ok(draft)
    }

    /// The end of the run.
    pub(super) fn end(&self) -> Result<Draft> {
        let mut draft = self.draft();
        let text = draft.put("done");
        draft.push(Event::RunEnded(RunEnded { ending: Ending::Completed, text }))?;
        Ok(draft)
    }
}

/// How a release commits.
pub(super) const RELEASE: How = How { snapshot: false, release: true, known_hold: 0, known_kin: false };

/// How a step with a snapshot commits.
pub(super) const SNAPSHOT: How = How { snapshot: true, release: false, known_hold: 0, known_kin: false };

/// The sameness of the effect at a place.
pub(super) fn same(ordinal: Ordinal) -> Digest {
    Digest::over("same", &[&ordinal.0.to_le_bytes()])
}

/// The name of the request of an action.
pub(super) fn request_name(run: &RunKey, ordinal: u32) -> Digest {
    Digest::over("request", &[run.namespace.as_bytes(), run.run.as_str().as_bytes(), &ordinal.to_le_bytes()])
}

/// The gate that waits for an approval.
pub(super) fn approval(name: Digest) -> Gate {
    let on_expiry = lodestep_core::definition::OnExpiry::Deny;
    let asked_at = lodestep_core::Timestamp::from_micros(0);
    Gate::Approval(Request { name, expires_at: None, on_expiry, window_ms: None, asked_at, remind_ms: None })
}

/// A word of Ada's.
pub(super) fn says(word: Word) -> Message {
    Message { by: "ada".to_owned(), word }
}

pub(super) fn approve(request: Digest) -> Message {
    says(Word::Approve { request })
}

pub(super) fn deny(request: Digest) -> Message {
    says(Word::Deny { request, reason: "no".to_owned() })
}

pub(super) fn cancel() -> Message {
    says(Word::Cancel { reason: "enough".to_owned() })
}

/// The code of a refusal, or an empty text.
pub(super) fn code<T>(result: &Result<T>) -> &'static str {
    result.as_ref().err().map_or("", |error| error.code())
}

/// Runs so many futures at once, on as many threads as the runtime has, and gives their results in order.
pub(super) async fn at_once<T, F>(count: usize, make: impl Fn(usize) -> F) -> Result<Vec<T>, Failed>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..count).map(|place| tokio::spawn(make(place))).collect();
    let mut results = Vec::with_capacity(count);
    for task in tasks {
        results.push(task.await.map_err(|error| format!("a task failed: {error}"))?);
    }
    Ok(results)
}
