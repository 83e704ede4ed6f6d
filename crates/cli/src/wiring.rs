//! `lodestep.toml` beside the store: what belongs to a place and not to an agent. No definition's digest covers it.

use std::path::PathBuf;
use std::time::Duration;

use lodestep::core::{Error, Result};
use serde::Deserialize;

use crate::app::App;
use crate::args::duration;

/// The file's name.
const FILE: &str = "lodestep.toml";

/// How long a notification may take when nothing is said, and at most.
const TIMEOUT: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));

/// What the file says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    notify: Option<SaidNotify>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidNotify {
    command: Vec<String>,
    timeout: Option<String>,
}

/// The command that is run when a run needs somebody or is over.
#[derive(Clone, Debug)]
pub struct NotifyCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder that it runs in: the file's.
    pub folder: PathBuf,
    /// It is ended after so long.
    pub timeout: Duration,
}

/// The command of `[notify]`, if the store has a file that names one.
///
/// # Errors
///
/// `wiring.invalid` names the file and what is wrong in it.
pub fn notify_command(app: &App) -> Result<Option<NotifyCommand>> {
    let path = app.store_path().with_file_name(FILE);
    let invalid =
        |what: String| Error::new("wiring.invalid", format!("{}: {what}", path.display()), "mend it or move it away");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(invalid(format!("it can't be read: {error}"))),
    };
    let said: Said = toml::from_str(&text).map_err(|error| invalid(error.to_string().trim_end().to_owned()))?;
    let Some(notify) = said.notify else { return Ok(None) };
    if notify.command.first().is_none_or(String::is_empty) {
        return Err(invalid("notify.command names no program".to_owned()));
    }
    let timeout = match notify.timeout.as_deref().map(duration) {
        None => TIMEOUT.0,
        Some(Ok(timeout)) if !timeout.is_zero() && timeout <= TIMEOUT.1 => timeout,
        Some(_) => return Err(invalid("notify.timeout is no time up to 60s: write 10s".to_owned())),
    };
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    Ok(Some(NotifyCommand { command: notify.command, folder, timeout }))
}
