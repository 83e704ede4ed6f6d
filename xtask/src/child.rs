//! Processes that a chore starts and has to see the end of, whatever they do.

use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often a process is looked at.
pub const LOOK: Duration = Duration::from_millis(50);

/// The status, or nothing when the limit has passed and the process is still there.
///
/// # Errors
///
/// If it can't be looked at.
pub fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot look at a process")? {
            return Ok(Some(status));
        }
        if began.elapsed() > limit {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Asks a process to put its things in order and end.
///
/// # Errors
///
/// If there is no shell.
pub fn terminate(child: &Child) -> Result<()> {
    signal("TERM", &child.id().to_string())
}

/// Ends a process and all that it started, if it has a group of its own.
///
/// # Errors
///
/// If there is no shell, or the process can't be waited for.
pub fn kill_group(child: &mut Child) -> Result<()> {
    signal("KILL", &format!("-{}", child.id()))?;
    child.wait().context("cannot wait for a process")?;
    Ok(())
}

/// One that is gone already is no error: it may end at any moment.
fn signal(name: &str, to: &str) -> Result<()> {
    // The shell's own `kill`: small images have no other.
    let words = format!("kill -s {name} -- {to} 2>/dev/null");
    Command::new("sh").args(["-c", &words]).status().context("cannot start sh")?;
    Ok(())
}
