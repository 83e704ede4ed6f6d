//! `upgrade`: an unfinished run goes on with the definition of a file. What changes is shown first.

use lodestep::agent::AgentFile;
use lodestep::core::rules::inbox::Verdict;
use lodestep::core::{Digest, Error, Result, RunKey};
use lodestep::store::RunRow;
use lodestep::upgrade::{Fate, Meaning, Plan};
use lodestep::{Runtime, inspect};
use serde_json::{Value, json};

use crate::app::App;
use crate::args::UpgradeArgs;
use crate::bulk::{self, Bulk, Chosen, Item, Then};
use crate::commands::diff;
use crate::commands::run::use_model;
use crate::select::{MOST, Selected, Selection, either, unfinished};
use crate::text::{line, short_id};

/// Moves one run, or those that filters choose.
pub async fn upgrade(app: &App, args: UpgradeArgs) -> Result<u8> {
    let UpgradeArgs { run, file, model, selection, yes, dry_run } = args;
    // With filters the one that is named is the file.
    let (run, file) = match (selection.is_empty(), run, file) {
        (false, Some(file), None) => (None, Some(file.into())),
        (_, run, file) => (run, file),
    };
    either(run.is_some(), &selection, "run")?;
    let Some(file) = file else {
        let what = "no agent file is named, and a store does not keep where a run's file was";
        return Err(Error::new("usage.file", what, "name it: `lodestep upgrade RUN FILE`"));
    };
    let mut file = AgentFile::load(&file).map_err(Error::from)?;
    use_model(&mut file, model.as_deref())?;
    let runtime = app.open(false)?;
    match run {
        Some(run) => {
            let row = app.find(&runtime, &run).await?;
            one(app, &runtime, &row.run.key, &file, yes, dry_run).await
        }
        None => many(app, &runtime, &file, Bulk { selection, yes }, dry_run).await,
    }
}

async fn one(app: &App, runtime: &Runtime, run: &RunKey, file: &AgentFile, yes: bool, dry_run: bool) -> Result<u8> {
    let plan = plan(runtime, run, file).await?;
    let id = short_id(run.run.as_str(), &[]);
    if plan.already {
        let text = format!("already given: run {id} has this definition\n");
        app.say(&text, &with_verdict(&plan, "already_given"));
        return Ok(0);
    }
    let shown = format!("run {id} would go on with {}:\n{}", file.path.display(), words(app, &plan));
    if dry_run {
        app.say(&shown, &with_verdict(&plan, "planned"));
        return Ok(0);
    }
    lodestep::note!("{}", shown.trim_end());
    bulk::agree(yes, "upgrade", 1).await?;
    match runtime.send(run, &app.by(), plan.word.clone()).await? {
        Verdict::Accepted => {
            let stays = plan.meaning.iter().find(|meaning| meaning.fate == Fate::StaysStopped);
            let hint = app.command(&format!("resume {id}"));
            let text = match stays {
                Some(meaning) => format!("upgraded; {}\n", app.pasted(&meaning.text)),
                None => format!("upgraded; run {id} goes on as soon as a worker is there (`{hint}` is one)\n"),
            };
            app.say(&text, &with_verdict(&plan, "accepted"));
        }
        Verdict::AlreadyGiven(happened) => {
            app.say(&format!("already given: {happened}\n"), &with_verdict(&plan, "already_given"));
        }
        Verdict::Refused(error) => return Err(error),
    }
    Ok(0)
}

async fn plan(runtime: &Runtime, run: &RunKey, file: &AgentFile) -> Result<Plan> {
    let opened = inspect::open(runtime.store(), run).await?;
    file.check_inputs(&opened.inputs)?;
    runtime.plan_upgrade(run, &file.definition).await
}

/// What is planned for one of many.
struct Planned {
    row: RunRow,
    plan: Plan,
}

async fn many(app: &App, runtime: &Runtime, file: &AgentFile, bulk: Bulk, dry_run: bool) -> Result<u8> {
    // Another agent's runs can't be meant.
    let agent = bulk.selection.agent.clone().or_else(|| Some(file.definition.name.clone()));
    let bulk = Bulk { selection: Selection { agent, ..bulk.selection }, ..bulk };
    let sieve = bulk.selection.sieve(runtime.store())?;
    let Selected { rows, note } = sieve.runs(runtime.store(), &unfinished(), MOST).await?;
    let (mut planned, mut refused, mut already) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        match plan(runtime, &row.run.key, file).await {
            Ok(plan) if plan.already => already += 1,
            Ok(plan) => planned.push(Planned { row, plan }),
            Err(error) => refused.push((row, error)),
        }
    }
    let ids: Vec<&str> = planned.iter().map(|it| it.row.run.key.run.as_str()).collect();
    let items: Vec<Item> = planned.iter().map(|it| item(it, &ids)).collect();
    for (row, error) in &refused {
        let id = short_id(row.run.key.run.as_str(), &[]);
        lodestep::note!("  {id}  can't be upgraded: {} [{}]", error.what(), error.code());
    }
    if already > 0 {
        lodestep::note!("{already} have this definition already");
    }
    lodestep::note!("{}", differences(&planned).trim_end());
    if dry_run {
        let text: String = items.iter().map(|item| format!("{}  {}\n", item.name, item.shown)).collect();
        let all: Vec<Value> = planned.iter().map(|it| with_verdict(&it.plan, "planned")).collect();
        app.say(&text, &Value::Array(all));
        return Ok(0);
    }
    let chosen = Chosen { items, skipped: Vec::new(), note };
    let code = bulk.say(app, runtime, "upgrade", chosen, "upgraded").await?;
    Ok(if refused.is_empty() { code } else { code.max(1) })
}

fn item(planned: &Planned, ids: &[&str]) -> Item {
    let Planned { row, plan } = planned;
    let count = |fate: Fate, what: &str| {
        let count = plan.meaning.iter().filter(|meaning| meaning.fate == fate).count();
        (count > 0).then(|| format!("{count} {what}"))
    };
    let told = [
        count(Fate::AskedAnew, "asked anew"),
        count(Fate::TakenBack, "taken back"),
        count(Fate::EndsAsItBegan, "end as they began"),
        count(Fate::StaysInDoubt, "stay in doubt"),
        plan.meaning.iter().any(|meaning| meaning.fate == Fate::Resumes).then(|| "goes on".to_owned()),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    let told = if told.is_empty() { "no action changes".to_owned() } else { told.join(", ") };
    Item {
        run: plan.run.clone(),
        word: plan.word.clone(),
        id: None,
        then: Then::GoesOn,
        name: short_id(row.run.key.run.as_str(), ids).to_owned(),
        shown: format!("{:<12} {}  {told}", row.status.as_str(), line(&row.agent, 24)),
        json: json!({"changes": plan.changes, "meaning": plan.meaning}),
    }
}

/// What changes, once for all runs for which it is the same.
fn differences(planned: &[Planned]) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for it in planned {
        let text = changes(&it.plan);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => groups.push((text, 1)),
        }
    }
    groups.iter().map(|(text, count)| format!("for {count} of them:\n{text}")).collect()
}

fn changes(plan: &Plan) -> String {
    if plan.changes.is_empty() {
        return "  nothing that a person would notice\n".to_owned();
    }
    plan.changes.iter().map(|change| format!("  {}", diff::words(change))).collect()
}

fn words(app: &App, plan: &Plan) -> String {
    let mut text = changes(plan);
    text.extend(plan.meaning.iter().map(|meaning| format!("  {}\n", meant(app, meaning))));
    text
}

fn meant(app: &App, meaning: &Meaning) -> String {
    let what = line(&app.pasted(&meaning.text), 300);
    match (&meaning.action, &meaning.tool) {
        (Some(ordinal), Some(tool)) => format!("action {ordinal} {}: {what}", line(tool, 64)),
        _ => what,
    }
}

fn with_verdict(plan: &Plan, verdict: &str) -> Value {
    json!({"verdict": verdict, "run": plan.run.run, "changes": plan.changes, "meaning": plan.meaning})
}

/// Is the run's definition, once its inbox is read, another one than this? What can't be read is told elsewhere.
pub async fn differs(runtime: &Runtime, row: &RunRow, digest: &Digest) -> bool {
    let opened = inspect::open(runtime.store(), &row.run.key).await;
    opened.map_or(row.definition, |opened| opened.ahead.definition.digest) != *digest
}
