//! `run --dry-run`: reads are done, and of everything else it is shown what would be sent. Nothing is stored.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lodestep::core::definition::{Decide, ToolDefinition, ToolKind};
use lodestep::core::event::RefusalKind;
use lodestep::core::policy::judge;
use lodestep::core::reference::with_inputs;
use lodestep::core::rules::inbox::Word;
use lodestep::core::rules::standing::{Reason, Standing, Status};
use lodestep::core::{Checkpoint, Definition, Event, Result, RunKey, Timestamp};
use lodestep::observe::Observer;
use lodestep::rehearsal::Unsent;
use lodestep::secrets::Environment;
use lodestep::store::{MemoryStore, SqliteStore, Started};
use lodestep::{Runtime, Start, inspect};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::run::{exit_code, interruptible, is_enough, tell_model};
use crate::commands::show;
use crate::people;
use crate::progress::{LONG_WAIT_MS, Progress};
use crate::wiring::keep_out;

/// Who approves in a dry run, so that what comes after an approval is seen, too.
const BY: &str = "dry run";

/// Tells the progress, and keeps the calls that the policy denies.
struct Denials {
    inner: Progress,
    denied: Mutex<Vec<(u32, String)>>,
}

impl Observer for Denials {
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) {
        self.inner.committed(run, events, values, after);
        for event in events {
            if let Event::ActionRefused(refused) = event
                && refused.kind == RefusalKind::Denied
            {
                let denied = (refused.ordinal.0, refused.tool.clone());
                self.denied.lock().unwrap_or_else(PoisonError::into_inner).push(denied);
            }
        }
    }

    fn streamed(&self, run: &RunKey, piece: lodestep::model::Progress<'_>) {
        self.inner.streamed(run, piece);
    }
}

/// Runs a definition in a store of its own that is gone with the process. What would be sent counts as done, and what
/// would ask for an approval is approved, so that the run goes on; a question, a wait and a stop end it.
pub async fn dry_run(
    app: &App,
    definition: Definition,
    inputs: Value,
    environment: Environment,
    pace: Option<Duration>,
) -> Result<u8> {
    let unsent: Arc<Mutex<Vec<Unsent>>> = Arc::default();
    let heard = unsent.clone();
    let runtime = Runtime::builder(Arc::new(MemoryStore::default()))
        .cage(app.cage)
        .keep_out([SqliteStore::own_paths_at(&app.store_path()), keep_out(app)].concat())
        .environment(environment)
        .rehearsal(Arc::new(move |it| heard.lock().unwrap_or_else(PoisonError::into_inner).push(it)))
        .build();
    lodestep::note!("dry run: reads are done, nothing else is sent, and nothing is stored");
    tell_model(&definition, runtime.environment());
    let start = Start {
        definition: definition.clone(),
        inputs: inputs.clone(),
        id: None,
        labels: Default::default(),
        join_unfinished: false,
    };
    let Started::New(run) = runtime.start(start).await? else { return Ok(1) };
    let inner = Progress::of_dry_run(pace, unsent.clone());
    let observer = Arc::new(Denials { inner, denied: Mutex::default() });
    let shutdown = interruptible();
    let opened = loop {
        let is_far = |stands: &Standing| is_enough(stands) || waits_long(stands, runtime.store().now());
        runtime.work_on(&run.key, observer.clone(), &shutdown, is_far).await?;
        let opened = inspect::open(runtime.store(), &run.key).await?;
        let requests = people::open_requests(&opened);
        let approvals: Vec<_> = requests.iter().filter(|(_, _, approval)| *approval).collect();
        if approvals.is_empty() || shutdown.is_begun() {
            break opened;
        }
        for (_, request, _) in approvals {
            runtime.send(&run.key, BY, Word::Approve { request: request.name }).await?;
        }
    };
    let unsent = std::mem::take(&mut *unsent.lock().unwrap_or_else(PoisonError::into_inner));
    let denied = std::mem::take(&mut *observer.denied.lock().unwrap_or_else(PoisonError::into_inner));
    let status = opened.standing.status;
    if app.json {
        let would_send: Vec<Value> = unsent.iter().map(|it| as_json(&definition, &inputs, it)).collect();
        let denied: Vec<Value> =
            denied.iter().map(|(action, tool)| json!({"action": action, "tool": tool, "policy": "deny"})).collect();
        app.print(&format!(
            "{}\n",
            json!({"dry_run": true, "agent": definition.name, "status": status, "why": show::because(&opened).trim(),
                "would_send": would_send, "denied": denied})
        ));
    } else {
        let mut text = String::from("\n");
        for it in &unsent {
            text.push_str(&in_words(&definition, &inputs, it));
        }
        for (action, tool) in &denied {
            text.push_str(&format!("denied by the policy: {tool} (action {action})\n"));
        }
        let count = unsent.len();
        let ends = if status.is_terminal() { "would be" } else { "would then be" };
        text.push_str(&format!("the run {ends} {}{}\n", status.as_str(), show::because(&opened)));
        text.push_str(&format!("{count} would be sent; nothing was\n"));
        app.print(&text);
    }
    if shutdown.is_begun() {
        return Ok(130);
    }
    // A question, a wait or a stop is as far as it goes without a person.
    Ok(if status == Status::Ready { 3 } else { exit_code(status) })
}

/// Does a provider ask for a wait that nobody sits out for a dry run?
fn waits_long(stands: &Standing, now: Timestamp) -> bool {
    let is_long = |reason: &Reason| matches!(reason, Reason::Provider { at } if at.ms_since(now) > LONG_WAIT_MS);
    stands.status == Status::Waiting && stands.reasons.iter().any(is_long)
}

/// What would be sent, how, and what the policy says of it.
fn in_words(definition: &Definition, inputs: &Value, it: &Unsent) -> String {
    let policy = policy(definition, &it.tool).map_or("allow", word);
    let mut text =
        format!("would be sent: {} (action {}, {}; policy: {policy})\n", it.tool, it.action, it.class.as_str());
    if let Some(tool) = definition.tool(&it.tool) {
        text.push_str(&format!("  by:{}", people::argument(&how(definition, tool, inputs))));
    }
    for (name, value) in it.arguments.as_object().into_iter().flatten() {
        text.push_str(&format!("  {name}:{}", people::argument(value)));
    }
    text
}

fn as_json(definition: &Definition, inputs: &Value, it: &Unsent) -> Value {
    json!({
        "action": it.action, "tool": it.tool, "class": it.class, "policy": policy(definition, &it.tool).map(word),
        "by": definition.tool(&it.tool).map(|tool| how(definition, tool, inputs)), "arguments": it.arguments,
    })
}

fn policy(definition: &Definition, tool: &str) -> Option<Decide> {
    definition.tool(tool).map(|tool| judge(definition, tool).decide)
}

fn word(decide: Decide) -> &'static str {
    match decide {
        Decide::Allow => "allow",
        Decide::Ask => "ask",
        Decide::Deny => "deny",
    }
}

/// The program, the request or the statement; secrets stay references.
fn how(definition: &Definition, tool: &ToolDefinition, inputs: &Value) -> Value {
    let filled = |argv: &[String]| argv.iter().map(|word| with_inputs(word, inputs)).collect::<Vec<_>>().join(" ");
    let text = match &tool.kind {
        ToolKind::Command { argv, .. } => filled(argv),
        ToolKind::Http(http) => format!("{} {}", http.request.method, with_inputs(&http.request.url, inputs)),
        ToolKind::Sql { database, statement } => format!("{statement} in {}", with_inputs(database, inputs)),
        ToolKind::Builtin { builtin, root, .. } => {
            format!("{builtin} below {}", with_inputs(root.as_deref().unwrap_or("."), inputs))
        }
        ToolKind::State { .. } => match &definition.done.check {
            Some(check) => format!("the check {}", filled(&check.argv)),
            None => String::new(),
        },
        ToolKind::Function => "a function of the program".to_owned(),
    };
    Value::from(text)
}
