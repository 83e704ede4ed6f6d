//! An agent's surroundings: what its file refers to and this machine has to have.

use std::path::Path;

use lodestep::agent::AgentFile;
use lodestep::core::Error;
use lodestep::core::definition::ToolKind;
use lodestep::secrets;

use super::checkup::{Area, Checkup};
use crate::app::App;
use crate::programs;
use crate::wiring::wiring;

/// Looks at what an agent file needs. Nothing of it is started.
pub fn look(app: &App, file: &Path, checkup: &mut Checkup) {
    let agent = match AgentFile::load(file).map_err(Error::from) {
        Ok(agent) => agent,
        Err(error) => return checkup.problem(Area::Agent, error.what().to_owned(), error.next().to_owned()),
    };
    let before = checkup.problems();
    let environment = match wiring(app, Some(&agent)) {
        Ok(wiring) => wiring.environment(),
        Err(error) => return checkup.problem(Area::Agent, error.what().to_owned(), error.next().to_owned()),
    };
    let lacking = secrets::lacking(&agent.definition, &environment);
    for name in lacking.missing {
        checkup.problem(Area::Agent, format!("the variable {name} is not set"), "set it where the agent is run");
    }
    for unread in lacking.unread {
        checkup.problem(Area::Agent, unread, "mend its source in lodestep.toml");
    }
    for name in lacking.short {
        let what = format!("the value of {name} has fewer than 8 bytes");
        checkup.problem(Area::Agent, what, "give it a longer one: a shorter can't be kept out of what is stored");
    }
    for tool in &agent.definition.tools {
        if let ToolKind::Command { folder, .. } = &tool.kind {
            let folder = Path::new(folder);
            if !folder.is_dir() {
                let what = format!("tool {}: its folder {} is not there", tool.name, folder.display());
                checkup.problem(Area::Agent, what, "make it, or name another in the agent file");
            }
        }
    }
    for program in programs::missing(&agent.definition) {
        checkup.problem(Area::Agent, program.in_words(), programs::MEND);
    }
    if checkup.problems() == before {
        let secrets = agent.secrets.len();
        let what = format!("{}: sound; {secrets} variables set, every program found", agent.path.display());
        checkup.ok(Area::Agent, what);
    }
}
