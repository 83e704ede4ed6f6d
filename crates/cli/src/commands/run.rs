//! `run`: start an agent, or go on with its unfinished run; stay until it ends or needs what this terminal can't give.

use std::io::IsTerminal as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::json::canonical;
use lodestep::core::rules::inbox::Verdict;
use lodestep::core::rules::standing::{Reason, Standing, Status, standing};
use lodestep::core::{Definition, Digest, Error, Result, RunId, RunKey, Timestamp};
use lodestep::inspect::AskedModel;
use lodestep::secrets::{Environment, Lacking};
use lodestep::store::{Filter, RunRow, Started, Store};
use lodestep::worker::{DRAIN, Shutdown};
use lodestep::{Runtime, Start, agent::AgentFile, fault, inspect, secrets};
use serde_json::Value;

use crate::app::App;
use crate::args::RunArgs;
use crate::commands::check::check;
use crate::commands::dry_run::dry_run;
use crate::commands::{crashing, show, todo, upgrade};
use crate::findings::Findings;
use crate::fitness;
use crate::following::{Following, ended_unseen};
use crate::notify::Notify;
use crate::people;
use crate::progress::Progress;
use crate::prompt::{self, Asked, Terminal};
use crate::text::{line, quoted, short_id};
use crate::wiring::wiring;

/// Runs an agent file.
pub async fn run(app: &App, args: RunArgs) -> Result<u8> {
    let mut file = AgentFile::load(&args.file).map_err(Error::from)?;
    use_model(&mut file, args.model.as_deref())?;
    if let Some(point) = &args.crash_at {
        file.check_fault_point(point)?;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let wiring = wiring(app, Some(&file))?;
    let agent = &file.definition.name;
    let inputs = file.inputs(&wiring.given(agent, &args.input), &here)?;
    let environment = wiring.environment();
    let lacking = secrets::lacking(&file.definition, &environment);
    unfit_secrets(&lacking)?;
    let folders = file.check_folders(&inputs);
    if args.check {
        folders?;
        check(app, &args, &file, &wiring, &environment);
        return Ok(0);
    }
    if let Some(point) = args.crash_at {
        return crashing::again_with(&point);
    }
    missing_secrets(&lacking)?;
    lodestep::model::check(&file.definition, &environment)?;
    if args.dry_run {
        folders?;
        return dry_run(app, file.definition, inputs, environment, args.pace).await;
    }
    fault::goes_on_with(same_command());
    let id = args.id.as_deref().map(RunId::parse).transpose()?;
    if let Err(missing) = folders
        && !is_under_way(app, &file.definition.name, &inputs, id.as_ref()).await?
    {
        return Err(missing);
    }
    let runtime = app.open_to_work(true, environment)?;
    Findings::of(app).tell(app);
    let join_unfinished = !args.new && id.is_none();
    let definition = file.definition.clone();
    if join_unfinished {
        let inputs = Digest::of(&canonical(&inputs));
        if let Some(row) = ended_unseen(app, &runtime, &definition.name, &inputs).await? {
            let id = short_id(row.run.key.run.as_str(), &[]);
            lodestep::note!("run {id} ended before its end could be shown; --new starts another");
            return follow(app, &runtime, &row.run.key, args.pace).await;
        }
    }
    let labels = args.labels.iter().cloned().collect();
    let started = runtime.start(Start { definition, inputs, id, labels, join_unfinished }).await?;
    let key = match started {
        Started::New(run) => {
            lodestep::note!("run {} started{}", short_id(run.key.run.as_str(), &[]), as_process());
            run.key
        }
        Started::Existing(row) => going_on(app, &runtime, &row, &file.definition, &args, "--id names it").await,
        Started::Unfinished(rows) => match rows.as_slice() {
            [row] => going_on(app, &runtime, row, &file.definition, &args, "--new starts another").await,
            rows => return Err(several(rows)),
        },
    };
    follow(app, &runtime, &key, args.pace).await
}

/// Is there a run that this command would go on with? It may have read its documents already.
async fn is_under_way(app: &App, agent: &str, inputs: &Value, id: Option<&RunId>) -> Result<bool> {
    if !app.store_path().exists() {
        return Ok(false);
    }
    let filter = Filter { agent: Some(agent.to_owned()), ..Filter::default() };
    let rows = app.open(false)?.store().list(DEFAULT_NAMESPACE, &filter).await?;
    let inputs = Digest::of(&canonical(inputs));
    let same = |row: &RunRow| match id {
        Some(id) => row.run.key.run == *id,
        None => !row.status.is_terminal(),
    };
    Ok(rows.iter().any(|row| row.inputs == inputs && same(row)))
}

/// What was typed, without what would start another run.
fn same_command() -> String {
    let words = std::env::args().filter(|word| word != "--new").map(|word| quoted(&word));
    words.collect::<Vec<_>>().join(" ")
}

fn missing_secrets(lacking: &Lacking) -> Result<()> {
    if lacking.missing.is_empty() {
        return Ok(());
    }
    let what = format!("environment variables that the agent needs are not set: {}", lacking.missing.join(", "));
    let next = "set them, or say in lodestep.toml beside the store where they come from; then type the command again";
    Err(Error::new("agent.secret_missing", what, next))
}

/// A value that is too short to be looked for would be stored wherever a tool says it.
fn unfit_secrets(lacking: &Lacking) -> Result<()> {
    if !lacking.unread.is_empty() {
        let what = format!("values that the agent needs can't be had: {}", lacking.unread.join(", "));
        return Err(Error::new("agent.secret_unread", what, "mend it, or [env] of lodestep.toml beside the store"));
    }
    if lacking.short.is_empty() {
        return Ok(());
    }
    let least = secrets::LEAST_BYTES;
    let what =
        format!("environment variables of fewer than {least} bytes are no secrets: {}", lacking.short.join(", "));
    let next = "give them longer values; what is no secret takes a default in the file: ${env:NAME:-default}";
    Err(Error::new("agent.secret_short", what, next))
}

/// Puts the model that was typed in the place of the file's, and says what of the file's stays.
pub fn use_model(file: &mut AgentFile, word: Option<&str>) -> Result<()> {
    let Some(word) = word else { return Ok(()) };
    file.use_model(word)?;
    let model = &file.definition.model;
    // That one has no window of its own.
    if model.provider != "offline" {
        let (window, reply) = (model.context_window, model.max_output_tokens);
        lodestep::note!("--model {word}: context_window {window} and max_output_tokens {reply} are still the file's");
        lodestep::note!("  if this model has others, write it with them into [model] of the file");
    }
    Ok(())
}

async fn going_on(
    app: &App,
    runtime: &Runtime,
    row: &RunRow,
    definition: &Definition,
    args: &RunArgs,
    other: &str,
) -> Arc<RunKey> {
    let id = short_id(row.run.key.run.as_str(), &[]);
    match stands_still(app, runtime, row).await {
        Some(why) => lodestep::note!("{why}; {other}"),
        None => lodestep::note!("going on with {id} at step {}; {other}{}", row.seq, as_process()),
    }
    if row.holder.as_ref().is_some_and(|holder| runtime.store().is_alive(holder)) {
        lodestep::note!("  another process works on it now: this one waits, and goes on with what that one leaves");
    }
    if upgrade::differs(runtime, row, &definition.digest()).await {
        let own = inspect::open(runtime.store(), &row.run.key).await.ok().and_then(|opened| opened.definition);
        let what = own.map(|own| own.parts_unlike(definition)).unwrap_or_default();
        let what = if what.is_empty() { String::new() } else { format!(": {}", line(&what.join(", "), 200)) };
        let model = args.model.as_ref().map(|model| format!(" --model {}", quoted(model))).unwrap_or_default();
        let command = app.command(&format!("upgrade {id} {}{model}", quoted(&args.file.display().to_string())));
        if row.status.is_terminal() {
            lodestep::note!("  the agent file has changed since{what}; the run is over, and was not done by this one");
        } else {
            lodestep::note!("  the agent file has changed since{what}; the run goes on with its own definition");
            lodestep::note!("  `{command}` shows what moving it to this one would change, and asks");
        }
    }
    row.run.key.clone()
}

/// Of a run that this command does not move, that it stands still, why, and the command that lets it go on. The words that
/// came to it since are read first.
async fn stands_still(app: &App, runtime: &Runtime, row: &RunRow) -> Option<String> {
    let opened = inspect::open(runtime.store(), &row.run.key).await.ok()?;
    let id = short_id(row.run.key.run.as_str(), &[]);
    let status = opened.standing.status;
    if standing(&opened.ahead).status != status {
        return None;
    }
    let stands = format!("run {id} is {} at step {}", status.as_str(), row.seq);
    let (command, or) = match status {
        Status::Stopped => todo::after_a_stop(Some(&opened), id),
        Status::Completed | Status::Failed | Status::Cancelled => return Some(stands),
        _ => return None,
    };
    let why = line(&people::stopped_because(&opened), 160);
    let command = app.command(&command);
    Some(format!("{stands}, and this does not resume it: {why}\n  to let it go on: `{command}`  ({or})"))
}

/// For a person who wants to try what a kill does.
pub fn as_process() -> String {
    if std::io::stderr().is_terminal() { format!("  (process {})", std::process::id()) } else { String::new() }
}

fn several(rows: &[RunRow]) -> Error {
    let ids: Vec<&str> = rows.iter().map(|row| row.run.key.run.as_str()).collect();
    let listed: Vec<String> = rows
        .iter()
        .map(|row| format!("{} ({}, step {})", short_id(row.run.key.run.as_str(), &ids), row.status.as_str(), row.seq))
        .collect();
    let what = format!("this agent has {} unfinished runs with these inputs: {}", rows.len(), listed.join(", "));
    Error::new("run.unfinished", what, "`lodestep resume RUN` goes on with one, `--new` starts another")
}

/// Works on a run, asks at this terminal, and says at the end where it stands.
pub async fn follow(app: &App, runtime: &Runtime, key: &RunKey, pace: Option<Duration>) -> Result<u8> {
    let shutdown = interruptible();
    let observer = Arc::new(Progress::new(pace, false));
    let notify = Notify::beside(app, observer.clone())?;
    notify.catch_up(runtime).await;
    let following = Following::mark(app, key.run.as_str());
    app.speaks_of(key);
    fault::goes_on_with(app.command(&format!("resume {}", short_id(key.run.as_str(), &[]))));
    let before = inspect::open(runtime.store(), key).await?;
    fitness::tell(app, &runtime.unfit(std::slice::from_ref(&before.row)).await?);
    if let Some(definition) = before.definition.as_ref().filter(|_| may_ask(&before)) {
        tell_model(definition, runtime.environment());
    }
    tell_wait(&before, runtime.store().now());
    for action in before.checkpoint.pending.values() {
        observer.know(key, action.ordinal, &action.tool, before.text(&action.arguments).as_bytes());
    }
    let mut terminal = Terminal::here().await;
    loop {
        let stands = runtime.work_on(key, notify.clone(), &shutdown, is_enough).await?;
        let opened = inspect::open(runtime.store(), key).await?;
        let asked = match &mut terminal {
            _ if shutdown.is_begun() => Asked::Stopped,
            Some(terminal) if stands.status == Status::Waiting => {
                prompt::ask(app, runtime.store(), &opened, terminal, &shutdown).await
            }
            _ => Asked::Later,
        };
        match asked {
            Asked::Said(word) => {
                if let Verdict::Refused(error) = runtime.send(key, &app.by(), word).await? {
                    app.report(&error);
                }
                continue;
            }
            Asked::Over(how) => {
                lodestep::note!("\nno answer is needed any more: {how}");
                continue;
            }
            Asked::Stopped => {
                let id = short_id(key.run.as_str(), &[]);
                lodestep::note!("handed over at step {}{}", opened.row.seq, what_next(app, id, &opened));
                following.shown();
                // Whoever stops the process does not wait for what else it started.
                let _ = tokio::time::timeout(DRAIN, notify.drain()).await;
                return Ok(130);
            }
            Asked::Later => {}
        }
        let code = report(app, runtime.store(), &opened, &stands).await;
        following.shown();
        notify.drain().await;
        return Ok(code);
    }
}

/// What comes next for a run that was handed over: a doubt needs a person, all else goes on.
fn what_next(app: &App, id: &str, opened: &inspect::Opened) -> String {
    match opened.standing.status {
        Status::InDoubt => {
            format!(
                "; in doubt{}\n  {} says what can be said of it",
                show::because(opened),
                app.command(&format!("show {id}"))
            )
        }
        _ => format!("; {} goes on", app.command(&format!("resume {id}"))),
    }
}

/// May the run ask its model again without a person's word?
fn may_ask(opened: &inspect::Opened) -> bool {
    let status = standing(&opened.ahead).status;
    !status.is_terminal() && !matches!(status, Status::Stopped | Status::Quarantined)
}

/// Says of a run that nothing can be done for yet what it waits for, and until when.
fn tell_wait(opened: &inspect::Opened, now: Timestamp) {
    if opened.standing.status == Status::Waiting && opened.standing.due.is_some_and(|due| due > now) {
        lodestep::note!("  it waits{}", show::because(opened));
    }
}

/// Says which model is asked, and where.
pub fn tell_model(definition: &Definition, environment: &Environment) {
    lodestep::note!("  model  {}", line(&AskedModel::named(definition, environment).to_string(), 300));
}

/// Is there nothing that this process could do by waiting a little?
pub fn is_enough(stands: &Standing) -> bool {
    let by_itself =
        |reason: &Reason| matches!(reason, Reason::Retry { .. } | Reason::Provider { .. } | Reason::Cancelling);
    match stands.status {
        Status::Ready => false,
        // A time comes by itself, too; what a person has to say beside it is asked for first.
        Status::Waiting => {
            let timer = |reason: &Reason| matches!(reason, Reason::Timer { .. });
            !stands.reasons.iter().any(by_itself) && !stands.reasons.iter().all(timer)
        }
        Status::InDoubt => !stands.reasons.iter().any(by_itself),
        _ => true,
    }
}

/// The first Ctrl-C or SIGTERM hands over; a second one exits at once. All that a process does has one stop.
pub fn interruptible() -> Shutdown {
    static STOP: OnceLock<Shutdown> = OnceLock::new();
    let listening = || {
        let shutdown = Shutdown::default();
        tokio::spawn(stop(StopSignals::heard(), shutdown.clone()));
        shutdown
    };
    STOP.get_or_init(listening).clone()
}

async fn stop(mut signals: StopSignals, shutdown: Shutdown) {
    signals.next().await;
    lodestep::note!("\nstopping: what is under way may end, then the run is handed over (again: at once)");
    shutdown.begin();
    signals.next().await;
    std::process::exit(130);
}

/// Waits for Ctrl-C or SIGTERM.
pub async fn stop_signal() {
    StopSignals::heard().next().await;
}

/// Ctrl-C and SIGTERM, heard from one moment on: one that comes while the one before it is dealt with is not lost.
#[cfg(unix)]
struct StopSignals {
    heard: Vec<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl StopSignals {
    /// Listens from now on. What the system does not let it hear ends the process, as without it.
    fn heard() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
        Self { heard: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
    }

    /// The next of them.
    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let came = self.heard.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

/// Ctrl-C, where there are no signals.
#[cfg(not(unix))]
struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    fn heard() -> Self {
        Self
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Says where a run stands; the exit code.
async fn report(app: &App, store: &dyn Store, opened: &inspect::Opened, stands: &Standing) -> u8 {
    if app.json {
        app.print(&format!("{}\n", show::as_json(opened)));
        return exit_code(stands.status);
    }
    let id = short_id(opened.row.run.key.run.as_str(), &[]).to_owned();
    lodestep::note!();
    app.print(&format!("run {id} is {}{}\n", stands.status.as_str(), show::because(opened)));
    if stands.status == Status::Waiting {
        app.print(&people::hints(app, opened));
    }
    app.print(&people::doubts(app, store, opened).await);
    for name in opened.checkpoint.artifacts.keys().filter(|_| stands.status.is_terminal()) {
        app.print(&format!("  {}\n", line(&app.command(&format!("artifacts {id} {name}")), 200)));
    }
    app.print(&show::acts(app, opened));
    exit_code(stands.status)
}

/// The exit code of a status.
pub fn exit_code(status: Status) -> u8 {
    match status {
        Status::Completed => 0,
        Status::Failed => 1,
        Status::Ready | Status::Waiting => 3,
        Status::Cancelled => 4,
        Status::InDoubt | Status::Quarantined => 5,
        Status::Stopped => 6,
    }
}
