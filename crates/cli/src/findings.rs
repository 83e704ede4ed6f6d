//! What `verify` found damaged, in a file beside the store: whoever works there or looks at its runs is told, and nobody has to
//! verify for it. Damage in one run is no reason to refuse another, so that nothing but a note comes of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lodestep::core::Timestamp;
use lodestep::store::RunRef;

use crate::app::App;
use crate::text::{line, short_id};

/// So many damaged runs are named.
const NAMED: usize = 5;

/// How the store itself is named among what is damaged: no run's id has a blank.
const THE_FILE: &str = "the file";

/// What was found, and when.
pub struct Findings {
    path: PathBuf,
    damaged: BTreeSet<String>,
    at: String,
}

impl Findings {
    /// What was found last in this place's store; nothing, when that can't be read.
    pub fn of(app: &App) -> Self {
        let mut path = app.store_path().into_os_string();
        path.push("-files/damaged");
        let path = PathBuf::from(path);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines().map(str::to_owned);
        let at = lines.next().unwrap_or_default();
        Self { path, damaged: lines.collect(), at }
    }

    /// Of all runs those that are damaged, and whether the file is.
    pub fn replace(&mut self, runs: impl IntoIterator<Item = String>, file: bool) {
        self.damaged = runs.into_iter().chain(file.then(|| THE_FILE.to_owned())).collect();
    }

    /// That one run is damaged, or sound.
    pub fn set(&mut self, run: &str, is_damaged: bool) {
        if is_damaged {
            self.damaged.insert(run.to_owned());
        } else {
            self.damaged.remove(run);
        }
    }

    /// Keeps it. A place that can't be written is left as it is: what was found is printed all the same.
    pub fn keep(&self, at: Timestamp) {
        if self.damaged.is_empty() {
            let _ = std::fs::remove_file(&self.path);
            return;
        }
        let lines = std::iter::once(at.to_string()).chain(self.damaged.iter().cloned());
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        let draft = self.path.with_extension("new");
        let _ = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &self.path));
    }

    /// Says that this run is damaged, if it was found so: what is shown of it may be wrong.
    pub fn tell_of(&self, app: &App, run: &RunRef) {
        let id = run.key.run.as_str();
        if self.damaged.contains(id) {
            let verify = app.command(&format!("verify {}", short_id(id, &[])));
            lodestep::note!(
                "warning: run {} is damaged, as `verify` found at {}: what follows may be wrong; `{verify}` says what",
                short_id(id, &[]),
                line(&self.at, 40)
            );
        }
    }

    /// Says what was found, if anything was.
    pub fn tell(&self, app: &App) {
        if self.damaged.is_empty() {
            return;
        }
        let named: Vec<&str> =
            self.damaged.iter().take(NAMED).map(|of| if of == THE_FILE { of } else { short_id(of, &[]) }).collect();
        let more = match self.damaged.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (verify, export) = (app.command("verify"), app.command("export --all FOLDER"));
        lodestep::note!(
            "warning: this store is damaged, as `verify` found at {}: {}{more}; what is sound goes on",
            line(&self.at, 40),
            line(&named.join(", "), 400)
        );
        lodestep::note!("  `{verify}` says what, and looks anew; `{export}` saves what can be read");
    }
}
