//! `ls`: runs, what needs you first.

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Result};
use lodestep::store::{Filter, RunRow};
use serde_json::{Value, json};

use crate::app::App;
use crate::text::{line, short_id};

/// Lists runs.
pub async fn ls(app: &App, statuses: Vec<String>, agent: Option<String>, limit: usize) -> Result<u8> {
    let statuses = statuses.iter().map(|text| status_of(text)).collect::<Result<Vec<Status>>>()?;
    let runtime = app.open_to_read()?;
    let filter = Filter { statuses, agent, limit: Some(limit) };
    let mut rows = runtime.store().list(DEFAULT_NAMESPACE, &filter).await?;
    rows.sort_by_key(|row| (group(row), std::cmp::Reverse(row.started_at)));
    let ids: Vec<&str> = rows.iter().map(|row| row.run.key.run.as_str()).collect();
    let mut text = String::new();
    let mut shown = None;
    for row in &rows {
        let group = group(row);
        if shown != Some(group) {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{}\n", GROUPS[group]));
            shown = Some(group);
        }
        let id = short_id(row.run.key.run.as_str(), &ids);
        let status = if row.holder.is_some() { "running" } else { row.status.as_str() };
        let why = line(&row.why, 60);
        text.push_str(&format!("  {id:<10} {status:<12} step {:<6} {:<24} {why}\n", row.seq, line(&row.agent, 24)));
    }
    if rows.is_empty() {
        text.push_str("no runs\n");
    }
    app.say(&text, &Value::Array(rows.iter().map(as_json).collect()));
    Ok(0)
}

const GROUPS: [&str; 4] = ["needs you", "waiting", "running", "over"];

fn group(row: &RunRow) -> usize {
    match row.status {
        Status::InDoubt | Status::Quarantined | Status::Stopped => 0,
        Status::Waiting if row.why.contains("approval") || row.why.contains("answer") => 0,
        Status::Waiting => 1,
        Status::Ready => 2,
        Status::Completed | Status::Failed | Status::Cancelled => 3,
    }
}

fn status_of(text: &str) -> Result<Status> {
    let wanted = text.replace('-', " ");
    Status::ALL.into_iter().find(|status| status.as_str() == wanted).ok_or_else(|| {
        let known: Vec<String> = Status::ALL.iter().map(|status| status.as_str().replace(' ', "-")).collect();
        Error::new("usage.status", format!("`{text}` is no status"), format!("one of {}", known.join(", ")))
    })
}

/// A run's row as JSON.
pub fn as_json(row: &RunRow) -> Value {
    json!({
        "run": row.run.key.run, "agent": row.agent, "status": row.status, "why": row.why, "step": row.seq,
        "running": row.holder.is_some(), "due": row.due.map(|due| due.to_string()), "crashes": row.crashes,
        "started_at": row.started_at.to_string(), "updated_at": row.updated_at.to_string(), "head": row.head,
    })
}
