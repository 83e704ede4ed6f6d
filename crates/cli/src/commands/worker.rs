//! `worker`: advance everything that is due.

use std::sync::Arc;

use lodestep::core::Result;

use crate::app::App;
use crate::commands::run::interruptible;
use crate::progress::Progress;

/// Works until told to stop, or until nothing is due.
pub async fn worker(app: &App, until_idle: bool) -> Result<u8> {
    let runtime = app.open(true)?;
    let shutdown = interruptible();
    let observer = Arc::new(Progress::new(None, true));
    lodestep::note!("worker on {}; Ctrl-C hands over", app.store_path().display());
    if until_idle {
        runtime.work_until_idle(observer, &shutdown).await?;
    } else {
        runtime.work(observer, &shutdown).await?;
    }
    Ok(if shutdown.is_begun() { 130 } else { 0 })
}
