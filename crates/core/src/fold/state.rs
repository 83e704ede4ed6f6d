//! What a run knows: notes, plan, artifacts, errors. Every collection keeps its bound here.

use super::Checked;
use crate::checkpoint::{Artifact, Checkpoint, ErrorEntry, Milestone};
use crate::event::{ArtifactSaved, ArtifactShown, ErrorKind, MilestoneMarked, NoteTaken};
use crate::ids::Ordinal;
use crate::value::{Stored, ValueRef};

pub(super) fn note_taken(checkpoint: &mut Checkpoint, seq: u64, event: &NoteTaken) -> Checked {
    match event.text {
        Some(text) => checkpoint.notes.insert(event.key.clone(), Stored::at(text, seq)),
        None => checkpoint.notes.remove(&event.key),
    };
    Ok(())
}

pub(super) fn milestone_marked(checkpoint: &mut Checkpoint, seq: u64, event: &MilestoneMarked) -> Checked {
    if let Some(milestone) = checkpoint.plan.iter_mut().find(|milestone| milestone.id == event.id) {
        milestone.reached.clone_from(&event.reached);
        return Ok(());
    }
    if checkpoint.plan.len() >= checkpoint.limits.milestones as usize {
        return Err("the plan is full");
    }
    checkpoint.plan.push(Milestone {
        id: event.id.clone(),
        title: event.title.map(|title| Stored::at(title, seq)),
        requires_action: None,
        fixed: false,
        reached: event.reached.clone(),
    });
    Ok(())
}

pub(super) fn artifact_saved(checkpoint: &mut Checkpoint, seq: u64, event: &ArtifactSaved) -> Checked {
    let known = checkpoint.artifacts.get(&event.name).map_or(0, |artifact| artifact.version);
    if event.version <= known {
        return Err("the artifact's version does not follow");
    }
    checkpoint.artifact_log.add(&[
        event.name.as_bytes(),
        &event.version.to_le_bytes(),
        event.content.digest.as_bytes(),
    ]);
    checkpoint
        .artifacts
        .insert(event.name.clone(), Artifact { version: event.version, content: Stored::at(event.content, seq) });
    forget_old_artifacts(checkpoint);
    Ok(())
}

/// The names saved longest ago leave the checkpoint; the run's table still has them. Open ones stay.
fn forget_old_artifacts(checkpoint: &mut Checkpoint) {
    while checkpoint.artifacts.len() > checkpoint.limits.artifacts as usize {
        let oldest = checkpoint
            .artifacts
            .iter()
            .filter(|(name, _)| !checkpoint.open_artifacts.contains(name))
            .min_by_key(|(_, artifact)| artifact.content.seq)
            .map(|(name, _)| name.clone());
        let Some(name) = oldest else { return };
        checkpoint.artifacts.remove(&name);
    }
}

pub(super) fn artifact_shown(checkpoint: &mut Checkpoint, event: &ArtifactShown) -> Checked {
    checkpoint.open_artifacts.retain(|name| *name != event.name);
    if !event.open {
        return Ok(());
    }
    if !checkpoint.artifacts.contains_key(&event.name) {
        return Err("the checkpoint does not know the artifact");
    }
    checkpoint.open_artifacts.push(event.name.clone());
    if checkpoint.open_artifacts.len() > checkpoint.limits.open_artifacts as usize {
        checkpoint.open_artifacts.remove(0);
    }
    Ok(())
}

/// Counts an error and keeps it among the newest.
pub(super) fn log_error(
    checkpoint: &mut Checkpoint,
    seq: u64,
    kind: ErrorKind,
    ordinal: Option<Ordinal>,
    text: ValueRef,
) {
    let count = checkpoint.error_counts.entry(kind).or_default();
    *count = count.saturating_add(1);
    checkpoint.errors.push_back(ErrorEntry { kind, ordinal, text: Stored::at(text, seq), at: checkpoint.at });
    while checkpoint.errors.len() > checkpoint.limits.recent_errors as usize {
        checkpoint.errors.pop_front();
    }
}
