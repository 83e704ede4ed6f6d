//! `ls`: runs in groups, what needs you first. Few of each are shown, the others are counted.

mod came_to;
mod rows;

use std::collections::BTreeSet;

use lodestep::core::Result;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::Status;
use lodestep::store::{RunRow, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::hold;
use crate::findings::Findings;
use crate::place::{Place, Placed, asks_a_person, place};
use crate::retries;
use crate::room;
use crate::select::{LOOKED_THROUGH, Selected, Selection, Sieve, alive, unfinished};
use crate::unknown;

pub use came_to::CameTo;
use rows::{Group, in_words};

/// So many runs of a group are shown when nothing is said, the others by their agent and reason.
const SHOWN: usize = 20;

/// So many that are over are shown when nothing is said.
const SHOWN_OVER: usize = 5;

/// So many runs of a group are shown of a status that was asked for, and so many of each status are listed as JSON.
const LISTED: usize = 1_000;

/// Counting ends here.
const COUNTED: usize = 100_000;

/// Lists runs.
pub async fn ls(app: &App, selection: &Selection, effect: Option<CameTo>, limit: Option<usize>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    Findings::of(app).tell(app);
    room::tell(app);
    let store = runtime.store();
    let (sieve, now) = (selection.sieve(store)?, store.now());
    let is_overview = selection.status.is_empty() && selection.tool.is_none() && effect.is_none();
    let shown = match (limit, is_overview) {
        (Some(limit), _) => Shown { of_each: limit, over: limit },
        (None, true) => Shown { of_each: SHOWN, over: SHOWN_OVER },
        (None, false) => Shown { of_each: LISTED, over: LISTED },
    };
    let mut found = match (effect, sieve.is_indexed()) {
        (Some(effect), _) => came_to::came_to(store, selection, effect).await?,
        (None, true) => by_status(app, store, &sieve, limit, &shown).await?,
        (None, false) => looked_through(store, &sieve).await?,
    };
    if found.rows.is_empty() {
        found.notes.extend(unknown::notes(store, selection).await?);
    }
    let mut runs = place(store, std::mem::take(&mut found.rows), now).await;
    runs.sort_by_key(|run| (run.place, urgency(run), std::cmp::Reverse(run.row.run.number)));
    if app.json {
        runs.truncate(limit.unwrap_or(usize::MAX));
    }
    let retries = retries::of(store, runs.iter().map(|run| &run.row)).await;
    if app.json {
        let listed = runs.iter().map(|run| {
            let mut row = as_json(&run.row);
            let of_run = retries.get(&run.row.run.number).into_iter().flatten();
            row["retries"] = of_run.map(retries::Retry::as_json).collect();
            row
        });
        app.print(&format!("{}\n", Value::Array(listed.collect())));
    } else {
        let holds = store.dispatch_holds().await?.open;
        let mut above: String = holds.iter().filter(|_| is_overview).map(hold::in_a_line).collect();
        for failing in retries::failing(&retries).iter().filter(|failing| failing.runs > 1) {
            above.push_str(&format!("{}\n  `{}` stops it\n", failing.in_words(), failing.stop(app)));
        }
        let gap = if above.is_empty() { "" } else { "\n" };
        let groups = grouped(runs, &found);
        let text = in_words(&groups, &retries, &shown, crate::text::columns(std::io::stdout()));
        app.print(&format!("{above}{gap}{text}"));
    }
    found.notes.iter().for_each(|note| lodestep::note!("note: {note}"));
    Ok(0)
}

/// How many runs of a group are shown one by one.
struct Shown {
    of_each: usize,
    over: usize,
}

/// What was found: the rows that were read, and how many more there are of each place.
#[derive(Default)]
struct Found {
    rows: Vec<RunRow>,
    more: [usize; Place::ALL.len()],
    notes: Vec<String>,
}

/// Each status by its own index, so that no other crowds it out. Of those that are not over so many are read that the limit
/// chooses among all of them: a row's place is in no index.
async fn by_status(app: &App, store: &dyn Store, sieve: &Sieve, limit: Option<usize>, shown: &Shown) -> Result<Found> {
    let read = limit.unwrap_or(if app.json { LISTED } else { 0 });
    let read = if app.json && limit.is_none() { read } else { read.max(LOOKED_THROUGH) };
    let (open, ended): (Vec<Status>, Vec<Status>) =
        sieve.statuses(&Status::ALL).into_iter().partition(|status| !status.is_terminal());
    let mut found = Found::default();
    for statuses in open.iter().map(std::slice::from_ref).chain([&ended[..]]).filter(|statuses| !statuses.is_empty()) {
        let most = if statuses[0].is_terminal() && !app.json { shown.over } else { read };
        let rows = alive(store, store.list(DEFAULT_NAMESPACE, &sieve.filter(statuses, most + 1)).await?);
        if rows.len() > most {
            let counted = store.count(DEFAULT_NAMESPACE, &sieve.filter(statuses, 0), COUNTED).await?;
            found.more[Place::of_most(statuses[0]) as usize] += counted.saturating_sub(most);
        }
        found.rows.extend(rows.into_iter().take(most));
    }
    if !ended.is_empty() {
        older_doubts(store, sieve, read.max(LISTED), &mut found).await?;
    }
    if found.more[Place::Waiting as usize] > 0 {
        older_requests(store, sieve, &mut found).await;
    }
    Ok(found)
}

/// The runs that are over and in doubt, however old: a person is to say what became of their actions.
async fn older_doubts(store: &dyn Store, sieve: &Sieve, most: usize, found: &mut Found) -> Result<()> {
    let known: BTreeSet<i64> = found.rows.iter().map(|row| row.run.number).collect();
    let doubts = store.list(DEFAULT_NAMESPACE, &sieve.doubts(most)).await?;
    for row in doubts.into_iter().filter(|row| row.status.is_terminal() && !known.contains(&row.run.number)) {
        // It was counted among those that are over.
        let more = &mut found.more[Place::Over as usize];
        *more = more.saturating_sub(1);
        found.rows.push(row);
    }
    Ok(())
}

/// The runs with the oldest open requests, where more runs wait than are read: a person is what they wait for.
async fn older_requests(store: &dyn Store, sieve: &Sieve, found: &mut Found) {
    // A damaged index of requests hides no run: what was read by their statuses is shown.
    let asking = asking(store, sieve, LISTED).await.unwrap_or_else(|error| {
        lodestep::note!("note: open requests can't be read: {} [{}]", error.what(), error.code());
        Vec::new()
    });
    let known: BTreeSet<i64> = found.rows.iter().map(|row| row.run.number).collect();
    for row in asking.into_iter().filter(|row| row.status == Status::Waiting && !known.contains(&row.run.number)) {
        // It was counted among those that wait.
        let more = &mut found.more[Place::Waiting as usize];
        *more = more.saturating_sub(1);
        found.rows.push(row);
    }
}

/// The runs with an open request, however old.
async fn asking(store: &dyn Store, sieve: &Sieve, most: usize) -> Result<Vec<RunRow>> {
    let mut runs = BTreeSet::new();
    let mut rows = Vec::new();
    for request in store.open_requests(DEFAULT_NAMESPACE, most).await? {
        if runs.insert(request.run.number) {
            let found = store.find(DEFAULT_NAMESPACE, request.run.key.run.as_str(), 1).await?;
            rows.extend(found.into_iter().filter(|row| sieve.takes(row) && asks_a_person(row)));
        }
    }
    Ok(alive(store, rows))
}

/// What no index serves: a tool, and who holds a run.
async fn looked_through(store: &dyn Store, sieve: &Sieve) -> Result<Found> {
    let Selected { rows, note } = sieve.runs(store, &unfinished(), LOOKED_THROUGH).await?;
    Ok(Found { rows, notes: note.into_iter().collect(), ..Found::default() })
}

/// What nobody knows the outcome of comes first, and requests, which may be many, last.
fn urgency(run: &Placed) -> usize {
    if run.row.has_doubt() {
        return 0;
    }
    let order = [Status::InDoubt, Status::Quarantined, Status::Stopped];
    order.iter().position(|status| run.place == Place::Person && run.row.status == *status).unwrap_or(order.len())
}

fn grouped(runs: Vec<Placed>, found: &Found) -> Vec<Group> {
    let is_open = |place: &Place| *place != Place::Over;
    let is_part = Place::ALL.iter().filter(|place| is_open(place)).any(|place| found.more[*place as usize] > 0);
    let mut groups: Vec<Group> = Place::ALL
        .iter()
        .map(|place| Group {
            place: *place,
            runs: Vec::new(),
            more: found.more[*place as usize],
            is_part: is_part && is_open(place),
        })
        .collect();
    for run in runs {
        groups[run.place as usize].runs.push(run);
    }
    groups
}

/// Why a ready run does not move: nobody works on it.
pub fn unheld(row: &RunRow) -> String {
    format!("no worker holds it, since {}", row.due.unwrap_or(row.updated_at).max(row.updated_at))
}

/// A run's row as JSON.
pub fn as_json(row: &RunRow) -> Value {
    json!({
        "run": row.run.key.run, "agent": row.agent, "labels": row.labels, "status": row.status, "why": row.why, "step": row.seq, "running": row.holder.is_some(),
        "due": row.due.map(|due| due.to_string()), "crashes": row.crashes,
        "started_at": row.started_at.to_string(), "updated_at": row.updated_at.to_string(), "head": row.head,
    })
}
