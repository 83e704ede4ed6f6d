//! `export` and `import`: a run as one file.

use std::fs::File;
use std::path::{Path, PathBuf};

use lodestep::Runtime;
use lodestep::bundle::{self, About};
use lodestep::core::{Error, Result};
use lodestep::store::{Clock as _, RunRef, SqliteStore, SystemClock};
use serde_json::json;

use crate::app::App;
use crate::text::short_id;

/// Writes a run to a new file.
pub async fn export(app: &App, run: &str, path: &Path) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    let about = write(&runtime, &row.run, path).await?;
    let text =
        format!("run {} was exported up to step {} to {}\nhead {}\n", about.run, about.seq, path.display(), about.head);
    app.say(&text, &json!(about));
    Ok(0)
}

/// Writes a run to a file that is not there yet. Under its name the file is always whole.
pub(super) async fn write(runtime: &Runtime, run: &RunRef, path: &Path) -> Result<About> {
    let refused = |path: &Path, why: String| {
        Error::new("bundle.unwritable", format!("{}: {why}", path.display()), "name a file that is not there yet")
    };
    if path.exists() {
        return Err(refused(path, "it is there already".to_owned()));
    }
    let draft = draft_of(path);
    let file = File::create(&draft).map_err(|error| refused(&draft, error.to_string()))?;
    let written = runtime.export(run, &file).await;
    let kept = written.and_then(|about| {
        let kept = file.sync_all().and_then(|()| std::fs::rename(&draft, path));
        kept.map(|()| about).map_err(|error| refused(path, error.to_string()))
    });
    if kept.is_err() {
        // It may not even exist.
        let _ = std::fs::remove_file(&draft);
    }
    kept
}

fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

/// Takes in a run from a file.
pub async fn import(app: &App, path: &Path) -> Result<u8> {
    let unreadable = |why: String| {
        let what = format!("{}: {why}", path.display());
        Error::new("bundle.unreadable", what, "name a file that `lodestep export` wrote")
    };
    if path.is_dir() {
        return Err(unreadable("it is a folder; import its files one by one".to_owned()));
    }
    let open = || File::open(path).map_err(|error| unreadable(error.to_string()));
    let file = open()?;
    if !SqliteStore::is_or_was_at(&app.store_path()) && path.is_file() {
        // A refusal leaves no empty store behind. What is no plain file can't be read twice.
        bundle::check(open()?, SystemClock.wall())?;
    }
    let runtime = app.open(true)?;
    let imported = runtime.import(file).await?;
    let about = &imported.about;
    app.speaks_of(&imported.run.key);
    let id = short_id(&about.run, &[]);
    let mut text = format!("run {} was imported up to step {}\nhead {}\n", about.run, about.seq, about.head);
    if imported.held {
        text.push_str(&format!(
            "it is held: see that it does not go on where it came from, then\n  {}\n",
            app.command(&format!("release {id}"))
        ));
    }
    let value = json!({"run": about.run, "seq": about.seq, "head": about.head, "held": imported.held});
    app.say(&text, &value);
    Ok(0)
}
