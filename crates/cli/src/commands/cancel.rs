//! `cancel`: nothing is sent from then on.

use std::sync::Arc;

use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::Standing;
use lodestep::core::{Result, RunKey};
use lodestep::observe::Silent;
use lodestep::{Runtime, inspect};

use crate::app::App;
use crate::bulk::{Bulk, Then};
use crate::commands::run::interruptible;
use crate::commands::show;
use crate::people;
use crate::select::{either, unfinished};
use crate::text::short_id;

/// Cancels a run, or many, and sees each to its end when no other worker does.
pub async fn cancel(app: &App, run: Option<String>, reason: String, bulk: &Bulk) -> Result<u8> {
    either(run.is_some(), &bulk.selection, "run")?;
    let runtime = app.open(false)?;
    let Some(run) = run else { return cancel_many(app, &runtime, reason, bulk).await };
    let row = app.find(&runtime, &run).await?;
    let key = row.run.key.clone();
    let already = match runtime.send(&key, &app.by(), Word::Cancel { reason }).await? {
        Verdict::Refused(error) => return Err(error),
        Verdict::AlreadyGiven(_) => true,
        Verdict::Accepted => false,
    };
    // It is durable by now; what follows may take as long as what was sent.
    let id = short_id(key.run.as_str(), &[]);
    if !already {
        lodestep::note!("run {id} is being cancelled: nothing more is sent, and what was sent has ten seconds to end");
    }
    runtime.work_on(&key, Arc::new(Silent), &interruptible(), is_over).await?;
    let opened = inspect::open(runtime.store(), &key).await?;
    let said = if already { "already given: " } else { "" };
    let text = format!("{said}run {id} is {}{}\n", opened.standing.status.as_str(), show::because(&opened));
    let doubts = people::doubts(app, runtime.store(), &opened).await;
    app.say(&format!("{text}{doubts}"), &show::as_json(&opened));
    Ok(0)
}

/// Every run hears it before the first is seen to its end.
async fn cancel_many(app: &App, runtime: &Runtime, reason: String, bulk: &Bulk) -> Result<u8> {
    let word = || Word::Cancel { reason: reason.clone() };
    let chosen = bulk.runs(runtime, &unfinished(), Then::Stands, word).await?;
    let keys: Vec<RunKey> = chosen.items.iter().map(|item| item.run.clone()).collect();
    let code = bulk.say(app, runtime, "cancel", chosen, "cancelled").await?;
    let shutdown = interruptible();
    for key in keys {
        if !shutdown.is_begun() {
            runtime.work_on(&key, Arc::new(Silent), &shutdown, is_over).await?;
        }
    }
    Ok(code)
}

fn is_over(stands: &Standing) -> bool {
    stands.status.is_terminal()
}
