//! `init`: an agent that runs offline at once, to be made one's own.

use std::path::Path;

use lodestep::core::{Error, Result};
use serde_json::json;

use crate::app::{App, prepare_folder};
use crate::commands::schema::Schema;
use crate::text::quoted;

/// What can be begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// Reads a folder of documents and drafts a report.
    Research,
    /// A program as a tool, each call of which needs an approval.
    Approval,
    /// A scripted run to be killed and resumed.
    Demo,
}

impl Template {
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Research => &[
                ("agent.toml", include_str!("../../templates/research/agent.toml")),
                ("documents/crust.md", include_str!("../../templates/research/documents/crust.md")),
                ("documents/cold.md", include_str!("../../templates/research/documents/cold.md")),
            ],
            Self::Approval => &[
                ("agent.toml", include_str!("../../templates/approval/agent.toml")),
                ("script.json", include_str!("../../templates/approval/script.json")),
                ("tools/send.sh", include_str!("../../templates/approval/tools/send.sh")),
            ],
            Self::Demo => &[
                ("agent.toml", include_str!("../../templates/demo/agent.toml")),
                ("script.json", include_str!("../../templates/demo/script.json")),
            ],
        }
    }
}

/// Where an editor finds the schema: the first line of each template names it.
const SCHEMA: &str = ".lodestep/agent.schema.json";

/// Writes a template's files into a folder. One that is there already is never touched, and then nothing is written;
/// the schema beside them is this program's own and written anew.
///
/// # Errors
///
/// `init.exists` names the file; `init.unwritable` what the system says.
pub fn init(app: &App, folder: &Path, template: Template) -> Result<u8> {
    let files = template.files();
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).symlink_metadata().is_ok()) {
        let what = format!("{} is there already", folder.join(name).display());
        return Err(Error::new("init.exists", what, "name another folder; nothing was written"));
    }
    for (name, text) in files {
        write_new(&folder.join(name), text)?;
    }
    write_schema(&folder.join(SCHEMA))?;
    let agent = folder.join("agent.toml");
    let run = app.command(&format!("run {}", quoted(&agent.display().to_string())));
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).chain([SCHEMA]).collect();
    let text = format!("wrote {} into {}\nnow:\n  {run}\n", names.join(", "), folder.display());
    app.say(&text, &json!({"folder": folder, "files": names, "command": run}));
    Ok(0)
}

fn write_schema(path: &Path) -> Result<()> {
    prepare_folder(path)?;
    std::fs::write(path, Schema::Agent.text().as_bytes()).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new("init.unwritable", format!("{} can't be written: {error}", path.display()), "name another folder")
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    let fault = |error: std::io::Error| unwritable(path, &error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    let mut file = std::fs::File::create_new(path).map_err(fault)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(fault)
}
