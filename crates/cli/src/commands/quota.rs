//! `quota`: what a run may spend, shown and raised.

use lodestep::agent::{duration_ms, usd_micro};
use lodestep::core::quota::{Quota, Remaining};
use lodestep::core::rules::inbox::{self, Word};
use lodestep::core::rules::standing::Status;
use lodestep::core::{Checkpoint, Draft, Error, Result};
use lodestep::inspect::{self, Opened};
use lodestep::store::RunRow;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::QuotaCommand;
use crate::bulk::{Bulk, Then};
use crate::commands::sending::send;
use crate::people;
use crate::select::{self, unfinished};
use crate::text::short_id;

/// Shows or raises quotas.
pub async fn quota(app: &App, command: QuotaCommand) -> Result<u8> {
    match command {
        QuotaCommand::Show { run } => show(app, &run).await,
        QuotaCommand::Add { run, quota, amount, id, bulk } => match (amount, bulk.is_given()) {
            (Some(amount), false) => add(app, &run, &quota, &amount, id).await,
            // With filters the first word is the quota.
            (None, true) => add_to_many(app, &run, &quota, id, &bulk).await,
            (Some(_), true) => Err(select::either(true, &bulk.selection, "run").err().unwrap_or_else(no_amount)),
            (None, false) => Err(no_amount()),
        },
    }
}

async fn show(app: &App, run: &str) -> Result<u8> {
    let runtime = app.open(false)?;
    let row = app.find(&runtime, run).await?;
    let opened = inspect::open(runtime.store(), &row.run.key).await?;
    let checkpoint = with_unread(&opened)?;
    let now = if checkpoint.is_over() { checkpoint.at } else { runtime.store().now() };
    let rows = checkpoint.quota.remaining(now.ms_since(checkpoint.started_at));
    let text = if rows.is_empty() { "the run has no limits\n".to_owned() } else { table(&rows) };
    let used = &checkpoint.quota.used;
    let spent = format!(
        "spent in all: {} model calls, {} tool calls, {} tokens in, {} out\n",
        used.model_calls, used.tool_calls, used.input_tokens, used.output_tokens
    );
    let quota = &checkpoint.quota;
    let hint = match people::out_of(&opened) {
        _ if checkpoint.is_over() => String::new(),
        Some(out) => {
            let id = short_id(row.run.key.run.as_str(), &[]);
            format!("to raise it: {}  ({})\n", app.command(&format!("quota add {id} {}", out.top_up())), out.beside())
        }
        None => raising(app, &row, &rows),
    };
    app.say(
        &format!("{text}{spent}{}{hint}", super::show::besides(quota)),
        &json!({
            "run": row.run.key.run, "quotas": rows.iter().map(as_json).collect::<Vec<_>>(),
            "used": quota.used, "reserved": quota.reserved, "overrun": quota.overrun,
            "unconfirmed": quota.unconfirmed, "cached": quota.cached,
        }),
    );
    Ok(0)
}

/// The state with the words that were accepted and that no worker has read yet: a top-up counts from then on.
fn with_unread(opened: &Opened) -> Result<Checkpoint> {
    let mut draft = Draft::next(opened.checkpoint.clone(), opened.checkpoint.at, opened.row.epoch, 0);
    for (position, message) in &opened.unread {
        inbox::read(&mut draft, *position, message)?;
    }
    Ok(draft.into_checkpoint())
}

fn as_json(row: &Remaining) -> Value {
    json!({
        "quota": row.quota, "used": row.used, "reserved": row.reserved, "left": row.left, "limit": row.limit,
        "low": row.is_low(),
    })
}

fn table(rows: &[Remaining]) -> String {
    let head = ["quota", "left", "limit", "used", "held back", ""].map(str::to_owned);
    let cells = rows.iter().map(|row| {
        let shown = |amount| row.quota.shown(amount);
        let low = if row.is_low() { "low" } else { "" };
        [
            row.quota.as_str().to_owned(),
            shown(row.left),
            shown(row.limit),
            shown(row.used),
            shown(row.reserved),
            low.to_owned(),
        ]
    });
    let lines = std::iter::once(head).chain(cells);
    lines.fold(String::new(), |mut text, cells| {
        let line: String = cells.iter().map(|cell| format!("{cell:<14}")).collect();
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

/// How to raise the limit that is nearest to its end.
fn raising(app: &App, run: &RunRow, rows: &[Remaining]) -> String {
    let used = |row: &&Remaining| (row.left == 0, row.is_low());
    let Some(first) = rows.iter().rev().max_by_key(used) else { return String::new() };
    let id = short_id(run.run.key.run.as_str(), &[]);
    format!("to raise one: {}\n", app.command(&format!("quota add {id} {} N", first.quota.as_str())))
}

async fn add(app: &App, run: &str, name: &str, amount: &str, id: Option<String>) -> Result<u8> {
    let quota = named(name)?;
    let amount = amount_of(quota, amount)?;
    let runtime = app.open(false)?;
    let row = app.find(&runtime, run).await?;
    let key = &row.run.key;
    let short = short_id(key.run.as_str(), &[]);
    let added = format!("added {} to {} of run {short}", quota.shown(amount), quota.as_str());
    let still = people::out_of(&inspect::open(runtime.store(), key).await?);
    let still = still.filter(|out| out.quota == quota).and_then(|out| out.after(amount));
    let done = match (row.status, still) {
        (_, Some(out)) => {
            let more = app.command(&format!("quota add {short} {}", out.top_up()));
            format!("{added}; that is too little for its next call\n  {more}  ({})", out.beside())
        }
        (Status::Stopped, None) => format!("{added}; it goes on with {}", app.command(&format!("resume {short}"))),
        (_, None) => added,
    };
    send(app, &runtime, key, id.as_deref(), Word::TopUp { quota, amount }, &done).await
}

/// Raises the limit of each run that the filters choose; of those that are not over when no status was said.
async fn add_to_many(app: &App, name: &str, amount: &str, id: Option<String>, bulk: &Bulk) -> Result<u8> {
    let quota = named(name)?;
    let amount = amount_of(quota, amount)?;
    let runtime = app.open(false)?;
    let word = || Word::TopUp { quota, amount };
    let mut chosen = bulk.runs(&runtime, &unfinished(), Then::Stands, word).await?;
    chosen.items.iter_mut().for_each(|item| item.id.clone_from(&id));
    let stopped = chosen.items.iter().any(|item| item.shown.starts_with(Status::Stopped.as_str()));
    lodestep::note!("{} more of {} for each of:", quota.shown(amount), quota.as_str());
    let code = bulk.say(app, &runtime, "raise", chosen, "raised").await?;
    if stopped {
        lodestep::note!("those that are stopped go on with `{}` and the same filters", app.command("resume"));
    }
    Ok(code)
}

fn named(name: &str) -> Result<Quota> {
    Quota::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Quota::ALL.into_iter().map(Quota::as_str).collect();
        Error::new(
            "usage.quota",
            format!("there is no quota `{}`", name.escape_debug()),
            format!("there are {}", names.join(", ")),
        )
    })
}

fn no_amount() -> Error {
    let next = "`lodestep quota add RUN QUOTA AMOUNT`; for many runs `lodestep quota add QUOTA AMOUNT --agent AGENT`";
    Error::new("usage.quota", "no amount is named", next)
}

/// The amount in the quota's unit.
fn amount_of(quota: Quota, text: &str) -> Result<u64> {
    let (amount, form) = match quota {
        Quota::Usd => (usd_micro(text), "a sum such as 2.50"),
        Quota::ActiveTime | Quota::Deadline => (duration_ms(text), "a time such as 30s, 90m, 2h or 7d"),
        _ => (text.parse().ok(), "a whole number above 0"),
    };
    amount.ok_or_else(|| {
        let what = format!("`{}` is no amount of {}", text.escape_debug(), quota.as_str());
        Error::new("usage.quota", what, format!("an amount is {form}"))
    })
}
