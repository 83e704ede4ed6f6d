//! Actions that are tried again: which tool, what it last said, when. A row says only that there is one; the rest stands in
//! the run's state.

use std::collections::BTreeMap;

use lodestep::core::checkpoint::{ActionState, Checkpoint};
use lodestep::core::{Ordinal, Timestamp};
use lodestep::store::{RunRef, RunRow, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::select::MOST;
use crate::text::line;

/// An action that is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The action.
    pub action: Ordinal,
    /// Its tool.
    pub tool: String,
    /// What was seen of the last attempt; empty when it is not known any more.
    pub error: String,
    /// Not before this time.
    pub at: Timestamp,
}

impl Retry {
    /// As JSON.
    pub fn as_json(&self) -> Value {
        json!({"action": self.action, "tool": self.tool, "error": self.error, "at": self.at.to_string()})
    }

    /// What it retries, with an error of at most so many characters.
    pub fn in_words(&self, most: usize) -> String {
        let tool = line(&self.tool, 64);
        if self.error.is_empty() {
            format!("retry of {tool}")
        } else {
            format!("retry of {tool} ({})", line(&self.error, most))
        }
    }

    /// What a row's reasons say in its place.
    pub fn in_a_row(&self) -> String {
        format!("retry of action {} at {}", self.action, self.at)
    }
}

/// What the first thousand of these runs that retry something retry, by the runs' numbers.
pub async fn of(store: &dyn Store, rows: impl Iterator<Item = &RunRow>) -> BTreeMap<i64, Vec<Retry>> {
    let mut found = BTreeMap::new();
    for row in rows.filter(|row| row.why.contains("retry of action")).take(MOST) {
        // A run whose state can't be read is for `verify` to name.
        let Ok(state) = store.load(&row.run.key).await.and_then(|loaded| loaded.checkpoint()) else { continue };
        found.insert(row.run.number, of_run(store, &row.run, &state).await);
    }
    found
}

async fn of_run(store: &dyn Store, run: &RunRef, state: &Checkpoint) -> Vec<Retry> {
    let mut retries = Vec::new();
    for action in state.pending.values().filter(|action| action.attempts > 0) {
        let (ActionState::Ready { not_before: at } | ActionState::LookUp { not_before: at, .. }) = action.state else {
            continue;
        };
        let last =
            state.errors.iter().rev().find(|error| error.ordinal == Some(action.ordinal)).map(|error| error.text);
        let said = match last {
            Some(text) => store.values(run, &[text]).await.ok().and_then(|mut read| read.remove(&text.digest)),
            None => None,
        };
        let error = said.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        retries.push(Retry { action: action.ordinal, tool: action.tool.clone(), error, at });
    }
    retries
}

/// A tool that runs retry.
pub struct Failing {
    /// The tool.
    pub tool: String,
    /// By how many runs.
    pub runs: usize,
    /// What it said to one of them.
    pub error: String,
}

impl Failing {
    /// What happens, in words.
    pub fn in_words(&self) -> String {
        let (runs, retry) =
            if self.runs == 1 { ("1 run".to_owned(), "retries") } else { (format!("{} runs", self.runs), "retry") };
        let error = if self.error.is_empty() { String::new() } else { format!(": {}", line(&self.error, 100)) };
        format!("{runs} {retry} `{}`{error}", line(&self.tool, 64))
    }

    /// The command that stops it.
    pub fn stop(&self, app: &App) -> String {
        app.command(&format!("hold {}", crate::text::quoted(&format!("tool:{}", self.tool))))
    }
}

/// The tools that runs retry, those of the most runs first.
pub fn failing(retries: &BTreeMap<i64, Vec<Retry>>) -> Vec<Failing> {
    let mut tools: BTreeMap<&str, Failing> = BTreeMap::new();
    for of_run in retries.values() {
        let mut counted: Vec<&str> = Vec::new();
        for retry in of_run {
            let tool = tools.entry(&retry.tool).or_insert_with(|| Failing {
                tool: retry.tool.clone(),
                runs: 0,
                error: String::new(),
            });
            if !retry.error.is_empty() {
                tool.error.clone_from(&retry.error);
            }
            if !counted.contains(&retry.tool.as_str()) {
                counted.push(&retry.tool);
                tool.runs += 1;
            }
        }
    }
    let mut failing: Vec<Failing> = tools.into_values().collect();
    failing.sort_by_key(|tool| std::cmp::Reverse(tool.runs));
    failing
}
