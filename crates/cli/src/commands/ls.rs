//! `ls`: runs in groups, what needs you first. Few of each are shown, the others are counted.

use std::collections::{BTreeMap, BTreeSet};

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::remind;
use lodestep::core::rules::standing::Status;
use lodestep::core::{Result, Timestamp};
use lodestep::inspect;
use lodestep::store::{RunRow, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::hold;
use crate::people;
use crate::select::{Selected, Selection, Sieve, alive, unfinished};
use crate::text::{line, short_id};

/// So many runs of a group are shown when nothing is said, the others by their agent and reason.
const SHOWN: usize = 20;

/// So many that are over are shown when nothing is said.
const SHOWN_OVER: usize = 5;

/// So many runs of a status are read; the rest of them are counted.
const READ: usize = 1_000;

/// Counting ends here.
const COUNTED: usize = 100_000;

/// Lists runs.
pub async fn ls(app: &App, selection: &Selection, limit: Option<usize>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let store = runtime.store();
    let (sieve, now) = (selection.sieve(store)?, store.now());
    if selection.status.is_empty() && selection.tool.is_none() {
        return overview(app, store, &sieve, limit).await;
    }
    let Selected { mut rows, note } = sieve.runs(store, &unfinished(), limit.unwrap_or(READ)).await?;
    rows.sort_by_key(|row| (group(row, now), std::cmp::Reverse(row.started_at)));
    let groups = GROUPS.iter().enumerate().map(|(number, title)| {
        let rows: Vec<RunRow> = rows.iter().filter(|row| group(row, now) == number).cloned().collect();
        Group { title, count: rows.len(), rows }
    });
    let text = in_words(&groups.collect::<Vec<_>>(), now, limit.unwrap_or(READ), limit.unwrap_or(READ));
    app.say(&text, &Value::Array(rows.iter().map(as_json).collect()));
    note.iter().for_each(|note| lodestep::note!("note: {note}"));
    Ok(0)
}

/// Runs of one kind.
struct Group<'a> {
    title: &'a str,
    /// Those that were read, newest first.
    rows: Vec<RunRow>,
    /// How many there are.
    count: usize,
}

/// Every group, whatever the number of runs: each by its own index, so that no other group crowds it out.
async fn overview(app: &App, store: &dyn Store, sieve: &Sieve, limit: Option<usize>) -> Result<u8> {
    let (read, now) = (limit.unwrap_or(READ), store.now());
    let mut rows: BTreeMap<i64, RunRow> = BTreeMap::new();
    let mut counts = [0; GROUPS.len()];
    let over = [Status::Completed, Status::Failed, Status::Cancelled];
    for statuses in unfinished().iter().map(std::slice::from_ref).chain([&over[..]]) {
        let is_over = statuses.len() > 1;
        let most = if is_over && !app.json { limit.unwrap_or(SHOWN_OVER) } else { read };
        let found = alive(store, store.list(DEFAULT_NAMESPACE, &sieve.filter(statuses, most + 1)).await?);
        let more = if found.len() > most {
            let counted = store.count(DEFAULT_NAMESPACE, &sieve.filter(statuses, 0), COUNTED).await?;
            counted.saturating_sub(most)
        } else {
            0
        };
        counts[of_status(statuses[0])] += more;
        rows.extend(found.into_iter().take(most).map(|row| (row.run.number, row)));
    }
    let doubts = store.list(DEFAULT_NAMESPACE, &sieve.doubts(read)).await?;
    for row in doubts.into_iter().filter(|row| row.status.is_terminal()) {
        // Older than what was read of those that are over: it was counted among them.
        if rows.insert(row.run.number, row).is_none() {
            counts[OVER] = counts[OVER].saturating_sub(1);
        }
    }
    // A damaged index of requests hides no run: what was read by their statuses is shown.
    let asking = asking(store, sieve, read).await.unwrap_or_else(|error| {
        lodestep::note!("note: open requests can't be read: {} [{}]", error.what(), error.code());
        Vec::new()
    });
    for row in asking {
        // Older than what was read of those that wait: it was counted among them.
        let waits = row.status == Status::Waiting;
        if rows.insert(row.run.number, row).is_none() && waits {
            counts[WAITING] = counts[WAITING].saturating_sub(1);
        }
    }
    let mut rows: Vec<RunRow> = rows.into_values().collect();
    rows.sort_by_key(|row| (group(row, now), std::cmp::Reverse(row.run.number)));
    if app.json {
        app.print(&format!("{}\n", Value::Array(rows.iter().take(limit.unwrap_or(usize::MAX)).map(as_json).collect())));
        return Ok(0);
    }
    let rows = with_answers(store, rows, now).await;
    let groups = GROUPS.iter().enumerate().map(|(number, title)| {
        let rows: Vec<RunRow> = rows.iter().filter(|row| group(row, now) == number).cloned().collect();
        Group { title, count: rows.len() + counts[number], rows }
    });
    let text = in_words(&groups.collect::<Vec<_>>(), now, limit.unwrap_or(SHOWN), limit.unwrap_or(SHOWN_OVER));
    let holds = store.dispatch_holds().await?.open;
    let held: String = holds.iter().map(hold::in_a_line).collect();
    let gap = if held.is_empty() { "" } else { "\n" };
    app.print(&format!("{held}{gap}{text}"));
    Ok(0)
}

/// The rows, those whose requests were answered with what was said; as many of them as are shown when nothing is said.
async fn with_answers(store: &dyn Store, mut rows: Vec<RunRow>, now: Timestamp) -> Vec<RunRow> {
    let answered = rows.iter_mut().filter(|row| is_unread(row, now) && needs_a_person(row));
    for row in answered.take(SHOWN) {
        let Ok(opened) = inspect::open(store, &row.run.key).await else { continue };
        if opened.unread.is_empty() && !remind::due(&opened.checkpoint, now).is_empty() {
            // What a worker is due for is to remind that person.
            row.due = None;
        }
        for (_, request, _) in people::open_requests(&opened) {
            if let Some(how) = people::answered(&opened, &request.name) {
                row.why.push_str(&format!(", {how}"));
            }
        }
    }
    rows
}

/// The runs with an open request, however old: a person is what they wait for.
async fn asking(store: &dyn Store, sieve: &Sieve, most: usize) -> Result<Vec<RunRow>> {
    let mut runs = BTreeSet::new();
    let mut rows = Vec::new();
    for request in store.open_requests(DEFAULT_NAMESPACE, most).await? {
        if runs.insert(request.run.number) {
            let found = store.find(DEFAULT_NAMESPACE, request.run.key.run.as_str(), 1).await?;
            rows.extend(found.into_iter().filter(|row| sieve.takes(row)));
        }
    }
    Ok(alive(store, rows))
}

fn in_words(groups: &[Group<'_>], now: Timestamp, shown: usize, shown_over: usize) -> String {
    let all = groups.iter().flat_map(|group| &group.rows);
    let ids: Vec<&str> = all.map(|row| row.run.key.run.as_str()).collect();
    let mut text = String::new();
    for (number, group) in groups.iter().enumerate().filter(|(_, group)| group.count > 0) {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{} ({})\n", group.title, counted(group.count)));
        let most = if number == OVER { shown_over } else { shown };
        for row in group.rows.iter().take(most) {
            text.push_str(&in_a_line(row, &ids, now));
        }
        text.push_str(&the_others(group, most));
    }
    if text.is_empty() { "no runs\n".to_owned() } else { text }
}

fn counted(count: usize) -> String {
    if count > COUNTED { format!("more than {COUNTED}") } else { count.to_string() }
}

fn in_a_line(row: &RunRow, ids: &[&str], now: Timestamp) -> String {
    let id = short_id(row.run.key.run.as_str(), ids);
    let (status, why) = match (row.holder.is_some(), row.status) {
        (true, _) => ("running", row.why.clone()),
        (false, Status::Ready) => ("ready", unheld(row)),
        (false, status) if is_unread(row, now) => (status.as_str(), format!("{}: due, {}", row.why, unheld(row))),
        (false, status) if status.is_terminal() && row.has_doubt() => {
            (status.as_str(), format!("in doubt: {}", row.why))
        }
        (false, status) => (status.as_str(), row.why.clone()),
    };
    let labels: Vec<String> = row.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let tail = [line(&why, 100), line(&labels.join(" "), 60)].join("  ");
    let shown = format!("  {id:<10} {status:<12} step {:<6} {:<24} {}", row.seq, line(&row.agent, 24), tail.trim());
    format!("{}\n", shown.trim_end())
}

/// What is not shown run by run: how many of which agent, for what.
fn the_others(group: &Group<'_>, shown: usize) -> String {
    let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
    for row in group.rows.iter().skip(shown) {
        let kind = if row.status.is_terminal() { row.status.as_str() } else { kind_of(row) };
        *kinds.entry((line(&row.agent, 24), kind.to_owned())).or_default() += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most = 10;
    let mut text: String = kinds
        .iter()
        .take(most)
        .map(|((agent, kind), count)| format!("  … {count} more of {agent}  {kind}\n"))
        .collect();
    let told: usize = kinds.iter().take(most).map(|(_, count)| count).sum();
    let rest = group.count.saturating_sub(group.rows.len().min(shown) + told);
    if rest > 0 {
        text.push_str(&format!("  … {} more\n", counted(rest)));
    }
    text
}

/// A reason without what tells one run's from another's.
fn kind_of(row: &RunRow) -> &str {
    let first = row.why.split([' ', ',', ':']).next().unwrap_or_default();
    if first.is_empty() { row.status.as_str() } else { first }
}

/// Why a ready run does not move: nobody works on it.
pub fn unheld(row: &RunRow) -> String {
    format!("no worker holds it, since {}", row.due.unwrap_or(row.updated_at).max(row.updated_at))
}

const GROUPS: [&str; 5] = ["needs you", "waiting", "ready", "running", "over"];
const WAITING: usize = 1;
const READY: usize = 2;
const OVER: usize = 4;

fn group(row: &RunRow, now: Timestamp) -> usize {
    match row.status {
        status if status.is_terminal() && !row.has_doubt() => OVER,
        _ if is_unread(row, now) => READY,
        status if status.is_terminal() => 0,
        Status::InDoubt | Status::Quarantined | Status::Stopped => 0,
        Status::Waiting if needs_a_person(row) => 0,
        _ if row.holder.is_some() => 3,
        status => of_status(status),
    }
}

fn of_status(status: Status) -> usize {
    match status {
        Status::InDoubt | Status::Quarantined | Status::Stopped => 0,
        Status::Waiting => WAITING,
        Status::Ready => READY,
        Status::Completed | Status::Failed | Status::Cancelled => OVER,
    }
}

/// Has something come for a run that waited or stopped, and no worker has taken it up yet? Nobody has to say more.
fn is_unread(row: &RunRow, now: Timestamp) -> bool {
    row.holder.is_none() && row.status != Status::Ready && row.due.is_some_and(|due| due <= now)
}

/// Does it wait for an approval or an answer?
fn needs_a_person(row: &RunRow) -> bool {
    row.why.split(", ").any(|reason| reason.starts_with("approval ") || reason.starts_with("answer "))
}

/// A run's row as JSON.
pub fn as_json(row: &RunRow) -> Value {
    json!({
        "run": row.run.key.run, "agent": row.agent, "labels": row.labels, "status": row.status, "why": row.why, "step": row.seq, "running": row.holder.is_some(),
        "due": row.due.map(|due| due.to_string()), "crashes": row.crashes,
        "started_at": row.started_at.to_string(), "updated_at": row.updated_at.to_string(), "head": row.head,
    })
}
