//! The completion gate: a run is complete when declared criteria hold, not when the model says so.

use crate::checkpoint::{Checkpoint, Closing, How, Settled};
use crate::definition::Definition;
use crate::event::DeniedBy;

/// What still stands between the run and its end, in words for the model. Empty: it may end.
pub fn missing(checkpoint: &Checkpoint, definition: &Definition) -> Vec<String> {
    let mut missing = Vec::new();
    if definition.done.all_milestones {
        for milestone in checkpoint.plan.iter().filter(|milestone| milestone.reached.is_none()) {
            missing.push(match &milestone.requires_action {
                Some(tool) => {
                    format!("milestone {}: it needs a finished {tool}{}", milestone.id, came_to(checkpoint, tool))
                }
                None => format!("milestone {}: mark it reached with `plan`, naming the evidence", milestone.id),
            });
        }
    }
    for name in &definition.done.artifacts {
        if !checkpoint.artifacts.contains_key(name) {
            missing.push(format!("artifact {name}: save it with `artifact_save`"));
        }
    }
    missing
}

/// What the newest action of a tool came to when it did not finish, so that whoever reads it sees why.
fn came_to(checkpoint: &Checkpoint, tool: &str) -> String {
    let Some(last) = checkpoint.recent.iter().rev().find(|settled| settled.tool == tool) else {
        return String::new();
    };
    let how = match last.how {
        How::Done => return String::new(),
        How::Failed => "failed".to_owned(),
        How::Refused(_) => "was refused".to_owned(),
        How::Denied(DeniedBy::Person) => format!("was denied{}", denied_by(checkpoint, last)),
        How::Denied(DeniedBy::Expiry) => "was denied, as nobody answered in time".to_owned(),
        How::Denied(DeniedBy::Edit) => "was denied, as another took its place".to_owned(),
        How::Withdrawn => "was withdrawn".to_owned(),
        How::Left => "was left behind, to the run that this one was forked from".to_owned(),
        How::Abandoned => "was given up; whether it happened is unknown".to_owned(),
    };
    format!("; action {} {how}", last.ordinal)
}

fn denied_by(checkpoint: &Checkpoint, settled: &Settled) -> String {
    let mut closed = checkpoint.closed_requests.iter().rev();
    let request = closed.find(|closed| closed.ordinal == settled.ordinal && closed.how == Closing::Denied);
    request.and_then(|closed| closed.by.as_ref()).map(|by| format!(" by {by}")).unwrap_or_default()
}

/// Whose word it is that the work is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// A program of the definition judges.
    Check,
    /// The model alone, of work whose existence the runtime checks: an action that has finished, an artifact.
    ModelWithEvidence,
    /// The model alone.
    Model,
}

/// Who judges a finish. Without a check a completion is self-declared.
pub fn judge(definition: &Definition) -> Judge {
    let evidence = definition.milestones.iter().any(|milestone| milestone.requires_action.is_some());
    match &definition.done.check {
        Some(_) => Judge::Check,
        None if evidence || !definition.done.artifacts.is_empty() => Judge::ModelWithEvidence,
        None => Judge::Model,
    }
}
