//! `worker`: advance everything that is due.

use std::sync::Arc;

use lodestep::core::Result;

use crate::app::App;
use crate::commands::run::interruptible;
use crate::commands::{crashing, resume};
use crate::notify::Notify;
use crate::progress::Progress;
use crate::wiring::wiring;

/// Works until told to stop, or until nothing is due.
pub async fn worker(app: &App, until_idle: bool, crash_at: Option<String>) -> Result<u8> {
    let runtime = app.open_to_work(true, wiring(app, None)?.environment())?;
    if let Some(point) = crash_at {
        return crashing::at(&runtime, &resume::unfinished(&runtime).await?, &point).await;
    }
    let shutdown = interruptible();
    let notify = Notify::beside(app, Arc::new(Progress::new(None, true)))?;
    notify.catch_up(&runtime).await;
    lodestep::note!("worker on {}; Ctrl-C hands over", app.store_path().display());
    if until_idle {
        runtime.work_until_idle(notify.clone(), &shutdown).await?;
    } else {
        runtime.work(notify.clone(), &shutdown).await?;
    }
    notify.drain().await;
    Ok(if shutdown.is_begun() { 130 } else { 0 })
}
