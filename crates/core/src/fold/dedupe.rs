//! Dedupe keys: taken before an intent, closed when it is known what became of the effect, waited for.

use super::Checked;
use crate::checkpoint::{Action, ActionState, Checkpoint};
use crate::event::{ActionHeld, DedupeClosed, DedupeTaken};
use crate::ids::Ordinal;

pub(super) fn taken(checkpoint: &mut Checkpoint, event: &DedupeTaken) -> Checked {
    let action = unsent(checkpoint, event.ordinal)?;
    if action.dedupe.as_ref() != Some(&event.key) || action.same != Some(event.same) {
        return Err("the key is not the action's");
    }
    let mine = checkpoint.dedupe_keys.get_or_insert_default();
    if mine.values().any(|key| *key == event.key) {
        return Err("the run has the key already");
    }
    mine.insert(event.ordinal, event.key.clone());
    Ok(())
}

pub(super) fn closed(checkpoint: &mut Checkpoint, event: &DedupeClosed) -> Checked {
    let mine = checkpoint.dedupe_keys.as_mut();
    mine.and_then(|mine| mine.remove(&event.ordinal)).ok_or("the action has no key")?;
    if checkpoint.dedupe_keys.as_ref().is_some_and(|mine| mine.is_empty()) {
        checkpoint.dedupe_keys = None;
    }
    Ok(())
}

pub(super) fn held(checkpoint: &mut Checkpoint, event: &ActionHeld) -> Checked {
    let now = checkpoint.at;
    if checkpoint.has_dedupe_key(event.ordinal) {
        return Err("the action has the key itself");
    }
    let action = unsent(checkpoint, event.ordinal)?;
    if action.dedupe.is_none() {
        return Err("the action needs no key");
    }
    let since = match action.state {
        ActionState::Held { since, .. } => since,
        _ => now,
    };
    action.state = ActionState::Held { run: event.run.clone(), action: event.action, since };
    Ok(())
}

/// An action that may take a key: nothing of it can have been sent.
fn unsent(checkpoint: &mut Checkpoint, ordinal: Ordinal) -> Result<&mut Action, &'static str> {
    let action = checkpoint.pending.get_mut(&ordinal).ok_or("no such action is pending")?;
    let waits = matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. });
    if waits && !action.maybe_sent { Ok(action) } else { Err("an attempt may have been sent") }
}
