//! Agent files and `lodestep.toml`, from a file as a user has them.

use std::cell::OnceCell;
use std::path::PathBuf;

use lodestep::agent::{AgentFile, AgentFileErrors, Wiring};
use lodestep::tools::schema::Schemas;
use lodestep_core::Definition;
use tempfile::TempDir;

use super::answer;

/// An agent file. What is taken compiles, and its definition has one spelling.
pub(super) fn agent_file(input: &[u8]) -> u64 {
    let read = written("agent.toml", input, AgentFile::load);
    match read {
        Ok(file) => {
            let stored = file.definition.to_bytes();
            let again = Definition::from_bytes(&stored).expect("a definition is read back");
            assert_eq!(again.to_bytes(), stored, "a definition has one spelling");
            let _ = Schemas::of(&file.definition);
            let given: Vec<_> = file.inputs.iter().map(|spec| (spec.name.clone(), "x".to_owned())).collect();
            let inputs = file.inputs(&given, &file.folder);
            answer(&inputs.map_or_else(|error| error.what().to_owned(), |_| "taken".to_owned()))
        }
        Err(errors) => refused(&errors),
    }
}

/// A `lodestep.toml`.
pub(super) fn wiring(input: &[u8]) -> u64 {
    match written("lodestep.toml", input, |path| Wiring::load(path, None)) {
        Ok(wiring) => answer(&format!("taken {} {}", wiring.env.is_empty(), wiring.agents.is_empty())),
        Err(errors) => refused(&errors),
    }
}

/// The number of the first fault's words, with those of the others mixed in only by whether there are any.
fn refused(errors: &AgentFileErrors) -> u64 {
    let said = errors.faults().first().map_or(errors.code(), |fault| fault.what.as_str());
    answer(said)
}

/// Gives a file with these bytes to a reader. Each thread has a folder of its own, with a program and instructions in it.
fn written<T>(name: &str, input: &[u8], read: impl FnOnce(&std::path::Path) -> T) -> T {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    let path: PathBuf = FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            let folder = TempDir::new().expect("a folder");
            std::fs::write(folder.path().join("instructions.md"), "Work.").expect("instructions");
            folder
        });
        folder.path().join(name)
    });
    std::fs::write(&path, input).expect("a file");
    read(&path)
}
