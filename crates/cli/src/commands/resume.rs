//! `resume`: let a run go on.

use std::time::Duration;

use lodestep::Runtime;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Result};
use lodestep::store::{Filter, RunRow};

use crate::app::App;
use crate::bulk::Bulk;
use crate::commands::crashing;
use crate::commands::run::{as_process, exit_code, follow, interruptible};
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
        rows if all => {
            let mut code = 0;
            for row in rows {
                code = code.max(go_on(app, &runtime, row, pace).await?);
                if interruptible().is_begun() {
                    return Ok(130);
                }
            }
            Ok(code)
        }
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
    bulk.say_to_runs(app, &runtime, "resume", &[Status::Stopped], || Word::Resume, "resumed").await
}

/// Every run that is not over, the newest first.
pub async fn unfinished(runtime: &Runtime) -> Result<Vec<RunRow>> {
    let filter = Filter { statuses: select::unfinished(), limit: Some(1_000), ..Filter::default() };
    runtime.store().list(DEFAULT_NAMESPACE, &filter).await
}

async fn go_on(app: &App, runtime: &Runtime, row: &RunRow, pace: Option<Duration>) -> Result<u8> {
    let id = short_id(row.run.key.run.as_str(), &[]);
    if row.status.is_terminal() {
        app.print(&format!("run {id} is {}\n", row.status.as_str()));
        return Ok(exit_code(row.status));
    }
    // A run in doubt may have stopped besides, and a pause may be unread: the run itself knows.
    let stopped = matches!(row.status, Status::Stopped | Status::Quarantined);
    match runtime.send(&row.run.key, &app.by(), Word::Resume).await? {
        Verdict::Refused(error) if error.code() == "run.quarantined" => {
            app.report(&error);
            return Ok(exit_code(Status::Quarantined));
        }
        Verdict::Refused(error) if stopped => return Err(error),
        _ => {}
    }
    lodestep::note!("going on with {id} at step {}{}", row.seq, as_process());
    follow(app, runtime, &row.run.key, pace).await
}
