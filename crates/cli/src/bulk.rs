//! A word to many: what is meant is shown and counted, a person agrees, and each is judged on its own.

use lodestep::Runtime;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Result, RunKey};
use lodestep::store::RunRow;
use serde_json::{Value, json};

use crate::app::{App, exit_code};
use crate::prompt::Terminal;
use crate::select::{MOST, Selected, Selection};
use crate::text::{line, short_id};

/// The filters of a word to many, and the consent.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Bulk {
    #[command(flatten)]
    pub selection: Selection,
    /// With filters: don't ask.
    #[arg(long)]
    pub yes: bool,
}

/// A word to one of many.
pub struct Item {
    /// The run.
    pub run: RunKey,
    /// What is said to it.
    pub word: Word,
    /// What it is called in its line.
    pub name: String,
    /// What it is, in a line.
    pub shown: String,
    /// What its JSON says besides.
    pub json: Value,
}

impl Bulk {
    /// Is it about many?
    pub fn is_given(&self) -> bool {
        !self.selection.is_empty()
    }

    /// Asks, then says each its word; the highest exit code.
    ///
    /// # Errors
    ///
    /// As [`Self::confirm`].
    pub async fn say(
        &self,
        app: &App,
        runtime: &Runtime,
        verb: &str,
        items: Vec<Item>,
        note: Option<&str>,
        done: &str,
    ) -> Result<u8> {
        self.confirm(verb, &items, note).await?;
        Ok(say(app, runtime, items, done).await)
    }

    /// Says a word to the runs that the filters choose, of these statuses when none was said.
    ///
    /// # Errors
    ///
    /// As [`Self::confirm`], and the store's errors.
    pub async fn say_to_runs(
        &self,
        app: &App,
        runtime: &Runtime,
        verb: &str,
        otherwise: &[Status],
        word: impl Fn() -> Word,
        done: &str,
    ) -> Result<u8> {
        let (items, note) = self.runs(runtime, otherwise, word).await?;
        self.say(app, runtime, verb, items, note.as_deref(), done).await
    }

    /// The runs that the filters choose, each with a word.
    ///
    /// # Errors
    ///
    /// `usage.status`, and the store's errors.
    pub async fn runs(
        &self,
        runtime: &Runtime,
        otherwise: &[Status],
        word: impl Fn() -> Word,
    ) -> Result<(Vec<Item>, Option<String>)> {
        let sieve = self.selection.sieve(runtime.store())?;
        let Selected { rows, note } = sieve.runs(runtime.store(), otherwise, MOST).await?;
        let ids: Vec<&str> = rows.iter().map(|row| row.run.key.run.as_str()).collect();
        let item = |row: &RunRow| Item {
            run: RunKey::clone(&row.run.key),
            word: word(),
            name: short_id(row.run.key.run.as_str(), &ids).to_owned(),
            shown: format!("{:<12} {}  {}", row.status.as_str(), line(&row.agent, 24), line(&row.why, 60)),
            json: Value::Null,
        };
        Ok((rows.iter().map(item).collect(), note))
    }

    /// Shows what is meant and asks; Ok when a person agrees.
    ///
    /// # Errors
    ///
    /// `usage.unconfirmed` without a terminal and without `--yes`, and when a person says no; `usage.nothing_selected`.
    pub async fn confirm(&self, verb: &str, items: &[Item], note: Option<&str>) -> Result<()> {
        let count = items.len();
        if count == 0 {
            let what = format!("there is nothing to {verb}: the filters take none");
            return Err(Error::new(
                "usage.nothing_selected",
                what,
                "`lodestep ls` with the same filters shows the runs",
            ));
        }
        for item in items {
            lodestep::note!("  {}  {}", item.name, item.shown);
        }
        lodestep::note!("{count} to {verb}");
        note.iter().for_each(|note| lodestep::note!("note: {note}"));
        agree(self.yes, verb, count).await
    }
}

/// Asks whether to do something to so many; Ok when a person agrees, or has agreed beforehand.
///
/// # Errors
///
/// `usage.unconfirmed` without a terminal and without `--yes`, and when a person says no.
pub async fn agree(yes: bool, verb: &str, count: usize) -> Result<()> {
    if yes {
        return Ok(());
    }
    let unconfirmed = |next: &str| {
        Err(Error::new("usage.unconfirmed", format!("{count} to {verb}, and nobody agreed; nothing changed"), next))
    };
    let Some(mut terminal) = Terminal::here().await else {
        return unconfirmed("look at the list and give --yes");
    };
    let these = if count == 1 { "this" } else { "these" };
    match terminal.answer(&format!("{verb} {these} {count}? [y]es, [n]o: ")).await.as_deref() {
        Some("y" | "yes") => Ok(()),
        _ => unconfirmed("type it again and answer y"),
    }
}

/// Says each its word. Each is judged on its own: a refusal of one leaves the others said. The highest exit code.
///
/// What is refused is shown.
pub async fn say(app: &App, runtime: &Runtime, items: Vec<Item>, done: &str) -> u8 {
    let (mut code, mut said) = (0, Vec::new());
    for item in items {
        let name = &item.name;
        let mut value = match tell(app, runtime, &item.run, item.word, done).await {
            Ok((text, value)) => {
                if !app.json {
                    app.print(&format!("{name}: {text}"));
                }
                value
            }
            Err(error) => {
                code = code.max(exit_code(&error));
                if !app.json {
                    app.report(&Error::new(error.code(), format!("{name}: {}", error.what()), error.next()));
                }
                json!({"verdict": "refused", "run": item.run.run, "error": app.as_json(&error)})
            }
        };
        for (name, more) in item.json.as_object().into_iter().flatten() {
            value[name] = more.clone();
        }
        said.push(value);
    }
    if app.json {
        app.print(&format!("{}\n", Value::Array(said)));
    }
    code
}

/// Tells a run; what came of it, as text and as JSON. A refusal is an error.
///
/// # Errors
///
/// What the run refuses, and the store's errors.
pub async fn tell(app: &App, runtime: &Runtime, run: &RunKey, word: Word, done: &str) -> Result<(String, Value)> {
    match runtime.send(run, &app.by(), word).await? {
        Verdict::Accepted => {
            let id = short_id(run.run.as_str(), &[]);
            let hint = app.command(&format!("resume {id}"));
            let text = format!("{done}; run {id} goes on as soon as a worker is there (`{hint}` is one)\n");
            Ok((text, json!({"verdict": "accepted", "run": run.run})))
        }
        Verdict::AlreadyGiven(happened) => {
            let text = format!("already given: {happened}\n");
            Ok((text, json!({"verdict": "already_given", "run": run.run, "happened": happened})))
        }
        Verdict::Refused(error) => Err(error),
    }
}
