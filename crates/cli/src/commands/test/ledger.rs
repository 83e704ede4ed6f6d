//! The ledger of effects that were really applied. It stands outside the runtime: either the agent's own
//! `[test] ledger` command says what the world shows, or the holders of the tools' processes wrote down what ended well.

use std::path::Path;

use lodestep::core::{Error, Result};

use crate::commands::test::Setting;

/// One applied effect: the tool, and the key that it was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Applied {
    /// The tool's name.
    pub tool: String,
    /// The idempotency key.
    pub key: String,
}

/// Reads the ledger of a trial.
///
/// # Errors
///
/// `test.ledger` when the command fails or a line is not `TOOL KEY`.
pub async fn read(setting: &Setting, world: &Path, held: &Path) -> Result<Vec<Applied>> {
    let text = match &setting.ledger {
        Some(command) => ask(setting, command, world).await?,
        None => std::fs::read_to_string(held).unwrap_or_default(),
    };
    let mut all: Vec<Applied> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let applied = applied(line)?;
        // Without a word of the receiver's, its class is believed: it applies a key once.
        let repeated = setting.ledger.is_none() && setting.keyed.contains(&applied.tool) && all.contains(&applied);
        if !repeated {
            all.push(applied);
        }
    }
    Ok(all)
}

fn applied(line: &str) -> Result<Applied> {
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [tool, key] => Ok(Applied { tool: (*tool).to_owned(), key: (*key).to_owned() }),
        _ => Err(fault(format!("`{}` is no line of a ledger", line.escape_default()))),
    }
}

async fn ask(setting: &Setting, command: &[String], world: &Path) -> Result<String> {
    let [program, arguments @ ..] = command else {
        return Err(fault("the ledger's command is empty".to_owned()));
    };
    let output = tokio::process::Command::new(program)
        .args(arguments.iter().map(|word| word.replace("${test:folder}", &world.display().to_string())))
        .current_dir(&setting.agent_folder)
        .env("LODESTEP_TEST_FOLDER", world)
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .map_err(|error| fault(format!("{program}: {error}")))?;
    if !output.status.success() {
        return Err(fault(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn fault(what: String) -> Error {
    Error::new(
        "test.ledger",
        what,
        "the command of [test] ledger prints a line `TOOL KEY` for each effect that was applied",
    )
}
