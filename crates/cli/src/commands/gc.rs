//! `gc`: values that nothing names are swept, runs that ended long ago are removed, transcripts emptied.
//!
//! What a person could miss is shown and counted first, and only done when somebody agrees. What stays is named with the
//! reason.

use lodestep::Runtime;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::{Error, Result, Timestamp};
use lodestep::gc::Lineage;
use lodestep::store::garbage::{Amount, Kept, Mode, Removal, Removed, Sweep};
use lodestep::store::{Filter, RunRow};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::GcArgs;
use crate::bulk::agree;
use crate::select::{Selection, over};
use crate::text::{bytes, line, short_id};

/// So many runs are removed or emptied by one command.
const MOST: usize = 10_000;

/// So many are shown, each in a line; of the others there is a count.
const SHOWN: usize = 20;

/// Sweeps, removes, empties.
pub async fn gc(app: &App, args: GcArgs) -> Result<u8> {
    let chooses = !args.status.is_empty() || args.agent.is_some() || !args.labels.is_empty();
    if chooses && args.ended_before.is_none() && !args.transcripts {
        let next = "give --ended-before DURATION to remove runs, or --transcripts to empty their transcripts";
        return Err(Error::new("usage.gc", "filters say of which runs, and nothing says what", next));
    }
    let runtime = if args.dry_run { app.open_to_read()? } else { app.open(false)? };
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Apply };
    let mut report = Report { mode, ..Report::new() };
    if args.transcripts {
        empty_transcripts(&runtime, &args, &mut report).await?;
    } else if args.ended_before.is_some() {
        remove_runs(app, &runtime, &args, &mut report).await?;
    }
    report.sweep = runtime.store().sweep(mode).await?;
    if args.compact && !args.dry_run {
        report.given_back = Some(runtime.store().compact().await?);
    }
    app.say(&report.in_words(app), &report.as_json());
    Ok(0)
}

/// The runs that are meant, newest first, and whether there are more.
async fn chosen(runtime: &Runtime, args: &GcArgs) -> Result<(Vec<RunRow>, bool)> {
    let (status, agent, labels) = (args.status.clone(), args.agent.clone(), args.labels.clone());
    let selection = Selection { status, agent, labels, ..Selection::default() };
    let sieve = selection.sieve(runtime.store())?;
    let statuses = sieve.statuses(&over());
    if let Some(goes_on) = statuses.iter().find(|status| !status.is_terminal() && !args.transcripts) {
        let what = format!("a run that is {} is not over", goes_on.as_str());
        return Err(Error::new("usage.status", what, "only completed, failed and cancelled runs are removed"));
    }
    let still_since = args.ended_before.map(|ago| {
        let ago_us = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(runtime.store().now().as_micros().saturating_sub(ago_us))
    });
    let filter = Filter { still_since, ..sieve.filter(&statuses, MOST + 1) };
    let mut rows = runtime.store().list(DEFAULT_NAMESPACE, &filter).await?;
    let more = rows.len() > MOST;
    rows.truncate(MOST);
    Ok((rows, more))
}

async fn remove_runs(app: &App, runtime: &Runtime, args: &GcArgs, report: &mut Report) -> Result<()> {
    let (rows, more) = chosen(runtime, args).await?;
    let lineages = runtime.removable(rows).await?;
    let (go, stay): (Vec<_>, Vec<_>) =
        lineages.into_iter().partition(|lineage| matches!(lineage.removal, Removal::Removed(_)));
    let foretold = total(&go);
    report.kept = stay;
    report.more = more;
    if !args.dry_run && foretold.runs > 0 {
        show(go.iter().flat_map(|lineage| &lineage.runs), foretold.runs);
        lodestep::note!(
            "{} to remove for ever: {} transitions, {}",
            runs(foretold.runs),
            foretold.transitions,
            bytes(foretold.bytes)
        );
        report.kept.iter().for_each(|lineage| lodestep::note!("kept: {}", app.pasted(&why_kept(lineage))));
        agree(args.yes, "remove", usize::try_from(foretold.runs).unwrap_or(usize::MAX)).await?;
        for lineage in go {
            let lineage = runtime.remove(lineage).await?;
            match lineage.removal {
                Removal::Removed(removed) => add(&mut report.removed, &removed),
                Removal::Kept(_) => report.kept.push(lineage),
            }
        }
    } else {
        report.removed = foretold;
    }
    Ok(())
}

async fn empty_transcripts(runtime: &Runtime, args: &GcArgs, report: &mut Report) -> Result<()> {
    let (rows, more) = chosen(runtime, args).await?;
    report.more = more;
    let mut found = Vec::new();
    let mut amount = Amount::default();
    for row in rows {
        let there = runtime.store().forget_transcripts(&row.run, Mode::DryRun).await?;
        if there.count > 0 {
            amount.count += there.count;
            amount.bytes += there.bytes;
            found.push(row);
        }
    }
    if !args.dry_run && !found.is_empty() {
        show(&found, found.len() as u64);
        lodestep::note!(
            "{} whose transcripts are emptied for ever: {} of {}",
            runs(found.len() as u64),
            amount.count,
            bytes(amount.bytes)
        );
        agree(args.yes, "empty", found.len()).await?;
        for row in &found {
            runtime.store().forget_transcripts(&row.run, Mode::Apply).await?;
        }
    }
    report.transcripts = Some(amount);
    Ok(())
}

fn show<'a>(rows: impl IntoIterator<Item = &'a RunRow>, count: u64) {
    for row in rows.into_iter().take(SHOWN) {
        let id = short_id(row.run.key.run.as_str(), &[]);
        let agent = line(&row.agent, 24);
        lodestep::note!("  {id}  {:<12} {agent}  since {}", row.status.as_str(), row.updated_at);
    }
    if count > SHOWN as u64 {
        lodestep::note!("  … and {} more", count - SHOWN as u64);
    }
}

fn total(lineages: &[Lineage]) -> Removed {
    let mut total = Removed::default();
    for lineage in lineages {
        if let Removal::Removed(removed) = &lineage.removal {
            add(&mut total, removed);
        }
    }
    total
}

fn add(total: &mut Removed, removed: &Removed) {
    total.runs += removed.runs;
    total.transitions += removed.transitions;
    total.bytes += removed.bytes;
}

fn runs(count: u64) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

/// Why a lineage stays, in words.
fn why_kept(lineage: &Lineage) -> String {
    let ids: Vec<&str> = lineage.runs.iter().map(|row| row.run.key.run.as_str()).map(|id| short_id(id, &[])).collect();
    let end = |run: &lodestep::core::RunId| short_id(run.as_str(), &[]).to_owned();
    let why = match &lineage.removal {
        Removal::Kept(Kept::NotOver(run)) => format!("run {} of its lineage is not over", end(run)),
        Removal::Kept(Kept::Unread(run)) => {
            format!("a word to run {} was not read yet; `lodestep resume {}` reads it", end(run), end(run))
        }
        Removal::Kept(Kept::DedupeKey(run, key)) => {
            let key = line(key, 60);
            format!("an effect of run {} has the dedupe key `{key}`, which other runs may meet", end(run))
        }
        Removal::Kept(Kept::Relative(run)) => format!(
            "run {} is of its lineage and stays: what one did, the other must not do again; they go together",
            end(run)
        ),
        Removal::Removed(_) => String::new(),
    };
    format!("{}: {why}", ids.join(", "))
}

fn kept_code(removal: &Removal) -> &'static str {
    match removal {
        Removal::Kept(Kept::NotOver(_)) => "not_over",
        Removal::Kept(Kept::Unread(_)) => "unread",
        Removal::Kept(Kept::DedupeKey(..)) => "dedupe_key",
        Removal::Kept(Kept::Relative(_)) => "relative",
        Removal::Removed(_) => "",
    }
}

/// What was done, or would be.
struct Report {
    mode: Mode,
    removed: Removed,
    kept: Vec<Lineage>,
    more: bool,
    transcripts: Option<Amount>,
    sweep: Sweep,
    given_back: Option<u64>,
}

impl Report {
    fn new() -> Self {
        Self {
            mode: Mode::Apply,
            removed: Removed::default(),
            kept: Vec::new(),
            more: false,
            transcripts: None,
            sweep: Sweep::default(),
            given_back: None,
        }
    }

    fn in_words(&self, app: &App) -> String {
        let would = if self.mode == Mode::DryRun { "would be " } else { "" };
        let mut text = String::new();
        let mut say = |said: String| text.push_str(&format!("{said}\n"));
        if self.removed.runs > 0 {
            let Removed { runs: count, transitions, bytes: size } = self.removed;
            say(format!("{} {would}removed: {transitions} transitions, {}", runs(count), bytes(size)));
        }
        self.kept.iter().for_each(|lineage| say(format!("kept: {}", app.pasted(&why_kept(lineage)))));
        if self.more {
            say(format!("only the newest {MOST} of them were looked at; type it again for the others"));
        }
        if let Some(amount) = self.transcripts {
            say(format!("{} transcripts {would}emptied: {}", amount.count, bytes(amount.bytes)));
        }
        let Sweep { named, waiting, swept, leftovers, free_bytes } = self.sweep;
        say(format!("{} large values {would}swept: {}", swept.count, bytes(swept.bytes)));
        if waiting.count > 0 {
            let size = bytes(waiting.bytes);
            say(format!(
                "{} more, {size}, are named by nothing now; a pass a day after the first that found it so sweeps each",
                waiting.count
            ));
        }
        say(format!("{} are in use: {}", named.count, bytes(named.bytes)));
        if leftovers.count > 0 {
            say(format!("{} files of dead processes {would}removed", leftovers.count));
        }
        match self.given_back {
            Some(given_back) => say(format!("{} given back to the system", bytes(given_back))),
            None if free_bytes > 0 => {
                say(format!(
                    "{} are free in the store's file and will be used again; --compact gives them back",
                    bytes(free_bytes)
                ));
            }
            None => {}
        }
        text
    }

    fn as_json(&self) -> Value {
        let amount = |amount: Amount| json!({"count": amount.count, "bytes": amount.bytes});
        let kept = self.kept.iter().map(|lineage| {
            let runs: Vec<&str> = lineage.runs.iter().map(|row| row.run.key.run.as_str()).collect();
            json!({"runs": runs, "why": kept_code(&lineage.removal), "what": why_kept(lineage)})
        });
        json!({
            "dry_run": self.mode == Mode::DryRun,
            "removed": {
                "runs": self.removed.runs, "transitions": self.removed.transitions, "bytes": self.removed.bytes,
            },
            "kept": kept.collect::<Vec<_>>(),
            "more": self.more,
            "transcripts": self.transcripts.map(amount),
            "values": {
                "named": amount(self.sweep.named),
                "waiting": amount(self.sweep.waiting),
                "swept": amount(self.sweep.swept),
            },
            "leftovers": amount(self.sweep.leftovers),
            "free_bytes": self.sweep.free_bytes,
            "given_back": self.given_back,
        })
    }
}
