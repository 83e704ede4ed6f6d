//! `resume`: let a run go on.

use std::sync::Arc;
use std::time::Duration;

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Standing, Status};
use lodestep::core::{Error, Result};
use lodestep::observe::Silent;
use lodestep::store::{Filter, RunRow};
use lodestep::{Runtime, inspect};

use crate::app::App;
use crate::bulk::{Bulk, Then};
use crate::commands::crashing;
use crate::commands::run::{as_process, exit_code, follow, interruptible};
use crate::commands::show;
use crate::following::Following;
use crate::notify::Notify;
use crate::people;
use crate::progress::Progress;
use crate::select;
use crate::text::short_id;
use crate::wiring::wiring;

/// Goes on with one run, or with all.
pub async fn resume(
    app: &App,
    run: Option<String>,
    all: bool,
    pace: Option<Duration>,
    crash_at: Option<String>,
) -> Result<u8> {
    let runtime = app.open_to_work(false, wiring(app, None)?.environment())?;
    let rows = match run {
        Some(id_end) => vec![app.find(&runtime, &id_end).await?],
        None => unfinished(&runtime).await?,
    };
    if let Some(point) = crash_at.filter(|_| rows.len() == 1 || all) {
        return crashing::at(&runtime, &rows, &point).await;
    }
    match rows.as_slice() {
        [] => Err(Error::new("run.none_unfinished", "no run of this store is unfinished", "`lodestep ls` lists all")),
        [row] => go_on(app, &runtime, row, pace).await,
        rows if all => go_on_together(app, &runtime, rows, pace).await,
        rows => {
            let ids: Vec<&str> = rows.iter().map(|row| row.run.key.run.as_str()).collect();
            let listed: Vec<String> = ids
                .iter()
                .zip(rows)
                .map(|(id, row)| format!("{} ({}, {})", short_id(id, &ids), row.agent, row.status.as_str()))
                .collect();
            let what = format!("{} runs are unfinished: {}", rows.len(), listed.join(", "));
            Err(Error::new("run.unfinished", what, "name one, or give --all"))
        }
    }
}

/// Tells the stopped runs that filters choose to go on; whichever worker is there advances them.
pub async fn resume_many(app: &App, named: bool, bulk: &Bulk) -> Result<u8> {
    select::either(named, &bulk.selection, "run")?;
    let runtime = app.open(false)?;
    let chosen = bulk.runs(&runtime, &[Status::Stopped], Then::GoesOn, || Word::Resume).await?;
    bulk.say(app, &runtime, "resume", chosen, "resumed").await
}

/// Every run that is not over, the newest first.
pub async fn unfinished(runtime: &Runtime) -> Result<Vec<RunRow>> {
    let filter = Filter { statuses: select::unfinished(), limit: Some(1_000), ..Filter::default() };
    runtime.store().list(DEFAULT_NAMESPACE, &filter).await
}

/// Goes on with one run, to its end or to what this terminal can't give.
async fn go_on(app: &App, runtime: &Runtime, row: &RunRow, pace: Option<Duration>) -> Result<u8> {
    if row.status.is_terminal() {
        return over(app, runtime, row).await;
    }
    if let Some(code) = told_to_go_on(app, runtime, row).await? {
        return Ok(code);
    }
    let id = short_id(row.run.key.run.as_str(), &[]);
    lodestep::note!("going on with {id} at step {}{}", row.seq, as_process());
    follow(app, runtime, &row.run.key, pace).await
}

/// Works on all of them at once while anything is due, then shows each and waits for what a time or this terminal can give.
async fn go_on_together(app: &App, runtime: &Runtime, rows: &[RunRow], pace: Option<Duration>) -> Result<u8> {
    let (mut code, mut going) = (0, Vec::new());
    for row in rows {
        match told_to_go_on(app, runtime, row).await? {
            Some(refused) => code = code.max(refused),
            None => going.push(row),
        }
    }
    lodestep::note!("going on with {} runs{}", going.len(), as_process());
    // Whoever types the command again after a crash sees the ends that nobody was shown.
    let marks: Vec<_> = going.iter().map(|row| Following::mark(app, row.run.key.run.as_str())).collect();
    let shutdown = interruptible();
    let notify = Notify::beside(app, Arc::new(Progress::new(pace, true)))?;
    notify.catch_up(runtime).await;
    runtime.work_until_idle(notify.clone(), &shutdown).await?;
    notify.drain().await;
    for (row, mark) in going.into_iter().zip(marks) {
        if shutdown.is_begun() {
            return Ok(130);
        }
        code = code.max(follow(app, runtime, &row.run.key, pace).await?);
        mark.shown();
    }
    Ok(code)
}

/// Tells a run to go on; the exit code when it may not.
async fn told_to_go_on(app: &App, runtime: &Runtime, row: &RunRow) -> Result<Option<u8>> {
    // A run in doubt may have stopped besides, and a pause may be unread: the run itself knows.
    let stopped = matches!(row.status, Status::Stopped | Status::Quarantined);
    match runtime.send(&row.run.key, &app.by(), Word::Resume).await? {
        Verdict::Refused(error) if error.code() == "run.quarantined" => {
            app.report(&error);
            Ok(Some(exit_code(Status::Quarantined)))
        }
        Verdict::Refused(error) if stopped => Err(error),
        _ => Ok(None),
    }
}

/// A run that is over goes nowhere: a word that it has not read is read, and what is in doubt of it is shown.
async fn over(app: &App, runtime: &Runtime, row: &RunRow) -> Result<u8> {
    let key = &row.run.key;
    let is_over = |stands: &Standing| stands.status.is_terminal();
    runtime.work_on(key, Arc::new(Silent), &interruptible(), is_over).await?;
    let opened = inspect::open(runtime.store(), key).await?;
    let id = short_id(key.run.as_str(), &[]);
    let status = opened.standing.status;
    let doubts = people::doubts(app, runtime.store(), &opened).await;
    let text = format!("run {id} is {}{}\n{doubts}", status.as_str(), show::because(&opened));
    app.say(&text, &show::as_json(&opened));
    Ok(exit_code(status))
}
