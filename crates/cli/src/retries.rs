//! Actions and calls of a model that are tried again: which tool, what was last said, when. A row says only that there is one;
//! the rest stands in the run's state.

use std::collections::BTreeMap;

use lodestep::core::checkpoint::{ActionState, Checkpoint, ErrorEntry};
use lodestep::core::event::ErrorKind;
use lodestep::core::{Ordinal, Stored, Timestamp};
use lodestep::store::{RunRow, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::select::MOST;
use crate::text::line;

/// An action, or the next call of the model, that is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The action and its tool; `None` for a call of the model.
    pub action: Option<(Ordinal, String)>,
    /// What was seen of the last attempt; empty when it is not known any more.
    pub error: String,
    /// Not before this time.
    pub at: Timestamp,
}

impl Retry {
    /// As JSON.
    pub fn as_json(&self) -> Value {
        let (action, tool) = self.action.clone().unzip();
        json!({"action": action, "tool": tool, "error": self.error, "at": self.at.to_string()})
    }

    /// What it retries, with an error of at most so many characters.
    pub fn in_words(&self, most: usize) -> String {
        let what = match &self.action {
            Some((_, tool)) => format!("retry of {}", line(tool, 64)),
            None => "provider".to_owned(),
        };
        if self.error.is_empty() { what } else { format!("{what} ({})", line(&self.error, most)) }
    }

    /// What a row's reasons say in its place.
    fn in_a_row(&self) -> String {
        match &self.action {
            Some((ordinal, _)) => format!("retry of action {ordinal} at {}", self.at),
            None => format!("provider until {}", self.at),
        }
    }
}

/// A run's reasons with what each retry is about, its error cut to so many characters, and its time while that is to come.
pub fn told(reasons: &str, retries: &[Retry], most: usize, is_due: bool) -> String {
    retries.iter().fold(reasons.to_owned(), |reasons, retry| {
        let next = if is_due { String::new() } else { format!(", next at {}", retry.at) };
        reasons.replace(&retry.in_a_row(), &format!("{}{next}", retry.in_words(most)))
    })
}

/// What the first thousand of these runs that retry something retry, by the runs' numbers.
pub async fn of(store: &dyn Store, rows: impl Iterator<Item = &RunRow>) -> BTreeMap<i64, Vec<Retry>> {
    let mut found = BTreeMap::new();
    let retries = |row: &&RunRow| row.why.contains("retry of action") || row.why.contains("provider until");
    for row in rows.filter(retries).take(MOST) {
        // A run whose state can't be read is for `verify` to name.
        let Ok(state) = store.load(&row.run.key).await.and_then(|loaded| loaded.checkpoint()) else { continue };
        let texts: Vec<Stored> = open(&state).into_iter().filter_map(|(_, text, _)| text).collect();
        let read = store.values(&row.run, &texts).await.unwrap_or_default();
        let said = |text: &Stored| read.get(&text.digest).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        found.insert(row.run.number, of_state(&state, |text| said(text).unwrap_or_default()));
    }
    found
}

/// What a run retries whose texts are known.
pub fn of_state(state: &Checkpoint, said: impl Fn(&Stored) -> String) -> Vec<Retry> {
    let open = open(state).into_iter();
    open.map(|(action, text, at)| Retry { action, error: text.map(|text| said(&text)).unwrap_or_default(), at })
        .collect()
}

/// What is tried again, the text of its last error, and the time.
type Open = (Option<(Ordinal, String)>, Option<Stored>, Timestamp);

fn open(state: &Checkpoint) -> Vec<Open> {
    let last = |is_of: &dyn Fn(&ErrorEntry) -> bool| {
        state.errors.iter().rev().find(|error| is_of(error)).map(|error| error.text)
    };
    let actions = state.pending.values().filter(|action| action.attempts > 0).filter_map(|action| {
        let (ActionState::Ready { not_before: at } | ActionState::LookUp { not_before: at, .. }) = action.state else {
            return None;
        };
        let text = last(&|error| error.ordinal == Some(action.ordinal));
        Some((Some((action.ordinal, action.tool.clone())), text, at))
    });
    let model = (state.model.failed_in_row > 0 && state.decision.is_none())
        .then(|| (None, last(&|error| error.kind == ErrorKind::Model), state.model.not_before));
    actions.chain(model).collect()
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
        for (retry, name) in of_run.iter().filter_map(|retry| Some((retry, &retry.action.as_ref()?.1))) {
            let tool =
                tools.entry(name).or_insert_with(|| Failing { tool: name.clone(), runs: 0, error: String::new() });
            if !retry.error.is_empty() {
                tool.error.clone_from(&retry.error);
            }
            if !counted.contains(&name.as_str()) {
                counted.push(name);
                tool.runs += 1;
            }
        }
    }
    let mut failing: Vec<Failing> = tools.into_values().collect();
    failing.sort_by_key(|tool| std::cmp::Reverse(tool.runs));
    failing
}
