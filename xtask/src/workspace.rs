//! Where the workspace lies, which files belong to it, and how a command is run in it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The repository's root.
///
/// Asked of cargo at run time first: a target folder shared by two clones may hold the other clone's binary.
pub fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Cargo's target folder, absolute; chores keep their tools and scratch trees in it.
pub fn target() -> PathBuf {
    let root = root();
    // `join` with an absolute path gives that path.
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |set| root.join(set))
}

/// The cargo that runs this program, to be started in the root.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command with this program's own output, after showing it.
///
/// # Errors
///
/// If it cannot be started or does not exit with 0.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// The command as a person would type it, its program without the folder.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words: Vec<_> = std::iter::once(name).chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

/// Every file of the working tree that is tracked or could be: uncommitted work counts, ignored files do not.
///
/// Paths are relative to the root, with `/`, sorted. A file that is deleted but not yet committed is left out.
///
/// # Errors
///
/// If git is missing or the root is not a working tree.
pub fn files() -> Result<Vec<String>> {
    let root = root();
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start git")?;
    ensure!(output.status.success(), "`git ls-files` failed: {}", output.status);
    let listed = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files: Vec<String> =
        listed.split('\0').filter(|path| !path.is_empty() && root.join(path).is_file()).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}
