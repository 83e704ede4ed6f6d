//! How a word to a run as a whole is sent: under an id of the sender's own, if there is one.

use lodestep::Runtime;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::{Result, RunKey};
use serde_json::json;

use crate::app::App;

/// Sends it; `done` is said when it counts.
pub async fn send(app: &App, runtime: &Runtime, run: &RunKey, id: Option<&str>, word: Word, done: &str) -> Result<u8> {
    let by = app.by();
    let verdict = match id {
        Some(id) => runtime.send_as(run, id, &by, word).await?,
        None => runtime.send(run, &by, word).await?,
    };
    match verdict {
        Verdict::Accepted => app.say(&format!("{done}\n"), &json!({"verdict": "accepted", "run": run.run})),
        Verdict::AlreadyGiven(happened) => app.say(
            &format!("already given: {happened}\n"),
            &json!({"verdict": "already_given", "run": run.run, "happened": happened}),
        ),
        Verdict::Refused(error) => return Err(error),
    }
    Ok(0)
}
