//! Requests as a person sees them: the tool, the exact arguments, what answers there are.

use std::collections::BTreeMap;

use lodestep::core::checkpoint::{Action, ActionState, ClosedRequest, Closing, Phase, Settled};
use lodestep::core::definition::OnExpiry;
use lodestep::core::event::{DeniedBy, Gate, Request, StopReason};
use lodestep::core::quota::Quota;
use lodestep::core::rules::ask::RATE_LIMITED;
use lodestep::core::rules::inbox::Word;
use lodestep::core::{Digest, Error, Ordinal, Result};
use lodestep::inspect::Opened;
use lodestep::store::{RequestRow, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::sent::sent;
use crate::text::{line, quoted, short_id, squeezed, visible};

/// How many bytes of one argument are shown; of a longer one the start, how much is left out, and the end.
const SHOWN_BYTES: usize = 4_000;

/// What became of a request that nobody answered in time.
const OVER_IN_TIME: &str = "its time is over";

/// So much of that is its end: what stands last can't be pushed out of sight.
const END_BYTES: usize = 500;

/// The open requests of a run, in order.
pub fn open_requests(opened: &Opened) -> Vec<(&Action, &Request, bool)> {
    let asked = |action: &'_ Action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(_) } => Some(true),
        ActionState::Gated { gate: Gate::Answer(_) } => Some(false),
        _ => None,
    };
    let pending = opened.checkpoint.pending.values();
    pending
        .filter_map(|action| {
            let approval = asked(action)?;
            match &action.state {
                ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => {
                    Some((action, request, approval))
                }
                _ => None,
            }
        })
        .collect()
}

/// A request in words.
pub fn describe(app: &App, opened: &Opened, action: &Action, request: &Request, approval: bool) -> String {
    let arguments = opened.json(&action.arguments);
    if !approval {
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
        let choices = opened.choices(action);
        let mut text = format!("question {}:{}{}", short(request), said(question), times(action, request));
        if !choices.is_empty() {
            text.push_str(&format!("  choices:{}", said(&choices.join(" | "))));
        }
        return text;
    }
    let mut text =
        format!("approval {}: {} (action {}, {})\n", short(request), action.tool, action.ordinal, action.class);
    text.push_str(&shown_arguments(app, opened, &arguments));
    if let Some(found) = &action.elsewhere {
        text.push_str(&format!(
            "  run {} of the same lineage has done the same, as its action {}",
            found.run, found.ordinal
        ));
        match &found.result {
            Some(result) => text.push_str(&format!("; it said:{}", said(&opened.text(result)))),
            None => text.push_str("; what came of it is not known\n"),
        }
        text.push_str("  approve: it is done again; deny: it is not\n");
    }
    text.push_str(&times(action, request));
    text
}

/// Since when it is asked and how long, a line each; nothing of a time that does not end.
fn times(action: &Action, request: &Request) -> String {
    let since = format!("  asked {}\n", request.asked_at);
    let expiry = request.expires_at.filter(|at| action.ends_at().is_none_or(|deadline| *at < deadline));
    match (expiry, action.ends_at()) {
        (Some(at), _) => {
            let then = match request.on_expiry {
                OnExpiry::Deny => "denied",
                OnExpiry::Pause => "asked again by hand: the run stops",
            };
            format!("{since}  expires {at}, then it is {then}\n")
        }
        (None, Some(deadline)) => format!("{since}  its deadline is {deadline}, then it has failed\n"),
        (None, None) => since,
    }
}

/// The exact arguments, a line each; of an artifact also how to read it.
fn shown_arguments(app: &App, opened: &Opened, arguments: &Value) -> String {
    let id = short_id(opened.row.run.key.run.as_str(), &[]);
    arguments.as_object().into_iter().flatten().fold(String::new(), |mut text, (name, value)| {
        let name = line(&squeezed(name), 256);
        match (value.get("artifact").and_then(Value::as_str), value.get("version")) {
            (Some(artifact), Some(version)) => {
                let digest = value.get("digest").and_then(Value::as_str).unwrap_or_default();
                let digest: String = digest.chars().take(12).collect();
                let shown = line(artifact, 256);
                text.push_str(&format!("  {name}: artifact {shown}, version {version} (digest {digest}…)\n"));
                let read = format!("artifacts {id} {} --version {version}", quoted(artifact));
                text.push_str(&format!("    to read it: {}\n", app.command(&read)));
            }
            _ => text.push_str(&format!("  {name}:{}", argument(value))),
        }
        text
    })
}

/// One argument as a line, or as several behind a bar; of a long one the start and the end.
pub fn argument(value: &Value) -> String {
    let whole = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = squeezed(&whole);
    if text.len() <= SHOWN_BYTES {
        return said(&text);
    }
    let start = text.floor_char_boundary(SHOWN_BYTES - END_BYTES);
    let end = text.ceil_char_boundary(text.len() - END_BYTES);
    let digest = lodestep::core::Digest::of(whole.as_bytes()).to_hex();
    let left_out = format!("    … {} bytes left out; --json shows all (digest {}) …\n", end - start, &digest[..12]);
    format!("{}{left_out}{}", said(&text[..start]), behind_bars(&visible(&text[end..])))
}

/// A text as it is, but for long stretches of blanks: on its line, or behind a bar where it has several, so that no line of it passes for one of ours.
fn said(text: &str) -> String {
    let shown = visible(&squeezed(text));
    if !shown.contains('\n') {
        return format!(" {shown}\n");
    }
    format!("\n{}", behind_bars(&shown))
}

fn behind_bars(shown: &str) -> String {
    shown.split('\n').map(|line| format!("    | {line}\n")).collect()
}

/// A request as JSON.
pub fn as_json(opened: &Opened, action: &Action, request: &Request, approval: bool) -> Value {
    json!({
        "request": request.name, "short": short(request), "kind": if approval { "approval" } else { "question" },
        "action": action.ordinal, "tool": action.tool, "class": action.class, "arguments": opened.json(&action.arguments),
        "elsewhere": action.elsewhere.as_ref().map(|found| json!({"run": found.run, "action": found.ordinal,
            "result": found.result.as_ref().map(|result| opened.text(result))})),
        "since": request.asked_at.to_string(),
        "expires_at": request.expires_at.map(|at| at.to_string()), "on_expiry": request.on_expiry,
        "deadline": action.deadline.map(|at| at.to_string()),
        "answered": answered(opened, &request.name),
    })
}

/// The start of a request's name, as it is typed.
pub fn short(request: &Request) -> String {
    request.name.to_hex()[..4].to_owned()
}

/// The shortest start of each request's name, of at least four characters, that no other of these begins with.
pub fn short_names(requests: &[RequestRow]) -> BTreeMap<Digest, String> {
    let mut names: Vec<(String, Digest)> = requests.iter().map(|row| (row.name.to_hex(), row.name)).collect();
    names.sort();
    let common =
        |one: &str, other: &str| one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let with =
        |at: Option<usize>, name: &str| at.and_then(|at| names.get(at)).map_or(0, |other| common(name, &other.0));
    let ends = names.iter().enumerate().map(|(at, (name, digest))| {
        let clear = with(at.checked_sub(1), name).max(with(Some(at + 1), name)) + 1;
        (*digest, name[..clear.clamp(4, name.len())].to_owned())
    });
    ends.collect()
}

/// What was said when a run stopped, with what is missing now, or that its quota has room again; empty when it has not stopped.
pub fn stopped_because(opened: &Opened) -> String {
    let Phase::Stopped { reason, text, .. } = &opened.checkpoint.phase else { return String::new() };
    let text = opened.text(text);
    match (without_room(opened), Quota::without_room(&text)) {
        (Some(out), _) => out.in_words(&text),
        (None, Some(quota)) if *reason == StopReason::Quota => format!("the quota {} has room again", quota.as_str()),
        (None, _) => text,
    }
}

/// A quota without room, and what is missing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOf {
    /// The quota.
    pub quota: Quota,
    /// What the next call asks for, where that is known.
    asked: Option<u64>,
    /// What is left, with the words that no worker has read.
    left: u64,
    /// At least so much has to be added; `None` where it is not known.
    missing: Option<u64>,
}

impl OutOf {
    /// The top-up that helps, as the rest of a command: the quota, and an amount as it is typed.
    pub fn top_up(&self) -> String {
        self.typed()
            .map_or_else(|| format!("{} N", self.quota.as_str()), |amount| format!("{} {amount}", self.quota.as_str()))
    }

    /// What stands beside that command.
    pub fn beside(&self) -> &'static str {
        if self.missing.is_some() { "or more; then resume" } else { "then resume" }
    }

    /// What is still missing after a top-up of so much.
    pub fn after(self, amount: u64) -> Option<Self> {
        let missing = self.missing?.checked_sub(amount).filter(|missing| *missing > 0)?;
        Some(Self { left: self.left.saturating_add(amount), missing: Some(missing), ..self })
    }

    /// An amount as `quota add` takes it: of times whole minutes.
    fn typed(&self) -> Option<String> {
        let missing = self.missing?;
        Some(match self.quota {
            Quota::ActiveTime | Quota::Deadline => format!("{}m", missing.div_ceil(60_000)),
            quota => quota.shown(missing),
        })
    }

    fn in_words(&self, said: &str) -> String {
        let (Some(missing), Some((said, _))) = (self.typed(), said.split_once(": it asks for ").or(Some((said, ""))))
        else {
            return said.to_owned();
        };
        match self.asked {
            Some(asked) => {
                let (asked, left) = (self.quota.shown(asked), self.quota.shown(self.left));
                format!("{said}: it asks for {asked}, and {left} is left: {missing} missing")
            }
            None => format!("{said}: {missing} missing"),
        }
    }
}

/// The quota that has no room left in a run that stopped for it, with the words that no worker has read. A run that stopped since
/// its model asks it to wait beyond its deadline lacks time.
pub fn out_of(opened: &Opened) -> Option<OutOf> {
    limited_beyond_deadline(opened).or_else(|| without_room(opened))
}

fn limited_beyond_deadline(opened: &Opened) -> Option<OutOf> {
    let Phase::Stopped { reason: StopReason::Model, text, .. } = &opened.ahead.phase else { return None };
    let (deadline, until) = (opened.ahead.deadline()?, opened.ahead.model.not_before);
    let is_limited = opened.text(text).starts_with(RATE_LIMITED) && until >= deadline && until > opened.at;
    let left = deadline.ms_since(opened.at);
    let missing = Some(until.ms_since(deadline).saturating_add(1));
    is_limited.then_some(OutOf { quota: Quota::Deadline, asked: None, left, missing })
}

fn without_room(opened: &Opened) -> Option<OutOf> {
    let Phase::Stopped { reason: StopReason::Quota, text, .. } = &opened.ahead.phase else { return None };
    let said = opened.text(text);
    let quota = Quota::without_room(&said)?;
    let age_ms = opened.at.ms_since(opened.ahead.started_at);
    let row = opened.ahead.quota.remaining(age_ms).into_iter().find(|row| row.quota == quota)?;
    let asked = quota.asked(&said);
    let taken = row.used.saturating_add(row.reserved);
    let short = |wanted: u64| taken.saturating_add(wanted).saturating_sub(row.limit);
    let missing = match quota {
        // The least that a time can be over by.
        Quota::ActiveTime | Quota::Deadline => Some(short(1)),
        Quota::ModelCalls | Quota::ToolCalls => None,
        _ => asked.map(short),
    };
    let is_out = missing.map_or(row.left == 0, |missing| missing > 0);
    is_out.then_some(OutOf { quota, asked, left: row.left, missing })
}

/// What a word can be about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The whole run: cancel, resume, release.
    Run,
    /// An action in doubt.
    Action(Ordinal),
    /// A request.
    Request(Digest),
}

/// Was a word about this, or about the whole run, accepted that no worker has read yet?
pub fn is_said(opened: &Opened, about: About) -> bool {
    let words = opened.unread.iter().map(|(_, message)| match &message.word {
        Word::Cancel { .. } | Word::Resume | Word::Release => Some(About::Run),
        Word::Resolve { ordinal, .. } => Some(About::Action(*ordinal)),
        Word::Approve { request } | Word::Deny { request, .. } => Some(About::Request(*request)),
        Word::ApproveEdited { request, .. } | Word::Answer { request, .. } => Some(About::Request(*request)),
        _ => None,
    });
    words.flatten().any(|said| said == about || said == About::Run)
}

/// What became of a request, when it was accepted or has happened: `approved by ada`. Words that no worker has read count, and so
/// does its time.
pub fn answered(opened: &Opened, request: &Digest) -> Option<String> {
    // A request that was open before, and is again.
    let is_open = |action: &Action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(open) | Gate::Answer(open) } => open.name == *request,
        _ => false,
    };
    if let Some(action) = opened.ahead.pending.values().find(|action| is_open(action)) {
        return action.asked_until().filter(|until| *until <= opened.at).map(|_| OVER_IN_TIME.to_owned());
    }
    let closed = opened.ahead.closed_requests.iter().rev().find(|closed| closed.name == *request)?;
    let how = match closed.how {
        Closing::Approved => "approved",
        Closing::Denied => "denied",
        Closing::Answered => "answered",
        Closing::Edited => "approved with other arguments",
        Closing::Reused => "answered with the outcome of an equal effect",
        Closing::Expired => return Some(OVER_IN_TIME.to_owned()),
        Closing::Deadline => return Some("the deadline of its action has passed".to_owned()),
        Closing::Superseded => return Some("its tool or the policy changed, and it is asked anew".to_owned()),
        Closing::Withdrawn => {
            let goes_on = matches!(opened.ahead.phase, Phase::Active | Phase::Stopped { .. });
            let how = if goes_on { "it was taken back" } else { "its run was cancelled" };
            return Some(how.to_owned());
        }
    };
    Some(closed.by.as_ref().map_or(how.to_owned(), |by| format!("{how} by {}", line(by, 64))))
}

/// As [`answered`], with the reason that a person gave for a no.
pub fn answered_why(opened: &Opened, request: &Digest) -> Option<String> {
    let said = opened.unread.iter().rev().find_map(|(_, message)| match &message.word {
        Word::Deny { request: denied, reason } if denied == request && !reason.is_empty() => Some(reason),
        _ => None,
    });
    let why = said.map(|reason| format!(": {}", line(reason, 200))).unwrap_or_default();
    answered(opened, request).map(|how| if how.starts_with("denied") { format!("{how}{why}") } else { how })
}

/// How an action that was denied was: `denied by ada: too much`.
pub fn denied(opened: &Opened, settled: &Settled, why: DeniedBy) -> String {
    match why {
        DeniedBy::Person => {}
        DeniedBy::Expiry => return "denied: nobody answered in time".to_owned(),
        DeniedBy::Edit => return "denied: another action took its place".to_owned(),
    }
    let of_it = |closed: &&ClosedRequest| closed.ordinal == settled.ordinal && closed.how == Closing::Denied;
    let closed = opened.checkpoint.closed_requests.iter().rev().find(of_it);
    let by = closed.and_then(|closed| closed.by.as_deref()).unwrap_or("a person");
    // The model is told `denied: REASON`.
    let told = opened.text(&settled.result);
    let reason = told.strip_prefix("denied: ").map(|reason| format!(": {}", line(reason, 200))).unwrap_or_default();
    format!("denied by {}{reason}", line(by, 64))
}

/// How to answer the open requests of a run from anywhere; of those that are answered and not read yet, what was said.
pub fn hints(app: &App, opened: &Opened) -> String {
    open_requests(opened).into_iter().fold(String::new(), |mut text, (action, request, approval)| {
        text.push_str(&describe(app, opened, action, request, approval));
        let name = short(request);
        if let Some(how) = answered_why(opened, &request.name) {
            text.push_str(&format!("  {how}, goes on as soon as a worker is there\n"));
            return text;
        }
        if action.elsewhere.as_ref().is_some_and(|found| found.result.is_some()) {
            text.push_str(&format!("  {}\n", app.command(&format!("approve {name} --reuse"))));
        }
        if approval {
            text.push_str(&format!(
                "  {}\n  {}\n",
                app.command(&format!("approve {name}")),
                app.command(&format!("deny {name} --reason …"))
            ));
        } else {
            text.push_str(&format!("  {}\n", app.command(&format!("answer {name} …"))));
        }
        text
    })
}

/// The actions whose outcome only a person can find out.
pub fn doubtful(opened: &Opened) -> impl Iterator<Item = &Action> {
    opened.checkpoint.pending.values().filter(|action| matches!(action.state, ActionState::Doubt { .. }))
}

/// The actions that nobody knows the outcome of, and the ways to settle each.
pub async fn doubts(app: &App, store: &dyn Store, opened: &Opened) -> String {
    let id = short_id(opened.row.run.key.run.as_str(), &[]);
    let mut text = String::new();
    for action in opened.checkpoint.pending.values() {
        let ordinal = action.ordinal;
        let (is, seen) = match &action.state {
            ActionState::Doubt { text, .. } => ("in doubt", format!("  what was seen:{}", said(&opened.text(text)))),
            ActionState::LookUp { not_before, .. } => ("to be looked up", format!("  not before {not_before}\n")),
            _ => continue,
        };
        text.push_str(&format!("{is}: {} (action {ordinal}, {})\n", action.tool, action.class));
        text.push_str(&shown_arguments(app, opened, &opened.json(&action.arguments)));
        let sent = sent(store, opened, action).await.in_words();
        if !sent.is_empty() {
            text.push_str(&format!("  {sent}\n"));
        }
        text.push_str(&seen);
        if is_settled_ahead(opened, action) {
            text.push_str("  a person has said what became of it; it counts as soon as a worker is there\n");
            continue;
        }
        text.push_str("  if you know or find out whether it happened, say one of these:\n");
        let ways = [
            ("--happened", "it happened: never sent again; add its result if the model needs one"),
            ("--retry", "it did not happen: it is sent again"),
            ("--did-not-happen", "it did not happen: that is its end, nothing is sent"),
            ("--abandon", "nobody can tell: given up, and the model is told so"),
        ];
        let is_over = matches!(opened.checkpoint.phase, Phase::Cancelling { .. } | Phase::Ended { .. });
        for (word, means) in ways.into_iter().filter(|(word, _)| !is_over || *word != "--retry") {
            text.push_str(&format!("  {}\n      {means}\n", app.command(&format!("resolve {id} {ordinal} {word}"))));
        }
    }
    text
}

/// Was it said what became of an action in doubt, by a word that no worker has read yet?
pub fn is_settled_ahead(opened: &Opened, action: &Action) -> bool {
    let ahead = opened.ahead.pending.get(&action.ordinal).map(|action| &action.state);
    !matches!(ahead, Some(ActionState::Doubt { .. } | ActionState::LookUp { .. }))
}

/// A question's answer is one of its choices, where it has some.
///
/// # Errors
///
/// `usage.answer` naming the choices.
pub fn check_answer(opened: &Opened, question: &Action, answer: &str) -> Result<()> {
    let choices = opened.choices(question);
    if choices.is_empty() || choices.iter().any(|choice| choice == answer) {
        return Ok(());
    }
    let what = format!("`{}` is none of the choices", line(answer, 100));
    Err(Error::new("usage.answer", what, format!("answer one of: {}", line(&choices.join(" | "), 1_000))))
}

/// What can be typed at the prompt of an approval.
pub fn help(app: &App, opened: &Opened, action: &Action, request: &Request) -> String {
    let arguments = shown_arguments(app, opened, &opened.json(&action.arguments));
    format!(
        "  y  it is done, once, with exactly these arguments:\n{}\
         \x20 n  it is not done; you are asked why, and the model is told\n\
         \x20 l  the run waits; answer from any terminal: {}\n",
        arguments.lines().map(|line| format!("     {line}\n")).collect::<String>(),
        app.command(&format!("approve {}", short(request)))
    )
}
