//! `worker`: advance everything that is due.

use std::sync::Arc;

use lodestep::core::Result;
use lodestep::observe;

use crate::app::App;
use crate::commands::run::interruptible;
use crate::commands::{crashing, resume};
use crate::findings::Findings;
use crate::fitness;
use crate::notify::Notify;
use crate::progress::Progress;
use crate::wiring::wiring;

/// Works until told to stop, or until nothing is due.
pub async fn worker(app: &App, until_idle: bool, crash_at: Option<String>) -> Result<u8> {
    if app.json {
        observe::notes_as_json();
    }
    let runtime = app.open_to_work(true, wiring(app, None)?.environment())?;
    if let Some(point) = crash_at {
        return crashing::at(&runtime, &resume::unfinished(&runtime).await?, &point).await;
    }
    let shutdown = interruptible();
    let progress = if app.json { Progress::for_programs() } else { Progress::new(None, true) };
    let notify = Notify::beside(app, Arc::new(progress))?;
    notify.catch_up(&runtime).await;
    lodestep::note!("worker on {}; Ctrl-C hands over", app.store_path().display());
    Findings::of(app).tell(app);
    let work = async {
        match until_idle {
            true => runtime.work_until_idle(notify.clone(), &shutdown).await,
            false => runtime.work(notify.clone(), &shutdown).await,
        }
    };
    // Beside the work, which no look at other runs delays; a worker that is told to stop waits for none.
    let looking = tokio::spawn({
        let runtime = runtime.clone();
        async move { fitness::look(&runtime).await }
    });
    let name_unfit = async {
        tokio::select! {
            biased;
            () = shutdown.begun() => {}
            looked = looking => if let Ok(Ok(found)) = looked {
                fitness::tell(app, &found);
            },
        }
    };
    tokio::join!(work, name_unfit).0?;
    notify.drain().await;
    Ok(if shutdown.is_begun() { 130 } else { 0 })
}
