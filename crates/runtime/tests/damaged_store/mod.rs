//! Runs in a file that is altered between two workers.
#![allow(dead_code, reason = "each test binary takes what it needs")]

use std::path::PathBuf;
use std::sync::Arc;

use lodestep::Runtime;
use lodestep::core::checkpoint::Checkpoint;
use lodestep::core::definition::{Definition, Limits, StateAct, ToolKind};
use lodestep::core::effect::Class;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::{Digest, RunKey};
use lodestep::inspect;
use lodestep::model::ScriptModel;
use lodestep::store::{RunRow, SqliteStore, Store, SystemClock};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::*;

/// A store in a file that nobody has open, with one run.
pub struct Kept {
    folder: TempDir,
    pub run: Arc<RunKey>,
    replies: Value,
}

/// Pays once it is approved, and ends.
fn paying() -> Value {
    json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({"summary": "done"}))])])
}

/// Some thousand letters without order: packed, they take pieces.
fn long_text() -> String {
    (0_u64..100).map(|n| Digest::of(&n.to_le_bytes()).to_hex()).collect()
}

impl Kept {
    async fn of(definition: Definition, replies: Value) -> (Self, Runtime, Ledger) {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Ledger::default();
        let runtime = runtime(folder.path().join("store.db"), &ledger, script(replies.clone()));
        let run = start(&runtime, definition).await;
        (Self { folder, run, replies }, runtime, ledger)
    }

    /// A run that waits for the approval of an unsafe payment.
    pub async fn with_an_open_request() -> Self {
        let (kept, runtime, _) = Self::of(agent(vec![tool("pay", Class::Unsafe)], &["pay"]), paying()).await;
        settle(&runtime, &kept.run).await;
        kept
    }

    /// A run with a payment that left the checkpoint long ago, and that waits for an answer.
    pub async fn with_an_old_effect() -> Self {
        let mut definition = agent(vec![tool("pay", Class::Unsafe), tool("look", Class::Read)], &[]);
        definition.limits = Limits { recent_actions: 2, ..Limits::default() };
        let mut replies = vec![says(&[("pay", json!({"n": 1}))])];
        replies.extend((0..4).map(|n| says(&[("look", json!({ "n": n }))])));
        replies.push(says(&[("ask", json!({"question": "go on?"}))]));
        replies.push(says(&[("pay", json!({"n": 1}))]));
        replies.push(says(&[("finish", json!({"summary": "done"}))]));
        let (kept, runtime, ledger) = Self::of(definition, Value::Array(replies)).await;
        let state = settle(&runtime, &kept.run).await;
        assert_eq!(ledger.keys("pay").len(), 1);
        assert!(state.recent.iter().all(|settled| settled.same.is_none()), "the payment is still in the checkpoint");
        kept
    }

    /// Answers the question, after which the model wants to pay the same again; the state then, and what was sent.
    pub async fn go_on_and_pay_again(&self) -> (Checkpoint, Ledger) {
        let (runtime, ledger) = self.open();
        let request = self.request().await;
        let said = runtime.send(&self.run, "ada", Word::Answer { request, value: "yes".to_owned() }).await;
        assert_eq!(said.expect("sent"), Verdict::Accepted);
        (settle(&runtime, &self.run).await, ledger)
    }

    /// A run that has not begun, of some hundred steps with effects and words.
    pub async fn with_a_long_way_to_go() -> Self {
        let definition = agent(vec![tool("pay", Class::Unsafe)], &[]);
        let mut replies: Vec<Value> = (0..150).map(|n| says(&[("pay", json!({ "n": n }))])).collect();
        replies.push(says(&[("finish", json!({"summary": "done"}))]));
        Self::of(definition, Value::Array(replies)).await.0
    }

    /// The store, for somebody who only looks.
    pub fn open_to_look(&self) -> SqliteStore {
        SqliteStore::open_to_read(&self.path(), Arc::new(SystemClock)).expect("opened")
    }

    /// A run with a row in every table: an effect, an artifact that is long enough for pieces, an open and a closed request, a read message, snapshots,
    /// transcripts.
    pub async fn with_a_run_that_has_everything() -> Self {
        let mut save = tool("save", Class::Idempotent);
        save.kind = ToolKind::Builtin { builtin: "artifacts".to_owned(), function: "save".to_owned(), root: None };
        save.input = json!({"type": "object"});
        let mut definition =
            agent(vec![tool("pay", Class::Unsafe), save, tool("other", Class::Unsafe)], &["other", "pay"]);
        definition.limits = Limits { snapshot_every: 2, ..Limits::default() };
        definition.tools.push(state_tool("plan", StateAct::Plan));
        let replies = json!([
            says(&[("pay", json!({"n": 1}))]),
            says(&[("save", json!({"name": "a.md", "text": long_text()}))]),
            says(&[("other", json!({"n": 2}))]),
        ]);
        let (kept, runtime, ledger) = Self::of(definition, replies).await;
        settle(&runtime, &kept.run).await;
        let request = kept.request().await;
        runtime.send(&kept.run, "ada", Word::Approve { request }).await.expect("sent");
        let state = settle(&runtime, &kept.run).await;
        assert_eq!(ledger.counts(), [("pay".to_owned(), 1)].into());
        assert_eq!((state.artifacts.len(), state.effect_log.count, state.inbox), (1, 1, 1));
        kept
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// The database's file.
    pub fn database(&self) -> PathBuf {
        self.path()
    }

    /// The file that knows how far the store has come.
    pub fn witness(&self) -> PathBuf {
        self.folder.path().join("store.db-files/witness")
    }

    /// Opens the store as a worker that has done nothing yet.
    pub fn open(&self) -> (Runtime, Ledger) {
        let ledger = Ledger::default();
        (runtime(self.path(), &ledger, script(self.replies.clone())), ledger)
    }

    /// Changes what is stored.
    pub fn alter(&self, statement: &str) {
        Connection::open(self.path()).expect("opened").execute_batch(statement).expect("altered");
    }

    /// A worker looks at the run, as after the death of another.
    pub fn make_due(&self) {
        self.alter("UPDATE head SET due_at = 1");
    }

    /// The database's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("read")
    }

    /// Puts other bytes in the place of the database, as somebody does who restores a copy.
    pub fn put_back(&self, bytes: &[u8]) {
        for name in ["store.db-wal", "store.db-shm"] {
            let _ = std::fs::remove_file(self.folder.path().join(name));
        }
        std::fs::write(self.path(), bytes).expect("written");
    }

    /// The bytes of the log beside the database; none when there is no log.
    pub fn log_bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("store.db-wal")).unwrap_or_default()
    }

    /// As [`Self::put_back`], with a log beside it.
    pub fn put_back_with_log(&self, bytes: &[u8], log: &[u8]) {
        self.put_back(bytes);
        std::fs::write(self.folder.path().join("store.db-wal"), log).expect("written");
    }

    /// Opens the store as a worker that has done nothing yet; why not, when it can't be.
    pub fn try_open(&self) -> Result<(Runtime, Ledger), lodestep::core::Error> {
        SqliteStore::open(&self.path(), Arc::new(SystemClock)).map(drop)?;
        Ok(self.open())
    }

    /// A transition's envelope as it is in another copy of the database, in hexadecimal digits.
    pub fn envelope_in(&self, bytes: &[u8], seq: u64) -> String {
        let path = self.folder.path().join("other.db");
        std::fs::write(&path, bytes).expect("written");
        let db = Connection::open(path).expect("opened");
        db.query_row(&format!("SELECT hex(envelope) FROM journal WHERE seq = {seq}"), [], |row| row.get(0))
            .expect("there")
    }

    /// The only open request.
    pub async fn request(&self) -> Digest {
        let db = Connection::open(self.path()).expect("opened");
        let name = db.query_row("SELECT name FROM request WHERE is_open = 1", [], |row| row.get(0));
        Digest::from_bytes(name.expect("one is open"))
    }

    /// The run's row.
    pub async fn row(&self, runtime: &Runtime) -> RunRow {
        runtime.store().find("default", self.run.run.as_str(), 1).await.expect("found").remove(0)
    }

    /// What `verify` finds in a copy of the store that was altered by a statement.
    pub async fn faults(&self, statement: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        std::fs::copy(self.path(), &path).expect("copied");
        Connection::open(&path).expect("opened").execute_batch(statement).expect(statement);
        let store = SqliteStore::open(&path, Arc::new(SystemClock)).expect("opened");
        let audit = store.audit().await.expect("audited");
        let mut faults = audit.strays;
        for run in audit.runs {
            match inspect::verify(&store, &run).await {
                Ok(report) => faults.extend(report.faults),
                Err(error) => faults.push(error.what().to_owned()),
            }
        }
        faults
    }
}

fn runtime(path: PathBuf, ledger: &Ledger, model: ScriptModel) -> Runtime {
    let clock = Arc::new(SystemClock);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, clock.clone()).expect("opened"));
    over(store, clock, functions(ledger, &["pay", "look", "other"]), model)
}
