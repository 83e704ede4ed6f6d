//! The store: its place, its file, its workers, its runs and their values.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Timestamp};
use lodestep::store::garbage::Mode;
use lodestep::store::sqlite::{Condition, FileSystem, Ground, Life, Reserved, Testimony, ground};
use lodestep::store::{Filter, RunRef, SqliteStore, Store, SystemClock};
use lodestep::{Runtime, inspect};

use super::checkup::{Area, Checkup};
use crate::app::App;
use crate::fitness;
use crate::retries;
use crate::select::LOOKED_THROUGH;
use crate::text::{bytes, short_id};

/// With less room than this a transition may be refused at any moment.
const NO_ROOM: u64 = 64 << 20;

/// With less room than this it is time to make some.
const LITTLE_ROOM: u64 = 1 << 30;

/// A log of so many bytes is not cut short any more: somebody reads an old state, or every worker was killed.
const LONG_LOG: u64 = 64 << 20;

/// A store that could be opened to be read.
pub struct Opened {
    pub runtime: Runtime,
    pub last_commit: Option<Timestamp>,
}

/// Looks at all of the store; `None` when it can't be opened.
pub async fn look(app: &App, checkup: &mut Checkup) -> Option<Opened> {
    let (path, why) = app.store_found();
    let there = SqliteStore::is_or_was_at(&path);
    let ground = ground(&path);
    if there {
        checkup.ok(Area::Store, format!("{}: {why}", ground.database.display()));
        permissions(&ground, checkup);
    } else {
        checkup.warn(
            Area::Store,
            format!("there is none at {}: {why}", path.display()),
            "`lodestep run FILE` makes one",
        );
    }
    place(&ground, checkup);
    if !there {
        return None;
    }
    reserve(&ground, checkup);
    log(&ground, checkup);
    let store = match SqliteStore::open_untouched(&path, Arc::new(SystemClock)) {
        Ok(store) => Arc::new(store),
        Err(error) => {
            checkup.problem(Area::File, error.what().to_owned(), error.next().to_owned());
            return None;
        }
    };
    let is_sound = file(&store, checkup).await;
    let mut last_commit = None;
    match store.condition() {
        Ok(condition) => {
            last_commit = condition.last_commit;
            state(&condition, checkup);
        }
        Err(error) => checkup.problem(Area::File, error.what().to_owned(), error.next().to_owned()),
    }
    statuses(&*store, checkup).await;
    tools(app, &*store, checkup).await;
    let runtime = Runtime::builder(Arc::clone(&store) as Arc<dyn Store>).build();
    journals(&runtime, is_sound, checkup).await;
    unfit(&runtime, checkup).await;
    values(&store, checkup);
    leftovers(&*store, checkup).await;
    Some(Opened { runtime, last_commit })
}

fn permissions(ground: &Ground, checkup: &mut Checkup) {
    for (path, mode) in &ground.open_to_others {
        let what = format!("{} has mode {mode:o}: who can write a store can approve in it", path.display());
        checkup.warn(
            Area::Permissions,
            what,
            "any command that opens the store to write narrows it, such as `lodestep ls`",
        );
    }
    if ground.open_to_others.is_empty() {
        checkup.ok(Area::Permissions, "what is the store's own is its owner's alone");
    }
}

fn place(ground: &Ground, checkup: &mut Checkup) {
    match &ground.file_system {
        FileSystem::Local(kind) => checkup.ok(Area::FileSystem, kind.clone()),
        FileSystem::Volatile(kind) => {
            let what = format!("{kind}: what stands there is gone after a reboot");
            checkup.warn(Area::FileSystem, what, "put the store on a disk (`--store PATH`), but for a trial");
        }
        FileSystem::Shared(kind) => {
            let what = format!("{kind}: processes on two machines would damage a store there");
            checkup.problem(Area::FileSystem, what, "put the store on a local disk (`--store PATH`)");
        }
        FileSystem::Unknown => {
            checkup.warn(Area::FileSystem, "its kind can't be told", "see that it is a disk of this machine");
        }
    }
    let next = "make room: without any, transitions are refused and nothing is sent; `lodestep gc` may help";
    match ground.free_bytes {
        Some(free) if free < NO_ROOM => checkup.problem(Area::Disk, format!("only {} are free", bytes(free)), next),
        Some(free) if free < LITTLE_ROOM => checkup.warn(Area::Disk, format!("{} are free", bytes(free)), next),
        Some(free) => checkup.ok(Area::Disk, format!("{} are free", bytes(free))),
        None => checkup.warn(Area::Disk, "how much room there is can't be told", "see that there is some"),
    }
}

fn reserve(ground: &Ground, checkup: &mut Checkup) {
    match ground.reserve {
        Reserved::Kept(room) => checkup.ok(Area::Disk, format!("{} are held back for outcomes", bytes(room))),
        Reserved::Spent => checkup.problem(
            Area::Disk,
            "what was held back for outcomes is spent: only what became of effects is stored, and nothing is sent",
            "make room: the reserve is made anew by the next command or worker that writes, and all goes on",
        ),
        Reserved::Missing => checkup.warn(
            Area::Disk,
            "nothing is held back for outcomes: on a full disk one that is seen may not be stored",
            "make room; the next command that opens the store to write makes the reserve, such as `lodestep ls`",
        ),
    }
}

fn log(ground: &Ground, checkup: &mut Checkup) {
    match ground.log_bytes {
        long if long > LONG_LOG => checkup.warn(
            Area::Log,
            format!("the write-ahead log has {}", bytes(long)),
            "look for a process that reads the store for long; with no process left, open it once to shorten the log",
        ),
        length => checkup.ok(Area::Log, format!("the write-ahead log has {}", bytes(length))),
    }
}

/// SQLite's own check. False when it found something.
async fn file(store: &SqliteStore, checkup: &mut Checkup) -> bool {
    const NEXT: &str = "end its workers and keep it as it is with its -wal; put it back from a copy that verifies";
    match store.integrity().await {
        Ok(faults) if faults.is_empty() => {
            checkup.ok(Area::File, "every page, row and index is sound");
            true
        }
        Ok(faults) => {
            checkup.problem(Area::File, faults.join("\n"), NEXT);
            false
        }
        Err(error) => {
            checkup.problem(Area::File, error.what().to_owned(), NEXT);
            false
        }
    }
}

fn state(condition: &Condition, checkup: &mut Checkup) {
    let (format, newest) = condition.format;
    checkup.ok(Area::Format, format!("{format}, and this build reads up to {newest}"));
    match condition.journal_mode.as_str() {
        "wal" => checkup
            .ok(Area::File, "journal mode WAL; every commit is synced (synchronous=FULL, set by each connection)"),
        other => checkup.problem(
            Area::File,
            format!("its journal mode is {other}: somebody else has changed the file"),
            "open it once with a command that writes, such as `lodestep ls`: that sets WAL again",
        ),
    }
    match condition.testimony {
        Testimony::Fits => checkup.ok(Area::Witness, "the file is as far as it was seen, or further"),
        Testimony::Missing => checkup.warn(
            Area::Witness,
            "there is none: that the file was put back to an older copy would not be noticed now",
            "the next command that opens the store to write makes one, such as `lodestep ls`",
        ),
        Testimony::Older => checkup.problem(
            Area::Witness,
            "the file is an older copy of itself, or another store's",
            "put back the newest one; the next command that opens it holds all runs that are not over until you release them",
        ),
    }
    workers(condition, checkup);
}

fn workers(condition: &Condition, checkup: &mut Checkup) {
    for worker in &condition.workers {
        let who = format!("worker {} (process {}) with {} runs", worker.id, worker.pid, worker.runs);
        match worker.life {
            Life::Alive => checkup.ok(Area::Workers, format!("{who} is alive")),
            Life::Hanging => checkup.warn(
                Area::Workers,
                format!("{who} hangs: its lease has ended"),
                "the next worker takes its runs; look why it hangs, or end it",
            ),
            Life::Dead => checkup.warn(
                Area::Workers,
                format!("{who} is dead"),
                "the next worker takes its runs: `lodestep worker` is one",
            ),
        }
    }
    if condition.workers.is_empty() {
        checkup.ok(Area::Workers, "none is at work");
    }
}

async fn statuses(store: &dyn Store, checkup: &mut Checkup) {
    let mut counts = Vec::new();
    for status in Status::ALL {
        let filter = Filter { statuses: vec![status], ..Filter::default() };
        match store.count(DEFAULT_NAMESPACE, &filter, 1_000_000).await {
            Ok(0) => {}
            Ok(count) => counts.push((status, count)),
            Err(error) => return checkup.problem(Area::Runs, error.what().to_owned(), error.next().to_owned()),
        }
    }
    let words: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {}", status.as_str())).collect();
    let needy = |status: &Status| matches!(status, Status::InDoubt | Status::Quarantined | Status::Stopped);
    match (counts.is_empty(), counts.iter().any(|(status, _)| needy(status))) {
        (true, _) => checkup.ok(Area::Runs, "none yet"),
        (false, false) => checkup.ok(Area::Runs, words.join(", ")),
        (false, true) => checkup.warn(Area::Runs, words.join(", "), "`lodestep todo` lists what each of them needs"),
    }
}

/// Names the runs that a worker of this program would stop. What can't be read at all is told as damage.
async fn unfit(runtime: &Runtime, checkup: &mut Checkup) {
    for unfit in fitness::look(runtime).await.unwrap_or_default() {
        if !unfit.error.code().starts_with("store.") {
            checkup.warn(Area::Runs, fitness::in_words(&unfit), unfit.error.next().to_owned());
        }
    }
}

/// The tools whose attempts fail, as far as runs try them again.
async fn tools(app: &App, store: &dyn Store, checkup: &mut Checkup) {
    let filter =
        Filter { statuses: vec![Status::Waiting, Status::Ready], limit: Some(LOOKED_THROUGH), ..Filter::default() };
    // Why they can't be listed is told above.
    let Ok(rows) = store.list(DEFAULT_NAMESPACE, &filter).await else { return };
    for failing in retries::failing(&retries::of(store, rows.iter()).await) {
        let next =
            format!("look whether what it calls is up; `{}` stops its attempts until `release`", failing.stop(app));
        checkup.warn(Area::Tools, failing.in_words(), next);
    }
}

/// Verifies every run. In a damaged file the sound ones are told how to be saved.
async fn journals(runtime: &Runtime, is_sound: bool, checkup: &mut Checkup) {
    let (runs, strays) = match runtime.store().audit().await {
        Ok(audit) => (audit.runs, audit.strays),
        Err(error) => listed(runtime, &error).await,
    };
    for stray in strays {
        checkup.problem(Area::Runs, stray, "`lodestep verify` says more; keep the file as it is");
    }
    let (all, mut sound, mut damaged) = (runs.len(), 0, 0);
    for (place, run) in runs.iter().enumerate() {
        progress("verifying run", place, all);
        match faults_of(runtime, run).await {
            faults if faults.is_empty() => sound += 1,
            faults => {
                damaged += 1;
                let id = short_id(run.key.run.as_str(), &[]);
                let next = format!(
                    "it is not gone on with; put the store back from a copy, or `lodestep show {id}` for what can be read"
                );
                checkup.problem(Area::Runs, format!("run {id}: {}", faults.join("\n")), next);
            }
        }
    }
    progress_over();
    if damaged == 0 && all > 0 {
        checkup.ok(Area::Runs, format!("{sound} verified: chains, snapshots, values and tables are what they were"));
    }
    if damaged > 0 || !is_sound {
        savable(runtime, &runs, checkup).await;
    }
}

/// The runs that a listing still finds in a file whose tables can't all be read.
async fn listed(runtime: &Runtime, error: &Error) -> (Vec<RunRef>, Vec<String>) {
    let rows = runtime.store().list(DEFAULT_NAMESPACE, &Filter::default()).await.unwrap_or_default();
    (rows.into_iter().map(|row| row.run).collect(), vec![error.what().to_owned()])
}

async fn faults_of(runtime: &Runtime, run: &RunRef) -> Vec<String> {
    match inspect::verify(runtime.store(), run).await {
        Ok(report) => report.faults,
        Err(error) => vec![error.what().to_owned()],
    }
}

/// What of a damaged store can be carried elsewhere: a run that is exported in full is whole.
async fn savable(runtime: &Runtime, runs: &[RunRef], checkup: &mut Checkup) {
    let mut commands = Vec::new();
    for run in runs {
        let Ok(row) = runtime.find(run.key.run.as_str()).await else { continue };
        if runtime.export(&row.run, std::io::sink()).await.is_ok() {
            let id = short_id(run.key.run.as_str(), &[]);
            commands.push(format!("`lodestep export {id} {id}.lodestep`"));
        }
    }
    let what = format!("{} of {} runs can be saved from this store", commands.len(), runs.len());
    checkup.warn(Area::Runs, what, commands.join("\n                        "));
}

fn values(store: &SqliteStore, checkup: &mut Checkup) {
    let mut count = 0;
    let altered = store.altered_values(|place, all| {
        count = all;
        progress("reading large value", place, all);
    });
    progress_over();
    match altered {
        Ok(altered) if altered.is_empty() => {
            checkup.ok(Area::Values, format!("{count} files of large values are what they were"))
        }
        Ok(altered) => checkup.problem(
            Area::Values,
            format!("altered: {}", altered.join(", ")),
            "put these files back from a copy; what names them is told above",
        ),
        Err(error) => checkup.problem(Area::Values, error.what().to_owned(), error.next().to_owned()),
    }
}

async fn leftovers(store: &dyn Store, checkup: &mut Checkup) {
    let Ok(found) = store.sweep(Mode::DryRun).await else {
        // Why is told above: a journal that can't be read.
        return;
    };
    let unnamed = found.waiting.count + found.swept.count;
    if unnamed + found.leftovers.count == 0 {
        return checkup.ok(Area::Leftovers, "none");
    }
    let size = bytes(found.waiting.bytes + found.swept.bytes + found.leftovers.bytes);
    let what =
        format!("{unnamed} large values that nothing names, {} files of dead processes: {size}", found.leftovers.count);
    checkup.warn(Area::Leftovers, what, "`lodestep gc`, and again a day later, sweeps them; they harm nobody");
}

/// A line on a terminal that the next one replaces.
fn progress(what: &str, place: usize, all: usize) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // It is gone with its terminal.
        let _ = write!(err, "\r\x1b[K{what} {} of {all}", place + 1);
    }
}

fn progress_over() {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
}
