//! Tells a command of the operator when a run needs somebody or is over.
//!
//! What was told of a run stands in a file of its name beside the store, so that a restart tells nothing again. It is
//! written when the command has ended: a crash before that tells it again, and one that is lost is told by the next
//! worker. A run never waits for the command.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestep::Runtime;
use lodestep::core::checkpoint::{ActionState, Phase};
use lodestep::core::event::Gate;
use lodestep::core::rules::standing::standing;
use lodestep::core::{Checkpoint, Event, Result, RunKey};
use lodestep::observe::Observer;
use lodestep::store::rows;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::app::App;
use crate::text::short_id;
use crate::wiring::{NotifyCommand, notify_command};

/// So many commands run at once.
const AT_ONCE: usize = 4;

/// So many runs are looked at for what a crash left untold.
const CAUGHT_UP: usize = 1_000;

/// What is worth telling of a run, by a name that stays as long as it holds.
type Needs = BTreeMap<String, Value>;

/// An observer that tells the operator's command, beside another.
pub struct Notify {
    inner: Arc<dyn Observer>,
    told: Option<Arc<Told>>,
    under_way: Mutex<JoinSet<()>>,
}

/// What was told of which run, and how to tell.
struct Told {
    command: NotifyCommand,
    folder: PathBuf,
    /// How hints begin: the program as it was started, with its store.
    program: String,
    runs: Mutex<BTreeMap<RunKey, BTreeSet<String>>>,
    hands: Semaphore,
}

impl Notify {
    /// Beside another observer, as the store's wiring says; without any it tells nobody.
    ///
    /// # Errors
    ///
    /// `wiring.invalid`.
    pub fn beside(app: &App, inner: Arc<dyn Observer>) -> Result<Arc<Self>> {
        let told = notify_command(app)?.map(|command| {
            let mut folder = app.store_path().into_os_string();
            folder.push("-files/notified");
            let (folder, program) = (PathBuf::from(folder), app.command(""));
            let hands = Semaphore::new(AT_ONCE);
            Arc::new(Told { command, folder, program, runs: Mutex::default(), hands })
        });
        Ok(Arc::new(Self { inner, told, under_way: Mutex::default() }))
    }

    /// Tells what a worker that died did not come to tell. A run that a live worker holds is that one's to tell of.
    pub async fn catch_up(&self, runtime: &Runtime) {
        let Some(told) = &self.told else { return };
        let Ok(entries) = std::fs::read_dir(&told.folder) else { return };
        for entry in entries.flatten().take(CAUGHT_UP) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(row) = runtime.find(&name).await else { continue };
            if row.run.key.run.as_str() != name || row.holder.is_some_and(|worker| runtime.store().is_alive(&worker)) {
                continue;
            }
            let Ok(state) = runtime.store().load(&row.run.key).await.and_then(|loaded| loaded.checkpoint()) else {
                continue;
            };
            told.begin(&row.run.key);
            self.look(&row.run.key, &state);
        }
    }

    /// Waits for the commands under way; each ends within its time.
    pub async fn drain(&self) {
        let mut under_way = std::mem::take(&mut *lock(&self.under_way));
        while under_way.join_next().await.is_some() {}
    }

    /// Compares what a run needs with what was told, and tells what is new.
    fn look(&self, run: &RunKey, after: &Checkpoint) {
        let Some(told) = &self.told else { return };
        let needs = told.needs(run, after);
        let names: BTreeSet<String> = needs.keys().cloned().collect();
        let before = lock(&told.runs).insert(run.clone(), names.clone()).unwrap_or_default();
        if names == before {
            return;
        }
        let new: Vec<Value> =
            needs.into_iter().filter(|(name, _)| !before.contains(name)).map(|(_, need)| need).collect();
        let stands = standing(after);
        let text = json!({
            "run": run.run, "agent": after.agent, "step": after.seq, "at": after.at.to_string(), "status": stands.status,
            "why": rows::why(&stands), "new": new,
        });
        let (told, run, is_over) = (Arc::clone(told), run.clone(), after.is_over());
        let mut under_way = lock(&self.under_way);
        while under_way.try_join_next().is_some() {}
        under_way.spawn(async move {
            if !new.is_empty() {
                // The semaphore is never closed.
                let _hand = told.hands.acquire().await;
                told.tell(&format!("{text}\n")).await;
            }
            told.keep(&run, is_over);
        });
    }
}

impl Observer for Notify {
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) {
        self.inner.committed(run, events, values, after);
        self.look(run, after);
    }

    fn taken(&self, run: &RunKey, after: &Checkpoint, crashes: u32) {
        self.inner.taken(run, after, crashes);
        if let Some(told) = &self.told {
            told.begin(run);
        }
    }
}

impl Told {
    fn file(&self, run: &RunKey) -> PathBuf {
        self.folder.join(run.run.as_str())
    }

    /// Reads what was told of a run. Its file stands from now on, so that a crash leaves something to catch up with.
    fn begin(&self, run: &RunKey) {
        let mut runs = lock(&self.runs);
        if runs.contains_key(run) {
            return;
        }
        let text = std::fs::read_to_string(self.file(run)).unwrap_or_default();
        if text.is_empty() {
            // Without the file the same may be told again after a restart, and a crash may leave something untold.
            let _ = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(self.file(run), []));
        }
        runs.insert(run.clone(), text.lines().map(str::to_owned).collect());
    }

    /// Writes what was told by now. Of a run that is over nothing more will be.
    fn keep(&self, run: &RunKey, is_over: bool) {
        let file = self.file(run);
        if is_over {
            let _ = std::fs::remove_file(file);
            return;
        }
        let names = lock(&self.runs).get(run).cloned().unwrap_or_default();
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        let new = file.with_extension("new");
        let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(new, file));
    }

    /// What a run needs, or that it is over.
    fn needs(&self, run: &RunKey, after: &Checkpoint) -> Needs {
        let id = short_id(run.run.as_str(), &[]);
        let say = |rest: String| format!("{}{rest}", self.program);
        let mut needs = Needs::new();
        for action in after.pending.values() {
            let (ordinal, tool) = (action.ordinal, &action.tool);
            let (name, kind, request, command) = match &action.state {
                ActionState::Gated { gate: Gate::Approval(request) } => {
                    let hex = request.name.to_hex();
                    (format!("approval {hex}"), "approval", Some(request.name), say(format!("approve {}", &hex[..8])))
                }
                ActionState::Gated { gate: Gate::Answer(request) } => {
                    let hex = request.name.to_hex();
                    (format!("question {hex}"), "question", Some(request.name), say(format!("answer {} …", &hex[..8])))
                }
                ActionState::Doubt { .. } => {
                    let command = say(format!("resolve {id} {ordinal} --happened"));
                    (format!("doubt {ordinal}"), "in doubt", None, command)
                }
                _ => continue,
            };
            let need = json!({"kind": kind, "action": ordinal, "tool": tool, "request": request, "command": command});
            needs.insert(name, need);
        }
        match &after.phase {
            Phase::Stopped { reason, .. } => {
                let (kind, word) =
                    if reason.is_quarantine() { ("quarantined", "release") } else { ("stopped", "resume") };
                let need = json!({"kind": kind, "reason": reason, "command": say(format!("{word} {id}"))});
                needs.insert(kind.to_owned(), need);
            }
            Phase::Ended { ending, .. } => {
                let need = json!({"kind": ending, "command": say(format!("show {id}"))});
                needs.insert("over".to_owned(), need);
            }
            Phase::Active | Phase::Cancelling { .. } => {}
        }
        needs
    }

    /// Runs the command; what goes wrong with it is said, and is no fault of the run.
    async fn tell(&self, text: &str) {
        let NotifyCommand { command, folder, timeout } = &self.command;
        let mut process = tokio::process::Command::new(&command[0]);
        process.args(&command[1..]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
        #[cfg(unix)]
        process.process_group(0);
        let mut child = match process.spawn() {
            Ok(child) => child,
            Err(error) => return eprintln!("notify: {} can't be started: {error}", command[0]),
        };
        let (pid, stdin) = (child.id(), child.stdin.take());
        let told = async {
            if let Some(mut stdin) = stdin {
                // One that does not read has its reasons.
                let _ = stdin.write_all(text.as_bytes()).await;
            }
            child.wait().await
        };
        match tokio::time::timeout(*timeout, told).await {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => eprintln!("notify: {} ended with {status}", command[0]),
            Ok(Err(error)) => eprintln!("notify: {}: {error}", command[0]),
            Err(_) => {
                eprintln!("notify: {} took longer than {timeout:?} and was ended", command[0]);
                end_group(pid);
            }
        }
    }
}

/// Ends the command with all that it started in its group.
#[cfg(unix)]
fn end_group(pid: Option<u32>) {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_pid: Option<u32>) {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
