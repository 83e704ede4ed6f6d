//! `ls`: runs, what needs you first.

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Result};
use lodestep::store::{Filter, RunRow};
use serde_json::{Value, json};

use crate::app::App;
use crate::text::{line, short_id};

/// How many rows are looked through for those that a live worker holds.
const LOOKED_THROUGH: usize = 10_000;

/// Lists runs.
pub async fn ls(app: &App, words: Vec<String>, agent: Option<String>, limit: usize) -> Result<u8> {
    let wanted = words.iter().map(|word| Wanted::parse(word)).collect::<Result<Vec<_>>>()?;
    let runtime = app.open_to_read()?;
    let store = runtime.store();
    // Which of the unfinished ones a worker holds is not in the index.
    let by_holder = wanted.iter().any(|wanted| matches!(wanted, Wanted::Running | Wanted::Status(Status::Ready)));
    let most = if by_holder { limit.max(LOOKED_THROUGH) } else { limit };
    let statuses = wanted.iter().flat_map(Wanted::statuses).collect();
    let filter = Filter { statuses, agent, limit: Some(most) };
    let rows = store.list(DEFAULT_NAMESPACE, &filter).await?;
    // A dead worker holds nothing any more.
    let alive = |row: RunRow| RunRow { holder: row.holder.filter(|worker| store.is_alive(worker)), ..row };
    let is_wanted = |row: &RunRow| wanted.is_empty() || wanted.iter().any(|wanted| wanted.takes(row));
    let mut rows: Vec<RunRow> = rows.into_iter().map(alive).filter(is_wanted).take(limit).collect();
    rows.sort_by_key(|row| (group(row), std::cmp::Reverse(row.started_at)));
    app.say(&in_words(&rows), &Value::Array(rows.iter().map(as_json).collect()));
    Ok(0)
}

fn in_words(rows: &[RunRow]) -> String {
    let ids: Vec<&str> = rows.iter().map(|row| row.run.key.run.as_str()).collect();
    let mut text = String::new();
    let mut shown = None;
    for row in rows {
        let group = group(row);
        if shown != Some(group) {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{}\n", GROUPS[group]));
            shown = Some(group);
        }
        let id = short_id(row.run.key.run.as_str(), &ids);
        let (status, why) = match (row.holder.is_some(), row.status) {
            (true, _) => ("running", row.why.clone()),
            (false, Status::Ready) => ("ready", unheld(row)),
            (false, status) => (status.as_str(), row.why.clone()),
        };
        let why = line(&why, 60);
        text.push_str(&format!("  {id:<10} {status:<12} step {:<6} {:<24} {why}\n", row.seq, line(&row.agent, 24)));
    }
    if rows.is_empty() { "no runs\n".to_owned() } else { text }
}

/// Why a ready run does not move: nobody works on it.
pub fn unheld(row: &RunRow) -> String {
    format!("no worker holds it, since {}", row.due.unwrap_or(row.updated_at).max(row.updated_at))
}

const GROUPS: [&str; 5] = ["needs you", "ready", "waiting", "running", "over"];

fn group(row: &RunRow) -> usize {
    match row.status {
        status if status.is_terminal() => 4,
        _ if row.holder.is_some() => 3,
        Status::InDoubt | Status::Quarantined | Status::Stopped => 0,
        Status::Waiting if row.why.contains("approval") || row.why.contains("answer") => 0,
        Status::Ready => 1,
        _ => 2,
    }
}

/// What `--status` takes: a status, or `running` for a run that a live worker holds.
enum Wanted {
    Status(Status),
    Running,
}

impl Wanted {
    fn parse(word: &str) -> Result<Self> {
        if word == "running" {
            return Ok(Self::Running);
        }
        let wanted = word.replace(['-', '_'], " ");
        let found = Status::ALL.into_iter().find(|status| status.as_str() == wanted);
        found.map(Self::Status).ok_or_else(|| {
            let known = Status::ALL.iter().map(|status| status.as_str().replace(' ', "-"));
            let known: Vec<String> = ["running".to_owned()].into_iter().chain(known).collect();
            let what = format!("`{}` is no status", word.escape_default());
            Error::new("usage.status", what, format!("one of {}", known.join(", ")))
        })
    }

    fn statuses(&self) -> Vec<Status> {
        match self {
            Self::Status(status) => vec![*status],
            Self::Running => Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect(),
        }
    }

    fn takes(&self, row: &RunRow) -> bool {
        match self {
            Self::Running => row.holder.is_some() && !row.status.is_terminal(),
            // A ready run that is worked on is running.
            Self::Status(Status::Ready) => row.status == Status::Ready && row.holder.is_none(),
            Self::Status(wanted) => row.status == *wanted,
        }
    }
}

/// A run's row as JSON.
pub fn as_json(row: &RunRow) -> Value {
    json!({
        "run": row.run.key.run, "agent": row.agent, "status": row.status, "why": row.why, "step": row.seq,
        "running": row.holder.is_some(), "due": row.due.map(|due| due.to_string()), "crashes": row.crashes,
        "started_at": row.started_at.to_string(), "updated_at": row.updated_at.to_string(), "head": row.head,
    })
}
