//! Runs for the tests of one store: short, and panicking where the suite's own say what is wrong.

use std::sync::Arc;

use lodestep_core::definition::{Limits, QuotaLimits};
use lodestep_core::event::{ArtifactSaved, Ending, Event, NoteTaken, RunEnded, RunStarted};
use lodestep_core::rules::standing::standing;
use lodestep_core::value::Values;
use lodestep_core::{Checkpoint, Draft, Result, RunId, RunKey, ValueRef};
use lodestep_store::{Claim, Commit, RunRef, StartRun, Store, Want, WorkerId};

/// A runtime with two threads.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Starts a run.
pub async fn start(store: &dyn Store, id: &str) -> RunKey {
    let key = RunKey::new(RunId::parse(id).expect("sound"));
    let mut values = Values::new();
    let started = RunStarted {
        namespace: key.namespace.clone(),
        run: key.run.clone(),
        agent: "agent".to_owned(),
        definition: values.put("definition"),
        inputs: values.put("{}"),
        limits: Limits::default(),
        quota: QuotaLimits::default(),
        milestones: Vec::new(),
        labels: None,
    };
    let start = StartRun {
        key: key.clone(),
        agent: started.agent.clone(),
        definition: started.definition.digest,
        inputs: started.inputs.digest,
        transition: Draft::start(started, values, store.now()).expect("sound").seal(),
        join_unfinished: false,
    };
    store.start(start).await.expect("started");
    key
}

/// A run that a worker holds.
pub struct Run {
    store: Arc<dyn Store>,
    pub key: Arc<RunKey>,
    pub worker: WorkerId,
    claim: Claim,
    pub checkpoint: Checkpoint,
}

impl Run {
    /// Starts a run and claims it with a worker of its own.
    pub async fn begin(store: &Arc<dyn Store>, id: &str) -> Self {
        let key = start(&**store, id).await;
        let worker = store.enlist().await.expect("enlisted");
        let claims = store.claim(&worker, Want::Run(key)).await.expect("claimed");
        Self::of(store, &worker, &claims[0]).await
    }

    /// A run that was claimed.
    pub async fn of(store: &Arc<dyn Store>, worker: &WorkerId, claim: &Claim) -> Self {
        let key = Arc::clone(&claim.run.key);
        let checkpoint = store.load(&key).await.expect("loaded").checkpoint().expect("sound");
        Self { store: Arc::clone(store), key, worker: worker.clone(), claim: claim.clone(), checkpoint }
    }

    /// The next transition.
    pub fn draft(&self) -> Draft {
        Draft::next(self.checkpoint.clone(), self.store.now(), self.claim.epoch, 0)
    }

    /// A step that takes a note.
    pub fn sealed(&self, text: &str) -> Commit {
        let mut draft = self.draft();
        let text = Some(draft.put(text));
        draft.push(Event::NoteTaken(NoteTaken { key: "note".to_owned(), text })).expect("legal");
        self.seal(draft)
    }

    /// A transition as it is committed.
    pub fn seal(&self, draft: Draft) -> Commit {
        let transition = draft.seal();
        Commit {
            run: self.claim.run.clone(),
            epoch: self.claim.epoch,
            standing: standing(&transition.checkpoint),
            transition: Arc::new(transition),
            known_hold: 0,
            known_kin: false,
            transcript: None,
            snapshot: false,
            release: false,
        }
    }

    /// Commits a step.
    pub async fn step(&mut self, text: &str) {
        self.send(self.sealed(text)).await.expect("committed");
    }

    /// Commits; the state follows when it went through.
    pub async fn send(&mut self, commit: Commit) -> Result<()> {
        let after = commit.transition.checkpoint.clone();
        self.store.commit(vec![commit]).await.remove(0)?;
        self.checkpoint = after;
        Ok(())
    }

    /// Commits a version of an artifact whose bytes were put before, if they are large.
    pub async fn save(&mut self, version: u32, content: ValueRef) -> Result<()> {
        let mut draft = self.draft();
        let name = "a".to_owned();
        draft.push(Event::ArtifactSaved(ArtifactSaved { name, version, content })).expect("legal");
        self.send(self.seal(draft)).await
    }

    /// Ends the run; the run as it is named for its removal.
    pub async fn end(mut self) -> RunRef {
        let mut draft = self.draft();
        let text = draft.put("done");
        draft.push(Event::RunEnded(RunEnded { ending: Ending::Completed, text })).expect("legal");
        let commit = Commit { release: true, ..self.seal(draft) };
        self.send(commit).await.expect("ended");
        self.claim.run
    }
}
