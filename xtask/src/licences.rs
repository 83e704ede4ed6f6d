//! `cargo xtask licences`: licences, banned crates and sources of every dependency, by cargo-deny.
//!
//! `deny.toml` holds the rules and their reasons. A cargo-deny on the PATH is used as it is; without one, the
//! version pinned below is built into the target folder, once, which takes about two minutes on two cores.
//! Advisories are not asked for: they need a network beyond the package registry, and a build that passed
//! yesterday must pass today.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{self, cargo};

const CARGO_DENY_VERSION: &str = "0.20.2";

/// Checks the dependencies against `deny.toml`.
///
/// # Errors
///
/// If one breaks a rule, or cargo-deny can be neither found nor built.
pub fn run() -> Result<()> {
    let tool = match find() {
        Some(found) => found,
        None => install()?,
    };
    let check = ["--locked", "--workspace", "--all-features", "check", "licenses", "bans", "sources"];
    workspace::run(Command::new(tool).args(check).current_dir(workspace::root()))
}

fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(program()));
    std::iter::once(installed()).chain(on_path).find(|candidate| candidate.is_file())
}

fn install() -> Result<PathBuf> {
    eprintln!("cargo-deny is not here; building {CARGO_DENY_VERSION} into the target folder, once");
    let tools = workspace::target().join("tools");
    let build = workspace::target().join("tools-build");
    let install = ["install", "cargo-deny", "--locked", "--version", CARGO_DENY_VERSION, "--root"];
    workspace::run(cargo().args(install).arg(&tools).env("CARGO_TARGET_DIR", &build))?;
    // Half a gigabyte that nothing needs again.
    std::fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
    Ok(installed())
}

fn installed() -> PathBuf {
    workspace::target().join("tools").join("bin").join(program())
}

fn program() -> String {
    format!("cargo-deny{}", env::consts::EXE_SUFFIX)
}
