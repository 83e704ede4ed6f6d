//! Which runs a `run` command follows whose end it has not shown yet.
//!
//! A process can be killed after its run has ended and before anybody was told. The same command again must then show that
//! end: starting another run would do every effect a second time. A marker file beside the store stands from before the work
//! until the end was shown. It survives the process, which is all that it is for.

use std::path::{Path, PathBuf};

use lodestep::Runtime;
use lodestep::core::{Digest, Result};
use lodestep::store::RunRow;

use crate::app::App;

/// A marker that stands until [`Following::shown`].
pub struct Following {
    path: PathBuf,
}

fn folder(app: &App) -> PathBuf {
    let mut folder = app.store_path().into_os_string();
    folder.push("-files/following");
    PathBuf::from(folder)
}

/// Makes an empty file, and its folder, for their owner only.
fn make(folder: &Path, path: &Path) -> std::io::Result<()> {
    let (mut folders, mut file) = (std::fs::DirBuilder::new(), std::fs::OpenOptions::new());
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    }
    folders.recursive(true).create(folder)?;
    file.write(true).create(true).truncate(true).open(path).map(drop)
}

impl Following {
    /// Marks a run as followed.
    pub fn mark(app: &App, run: &str) -> Self {
        let folder = folder(app);
        let path = folder.join(run);
        // Without the marker the run is as safe as before; only the same command after its end is not.
        let _ = make(&folder, &path);
        Self { path }
    }

    /// Its standing was shown.
    pub fn shown(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A run of this agent and these inputs that has ended without anybody being told.
///
/// # Errors
///
/// The store's errors.
pub async fn ended_unseen(app: &App, runtime: &Runtime, agent: &str, inputs: &Digest) -> Result<Option<RunRow>> {
    let Ok(entries) = std::fs::read_dir(folder(app)) else { return Ok(None) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(row) = runtime.find(&name).await else { continue };
        let same = row.run.key.run.as_str() == name && row.agent == agent && row.inputs == *inputs;
        if same && row.status.is_terminal() {
            return Ok(Some(row));
        }
    }
    Ok(None)
}
