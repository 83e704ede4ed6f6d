//! `tell`: guidance for a run's model.

use lodestep::core::Result;
use lodestep::core::rules::inbox::Word;
use lodestep::core::rules::standing::Status;

use crate::app::App;
use crate::commands::sending::send;
use crate::text::short_id;

/// Tells the run's model something.
pub async fn tell(app: &App, run: &str, text: String, id: Option<String>) -> Result<u8> {
    let runtime = app.open(false)?;
    let row = app.find(&runtime, run).await?;
    let key = &row.run.key;
    let resume = app.command(&format!("resume {}", short_id(key.run.as_str(), &[])));
    let done = match row.status {
        Status::Stopped | Status::Quarantined => {
            format!("told; its next decision sees it once the run goes on: {resume}")
        }
        _ => "told; its next decision sees it".to_owned(),
    };
    send(app, &runtime, key, id.as_deref(), Word::Tell { text }, &done).await
}
