//! Words to a run, or to many: approve, deny, answer, resolve, release.

use lodestep::core::checkpoint::Action;
use lodestep::core::effect::{dedupe_key, sameness};
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::json::{canonical, parse_strict};
use lodestep::core::rules::inbox::{Became, Word};
use lodestep::core::rules::standing::Status;
use lodestep::core::{Digest, Error, Ordinal, Result, RunKey};
use lodestep::inspect::Opened;
use lodestep::store::RequestRow;
use lodestep::tools::schema::{Schemas, unpinned};
use lodestep::{Runtime, inspect};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::ResolveArgs;
use crate::bulk::{self, Bulk, Chosen, Item, Skipped, Then};
use crate::commands::hold;
use crate::commands::todo::{Asking, call};
use crate::people;
use crate::select::{MOST, Selected, either};
use crate::text::short_id;

/// Approves requests as they are, or one with other arguments.
pub async fn approve(app: &App, names: &[String], edit: Option<String>, bulk: &Bulk) -> Result<u8> {
    either(!names.is_empty() || edit.is_some(), &bulk.selection, "request")?;
    let runtime = app.open(false)?;
    if names.is_empty() && edit.is_none() {
        let chosen = open_approvals(&runtime, bulk, |request| Word::Approve { request }).await?;
        return bulk.say(app, &runtime, "approve", chosen, "approved").await;
    }
    let rows = requests(app, &runtime, names).await?;
    let Some(text) = edit else {
        return say_to_each(app, &runtime, &rows, |request| Word::Approve { request }, "approved").await;
    };
    let [row] = rows.as_slice() else {
        let what = format!("an edit stands in the place of one request, and {} are named", rows.len());
        return Err(Error::new("usage.edit", what, "edit them one by one; nothing changed"));
    };
    let word = edited(&runtime, row, &text).await?;
    say(app, &runtime, &row.run.key, word, Then::GoesOn, "approved").await
}

/// Takes the outcomes of the equal effects that requests show.
pub async fn reuse(app: &App, names: &[String]) -> Result<u8> {
    let runtime = app.open(false)?;
    let rows = requests(app, &runtime, names).await?;
    say_to_each(app, &runtime, &rows, |request| Word::Reuse { request }, "settled by the outcome of its equal").await
}

/// An edit is checked as a model's call is, before it is said.
async fn edited(runtime: &Runtime, row: &RequestRow, text: &str) -> Result<Word> {
    let invalid = |what: String| Error::new("usage.edit", what, "give one JSON object with all arguments");
    let arguments = parse_strict(text).map_err(|fault| invalid(format!("the edit is {fault}")))?;
    let opened = inspect::open(runtime.store(), &row.run.key).await?;
    let Some(definition) = &opened.definition else {
        return Err(Error::new(
            "run.undecodable",
            format!("run {}: {}", row.run.key.run, opened.damage.join("; ")),
            "an edit can't be checked without its definition",
        ));
    };
    let action = opened.checkpoint.pending.get(&row.ordinal);
    let Some(tool) = action.and_then(|action| definition.tool(&action.tool)) else {
        // It is over; the run itself says what happened.
        return Ok(Word::ApproveEdited {
            request: row.name,
            arguments: canonical(&arguments),
            same: None,
            dedupe: None,
        });
    };
    let shown = opened.json(&action.map(|action| action.arguments).unwrap_or(opened.checkpoint.inputs));
    let plain = unpinned(&arguments);
    Schemas::of(definition).check(tool, &plain).map_err(|fault| invalid(format!("the edit doesn't fit: {fault}")))?;
    let arguments = pinned_again(arguments, &shown);
    let same = sameness(&tool.name, &arguments, tool.same_by.as_deref());
    let dedupe = tool.dedupe.as_deref().map(|text| dedupe_key(text, &arguments)).transpose().map_err(invalid)?;
    Ok(Word::ApproveEdited { request: row.name, arguments: canonical(&arguments), same: Some(same), dedupe })
}

/// An artifact that is named as before stays pinned to the bytes that were seen.
fn pinned_again(mut arguments: Value, shown: &Value) -> Value {
    for (name, pinned) in shown.as_object().into_iter().flatten() {
        let same = pinned.get("artifact").is_some() && arguments.get(name) == pinned.get("artifact");
        if same {
            arguments[name.as_str()] = pinned.clone();
        }
    }
    arguments
}

/// Denies requests.
pub async fn deny(app: &App, names: &[String], reason: String, bulk: &Bulk) -> Result<u8> {
    either(!names.is_empty(), &bulk.selection, "request")?;
    let runtime = app.open(false)?;
    if names.is_empty() {
        let word = |request| Word::Deny { request, reason: reason.clone() };
        let chosen = open_approvals(&runtime, bulk, word).await?;
        return bulk.say(app, &runtime, "deny", chosen, "denied").await;
    }
    let rows = requests(app, &runtime, names).await?;
    say_to_each(app, &runtime, &rows, |request| Word::Deny { request, reason: reason.clone() }, "denied").await
}

/// Answers a question.
pub async fn answer(app: &App, name: &str, value: String) -> Result<u8> {
    let runtime = app.open(false)?;
    let row = request(app, &runtime, name).await?;
    let opened = inspect::open(runtime.store(), &row.run.key).await?;
    let asked = people::open_requests(&opened).into_iter().find(|(_, request, _)| request.name == row.name);
    if let Some((question, _, false)) = asked {
        people::check_answer(&opened, question, &value)?;
    }
    say(app, &runtime, &row.run.key, Word::Answer { request: row.name, value }, Then::GoesOn, "answered").await
}

/// Says what became of an action in doubt.
pub async fn resolve(app: &App, args: ResolveArgs) -> Result<u8> {
    either(args.run.is_some(), &args.bulk.selection, "run")?;
    let ordinal = args.action.as_deref().map(number_of).transpose()?;
    if let Some(more) = args.more.first() {
        return Err(no_number(more));
    }
    let runtime = app.open(false)?;
    let became = match (args.happened, args.abandon) {
        (Some(result), _) => Became::Happened(result.into_bytes()),
        (None, Some(reason)) => Became::Abandoned(reason),
        (None, None) if args.did_not_happen => Became::DidNotHappen,
        (None, None) => Became::SendAgain,
    };
    let Some(run) = args.run else {
        let chosen = in_doubt(&runtime, &args.bulk, &became).await?;
        return args.bulk.say(app, &runtime, "resolve", chosen, "resolved").await;
    };
    let row = app.find(&runtime, &run).await?;
    // A later attempt may be in doubt by the time the word arrives: it says nothing of that one.
    let opened = inspect::open(runtime.store(), &row.run.key).await?;
    let ordinal = ordinal.map_or_else(|| the_only_doubt(&opened), Ok)?;
    let attempt = args.attempt.or_else(|| opened.checkpoint.pending.get(&ordinal).map(|action| action.attempts));
    let word = Word::Resolve { ordinal, became, attempt };
    say(app, &runtime, &row.run.key, word, Then::of(row.status), "resolved").await
}

fn number_of(text: &str) -> Result<Ordinal> {
    text.parse().map(Ordinal).map_err(|_| no_number(text))
}

/// What was typed behind the run, and is no action's number: another run, as often as not.
fn no_number(text: &str) -> Error {
    let what = format!("`{}` is no action's number: one command settles one action of one run", text.escape_debug());
    let next = "for several runs choose them in place of RUN: `lodestep resolve --happened --tool TOOL` asks before it \
                does; --status, --agent, --label and --since choose, too";
    Error::new("usage.action", what, next)
}

/// The action that is meant when none is named.
fn the_only_doubt(opened: &Opened) -> Result<Ordinal> {
    let run = short_id(opened.row.run.key.run.as_str(), &[]);
    let doubts: Vec<&Action> = people::doubtful(opened).collect();
    match doubts.as_slice() {
        [only] => Ok(only.ordinal),
        [] => {
            let what = format!("no action of run {run} is in doubt");
            Err(Error::new("action.not_in_doubt", what, "`lodestep effects RUN` lists what is known of each"))
        }
        several => {
            let named: Vec<String> = several.iter().map(|one| format!("{} ({})", one.ordinal, one.tool)).collect();
            let what = format!("run {run} has {} actions in doubt: {}", several.len(), named.join(", "));
            Err(Error::new("usage.action", what, "name one of them behind the run; nothing changed"))
        }
    }
}

/// Lets quarantined runs go on.
pub async fn release(app: &App, run: Option<String>, bulk: &Bulk) -> Result<u8> {
    either(run.is_some(), &bulk.selection, "run")?;
    let runtime = app.open(false)?;
    if let Some(run) = run {
        let row = match app.find(&runtime, &run).await {
            Err(error) if error.code() == "run.not_found" => {
                return Err(hold::meant(runtime.store(), &run).await?.unwrap_or(error));
            }
            found => found?,
        };
        return say(app, &runtime, &row.run.key, Word::Release, Then::GoesOn, "released").await;
    }
    let chosen = bulk.runs(&runtime, &[Status::Quarantined], Then::GoesOn, || Word::Release).await?;
    bulk.say(app, &runtime, "release", chosen, "released").await
}

/// The open approvals that filters choose, each with a word. One that a word has decided which no worker has read needs none.
async fn open_approvals(runtime: &Runtime, bulk: &Bulk, word: impl Fn(Digest) -> Word) -> Result<Chosen> {
    let store = runtime.store();
    let sieve = bulk.selection.sieve(store)?;
    let requests = store.open_requests(DEFAULT_NAMESPACE, MOST).await?;
    let mut runs = Asking::of(store, &sieve);
    let mut chosen = Chosen::default();
    for request in &requests {
        // A question has no answer that fits many.
        let Some((opened, action, _, true)) = runs.asked(request).await else { continue };
        let run = &request.run.key;
        if let Some(why) = people::answered(opened, &request.name) {
            chosen.skipped.push(Skipped { why, json: json!({"run": run.run, "request": request.name}) });
            continue;
        }
        chosen.items.push(Item {
            run: RunKey::clone(run),
            word: word(request.name),
            id: None,
            then: Then::GoesOn,
            name: request.name.to_hex()[..8].to_owned(),
            shown: format!("{} of {}  {}", short_id(run.run.as_str(), &[]), opened.row.agent, call(opened, action)),
            json: json!({"request": request.name}),
        });
    }
    chosen.note = (requests.len() == MOST).then(|| format!("only the oldest {MOST} open requests were looked at"));
    Ok(chosen)
}

/// The actions in doubt that filters choose, each with what became of it; also those of runs that are over.
async fn in_doubt(runtime: &Runtime, bulk: &Bulk, became: &Became) -> Result<Chosen> {
    let store = runtime.store();
    let mut selection = bulk.selection.clone();
    if selection.status.is_empty() {
        selection.status.push("in-doubt".to_owned());
    }
    let sieve = selection.sieve(store)?;
    let Selected { rows, note } = sieve.runs(store, &[], MOST).await?;
    let mut chosen = Chosen { note, ..Chosen::default() };
    for row in rows {
        let opened = inspect::open(store, &row.run.key).await?;
        for action in people::doubtful(&opened).filter(|action| sieve.takes_tool(&action.tool)) {
            let ordinal = action.ordinal;
            if people::is_settled_ahead(&opened, action) {
                let json = json!({"run": row.run.key.run, "action": ordinal});
                chosen.skipped.push(Skipped { why: "resolved before".to_owned(), json });
                continue;
            }
            chosen.items.push(Item {
                run: RunKey::clone(&row.run.key),
                word: Word::Resolve { ordinal, became: became.clone(), attempt: Some(action.attempts) },
                id: None,
                then: Then::of(row.status),
                name: format!("{} {ordinal}", short_id(row.run.key.run.as_str(), &[])),
                shown: format!("{}  {}", row.agent, call(&opened, action)),
                json: json!({"action": ordinal}),
            });
        }
    }
    Ok(chosen)
}

/// The requests whose names begin so: each is found and none is meant twice, or nothing is said to any.
async fn requests(app: &App, runtime: &Runtime, names: &[String]) -> Result<Vec<RequestRow>> {
    let mut rows: Vec<RequestRow> = Vec::new();
    for name in names {
        let row = request(app, runtime, name).await?;
        if let Some(at) = rows.iter().position(|earlier| earlier.name == row.name) {
            let what = format!("`{}` and `{name}` are one request: {}", names[at], &row.name.to_hex()[..8]);
            return Err(Error::new("usage.request_twice", what, "name each request once; nothing changed"));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A request is named by at least so many characters: fewer may be another's tomorrow.
const LEAST: usize = 4;

/// What is open, in words.
async fn open_names(runtime: &Runtime) -> Result<String> {
    let open = runtime.store().open_requests(DEFAULT_NAMESPACE, 10).await?;
    let names: Vec<String> = open.iter().map(|row| row.name.to_hex()[..8].to_owned()).collect();
    Ok(if names.is_empty() { "no request is open".to_owned() } else { format!("open are: {}", names.join(", ")) })
}

/// Of the open requests the start of a name, as long as the one given, that is nearest to it and near enough.
async fn nearest(runtime: &Runtime, wanted: &str) -> Result<Option<String>> {
    let open = runtime.store().open_requests(DEFAULT_NAMESPACE, MOST).await?;
    let length = wanted.chars().count();
    let starts: Vec<String> = open.iter().map(|row| row.name.to_hex().chars().take(length).collect()).collect();
    Ok(lodestep::nearest(wanted, starts.iter().map(String::as_str)).map(str::to_owned))
}

/// Of a run that is named in the place of a request: what it asks, or what became of what it asked last.
async fn of_run(runtime: &Runtime, name: &str) -> Option<String> {
    let row = runtime.find(name).await.ok()?;
    let opened = inspect::open(runtime.store(), &row.run.key).await.ok()?;
    let run = short_id(row.run.key.run.as_str(), &[]);
    let asked = people::open_requests(&opened);
    let open = asked.iter().filter(|(_, request, _)| people::answered(&opened, &request.name).is_none());
    let open: Vec<String> = open.map(|(_, request, _)| people::short(request)).collect();
    if !open.is_empty() {
        return Some(format!("{run} is a run; it asks for: {}", open.join(", ")));
    }
    let Some(last) = opened.ahead.closed_requests.back() else {
        return Some(format!("{run} is a run, and has asked for nothing"));
    };
    let how = people::answered(&opened, &last.name).unwrap_or_default();
    Some(format!("{run} is a run; its last request, {}, is decided: {how}", &last.name.to_hex()[..8]))
}

/// The one request whose name begins so.
async fn request(app: &App, runtime: &Runtime, name: &str) -> Result<RequestRow> {
    let wanted = name.trim().to_lowercase();
    if wanted.chars().count() < LEAST {
        let open = match of_run(runtime, name).await {
            Some(known) => known,
            None => open_names(runtime).await?,
        };
        let what = format!("`{}` is too short for a request's name", name.escape_default());
        return Err(Error::new("usage.request", what, format!("give its first {LEAST} characters or more; {open}")));
    }
    let hex = !wanted.is_empty() && wanted.chars().all(|c| c.is_ascii_hexdigit());
    let found = if hex { runtime.store().find_requests(DEFAULT_NAMESPACE, &wanted).await? } else { Vec::new() };
    let open: Vec<&RequestRow> = found.iter().filter(|row| row.open).collect();
    let only = match (open.as_slice(), found.as_slice()) {
        ([only], _) => Some((*only).clone()),
        (_, [only]) => Some(only.clone()),
        _ => None,
    };
    if let Some(only) = only {
        app.speaks_of(&only.run.key);
        return Ok(only);
    }
    let listed = |rows: &[RequestRow]| {
        let names = rows.iter().map(|row| row.name.to_hex()[..8].to_owned());
        names.collect::<Vec<_>>().join(", ")
    };
    if found.is_empty() {
        let next = match (of_run(runtime, name).await, nearest(runtime, &wanted).await?) {
            (Some(known), _) => known,
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => open_names(runtime).await?,
        };
        return Err(Error::new(
            "request.not_found",
            format!("no request's name begins with `{}`", name.escape_default()),
            next,
        ));
    }
    let what = format!("`{name}` begins more than one request's name: {}", listed(&found));
    Err(Error::new("request.ambiguous", what, "give more of the name"))
}

/// Says the like to each request. Their runs judge each on its own: a refusal of one leaves the others said.
async fn say_to_each(
    app: &App,
    runtime: &Runtime,
    rows: &[RequestRow],
    word: impl Fn(Digest) -> Word,
    done: &str,
) -> Result<u8> {
    if let [only] = rows {
        return say(app, runtime, &only.run.key, word(only.name), Then::GoesOn, done).await;
    }
    let item = |row: &RequestRow| Item {
        run: RunKey::clone(&row.run.key),
        word: word(row.name),
        id: None,
        then: Then::GoesOn,
        name: row.name.to_hex()[..8].to_owned(),
        shown: String::new(),
        json: json!({"request": row.name}),
    };
    Ok(bulk::say(app, runtime, rows.iter().map(item).collect(), Vec::new(), done).await)
}

async fn say(app: &App, runtime: &Runtime, run: &RunKey, word: Word, then: Then, done: &str) -> Result<u8> {
    let (name, shown, json) = (String::new(), String::new(), Value::Null);
    let item = Item { run: run.clone(), word, id: None, then, name, shown, json };
    let told = bulk::tell(app, runtime, &item, done).await?;
    app.say(&told.text, &told.value);
    Ok(0)
}
