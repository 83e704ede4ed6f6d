//! `signal`: something happened outside that a run waits for, or will.

use lodestep::core::json::{canonical, parse_strict};
use lodestep::core::rules::inbox::Word;
use lodestep::core::{Error, Result};

use crate::app::App;
use crate::commands::sending::send;
use crate::text::short_id;

/// Sends a signal.
pub async fn signal(app: &App, run: &str, name: String, value: Option<String>, id: Option<String>) -> Result<u8> {
    let value = parse_strict(value.as_deref().unwrap_or("null")).map_err(|fault| {
        Error::new(
            "usage.signal",
            format!("the signal's value is {fault}"),
            "give one JSON value; a text has quotes: '\"yes\"'",
        )
    })?;
    let runtime = app.open(false)?;
    let row = app.find(&runtime, run).await?;
    let short = short_id(row.run.key.run.as_str(), &[]);
    let done = format!("sent; run {short} takes it as soon as it waits for {name} and a worker is there");
    let word = Word::Signal { name, value: canonical(&value) };
    send(app, &runtime, &row.run.key, id.as_deref(), word, &done).await
}
