//! `todo`: what waits for people, and below each the command that comes next.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lodestep::core::checkpoint::{Action, Phase};
use lodestep::core::event::{Request, StopReason};
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::Status;
use lodestep::core::{Result, RunId, Timestamp};
use lodestep::inspect::{self, Opened};
use lodestep::store::{RequestRow, RunRow, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::show::needs_guidance;
use crate::findings::Findings;
use crate::people::{self, About};
use crate::room;
use crate::select::{MOST, Selection, Sieve};
use crate::sent::{Sent, sent};
use crate::text::{line, short_id, squeezed};
use crate::unknown;

/// Something that a person has to say.
pub struct Item {
    /// In a few words: approval, question, in doubt, stopped, quarantined.
    pub kind: &'static str,
    /// The run.
    pub run: RunRow,
    /// The action, where it is about one.
    pub action: Option<u32>,
    /// The request, where there is one.
    pub request: Option<lodestep::core::Digest>,
    /// What it is about, in a line.
    pub what: String,
    /// Since when it waits.
    pub since: Timestamp,
    /// When it ends by itself, if it does.
    pub until: Option<Timestamp>,
    /// What else one needs to know to look for it elsewhere: the key and the time of a doubtful attempt.
    pub sent: Option<Sent>,
    /// The command that settles it, or that shows what a person has to find out first.
    pub command: String,
    /// What else would, or what comes then.
    pub or: String,
}

/// What can be said of a doubt; none of them is likelier than the others.
const BECAME: [&str; 4] = ["--happened", "--retry", "--did-not-happen", "--abandon"];

/// Lists what waits for people.
pub async fn todo(app: &App, selection: &Selection, limit: usize) -> Result<u8> {
    let runtime = app.open_to_read()?;
    Findings::of(app).tell(app);
    room::tell(app);
    let sieve = selection.sieve(runtime.store())?;
    let Found { mut items, more, stale } = items(app, runtime.store(), &sieve).await?;
    if items.is_empty() && stale.is_empty() {
        if let Some(unknown) = unknown::agent(runtime.store(), selection).await? {
            return Err(unknown);
        }
        let unknown = unknown::notes(runtime.store(), selection).await?;
        unknown.iter().for_each(|note| lodestep::note!("note: {note}"));
    }
    let left_out = items.len().saturating_sub(limit);
    items.truncate(limit);
    if app.json {
        app.print(&format!("{}\n", Value::Array(items.iter().map(as_json).collect())));
    } else {
        let columns = crate::text::columns(std::io::stdout());
        let lines: String = items.iter().map(|item| in_words(item, columns)).collect();
        app.print(if items.is_empty() { "nothing waits for you\n" } else { &lines });
    }
    if left_out > 0 || more {
        let of = if left_out > 0 { format!("{left_out} more") } else { "there are more".to_owned() };
        lodestep::note!("note: {of}; --limit shows more, and the filters of `ls` choose");
    }
    if let Some(run) = stale.first() {
        let (requests, have) = if stale.len() == 1 { ("request", "has") } else { ("requests", "have") };
        let id = short_id(run.as_str(), &[]);
        let goes_on = app.command(&format!("resume {id}"));
        let count = stale.len();
        lodestep::note!("note: {count} {requests} {have} no answer any more, expired or asked anew by an upgrade:");
        lodestep::note!("  a worker says what becomes of it; `{goes_on}` is one");
    }
    Ok(0)
}

/// What was found.
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    /// May there be more?
    more: bool,
    /// The runs of the requests that take no answer any more, which no worker has closed yet.
    stale: Vec<RunId>,
}

/// What waits for people: doubts, what is stopped, then requests, the oldest first.
async fn items(app: &App, store: &dyn Store, sieve: &Sieve) -> Result<Found> {
    let mut items = Vec::new();
    let mut more = false;
    for status in [Status::InDoubt, Status::Quarantined, Status::Stopped] {
        let filter = if status == Status::InDoubt { sieve.doubts(MOST) } else { sieve.filter(&[status], MOST) };
        let rows = store.list(DEFAULT_NAMESPACE, &filter).await?;
        more |= rows.len() == MOST;
        for row in rows.into_iter().rev().filter(|row| sieve.takes(row)) {
            items.extend(of_run(app, store, sieve, row).await);
        }
    }
    let requests = store.open_requests(DEFAULT_NAMESPACE, MOST).await?;
    more |= requests.len() == MOST;
    let mut found = Found { items, more, stale: Vec::new() };
    asked(app, store, sieve, &requests, &mut found).await;
    Ok(found)
}

/// What a run in doubt, stopped or quarantined needs. One that can't be read still says that it is there.
async fn of_run(app: &App, store: &dyn Store, sieve: &Sieve, row: RunRow) -> Vec<Item> {
    let id = short_id(row.run.key.run.as_str(), &[]).to_owned();
    let opened = inspect::open(store, &row.run.key).await;
    let item = |kind, action: Option<u32>, what: String, command: String, or: &str| Item {
        kind,
        run: row.clone(),
        action,
        request: None,
        what,
        since: row.updated_at,
        until: None,
        sent: None,
        command: app.command(&command),
        or: or.to_owned(),
    };
    let mut items = Vec::new();
    if opened.as_ref().is_ok_and(|opened| people::is_said(opened, About::Run)) {
        return items;
    }
    let is_said = |of: &Action| opened.as_ref().is_ok_and(|opened| people::is_said(opened, About::Action(of.ordinal)));
    let doubts = opened.iter().flat_map(people::doubtful);
    for action in doubts.filter(|action| sieve.takes_tool(&action.tool) && !is_said(action)) {
        let ordinal = action.ordinal.0;
        let what = opened.as_ref().map(|opened| call(opened, action)).unwrap_or_default();
        // After a cancel nothing is sent again.
        let ways = BECAME.iter().filter(|way| !(row.status.is_terminal() && **way == "--retry"));
        let ways: Vec<&str> = ways.copied().collect();
        let then = format!("then resolve {id} {ordinal} with {}", ways.join(", "));
        let mut doubt = item("in doubt", Some(ordinal), what, format!("show {id}"), &then);
        if let Ok(opened) = &opened {
            doubt.sent = Some(sent(store, opened, action).await);
        }
        items.push(doubt);
    }
    let calls = |opened: &Opened| opened.checkpoint.pending.values().any(|action| sieve.takes_tool(&action.tool));
    let is_meant = sieve.takes_every_tool() || opened.as_ref().is_ok_and(calls);
    let why = match &opened {
        Ok(opened) => line(&format!("{}: {}", row.why, people::stopped_because(opened)), 120),
        Err(error) => format!("{} [{}]", error.what(), error.code()),
    };
    match row.status {
        Status::Stopped if is_meant => {
            let (command, or) = after_a_stop(opened.as_ref().ok(), &id);
            items.push(item("stopped", None, why, command, &or));
        }
        Status::Quarantined if is_meant => {
            items.push(item("quarantined", None, why, format!("release {id}"), "or cancel"));
        }
        _ => {}
    }
    items
}

/// The command that comes next for a stopped run, and what else would do or comes after it.
pub fn after_a_stop(opened: Option<&Opened>, id: &str) -> (String, String) {
    let needs = opened.and_then(|opened| needs_guidance(&opened.ahead));
    match (needs, opened.and_then(people::out_of)) {
        (Some((before, what)), _) => {
            let then = format!("then resume; or fork {id} --at {before}, before {what}; or cancel");
            (format!("tell {id} \"what to do now\""), then)
        }
        (None, Some(out)) => (format!("quota add {id} {}", out.top_up()), format!("{}, or cancel", out.beside())),
        (None, None) => (format!("resume {id}"), besides(opened).to_owned()),
    }
}

/// What else there is to do about a stop, which a resume alone may meet again.
fn besides(opened: Option<&Opened>) -> &'static str {
    match opened.map(|opened| &opened.checkpoint.phase) {
        Some(Phase::Stopped { reason: StopReason::Model, .. }) => "once what it says is mended; or cancel",
        Some(Phase::Stopped { reason: StopReason::Completion, .. }) => "tell it before what is missing; or cancel",
        _ => "or cancel",
    }
}

/// The open requests, as their runs know them.
async fn asked(app: &App, store: &dyn Store, sieve: &Sieve, requests: &[RequestRow], found: &mut Found) {
    let mut runs = Asking::of(store, sieve);
    let short = people::short_names(requests);
    for request in requests {
        let Some((opened, action, open, approval)) = runs.asked(request).await else { continue };
        if people::is_said(opened, About::Request(request.name)) {
            continue;
        }
        if people::answered(opened, &request.name).is_some() {
            found.stale.push(request.run.key.run.clone());
            continue;
        }
        let name = short.get(&request.name).cloned().unwrap_or_default();
        let until = action.asked_until();
        let (kind, command, or) = match approval {
            true => ("approval", format!("approve {name}"), "or deny"),
            false => ("question", format!("answer {name} …"), ""),
        };
        found.items.push(Item {
            kind,
            run: opened.row.clone(),
            action: Some(action.ordinal.0),
            request: Some(request.name),
            what: call(opened, action),
            since: open.asked_at,
            until,
            sent: None,
            command: app.command(&command),
            or: or.to_owned(),
        });
    }
}

/// Runs with open requests, each read once.
pub struct Asking<'a> {
    store: &'a dyn Store,
    sieve: &'a Sieve,
    runs: BTreeMap<i64, Option<Opened>>,
}

impl<'a> Asking<'a> {
    /// Of the runs that a sieve takes.
    pub fn of(store: &'a dyn Store, sieve: &'a Sieve) -> Self {
        Self { store, sieve, runs: BTreeMap::new() }
    }

    /// A request with its run and action; true for an approval. `None` when the sieve does not take it, its run can't be
    /// read, or it is over by now.
    pub async fn asked(&mut self, request: &RequestRow) -> Option<(&Opened, &Action, &Request, bool)> {
        let opened = match self.runs.entry(request.run.number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let opened = inspect::open(self.store, &request.run.key).await.ok();
                new.insert(opened.filter(|opened| self.sieve.takes(&opened.row)))
            }
        };
        let opened = opened.as_ref()?;
        let open = people::open_requests(opened).into_iter().find(|(_, open, _)| open.name == request.name);
        let (action, open, approval) = open.filter(|(action, ..)| self.sieve.takes_tool(&action.tool))?;
        Some((opened, action, open, approval))
    }
}

/// An action in a few words: a question's text, else the tool and its arguments.
pub fn call(opened: &Opened, action: &Action) -> String {
    let arguments = opened.json(&action.arguments);
    if let Some(question) = arguments.get("question").and_then(Value::as_str) {
        return line(&squeezed(question), 80);
    }
    let short = |value: &Value| match value.get("artifact").and_then(Value::as_str) {
        Some(name) => name.to_owned(),
        None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    let arguments = arguments.as_object().into_iter().flatten();
    let arguments: Vec<String> =
        arguments.map(|(name, value)| format!("{}={}", squeezed(name), line(&squeezed(&short(value)), 30))).collect();
    line(&format!("{} {}", action.tool, arguments.join(" ")), 80).trim_end().to_owned()
}

/// What it is about in a row that fits the terminal; its times and its command stand whole below.
fn in_words(item: &Item, columns: Option<usize>) -> String {
    let id = short_id(item.run.run.key.run.as_str(), &[]);
    let agent = line(&item.run.agent, 24);
    let action = item.action.map(|action| format!(" action {action}")).unwrap_or_default();
    let head = format!("{:<12} {id} {agent}{action}  ", item.kind);
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(head.chars().count()).max(20));
    let sent = item.sent.as_ref().map(Sent::in_words).filter(|sent| !sent.is_empty());
    let until = item.until.map(|until| format!(", expires {until}")).unwrap_or_default();
    let times = sent.map(|sent| format!("; {sent}")).unwrap_or_default();
    let or = if item.or.is_empty() { String::new() } else { format!("  ({})", item.or) };
    format!(
        "{head}{}\n             since {}{until}{times}\n             →  {}{or}\n",
        line(&item.what, room),
        item.since,
        item.command
    )
}

/// An item as JSON.
pub fn as_json(item: &Item) -> Value {
    let sent = item.sent.as_ref();
    json!({
        "kind": item.kind, "run": item.run.run.key.run, "agent": item.run.agent, "labels": item.run.labels,
        "action": item.action, "request": item.request, "what": item.what, "command": item.command, "then": item.or,
        "key": sent.and_then(|sent| sent.key.clone()), "sent_at": sent.and_then(|sent| sent.at).map(|at| at.to_string()),
        "since": item.since.to_string(), "until": item.until.map(|until| until.to_string()),
    })
}
