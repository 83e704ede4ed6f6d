//! `cancel`: nothing is sent from then on.

use std::sync::Arc;

use lodestep::core::Result;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::inspect;
use lodestep::observe::Silent;

use crate::app::App;
use crate::commands::run::interruptible;
use crate::commands::show;
use crate::text::short_id;

/// Cancels a run, and sees it to its end when no other worker does.
pub async fn cancel(app: &App, run: &str, reason: String) -> Result<u8> {
    let runtime = app.open(false)?;
    let row = app.find(&runtime, run).await?;
    let key = row.run.key.clone();
    let already = match runtime.send(&key, &app.by(), Word::Cancel { reason }).await? {
        Verdict::Refused(error) => return Err(error),
        Verdict::AlreadyGiven(_) => true,
        Verdict::Accepted => false,
    };
    let shutdown = interruptible();
    let over = |stands: &lodestep::core::rules::standing::Standing| stands.status.is_terminal();
    runtime.work_on(&key, Arc::new(Silent), &shutdown, over).await?;
    let opened = inspect::open(runtime.store(), &key).await?;
    let id = short_id(key.run.as_str(), &[]);
    let said = if already { "already given: " } else { "" };
    let text = format!("{said}run {id} is {}{}\n", opened.standing.status.as_str(), show::because(&opened));
    app.say(&text, &show::as_json(&opened));
    Ok(0)
}
