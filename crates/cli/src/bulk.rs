//! A word to many: what is meant is shown and counted, a person agrees, each is judged on its own, and a total ends it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestep::Runtime;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Standing, Status};
use lodestep::core::{Error, Result, RunKey};
use lodestep::observe::Silent;
use lodestep::store::RunRow;
use serde_json::{Value, json};

use crate::app::{App, exit_code};
use crate::commands::run::interruptible;
use crate::prompt::Terminal;
use crate::select::{MOST, Selected, Selection};
use crate::text::{line, short_id};
use crate::unknown;

/// The code of a person's no: nothing is wrong, and nothing changed.
pub const DECLINED: &str = "consent.declined";

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
    /// It counts once under this id, however often it is said.
    pub id: Option<String>,
    /// What comes of it when it is accepted.
    pub then: Then,
    /// What it is called in its line.
    pub name: String,
    /// What it is, in a line.
    pub shown: String,
    /// What its JSON says besides.
    pub json: Value,
}

/// What comes of a word that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Its run goes on once a worker has read it.
    GoesOn,
    /// Its run is over and stays so: the word is read at once.
    StaysOver,
    /// Its run stands where it stood, or is seen to its end by whoever says it.
    Stands,
}

impl Then {
    /// What comes of a word on an action of a run of this status.
    pub fn of(status: Status) -> Self {
        if status.is_terminal() { Self::StaysOver } else { Self::GoesOn }
    }
}

/// What filters chose for a word to many.
#[derive(Default)]
pub struct Chosen {
    /// Those that it is said to.
    pub items: Vec<Item>,
    /// Those that need it no more.
    pub skipped: Vec<Skipped>,
    /// Why there may be more.
    pub note: Option<String>,
}

/// One that needs no word any more.
pub struct Skipped {
    /// What is known of it, in a few words: `denied by ada`.
    pub why: String,
    /// It as JSON: its run, and its request if it is one.
    pub json: Value,
}

/// What the words to many came to.
#[derive(Default)]
struct Total {
    accepted: usize,
    already: usize,
    refused: usize,
    skipped: BTreeMap<String, usize>,
}

impl Total {
    fn in_words(&self, done: &str) -> String {
        let mut text = format!("{} {done}", self.accepted);
        for (count, what) in [(self.already, "already given"), (self.refused, "refused")] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        let skipped: usize = self.skipped.values().sum();
        if skipped > 0 {
            let why: Vec<String> = self.skipped.iter().map(|(why, count)| format!("{count} {why}")).collect();
            text.push_str(&format!(", {skipped} skipped: {}", why.join(", ")));
        }
        text
    }
}

impl Bulk {
    /// Is it about many?
    pub fn is_given(&self) -> bool {
        !self.selection.is_empty()
    }

    /// Asks, then says each its word; the highest exit code. When all that were chosen need it no more, nothing is asked.
    ///
    /// # Errors
    ///
    /// As [`agree`]; `usage.nothing_selected`.
    pub async fn say(&self, app: &App, runtime: &Runtime, verb: &str, chosen: Chosen, done: &str) -> Result<u8> {
        let Chosen { items, skipped, note } = chosen;
        if !items.is_empty() || skipped.is_empty() {
            self.confirm(runtime, verb, &items, &skipped, note.as_deref()).await?;
        }
        Ok(say(app, runtime, items, skipped, done).await)
    }

    /// The runs that the filters choose, of these statuses when none was said, each with a word.
    ///
    /// # Errors
    ///
    /// `usage.status`, and the store's errors.
    pub async fn runs(
        &self,
        runtime: &Runtime,
        otherwise: &[Status],
        then: Then,
        word: impl Fn() -> Word,
    ) -> Result<Chosen> {
        let sieve = self.selection.sieve(runtime.store())?;
        let Selected { rows, note } = sieve.runs(runtime.store(), otherwise, MOST).await?;
        let ids: Vec<&str> = rows.iter().map(|row| row.run.key.run.as_str()).collect();
        let item = |row: &RunRow| Item {
            run: RunKey::clone(&row.run.key),
            word: word(),
            id: None,
            then,
            name: short_id(row.run.key.run.as_str(), &ids).to_owned(),
            shown: format!("{:<12} {}  {}", row.status.as_str(), line(&row.agent, 24), line(&row.why, 60)),
            json: Value::Null,
        };
        Ok(Chosen { items: rows.iter().map(item).collect(), skipped: Vec::new(), note })
    }

    /// Shows what is meant and asks; Ok when a person agrees.
    async fn confirm(
        &self,
        runtime: &Runtime,
        verb: &str,
        items: &[Item],
        skipped: &[Skipped],
        note: Option<&str>,
    ) -> Result<()> {
        let count = items.len();
        if count == 0 {
            let unknown = unknown::notes(runtime.store(), &self.selection).await?;
            let known = || "`lodestep ls` with the same filters shows the runs".to_owned();
            let next = if unknown.is_empty() { known() } else { unknown.join("; ") };
            let what = format!("there is nothing to {verb}: the filters take none");
            return Err(Error::new("usage.nothing_selected", what, next));
        }
        for item in items {
            lodestep::note!("  {}  {}", item.name, item.shown);
        }
        lodestep::note!("{count} to {verb}");
        if !skipped.is_empty() {
            lodestep::note!("note: {} skipped, which need it no longer", skipped.len());
        }
        note.iter().for_each(|note| lodestep::note!("note: {note}"));
        agree(self.yes, verb, count).await
    }
}

/// Asks whether to do something to so many; Ok when a person agrees, or has agreed beforehand.
///
/// # Errors
///
/// `usage.unconfirmed` without a terminal and without `--yes`; [`DECLINED`] when a person says no.
pub async fn agree(yes: bool, verb: &str, count: usize) -> Result<()> {
    if yes {
        return Ok(());
    }
    let Some(mut terminal) = Terminal::here().await else {
        let what = format!("{count} to {verb}, and nobody agreed; nothing changed");
        return Err(Error::new("usage.unconfirmed", what, "look at the list and give --yes"));
    };
    let these = if count == 1 { "this" } else { "these" };
    match terminal.answer(&format!("{verb} {these} {count}? [y]es, [n]o: ")).await.as_deref() {
        Some("y" | "yes") => Ok(()),
        _ => Err(Error::new(DECLINED, "nothing changed", "")),
    }
}

/// Says each its word. Each is judged on its own: a refusal of one leaves the others said. The highest exit code.
///
/// What is refused is shown, and a total ends it.
pub async fn say(app: &App, runtime: &Runtime, items: Vec<Item>, skipped: Vec<Skipped>, done: &str) -> u8 {
    let (mut code, mut said, mut total) = (0, Vec::new(), Total::default());
    for item in items {
        let name = &item.name;
        let mut value = match tell(app, runtime, &item, done).await {
            Ok(Told { text, value, accepted }) => {
                *(if accepted { &mut total.accepted } else { &mut total.already }) += 1;
                if !app.json {
                    app.print(&format!("{name}: {text}"));
                }
                value
            }
            Err(error) => {
                total.refused += 1;
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
    for Skipped { why, json } in skipped {
        let mut value = json;
        value["verdict"] = json!("skipped");
        value["why"] = json!(why);
        said.push(value);
        *total.skipped.entry(why).or_default() += 1;
    }
    if app.json {
        app.print(&format!("{}\n", Value::Array(said)));
    } else {
        app.print(&format!("{}\n", total.in_words(done)));
    }
    code
}

/// What came of a word that was not refused.
pub struct Told {
    /// In words.
    pub text: String,
    /// As JSON.
    pub value: Value,
    /// Is it new? Else the same was said before.
    pub accepted: bool,
}

/// Tells a run. A refusal is an error.
///
/// # Errors
///
/// What the run refuses, and the store's errors.
pub async fn tell(app: &App, runtime: &Runtime, item: &Item, done: &str) -> Result<Told> {
    let Item { run, word, id, then, .. } = item;
    let verdict = match id {
        Some(id) => runtime.send_as(run, id, &app.by(), word.clone()).await?,
        None => runtime.send(run, &app.by(), word.clone()).await?,
    };
    if *then == Then::StaysOver && !matches!(verdict, Verdict::Refused(_)) {
        // It is durable by now: what goes wrong from here on leaves it to the next worker.
        let _ = runtime.work_on(run, Arc::new(Silent), &interruptible(), is_over).await;
    }
    match verdict {
        Verdict::Accepted => {
            let id = short_id(run.run.as_str(), &[]);
            let text = match then {
                Then::GoesOn => {
                    let hint = app.command(&format!("resume {id}"));
                    format!("{done}; run {id} goes on as soon as a worker is there (`{hint}` is one)\n")
                }
                Then::StaysOver => format!("{done}; run {id} is over and stays so\n"),
                Then::Stands => format!("{done}\n"),
            };
            Ok(Told { text, value: json!({"verdict": "accepted", "run": run.run}), accepted: true })
        }
        Verdict::AlreadyGiven(happened) => {
            let text = format!("already given: {happened}\n");
            let value = json!({"verdict": "already_given", "run": run.run, "happened": happened});
            Ok(Told { text, value, accepted: false })
        }
        Verdict::Refused(error) => Err(error),
    }
}

fn is_over(stands: &Standing) -> bool {
    stands.status.is_terminal()
}
