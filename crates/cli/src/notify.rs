//! Tells a command when a run needs somebody or is over: the place's, or else that of the run's own definition.
//!
//! What was told of a run stands in a file of its name beside the store, so that a restart tells nothing again. It is
//! written when the command has ended: a crash before that tells it again, and one that is lost is told by the next
//! worker. A run never waits for the command.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lodestep::core::checkpoint::{ActionState, Phase};
use lodestep::core::definition;
use lodestep::core::event::{Gate, StopReason};
use lodestep::core::rules::remind::Reminder;
use lodestep::core::rules::standing::standing;
use lodestep::core::{self, Checkpoint, Definition, Event, RunKey};
use lodestep::observe::Observer;
use lodestep::process::{Cage, Command, Ended, Holder, LEDGER, clean_environment};
use lodestep::store::{SqliteStore, rows};
use lodestep::{Runtime, inspect};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::app::App;
use crate::reminders;
use crate::text::{line, short_id};
use crate::wiring::{keep_out, wiring};

/// So many commands run at once.
const AT_ONCE: usize = 4;

/// So many runs are looked at for what a crash left untold.
const CAUGHT_UP: usize = 1_000;

/// So many bytes of what an agent's command says of a fault are shown.
const STDERR_BYTES: u64 = 1_000;

/// What is worth telling of a run, by a name that stays as long as it holds.
type Needs = BTreeMap<String, Value>;

/// An observer that tells a command, beside another.
pub struct Notify {
    inner: Arc<dyn Observer>,
    told: Arc<Told>,
    under_way: Mutex<JoinSet<()>>,
}

/// What was told of which run, and how to tell.
struct Told {
    /// The place's command. It hears of every run, and no agent's own does.
    of_place: Option<Arc<definition::Notify>>,
    /// Do the agents' own commands hear? Not of the trials of a test, which nobody has to act on.
    of_agents: bool,
    cage: Cage,
    folder: PathBuf,
    /// How hints begin: the program as it was started, with its store.
    program: String,
    runs: Mutex<BTreeMap<RunKey, Heard>>,
    reminders: reminders::Told,
    hands: Semaphore,
}

/// What was told of a run, and to which command.
#[derive(Clone)]
struct Heard {
    command: Teller,
    names: BTreeSet<String>,
}

/// Whose command it is.
#[derive(Clone)]
enum Teller {
    /// The operator's: it runs as the worker does.
    Place(Arc<definition::Notify>),
    /// The agent's: it runs as a tool does, under a holder, without the worker's environment and kept from the store.
    Agent(Arc<definition::Notify>),
}

impl Notify {
    /// Beside another observer, as the store's wiring and the runs' definitions say.
    ///
    /// # Errors
    ///
    /// `wiring.invalid`.
    pub fn beside(app: &App, inner: Arc<dyn Observer>) -> core::Result<Arc<Self>> {
        let of_place = wiring(app, None)?.notify.map(Arc::new);
        let mut folder = app.store_path().into_os_string();
        folder.push("-files/notified");
        let own = [SqliteStore::own_paths_at(&app.store_path()), keep_out(app)].concat();
        let cage = Cage { keep_out: own, demand: app.cage };
        let told = Arc::new(Told {
            of_place,
            of_agents: std::env::var_os(LEDGER).is_none(),
            cage,
            folder: PathBuf::from(folder),
            program: app.command(""),
            runs: Mutex::default(),
            reminders: reminders::Told::beside(&app.store_path()),
            hands: Semaphore::new(AT_ONCE),
        });
        Ok(Arc::new(Self { inner, told, under_way: Mutex::default() }))
    }

    /// Tells what a worker that died did not come to tell. A run that a live worker holds is that one's to tell of.
    pub async fn catch_up(&self, runtime: &Runtime) {
        let Ok(entries) = std::fs::read_dir(&self.told.folder) else { return };
        for entry in entries.flatten().take(CAUGHT_UP) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(row) = runtime.find(&name).await else { continue };
            if row.run.key.run.as_str() != name || row.holder.is_some_and(|worker| runtime.store().is_alive(&worker)) {
                continue;
            }
            let Ok(opened) = inspect::open(runtime.store(), &row.run.key).await else { continue };
            if let Some(definition) = &opened.definition {
                self.told.begin(&row.run.key, definition);
                self.look(&row.run.key, &opened.checkpoint);
            }
        }
    }

    /// Waits for the commands under way; each ends within its time.
    pub async fn drain(&self) {
        let mut under_way = std::mem::take(&mut *lock(&self.under_way));
        while under_way.join_next().await.is_some() {}
    }

    /// Compares what a run needs with what was told, and tells what is new.
    fn look(&self, run: &RunKey, after: &Checkpoint) {
        let told = &self.told;
        let Some(Heard { command, names: before }) = lock(&told.runs).get(run).cloned() else { return };
        let needs = told.needs(run, after);
        let names: BTreeSet<String> = needs.keys().cloned().collect();
        if names == before {
            return;
        }
        lock(&told.runs).insert(run.clone(), Heard { command: command.clone(), names });
        let new: Vec<Value> =
            needs.into_iter().filter(|(name, _)| !before.contains(name)).map(|(_, need)| need).collect();
        let text = in_words(run, after, &new);
        let (told, run, is_over) = (Arc::clone(told), run.clone(), after.is_over());
        self.spawn(async move {
            if !new.is_empty() {
                told.say(&command, &text).await;
            }
            told.keep(&run, is_over);
        });
    }

    /// Tells of requests that are still open, each due moment once.
    fn remind(&self, run: &RunKey, state: &Checkpoint, reminders: &[Reminder]) {
        let Some(Heard { command, .. }) = lock(&self.told.runs).get(run).cloned() else { return };
        let new = self.told.reminders.take(run, reminders);
        let mut needs = self.told.needs(run, state).into_values().collect::<Vec<_>>();
        needs.retain_mut(|need| match new.iter().find(|reminder| need["request"] == json!(reminder.request)) {
            Some(reminder) => {
                need["reason"] = json!("reminder");
                need["reminder"] = json!(reminder.number);
                true
            }
            None => false,
        });
        if !needs.is_empty() {
            let (told, text) = (Arc::clone(&self.told), in_words(run, state, &needs));
            self.spawn(async move { told.say(&command, &text).await });
        }
    }

    fn spawn(&self, telling: impl Future<Output = ()> + Send + 'static) {
        let mut under_way = lock(&self.under_way);
        while under_way.try_join_next().is_some() {}
        under_way.spawn(telling);
    }
}

/// What the command gets: the run, where it stands, and what it is told of.
fn in_words(run: &RunKey, state: &Checkpoint, new: &[Value]) -> String {
    let stands = standing(state);
    let text = json!({
        "run": run.run, "agent": state.agent, "step": state.seq, "at": state.at.to_string(), "status": stands.status,
        "why": rows::why(&stands), "new": new,
    });
    format!("{text}\n")
}

impl Observer for Notify {
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) {
        self.inner.committed(run, events, values, after);
        self.look(run, after);
    }

    fn taken(&self, run: &RunKey, definition: &Definition, after: &Checkpoint, crashes: u32) {
        self.inner.taken(run, definition, after, crashes);
        self.told.begin(run, definition);
    }

    fn streamed(&self, run: &RunKey, piece: lodestep::model::Progress<'_>) {
        self.inner.streamed(run, piece);
    }

    fn reminded(&self, run: &RunKey, state: &Checkpoint, reminders: &[Reminder]) {
        self.inner.reminded(run, state, reminders);
        self.remind(run, state, reminders);
    }
}

impl Told {
    fn file(&self, run: &RunKey) -> PathBuf {
        self.folder.join(run.run.as_str())
    }

    /// The command that hears of a run of this definition, if one does.
    fn command_of(&self, definition: &Definition) -> Option<Teller> {
        let of_agent = || definition.notify.clone().filter(|_| self.of_agents).map(Arc::new).map(Teller::Agent);
        self.of_place.clone().map(Teller::Place).or_else(of_agent)
    }

    /// Reads what was told of a run. Its file stands from now on, so that a crash leaves something to catch up with.
    fn begin(&self, run: &RunKey, definition: &Definition) {
        let Some(command) = self.command_of(definition) else { return };
        let mut runs = lock(&self.runs);
        if runs.contains_key(run) {
            return;
        }
        let text = std::fs::read_to_string(self.file(run)).unwrap_or_default();
        if text.is_empty() {
            // Without the file the same may be told again after a restart, and a crash may leave something untold.
            let _ = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(self.file(run), []));
        }
        runs.insert(run.clone(), Heard { command, names: text.lines().map(str::to_owned).collect() });
    }

    /// Writes what was told by now. Of a run that is over nothing more will be.
    fn keep(&self, run: &RunKey, is_over: bool) {
        let file = self.file(run);
        if is_over {
            let _ = std::fs::remove_file(file);
            self.reminders.forget(run);
            return;
        }
        let names = lock(&self.runs).get(run).map(|heard| heard.names.clone()).unwrap_or_default();
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
            let mut need =
                json!({"kind": kind, "action": ordinal, "tool": tool, "request": request, "command": command});
            if let ActionState::Gated { gate: Gate::Approval(asked) | Gate::Answer(asked) } = &action.state {
                need["since"] = json!(asked.asked_at.to_string());
                need["until"] = json!(action.asked_until().map(|until| until.to_string()));
            }
            needs.insert(name, need);
        }
        match &after.phase {
            Phase::Stopped { reason, .. } => {
                let (kind, word) = match reason {
                    reason if reason.is_quarantine() => ("quarantined", "release"),
                    // It says which quota has no room, and how to raise it.
                    StopReason::Quota => ("stopped", "quota show"),
                    _ => ("stopped", "resume"),
                };
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

    /// Runs the command when a hand is free for it.
    async fn say(&self, command: &Teller, text: &str) {
        // The semaphore is never closed.
        let _hand = self.hands.acquire().await;
        self.tell(command, text).await;
    }

    /// Runs the command; what goes wrong with it is said, and is no fault of the run.
    async fn tell(&self, command: &Teller, text: &str) {
        let (Teller::Place(notify) | Teller::Agent(notify)) = command;
        let wrong = match command {
            Teller::Place(_) => as_the_worker(notify, text).await,
            Teller::Agent(_) => as_a_tool(notify, text, self.cage.clone()).await,
        };
        if let Err(wrong) = wrong {
            lodestep::note!("notify: {} {wrong}", notify.argv[0]);
        }
    }
}

/// Runs the operator's command, in the worker's own environment.
async fn as_the_worker(notify: &definition::Notify, text: &str) -> Result<(), String> {
    let mut process = tokio::process::Command::new(&notify.argv[0]);
    process.args(&notify.argv[1..]).current_dir(&notify.folder);
    process.stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
    #[cfg(unix)]
    process.process_group(0);
    let mut child = process.spawn().map_err(|error| format!("can't be started: {error}"))?;
    let (pid, stdin) = (child.id(), child.stdin.take());
    let told = async {
        if let Some(mut stdin) = stdin {
            // One that does not read has its reasons.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(Duration::from_millis(notify.timeout_ms), told).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("ended with {status}")),
        Ok(Err(error)) => Err(format!("was lost: {error}")),
        Err(_) => {
            end_group(pid);
            Err(took_longer(notify))
        }
    }
}

/// Runs an agent's command. What it prints is no business of the run's; of a fault the start of its stderr is told.
async fn as_a_tool(notify: &definition::Notify, text: &str, cage: Cage) -> Result<(), String> {
    let holder = Holder::of_this_binary().map_err(|error| format!("can't be started: {error}"))?;
    let command = Command {
        argv: notify.argv.clone(),
        cwd: PathBuf::from(&notify.folder),
        env: clean_environment(),
        stdin: text.as_bytes().to_vec(),
        timeout: Duration::from_millis(notify.timeout_ms),
        stdout_limit: 0,
        stderr_limit: STDERR_BYTES,
        lock_file: None,
        cage,
    };
    let output = holder.run(command, std::future::pending()).await;
    let stderr = line(&String::from_utf8_lossy(&output.stderr), 200);
    match output.ended {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(status) => Err(format!("ended with exit status {status}: {stderr}")),
        Ended::Signalled(signal) => Err(format!("was ended by signal {signal}")),
        Ended::TimedOut | Ended::Stopped => Err(took_longer(notify)),
        Ended::NotStarted(why) => Err(format!("can't be started: {why}")),
        Ended::HolderLost(why) => Err(format!("was lost: {why}")),
    }
}

fn took_longer(notify: &definition::Notify) -> String {
    format!("took longer than {:?} and was ended", Duration::from_millis(notify.timeout_ms))
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
