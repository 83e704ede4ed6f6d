//! Processes that a chore starts and has to see the end of, whatever they do.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often a process is looked at.
pub const LOOK: Duration = Duration::from_millis(50);

/// What a group of processes is sent.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// It may put its things in order first.
    Term,
    /// It ends at once.
    Kill,
}

/// Gives a command that is about to start a group of its own, by which [`end`] reaches what it starts in turn.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Signals a child's [own group](in_own_group). A group that is gone already is no error.
///
/// # Errors
///
/// If there is no shell.
pub fn end(child: &Child, signal: Signal) -> Result<()> {
    let name = match signal {
        Signal::Term => "TERM",
        Signal::Kill => "KILL",
    };
    // The shell's own `kill`: small images have no other.
    let words = format!("kill -s {name} -- -{} 2>/dev/null", child.id());
    Command::new("sh").args(["-c", &words]).status().context("cannot start sh")?;
    Ok(())
}

/// The status of a child of [its own group](in_own_group), or nothing if the limit passed and it had to be ended. In both
/// cases it is gone.
///
/// # Errors
///
/// If it can't be looked at, or not be ended.
pub fn wait(mut child: Child, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
    let status = wait_until(&mut child, limit.map(|limit| Instant::now() + limit))?;
    if status.is_none() {
        end(&child, Signal::Kill)?;
        child.wait()?;
    }
    Ok(status)
}

/// The status, or nothing when the time has come and the child is still there.
///
/// # Errors
///
/// If it can't be looked at.
pub fn wait_until(child: &mut Child, until: Option<Instant>) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait().context("cannot look at a process")? {
            return Ok(Some(status));
        }
        if until.is_some_and(|until| Instant::now() > until) {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}
