//! `--crash-at`: the same command again, in a process that aborts at a fault point.

use std::collections::BTreeMap;

use lodestep::core::{Definition, Digest, Error, Result};
use lodestep::store::RunRow;
use lodestep::{Runtime, agent, fault, inspect};

/// Starts this command again with the point armed, if one of these runs can pass it.
///
/// # Errors
///
/// `usage.crash_at` naming the nearest tool, or the points that it passes: a misspelt one would crash nothing.
pub async fn at(runtime: &Runtime, rows: &[RunRow], point: &str) -> Result<u8> {
    let mut definitions: BTreeMap<Digest, Definition> = BTreeMap::new();
    for row in rows {
        if !definitions.contains_key(&row.definition)
            && let Some(definition) =
                inspect::open(runtime.store(), &row.run.key).await.ok().and_then(|it| it.definition)
        {
            definitions.insert(row.definition, definition);
        }
    }
    let checked: Vec<Result<()>> =
        definitions.values().map(|definition| agent::check_fault_point(definition, point)).collect();
    if checked.iter().all(Result::is_err)
        && let Some(fault) = checked.into_iter().next()
    {
        fault?;
    }
    again_with(point)
}

/// The armed point is read from the environment, once: this process becomes one that has it.
///
/// # Errors
///
/// `usage.crash_at` when the program can't be started again.
pub fn again_with(point: &str) -> Result<u8> {
    let fault = |error: std::io::Error| Error::new("usage.crash_at", format!("can't start again: {error}"), "");
    let program = std::env::current_exe().map_err(fault)?;
    let mut rest: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if let Some(at) = rest.iter().position(|word| word == "--crash-at") {
        rest.drain(at..(at + 2).min(rest.len()));
    }
    rest.retain(|word| !word.to_string_lossy().starts_with("--crash-at="));
    let mut command = std::process::Command::new(program);
    command.args(rest).env(fault::CRASH_AT, point);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // Hints name the program as it was typed, also those of the process that this one becomes.
        if let Some(typed) = std::env::args_os().next() {
            command.arg0(typed);
        }
        Err(fault(command.exec()))
    }
    #[cfg(not(unix))]
    return command.status().map_err(fault).map(|status| status.code().unwrap_or(1) as u8);
}
