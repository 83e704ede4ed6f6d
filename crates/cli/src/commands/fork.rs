//! `fork`: a new run that begins with the state of another.

use lodestep::core::checkpoint::{Checkpoint, How};
use lodestep::core::definition::QuotaLimits;
use lodestep::core::json::parse_strict;
use lodestep::core::quota::Quota;
use lodestep::core::{Error, Result, RunId};
use lodestep::fork::Fork;
use lodestep::inspect;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::ForkArgs;
use crate::text::{line, short_id};

/// Makes a fork and says what it begins with. It is not advanced here.
pub async fn fork(app: &App, args: ForkArgs) -> Result<u8> {
    let runtime = app.open(false)?;
    let origin = app.find(&runtime, &args.run).await?;
    let opened = inspect::open(runtime.store(), &origin.run.key).await?;
    let fork = Fork {
        at: args.at,
        id: args.id.as_deref().map(RunId::parse).transpose()?,
        inputs: changed(&opened.inputs, &args.input)?,
        grant: grant(&args.grant)?,
        by: app.by(),
        origin,
    };
    let from = fork.origin.run.key.clone();
    let forked = runtime.fork(fork).await?;
    let state = &forked.state;
    app.speaks_of(&state.key());
    // The grant is a word to the origin, which counts before a worker has read it.
    let origin = inspect::open(runtime.store(), &from).await?.ahead;
    let value = json!({
        "run": state.run, "origin": state.lineage.first(), "existed": forked.existed, "quota": state.quota.limits, "origin_left": left(&origin),
        "not_taken_along": not_taken_along(state).iter().map(|(ordinal, ..)| ordinal).collect::<Vec<_>>(),
    });
    app.say(&as_text(app, state, &origin, forked.existed), &value);
    Ok(0)
}

fn as_text(app: &App, state: &Checkpoint, origin: &Checkpoint, existed: bool) -> String {
    let word = if existed { "is there already" } else { "was made" };
    let mut text = format!("fork {} {word}", state.run);
    if let Some(origin) = state.lineage.first() {
        text.push_str(&format!(": it begins with run {} as it was after step {}", origin.run, origin.seq));
    }
    text.push('\n');
    for (ordinal, tool, word) in not_taken_along(state) {
        text.push_str(&format!("  action {ordinal} ({}) {word}\n", line(&tool, 64)));
    }
    for row in state.remaining() {
        // A deadline is a span of time that nobody loses.
        let there =
            origin.remaining().into_iter().find(|there| there.quota == row.quota && row.quota != Quota::Deadline);
        let taken = there
            .map(|there| format!(", taken from run {}, which has {} left", origin.run, row.quota.shown(there.left)));
        let (quota, amount) = (row.quota.as_str(), row.quota.shown(row.left));
        text.push_str(&format!("  {quota}: {amount} to spend{}\n", taken.unwrap_or_default()));
    }
    let id = short_id(state.run.as_str(), &[]);
    text.push_str(&format!(
        "now:\n  {}\n  {}\n",
        app.command(&format!("resume {id}")),
        app.command(&format!("show {id}"))
    ));
    text
}

/// What a run has left of what it limits, by the names of `--grant`.
fn left(origin: &Checkpoint) -> QuotaLimits {
    let mut left = QuotaLimits::default();
    for row in origin.remaining().into_iter().filter(|row| row.quota != Quota::Deadline) {
        *row.quota.limit_mut(&mut left) = Some(row.left);
    }
    left
}

/// The origin's actions that were not settled: what became of each in the fork.
fn not_taken_along(state: &Checkpoint) -> Vec<(u32, String, &'static str)> {
    let words = |how| match how {
        How::Withdrawn => Some("was not sent and is withdrawn here"),
        How::Left => Some("may have been sent by the origin, which alone will know"),
        _ => None,
    };
    let settled = state.recent.iter().filter(|settled| settled.result.seq == 1);
    settled.filter_map(|it| Some((it.ordinal.0, it.tool.clone(), words(it.how)?))).collect()
}

/// The inputs with other values for some; each of the type that it had.
fn changed(inputs: &Value, given: &[(String, String)]) -> Result<Option<Value>> {
    if given.is_empty() {
        return Ok(None);
    }
    let mut inputs = inputs.clone();
    for (name, text) in given {
        let Some(known) = inputs.get_mut(name) else {
            let what = format!("the run has no input `{}`", name.escape_debug());
            return Err(Error::new("input.unknown", what, "`lodestep show RUN` lists its inputs"));
        };
        *known = if known.is_string() {
            Value::String(text.clone())
        } else {
            let read = parse_strict(text).map_err(|fault| {
                Error::new("input.invalid", format!("input {name}: {fault}"), format!("it was {known}"))
            });
            let same = Some(read?).filter(|read| std::mem::discriminant(read) == std::mem::discriminant(known));
            same.ok_or_else(|| {
                let what = format!("input {name}: `{}` is not what it was, {known}", text.escape_debug());
                Error::new("input.invalid", what, "give a value of the same type")
            })?
        };
    }
    Ok(Some(inputs))
}

/// Amounts by the names that `show` prints.
fn grant(given: &[(String, String)]) -> Result<QuotaLimits> {
    let mut amounts = QuotaLimits::default();
    for (name, text) in given {
        let names: Vec<&str> = amounts.amounts().iter().map(|(name, _)| *name).collect();
        let wrong =
            |what: String| Error::new("usage.grant", what, format!("NAME=AMOUNT with one of {}", names.join(", ")));
        let amount = text.parse().map_err(|_| wrong(format!("`{}` is no amount", text.escape_debug())))?;
        let known = amounts.amount_mut(name).ok_or_else(|| wrong(format!("`{}` is no quota", name.escape_debug())))?;
        *known = Some(amount);
    }
    Ok(amounts)
}
