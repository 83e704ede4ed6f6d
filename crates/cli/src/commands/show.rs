//! `show`: a run's checkpoint, and what can be done now.

use std::path::Path;

use lodestep::Runtime;
use lodestep::core::Result;
use lodestep::core::checkpoint::{Action, ActionState, Checkpoint, How, Phase};
use lodestep::core::definition::{OnExpiry, ToolKind};
use lodestep::core::event::{DeniedBy, Evidence, Gate, Request, StopReason};
use lodestep::core::quota::Quotas;
use lodestep::core::reference::with_inputs;
use lodestep::core::rules::completion::{Judge, judge};
use lodestep::core::rules::standing::{Reason, Status, standing};
use lodestep::inspect::{self, AskedModel, Opened};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::ls;
use crate::findings::Findings;
use crate::people;
use crate::retries;
use crate::text::{block, line, short_id, visible};
use crate::wiring::wiring;

/// Of a longer text so many lines are shown; `--json` and `log` have it whole.
const LINES: usize = 12;

/// So many characters of what is tried again are shown of its error.
const ERROR: usize = 100;

/// Shows a run, as it is or as it was after a step.
pub async fn show(app: &App, run: &str, at: Option<u64>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    let opened = match at {
        Some(at) => inspect::open_at(runtime.store(), &row, at).await?,
        None => inspect::open(runtime.store(), &row.run.key).await?,
    };
    Findings::of(app).tell_of(app, &row.run);
    let uncaged = uncaged(&runtime, &opened).await;
    let model = asked_model(app, &opened);
    if app.json {
        let mut shown = as_json(&opened);
        shown["uncaged"] = json!(uncaged);
        shown["model"] = json!(model);
        app.print(&format!("{shown}\n"));
        return Ok(0);
    }
    let mut text = at.map_or_else(|| heading(&opened), |at| heading_at(&opened, at));
    text.extend(model.map(|model| format!("model  {}\n", line(&model.to_string(), 300))));
    section(&mut text, "damage", &damage(&opened));
    section(&mut text, "objective", &visible(&objective(&opened).unwrap_or_default()));
    section(&mut text, "inputs", &inputs(&opened));
    section(&mut text, "plan", &plan(&opened));
    section(&mut text, "pending", &pending(&opened));
    section(&mut text, "recent", &recent(&opened));
    section(&mut text, "artifacts", &artifacts(&opened));
    section(&mut text, "notes", &notes(&opened));
    section(&mut text, "errors", &errors(&opened));
    section(&mut text, "guidance", &guidance(&opened));
    section(&mut text, "signals", &signals(&opened));
    section(&mut text, "quotas", &quotas(&opened));
    if at.is_none() {
        section(&mut text, "requests", &people::hints(app, &opened));
        section(&mut text, "unknown outcomes", &people::doubts(app, runtime.store(), &opened).await);
    }
    section(&mut text, "tools are not kept from the store here", &line(uncaged.as_deref().unwrap_or_default(), 600));
    text.push_str(&format!("\nstep {}  head {}\n", opened.checkpoint.seq, opened.checkpoint.head));
    if at.is_none() {
        text.push_str(&acts(app, &opened));
    }
    app.print(&text);
    Ok(0)
}

/// The model of a run, and where it is asked from here. A file beside the store that can't be read says nothing of that.
fn asked_model(app: &App, opened: &Opened) -> Option<AskedModel> {
    let environment = wiring(app, None).map(|wiring| wiring.environment()).unwrap_or_default();
    opened.definition.as_ref().map(|definition| AskedModel::written(definition, &environment))
}

/// Why programs of a run that is not over would not be kept from the store on this machine.
async fn uncaged(runtime: &Runtime, opened: &Opened) -> Option<String> {
    if opened.standing.status.is_terminal() {
        return None;
    }
    let folder = opened.definition.iter().flat_map(|definition| &definition.tools).find_map(|tool| match &tool.kind {
        ToolKind::Command { folder, .. } => Some(folder),
        _ => None,
    });
    runtime.cage_fault(Path::new(folder?)).await
}

fn section(text: &mut String, title: &str, body: &str) {
    if !body.trim().is_empty() {
        text.push_str(&format!("\n{title}\n"));
        for line in body.trim_end().lines() {
            text.push_str(&format!("  {line}\n"));
        }
    }
}

fn heading(opened: &Opened) -> String {
    let row = &opened.row;
    let status = if opened.row.holder.is_some() { "running" } else { opened.standing.status.as_str() };
    format!(
        "run {}  agent {}  {status}{}\nstarted {}  last step {}\n",
        row.run.key.run,
        row.agent,
        because(opened),
        row.started_at,
        row.updated_at
    )
}

/// What is past needs no word and takes none.
fn heading_at(opened: &Opened, at: u64) -> String {
    let state = &opened.checkpoint;
    let status = opened.standing.status.as_str();
    let last = opened.row.seq;
    format!(
        "run {}  agent {}  as it was after step {at} of {last}: {status}{}\nstarted {}  that step {}\n",
        state.run,
        state.agent,
        because(opened),
        state.started_at,
        state.at
    )
}

/// Why a run is where it is, in words: the reasons, and below them what was said when it stopped or ended.
pub fn because(opened: &Opened) -> String {
    let retries = retries::of_state(&opened.checkpoint, |text| opened.text(text));
    let mut reasons = retries::told(&lodestep::store::rows::why(&opened.standing), &retries, ERROR, false);
    if opened.standing.status == Status::Ready && opened.row.holder.is_none() {
        reasons = ls::unheld(&opened.row);
    }
    if opened.standing.status.is_terminal() && !reasons.is_empty() {
        reasons = format!("in doubt: {reasons}");
    }
    let (text, last_word) = match &opened.checkpoint.phase {
        Phase::Stopped { text, reason: StopReason::Completion, .. } => (opened.text(text), opened.last_word()),
        Phase::Stopped { .. } => (people::stopped_because(opened), None),
        Phase::Ended { text, .. } => (opened.text(text), opened.last_word()),
        Phase::Active | Phase::Cancelling { .. } => (String::new(), None),
    };
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {reasons}{}", unread(opened)) };
    let said = last_word.map(|word| format!("the model said: {word}")).unwrap_or_default();
    let below = [text, said].map(|text| block(&text, "  ", LINES)).concat();
    if below.is_empty() { reasons } else { format!("{reasons}\n{}", below.trim_end_matches('\n')) }
}

/// That a word has come which no worker has read: what the reasons ask for may have been said.
fn unread(opened: &Opened) -> &'static str {
    match (opened.unread.len(), opened.row.holder.is_some()) {
        (0, _) | (_, true) => "",
        (1, false) => "; a word has come, and no worker has read it yet",
        (_, false) => "; words have come, and no worker has read them yet",
    }
}

fn damage(opened: &Opened) -> String {
    opened.damage.iter().map(|what| format!("{}\n", line(what, 300))).collect()
}

fn objective(opened: &Opened) -> Option<String> {
    opened.definition.as_ref().map(|definition| with_inputs(&definition.objective, &opened.inputs))
}

fn inputs(opened: &Opened) -> String {
    let inputs = opened.inputs.as_object().into_iter().flatten();
    inputs.map(|(name, value)| format!("{name}: {}\n", line(&plain(value), 200))).collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn plan(opened: &Opened) -> String {
    let rows = opened.checkpoint.plan.iter().map(|milestone| {
        let fixed = opened.definition.iter().flat_map(|definition| &definition.milestones);
        let fixed = fixed.into_iter().find(|fixed| fixed.id == milestone.id);
        let title = match (fixed, &milestone.title) {
            (Some(fixed), _) => fixed.title.clone(),
            (None, Some(title)) => opened.text(title),
            (None, None) => String::new(),
        };
        let evidence = match &milestone.reached {
            None => String::new(),
            Some(Evidence::Action(ordinal)) => format!("  (action {ordinal})"),
            Some(Evidence::Artifact(name, version)) => format!("  (artifact {name}, version {version})"),
            Some(Evidence::Declared) => "  (self-declared)".to_owned(),
        };
        let mark = if milestone.reached.is_some() { 'x' } else { ' ' };
        format!("[{mark}] {}: {}{evidence}\n", milestone.id, line(&title, 100))
    });
    let mut text: String = rows.collect();
    text.push_str(match opened.definition.as_ref().map(judge) {
        None | Some(Judge::Check) => "",
        Some(Judge::ModelWithEvidence) => {
            "completion is self-declared: that the evidence is there is checked, that it is good is not ([done] check)\n"
        }
        Some(Judge::Model) => "completion is self-declared: the file names no check, and no evidence of any kind\n",
    });
    text
}

fn pending(opened: &Opened) -> String {
    let rows = opened.checkpoint.pending.values().map(|action| {
        let state = match &action.state {
            ActionState::Gated { gate: Gate::Approval(request) } => {
                format!("waits for approval {}{}", people::short(request), said_already(opened, request))
            }
            ActionState::Gated { gate: Gate::Answer(request) } => {
                format!("waits for answer {}{}", people::short(request), said_already(opened, request))
            }
            ActionState::Gated { gate: Gate::Same(of) } => format!("waits for action {of}, which is the same"),
            ActionState::Gated { gate: Gate::Signal(wait) } => match wait.until {
                Some(until) => format!("waits for signal {} since {}, until {until}", wait.name, action.proposed_at),
                None => format!("waits for signal {} since {}", wait.name, action.proposed_at),
            },
            ActionState::Gated { gate: Gate::Timer(until) } => {
                format!("waits since {}, until {until}", action.proposed_at)
            }
            ActionState::Gated { gate: Gate::Quota } => "waits for room in a quota".to_owned(),
            ActionState::Gated { gate: Gate::Siblings } => "is judged when its siblings are settled".to_owned(),
            ActionState::Ready { .. } if action.attempts == 0 && action.approved.is_some() => approved(action),
            ActionState::Ready { .. } if action.maybe_sent => {
                format!(
                    "the outcome of attempt {} is unknown; it is sent again under its key, or looked up",
                    action.attempts
                )
            }
            ActionState::Ready { .. } if opened.standing.status == Status::Quarantined => {
                "may have been begun: its worker crashed, and it may be repeated".to_owned()
            }
            ActionState::Gated { gate: Gate::Open } | ActionState::Ready { .. } => "is about to be done".to_owned(),
            ActionState::Open { attempt, .. } if opened.row.holder.is_none() => {
                format!("the outcome of attempt {attempt} is unknown: its worker is gone")
            }
            ActionState::Open { attempt, .. } => format!("attempt {attempt} is under way"),
            ActionState::LookUp { not_before, .. } => format!("is looked up at {not_before}"),
            ActionState::Held { run, action, since } => {
                format!("waits since {since}: held by run {run}, action {action}, which has the same dedupe key")
            }
            ActionState::Doubt { text, .. } => format!("IN DOUBT: {}", line(&opened.text(text), 100)),
        };
        let deadline = action.ends_at().map(|deadline| format!("; its deadline is {deadline}")).unwrap_or_default();
        format!("{}  {}  {state}{deadline}\n", action.ordinal, action.tool)
    });
    rows.collect()
}

/// What was said to a request that no worker has read yet.
fn said_already(opened: &Opened, request: &Request) -> String {
    let how = people::answered_why(opened, &request.name);
    how.map(|how| format!(": {how}, goes on as soon as a worker is there")).unwrap_or_default()
}

/// An approval covers the first intent until its request's expiry, whoever gave it and whenever it is read.
fn approved(action: &Action) -> String {
    let by = action.approved_by.as_deref().map(|by| format!(" by {}", line(by, 64))).unwrap_or_default();
    match action.approved.and_then(|request| request.expires_at.map(|at| (at, request.on_expiry))) {
        None => format!("approved{by}, is about to be done"),
        Some((at, on_expiry)) => {
            let then = match on_expiry {
                OnExpiry::Deny => "denied",
                OnExpiry::Pause => "asked for again: the run stops",
            };
            format!("approved{by}, is about to be done; not begun by {at}, it is {then}")
        }
    }
}

fn recent(opened: &Opened) -> String {
    let mut text = String::new();
    for (tool, counts) in &opened.checkpoint.older {
        text.push_str(&format!("earlier: {tool} {} done, {} not\n", counts.done, counts.not_done));
    }
    for settled in opened.checkpoint.recent.iter().rev().take(10).rev() {
        let how = match settled.how {
            How::Done => "done".to_owned(),
            How::Refused(kind) => format!("refused ({kind:?})"),
            How::Denied(why) => people::denied(opened, settled, why),
            other => format!("{other:?}").to_lowercase(),
        };
        let arguments = line(&opened.text(&settled.arguments), 60);
        text.push_str(&format!("{}  {} {arguments}  {how}\n", settled.ordinal, line(&settled.tool, 64)));
    }
    text
}

fn artifacts(opened: &Opened) -> String {
    let rows = opened.checkpoint.artifacts.iter();
    rows.map(|(name, artifact)| format!("{name}  version {}  {} bytes\n", artifact.version, artifact.content.len))
        .collect()
}

fn notes(opened: &Opened) -> String {
    let rows = opened.checkpoint.notes.iter();
    rows.map(|(key, note)| {
        format!("{}  {} bytes\n{}", line(key, 100), note.len, block(&opened.text(note), "  ", LINES))
    })
    .collect()
}

fn errors(opened: &Opened) -> String {
    let rows = opened.checkpoint.errors.iter();
    rows.map(|error| format!("{}  {:?}\n{}", error.at, error.kind, block(&opened.text(&error.text), "  ", LINES)))
        .collect()
}

fn guidance(opened: &Opened) -> String {
    let rows = opened.checkpoint.guidance.iter();
    rows.map(|told| format!("{}  {}\n{}", told.at, line(&told.by, 64), block(&opened.text(&told.text), "  ", LINES)))
        .collect()
}

fn signals(opened: &Opened) -> String {
    let rows = opened.checkpoint.signals.iter();
    rows.map(|signal| {
        let value = line(&opened.text(&signal.value), 100);
        format!("{}  {} by {}: {value}\n", signal.at, signal.name, line(&signal.by, 64))
    })
    .collect()
}

/// What of the spent is known less well, and what a cache spared.
pub fn besides(quota: &Quotas) -> String {
    let mut text = String::new();
    if let Some(unconfirmed) = quota.unconfirmed {
        text.push_str(&format!(
            "unconfirmed of it: {} model calls, {} tokens in, {} out: replies that were lost or came without a count\n",
            unconfirmed.model_calls, unconfirmed.input_tokens, unconfirmed.output_tokens
        ));
    }
    if let Some(cached) = quota.cached {
        text.push_str(&format!(
            "from the provider's cache: {} tokens in; {} written to it\n",
            cached.read, cached.written
        ));
    }
    text
}

fn quotas(opened: &Opened) -> String {
    let quota = &opened.checkpoint.quota;
    let used = &quota.used;
    let mut text = format!(
        "used: {} model calls, {} tool calls, {} tokens in, {} out\n",
        used.model_calls, used.tool_calls, used.input_tokens, used.output_tokens
    );
    text.push_str(&besides(quota));
    for row in opened.checkpoint.remaining() {
        let (left, limit) = (row.quota.shown(row.left), row.quota.shown(row.limit));
        text.push_str(&format!("{}: {left} of {limit} left\n", row.quota.as_str()));
    }
    text
}

/// The commands that apply now, with the words that no worker has read. Resuming is none of them where only a person's word
/// moves the run.
pub fn acts(app: &App, opened: &Opened) -> String {
    let id = short_id(opened.row.run.key.run.as_str(), &[]);
    let word = |reason: &Reason| {
        matches!(
            reason,
            Reason::Approval { .. }
                | Reason::Answer { .. }
                | Reason::Signal { .. }
                | Reason::Doubt { .. }
                | Reason::Cancelling
        )
    };
    let ahead = if opened.unread.is_empty() { opened.standing.clone() } else { standing(&opened.ahead) };
    let reasons = &ahead.reasons;
    let needs = needs_guidance(&opened.ahead);
    // Whatever the words come to, a worker has to read them first.
    let closed = |request: &Request| people::answered(opened, &request.name).is_some();
    let takes_one = !people::open_requests(opened).into_iter().any(|(_, request, _)| closed(request));
    let only_a_word = opened.unread.is_empty() && takes_one && !reasons.is_empty() && reasons.iter().all(word);
    let commands: &[&str] = match ahead.status {
        Status::Completed | Status::Failed | Status::Cancelled if !opened.unread.is_empty() => &["resume"],
        Status::Waiting | Status::InDoubt if only_a_word => &["cancel"],
        Status::Ready | Status::Waiting | Status::InDoubt | Status::Stopped if needs.is_none() => &["resume", "cancel"],
        Status::Ready | Status::Waiting | Status::InDoubt | Status::Stopped => &["tell", "fork", "cancel"],
        Status::Quarantined => &["log", "release", "cancel"],
        Status::Completed | Status::Failed | Status::Cancelled => &["show", "effects", "verify", "fork"],
    };
    let beside = reasons.iter().filter_map(|reason| match reason {
        Reason::Signal { name, .. } => Some(format!("signal {id} {name}")),
        Reason::Stopped { why: StopReason::Quota } => Some(format!("quota show {id}")),
        _ => None,
    });
    let out = people::out_of(opened);
    let commands = beside.chain(commands.iter().map(|word| match (*word, out) {
        ("tell", _) => format!("tell {id} \"what to do now\"  (then resume: without a word it stops again)"),
        ("fork", _) => match needs {
            Some((before, what)) => format!("fork {id} --at {before}  (another run, which begins before {what})"),
            None => format!("fork {id}"),
        },
        // Without a top-up it would stop again at once.
        ("resume", Some(out)) => format!("quota add {id} {}  ({})", out.top_up(), out.beside()),
        (word, _) => format!("{word} {id}"),
    }));
    let lines: String = commands.map(|command| format!("  {}\n", app.command(&command))).collect();
    format!("now:\n{lines}")
}

/// Of a run that stopped as it can't be complete, after a no, an expiry, or an effect that failed: the step before the
/// decision of that action, and what it was. A resume alone has it try the same again; a word comes first, and it is `None`
/// once one was said since its last decision.
pub fn needs_guidance(state: &Checkpoint) -> Option<(u64, &'static str)> {
    let stopped = matches!(state.phase, Phase::Stopped { reason: StopReason::Completion, .. });
    if !stopped || !state.guidance.is_empty() {
        return None;
    }
    state.recent.iter().rev().find_map(|settled| {
        let what = match settled.how {
            How::Denied(DeniedBy::Person) => "the no",
            How::Denied(DeniedBy::Expiry) => "nobody answered",
            How::Failed if settled.key.is_some() => "it failed",
            _ => return None,
        };
        Some((settled.arguments.seq.saturating_sub(1).max(1), what))
    })
}

/// A run as JSON.
pub fn as_json(opened: &Opened) -> Value {
    let requests: Vec<Value> = people::open_requests(opened)
        .into_iter()
        .map(|(action, request, approval)| people::as_json(opened, action, request, approval))
        .collect();
    let text = match &opened.checkpoint.phase {
        Phase::Stopped { text, .. } | Phase::Ended { text, .. } => Value::String(opened.text(text)),
        Phase::Active | Phase::Cancelling { .. } => Value::Null,
    };
    json!({
        "run": ls::as_json(&opened.row), "status": opened.standing.status, "reasons": opened.standing.reasons, "text": text,
        "objective": objective(opened), "inputs": opened.inputs, "damage": opened.damage,
        "requests": requests, "unread": opened.unread.len(), "checkpoint": opened.checkpoint,
        "state_digest": opened.checkpoint.state_digest(),
        "self_declared": opened.definition.as_ref().map(|definition| judge(definition) != Judge::Check),
    })
}
