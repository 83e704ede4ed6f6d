//! `export --all`: every run that can still be read, each as a file, whatever else of the store is damaged.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use lodestep::Runtime;
use lodestep::bundle::About;
use lodestep::core::{Error, Result};
use lodestep::store::{MemoryStore, RunRef, SystemClock};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::bundle;

/// Writes each run to a file of its own in a new folder, and has each file read again. Exits 7 when a run could not be
/// written.
pub async fn export_all(app: &App, folder: &Path) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let found = runtime.store().found().await?;
    fs::create_dir(folder).map_err(|error| {
        Error::new(
            "bundle.unwritable",
            format!("{}: {error}", folder.display()),
            "name a folder that is not there yet, in one that is",
        )
    })?;
    let (mut text, mut exported, mut left) = (String::new(), Vec::new(), Vec::new());
    for run in &found.runs {
        match save(&runtime, run, folder).await {
            Ok(about) => exported.push(about),
            Err(error) => {
                text.push_str(&format!("run {}: NOT EXPORTED: {} [{}]\n", run.key.run, error.what(), error.code()));
                left.push(json!({"namespace": run.key.namespace, "run": run.key.run, "error": app.as_json(&error)}));
            }
        }
    }
    for lost in &found.lost {
        text.push_str(&format!("{lost}\n"));
    }
    text.push_str(&format!(
        "{} of {} runs were exported to {}\n",
        exported.len(),
        found.runs.len() + found.lost.len(),
        folder.display()
    ));
    let is_whole = left.is_empty() && found.lost.is_empty();
    let value: Value =
        json!({"folder": folder.display().to_string(), "exported": exported, "left": left, "lost": found.lost});
    app.say(&text, &value);
    Ok(if is_whole { 0 } else { 7 })
}

/// Writes one run. A file that could not be taken in again is removed: what it was made from is damaged.
async fn save(runtime: &Runtime, run: &RunRef, folder: &Path) -> Result<About> {
    // Two namespaces may have the same id.
    let path = folder.join(format!("{}-{}.lodestep", run.number, run.key.run));
    let about = bundle::write(runtime, run, &path).await?;
    let check = Runtime::builder(Arc::new(MemoryStore::new(Arc::new(SystemClock)))).build();
    let file = File::open(&path)
        .map_err(|error| Error::new("bundle.unreadable", format!("{}: {error}", path.display()), "try again"))?;
    match check.import(file).await {
        Ok(_) => Ok(about),
        // The file is sound; the run has to end before any store takes it in.
        Err(error) if error.code() == "bundle.cancelling" => Ok(about),
        Err(error) => {
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}
