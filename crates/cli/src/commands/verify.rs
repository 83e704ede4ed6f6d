//! `verify`: is the store's file sound, and do the journals still say what they said?

use lodestep::Runtime;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::{Error, Result};
use lodestep::inspect::{self, Report};
use lodestep::store::{Audit, Filter, RunRef};
use serde_json::{Value, json};

use crate::app::App;
use crate::findings::Findings;
use crate::text::short_id;

/// Verifies the file, then one run, or all. Exits 7 when something is damaged.
pub async fn verify(app: &App, run: Option<String>) -> Result<u8> {
    let runtime = app.open_to_read().map_err(unopened)?;
    let in_full = run.is_some();
    let file = File::check(app, &runtime).await?;
    let audit = match wanted(app, &runtime, run).await {
        // What can't be read of a damaged file is no more than that, and the file's faults are still told.
        Err(error) if file.damage.is_some() && error.code() == "store.corrupt" => Audit::default(),
        audit => audit?,
    };
    let mut found = Findings::of(app);
    let mut runs: Vec<(String, bool)> = Vec::new();
    let (mut reports, mut text, mut damaged) =
        (vec![file.as_json(app, &audit.strays)], file.in_words(app), file.damage.is_some());
    let mut sound = 0;
    for run in audit.runs {
        let id = short_id(run.key.run.as_str(), &[]).to_owned();
        match inspect::verify(runtime.store(), &run).await {
            Ok(report) => {
                damaged |= !report.faults.is_empty();
                runs.push((run.key.run.to_string(), !report.faults.is_empty()));
                sound += usize::from(report.faults.is_empty());
                text.push_str(&in_words(&id, &report, in_full));
                let mut json = json!(report);
                if file.damage.is_some() && report.faults.is_empty() {
                    let unreadable = unreadable(&runtime, &run).await;
                    text.push_str(&reach(app, &id, unreadable.as_ref()));
                    json["unreadable"] = json!(unreadable.map(|error| app.as_json(&error)));
                }
                reports.push(json);
            }
            Err(error) => {
                damaged = true;
                runs.push((run.key.run.to_string(), true));
                text.push_str(&format!("run {id}: DAMAGED: {}\n", error.what()));
                reports.push(json!({"run": run.key.as_ref(), "faults": [error.what()]}));
            }
        }
    }
    if !audit.strays.is_empty() {
        damaged = true;
        let strays = audit.strays.iter().map(|stray| format!("  {stray}\n")).collect::<String>();
        text.push_str(&format!("rows of no run: DAMAGED\n{strays}"));
    }
    if reports.len() == 1 {
        text.push_str(if damaged { "no run can be read\n" } else { "no runs\n" });
    }
    if !in_full && reports.len() > 1 {
        let faulty = reports.len() - 1 - sound;
        let faulty = if faulty > 0 { format!(", {faulty} DAMAGED") } else { String::new() };
        text.push_str(&format!("{sound} run{} sound{faulty}\n", if sound == 1 { "" } else { "s" }));
    }
    if in_full {
        runs.iter().for_each(|(run, is_damaged)| found.set(run, *is_damaged));
    } else {
        let is_file = file.damage.is_some() || !audit.strays.is_empty();
        found.replace(runs.into_iter().filter_map(|(run, is_damaged)| is_damaged.then_some(run)), is_file);
    }
    found.keep(runtime.store().now());
    app.say(&text, &Value::Array(reports));
    Ok(if damaged { 7 } else { 0 })
}

/// What to do with a store that can't be opened at all: to verify it is no advice here.
fn unopened(error: Error) -> Error {
    if error.code() != "store.corrupt" || !error.next().contains("`lodestep verify`") {
        return error;
    }
    let next = "it can't be opened at all: keep it as it is, with its -wal, and put back a copy that verifies";
    Error::new("store.corrupt", error.what().to_owned(), next)
}

/// Why no command that looks at a sound run of a damaged file reaches it: they find it by an index that verifying passes by.
async fn unreadable(runtime: &Runtime, run: &RunRef) -> Option<Error> {
    match runtime.find(run.key.run.as_str()).await {
        Ok(row) => inspect::open(runtime.store(), &row.run.key).await.err(),
        Err(error) => Some(error),
    }
}

fn reach(app: &App, id: &str, unreadable: Option<&Error>) -> String {
    match unreadable {
        None => format!("  `{}` still reads it\n", app.command(&format!("show {id}"))),
        Some(error) => format!("  no command reads it here: {} [{}]\n", error.what(), error.code()),
    }
}

async fn wanted(app: &App, runtime: &Runtime, run: Option<String>) -> Result<Audit> {
    match run {
        Some(run) => Ok(Audit { runs: vec![app.find(runtime, &run).await?.run], strays: Vec::new() }),
        None => match runtime.store().audit().await {
            // A damaged table keeps nothing else from being read.
            Err(error) if error.code() == "store.corrupt" => {
                let rows = runtime.store().list(DEFAULT_NAMESPACE, &Filter::default()).await?;
                let strays = vec![error.what().to_owned()];
                Ok(Audit { runs: rows.into_iter().map(|row| row.run).collect(), strays })
            }
            audit => audit,
        },
    }
}

/// The store's file, and what is wrong with it.
struct File {
    path: String,
    faults: Vec<String>,
    damage: Option<Error>,
}

impl File {
    async fn check(app: &App, runtime: &Runtime) -> Result<Self> {
        let path = app.store_path().display().to_string();
        let faults = runtime.store().integrity().await?;
        let damage = (!faults.is_empty()).then(|| {
            Error::new(
                "store.corrupt",
                format!("{path} is damaged"),
                "end its workers and keep it as it is with its -wal; put it back from a copy that verifies. \
                 Each sound run below says whether commands still read it",
            )
        });
        Ok(Self { path, faults, damage })
    }

    fn in_words(&self, app: &App) -> String {
        let Some(error) = &self.damage else { return format!("store {}: sound\n", self.path) };
        let faults = self.faults.iter().map(|fault| format!("  {fault}\n")).collect::<String>();
        format!("store {}: DAMAGED [{}]\n{faults}  {}\n", self.path, error.code(), app.pasted(error.next()))
    }

    fn as_json(&self, app: &App, strays: &[String]) -> Value {
        let faults: Vec<&String> = self.faults.iter().chain(strays).collect();
        let error = self.damage.as_ref().map(|damage| app.as_json(damage));
        json!({"store": self.path, "faults": faults, "error": error})
    }
}

/// A run that is sound takes one line among others, and its digests stand below it when it is asked for alone.
fn in_words(id: &str, report: &Report, in_full: bool) -> String {
    if report.faults.is_empty() {
        let erased = if report.erased > 0 { format!(", {} values erased", report.erased) } else { String::new() };
        let digests = format!("  head  {}\n  state {}\n", report.head, report.state);
        return format!(
            "run {id}: sound. {} transitions, {} snapshots, {} rows, {} values{erased}\n{}",
            report.transitions,
            report.snapshots,
            report.rows,
            report.values,
            if in_full { digests.as_str() } else { "" }
        );
    }
    report.faults.iter().fold(format!("run {id}: DAMAGED\n"), |text, fault| format!("{text}  {fault}\n"))
}
