//! The tools that every run has: they work on its own state. A program that builds a definition without a file appends
//! [`state_tools`] to its own tools, as an agent file does.

use lodestep_core::definition::{StateAct, ToolDefinition, ToolKind};
use lodestep_core::effect::Class;
use lodestep_core::rules::wait::LONGEST_WAIT_S;
use serde_json::{Value, json};

use super::tools::built_in;

/// The group of the tools that save and search artifacts.
pub(super) const ARTIFACTS: &str = "artifacts";

/// The group of the acts on the run's state.
const STATE: &str = "state";

/// `note`, `plan`, `ask`, `finish`, `artifact_open`, `artifact_close`, `artifact_save`, `artifact_search`, `wait` and
/// `wait_for_signal`, in this order.
pub fn state_tools() -> Vec<ToolDefinition> {
    vec![
        note(),
        plan(),
        ask(),
        finish(),
        artifact_open(),
        artifact_close(),
        artifact_save(),
        artifact_search(),
        wait(),
        wait_for_signal(),
    ]
}

fn tool(
    name: &str,
    class: Class,
    kind: ToolKind,
    description: &str,
    required: &[&str],
    properties: Value,
) -> ToolDefinition {
    let group = if matches!(kind, ToolKind::State { .. }) { STATE } else { ARTIFACTS };
    let input =
        json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties});
    built_in(name, group, description, input, class, kind)
}

/// An act on the state is decided with the reply that wants it; a repeat of it leaves the same.
fn act(name: &str, act: StateAct, description: &str, required: &[&str], properties: Value) -> ToolDefinition {
    tool(name, Class::Idempotent, ToolKind::State { act }, description, required, properties)
}

fn artifacts(function: &str) -> ToolKind {
    ToolKind::Builtin { builtin: ARTIFACTS.to_owned(), function: function.to_owned(), root: None }
}

fn artifact_name() -> Value {
    json!({"type": "string", "minLength": 1, "description": "The artifact's name, such as report.md."})
}

fn note() -> ToolDefinition {
    act(
        "note",
        StateAct::Note,
        "Keeps a note under a key, in place of the one that was there; an empty text removes it. Notes are shown in every \
         request: what was seen is forgotten, what was noted stays. A note has at most 8 KiB, all notes 16 KiB, unless \
         the answer says otherwise.",
        &["key", "text"],
        json!({
            "key": {"type": "string", "pattern": "^[a-z0-9_-]{1,32}$", "description": "1 to 32 of a-z 0-9 _ -."},
            "text": {"type": "string", "description": "All of the note's text."},
        }),
    )
}

fn plan() -> ToolDefinition {
    act(
        "plan",
        StateAct::Plan,
        "Marks a milestone of the plan as reached or open; a name that is not in the plan adds one. A milestone that needs \
         a finished tool is marked by the runtime itself.",
        &["milestone", "status"],
        json!({
            "milestone": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The milestone's name."},
            "status": {"enum": ["open", "reached"]},
            "evidence": {"type": "string", "description": "What shows it, of an earlier reply: `action N` or `artifact NAME`."},
            "title": {"type": "string", "description": "What a new milestone means."},
        }),
    )
}

fn ask() -> ToolDefinition {
    act(
        "ask",
        StateAct::Ask,
        "Asks a person; the result is the answer, which may take days. Ask for what only a person can know or decide.",
        &["question"],
        json!({
            "question": {"type": "string", "minLength": 1},
            "choices": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
        }),
    )
}

fn finish() -> ToolDefinition {
    act(
        "finish",
        StateAct::Finish,
        "Ends the run when everything under \"Done when\" holds; otherwise the result says what is missing.",
        &["summary"],
        json!({"summary": {"type": "string", "description": "What was reached, for the person who reads it."}}),
    )
}

fn wait() -> ToolDefinition {
    act(
        "wait",
        StateAct::Wait,
        "Waits for so many seconds or until a time; nothing is held meanwhile, and it may last for weeks. Give one of the two.",
        &[],
        json!({
            "seconds": {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_S, "description": "How long."},
            "until": {"type": "string", "description": "A time, such as 2026-12-01T09:00:00Z; one that has passed ends at once."},
        }),
    )
}

fn wait_for_signal() -> ToolDefinition {
    act(
        "wait_for_signal",
        StateAct::WaitForSignal,
        "Waits for a signal from outside; the result is what it carries. One that came before is taken at once.",
        &["name"],
        json!({
            "name": {"type": "string", "pattern": "^[a-zA-Z0-9._-]{1,64}$", "description": "The signal's name."},
            "timeout_seconds": {
                "type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_S,
                "description": "How long at most; for ever unless given.",
            },
        }),
    )
}

fn artifact_open() -> ToolDefinition {
    let description = "Shows an artifact's text under \"Open artifacts\" from the next decision on.";
    act("artifact_open", StateAct::OpenArtifact, description, &["name"], json!({"name": artifact_name()}))
}

fn artifact_close() -> ToolDefinition {
    let description = "Stops showing an artifact's text; the artifact stays.";
    act("artifact_close", StateAct::CloseArtifact, description, &["name"], json!({"name": artifact_name()}))
}

fn artifact_save() -> ToolDefinition {
    tool(
        "artifact_save",
        Class::Idempotent,
        artifacts("save"),
        "Saves a text as the next version of an artifact: results, drafts, anything too long for a note.",
        &["name", "text"],
        json!({"name": artifact_name(), "text": {"type": "string", "description": "All of its text."}}),
    )
}

fn artifact_search() -> ToolDefinition {
    tool(
        "artifact_search",
        Class::Read,
        artifacts("search"),
        "Finds the lines of an artifact that hold every word of a query.",
        &["name", "query"],
        json!({
            "name": artifact_name(),
            "query": {"type": "string", "minLength": 1, "description": "Words to look for."},
        }),
    )
}
