//! Agent files as texts: what they compile to, and what is said of their faults.

mod definitions;
mod faults;
mod http;
mod inputs;
mod json_schema;
mod schemas;
mod service;
mod tool_faults;
mod whole_files;

use std::path::PathBuf;

use super::{AgentFile, AgentFileErrors};

/// The least that a file has: five lines, so that what is added begins in line 6.
const LEAST: &str = r#"format = 1
agent = { name = "a", objective = "o" }
[model]
provider = "offline"

"#;

/// A folder with an agent file.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The folder's true path.
    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn load(&self, text: impl AsRef<[u8]>) -> Result<AgentFile, AgentFileErrors> {
        AgentFile::load(&self.write("agent.toml", text))
    }
}

/// Loads a file that has to be sound.
fn sound(text: &str) -> AgentFile {
    Folder::new().load(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// The faults of what is added to the least file, as `line:column: what | mend`; lines count from the addition, and `~`
/// stands for the folder.
fn faults_of(added: &str) -> Vec<String> {
    let folder = Folder::new();
    let errors = folder.load(format!("{LEAST}{added}")).expect_err(added);
    let home = folder.path().display().to_string();
    let shown = |fault: &super::Fault| {
        let (line, column, mend) = (fault.line as i64 - 5, fault.column, fault.mend.replace(&home, "~"));
        format!("{line}:{column}: {} | {mend}", fault.what)
    };
    errors.faults().iter().map(shown).collect()
}

/// Compares a table of additions with their faults, and shows all that differ at once.
fn check_faults(table: &[(&str, &[&str])]) {
    let mut differ = String::new();
    for (added, expected) in table {
        let found = faults_of(added);
        if found != *expected {
            differ += &format!(
                "--- {added}\n  found\n    {}\n  expected\n    {}\n",
                found.join("\n    "),
                expected.join("\n    ")
            );
        }
    }
    assert!(differ.is_empty(), "\n{differ}");
}
