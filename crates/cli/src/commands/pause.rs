//! `pause`: nothing is begun from then on, until someone resumes the run.

use std::sync::Arc;

use lodestep::core::Result;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Reason, Standing};
use lodestep::inspect;
use lodestep::observe::Silent;

use crate::app::App;
use crate::commands::run::interruptible;
use crate::commands::show;
use crate::text::short_id;

/// Pauses a run, and stays until what is under way has ended.
pub async fn pause(app: &App, run: &str, reason: String) -> Result<u8> {
    let runtime = app.open(false)?;
    let row = app.find(&runtime, run).await?;
    let key = row.run.key.clone();
    let already = match runtime.send(&key, &app.by(), Word::Pause { reason }).await? {
        Verdict::Refused(error) => return Err(error),
        Verdict::AlreadyGiven(_) => "already given: ",
        Verdict::Accepted => "",
    };
    let shutdown = interruptible();
    runtime.work_on(&key, Arc::new(Silent), &shutdown, is_paused).await?;
    let opened = inspect::open(runtime.store(), &key).await?;
    let id = short_id(key.run.as_str(), &[]);
    let status = opened.standing.status.as_str();
    let text = format!("{already}run {id} is {status}{}\n{}", show::because(&opened), show::acts(app, &opened));
    app.say(&text, &show::as_json(&opened));
    Ok(0)
}

/// A cancel that came in between ends it, too.
fn is_paused(stands: &Standing) -> bool {
    stands.status.is_terminal() || stands.reasons.iter().any(|reason| matches!(reason, Reason::Stopped { .. }))
}
