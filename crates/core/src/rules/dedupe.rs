//! An effect that is meant once for all runs of a namespace: its dedupe key is taken before its intent, in the same
//! transition, and let go of when it is known what became of it.
//!
//! What other runs did with a key is not in this run's state. The caller asks its store for the keys that [`wanted`] names;
//! the store refuses a transition that takes a key which was taken meanwhile.

use std::collections::BTreeMap;

use crate::checkpoint::{Action, ActionState, Checkpoint, How};
use crate::digest::Digest;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{ActionFinished, ActionHeld, DedupeClosed, DedupeEnd, DedupeTaken, Event, Resolution, SettledBy};
use crate::ids::{Ordinal, RunId};

/// What a namespace knows of dedupe keys: an entry for each that was asked for, `None` when it is free.
pub type DedupeKeys = BTreeMap<String, Option<Holder>>;

/// The action that has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its run.
    pub run: RunId,
    /// The action.
    pub action: Ordinal,
    /// What makes another's effect the same.
    pub same: Digest,
    /// What is known of its effect.
    pub known: KnownOfIt,
}

/// What is known of the effect that has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownOfIt {
    /// Not yet anything.
    Open,
    /// It happened, with this result.
    Done(Vec<u8>),
    /// Nobody will ever know.
    Unknown,
}

/// The keys that have to be known before anything is owed: of actions that would take one now, or wait for one.
pub fn wanted(checkpoint: &Checkpoint) -> Vec<String> {
    let waits = |action: &&Action| action.is_unsent() && !matches!(action.state, ActionState::Gated { .. });
    checkpoint.pending.values().filter(waits).filter_map(|action| action.dedupe.clone()).collect()
}

/// May the action take its key now, as far as its own state says?
fn takes_key(checkpoint: &Checkpoint, action: &Action) -> bool {
    let waits = matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. });
    waits && !action.maybe_sent && !checkpoint.has_dedupe_key(action.ordinal)
}

/// Lets go of keys: free when the effect provably did not happen, kept with its result when it did.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn close(draft: &mut Draft) -> Result<()> {
    let checkpoint = draft.checkpoint();
    let mine: Vec<Ordinal> = checkpoint.dedupe_keys.iter().flat_map(|mine| mine.keys().copied()).collect();
    for ordinal in mine {
        let end = match draft.checkpoint().pending.get(&ordinal) {
            Some(action) => action.is_unsent().then_some(DedupeEnd::Free),
            None => Some(end_of(draft, ordinal)),
        };
        if let Some(end) = end {
            draft.push(Event::DedupeClosed(DedupeClosed { ordinal, end }))?;
        }
    }
    Ok(())
}

/// What became of a settled effect: this transition says it, for it is the one that settled it.
fn end_of(draft: &Draft, ordinal: Ordinal) -> DedupeEnd {
    let said = draft.events().iter().rev().find_map(|event| match event {
        Event::ActionFinished(it) if it.ordinal == ordinal && it.ok => Some(DedupeEnd::Done(it.result)),
        Event::ActionFinished(it) if it.ordinal == ordinal => Some(DedupeEnd::Free),
        Event::ActionWithdrawn(it) if it.ordinal == ordinal => Some(DedupeEnd::Free),
        Event::DeadlinePassed(it) if it.ordinal == ordinal => Some(DedupeEnd::Free),
        Event::DoubtResolved(it) if it.ordinal == ordinal => match it.resolution {
            Resolution::Happened(result) => Some(DedupeEnd::Done(result)),
            Resolution::DidNotHappen(_) => Some(DedupeEnd::Free),
            _ => Some(DedupeEnd::Unknown),
        },
        _ => None,
    });
    said.unwrap_or_else(|| match draft.checkpoint().settled(ordinal).map(|settled| (settled.how, settled.result)) {
        Some((How::Done, result)) => DedupeEnd::Done(result.value()),
        Some((How::Failed | How::Withdrawn, _)) => DedupeEnd::Free,
        _ => DedupeEnd::Unknown,
    })
}

/// What actions that need a key meet: it is another's and open, so that they wait; done, so that they take its outcome or
/// are refused; or free, and then nothing happens here.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub(super) fn meet(draft: &mut Draft, keys: &DedupeKeys) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let checkpoint = draft.checkpoint();
    let waiting: Vec<Action> =
        checkpoint.pending.values().filter(|action| takes_key(checkpoint, action)).cloned().collect();
    for action in waiting {
        let Some(Some(holder)) = action.dedupe.as_ref().and_then(|key| keys.get(key)) else { continue };
        if !is_own(draft.checkpoint(), holder, action.ordinal) {
            meet_holder(draft, &action, holder)?;
        }
    }
    Ok(())
}

fn is_own(checkpoint: &Checkpoint, holder: &Holder, ordinal: Ordinal) -> bool {
    holder.run == checkpoint.run && holder.action == ordinal
}

fn meet_holder(draft: &mut Draft, action: &Action, holder: &Holder) -> Result<()> {
    let ordinal = action.ordinal;
    let key = action.dedupe.as_deref().unwrap_or_default();
    let who =
        format!("run {} has the dedupe key `{}` for its action {}", holder.run, key.escape_debug(), holder.action);
    let (ok, text) = match &holder.known {
        KnownOfIt::Open => {
            let known = matches!(&action.state, ActionState::Held { run, action, .. } if *run == holder.run && *action == holder.action);
            let held = ActionHeld { ordinal, run: holder.run.clone(), action: holder.action };
            return if known { Ok(()) } else { draft.push(Event::ActionHeld(held)) };
        }
        KnownOfIt::Done(result) if action.same == Some(holder.same) => (true, result.clone()),
        KnownOfIt::Done(_) => {
            let text = format!("effect.conflict: {who}, with other arguments, and it is done; nothing was sent");
            (false, text.into_bytes())
        }
        KnownOfIt::Unknown => {
            let text = format!(
                "effect.conflict: {who}, and it was given up: nobody knows whether it happened; nothing was sent"
            );
            (false, text.into_bytes())
        }
    };
    let result = draft.put(text);
    draft.push(Event::ActionFinished(ActionFinished { ordinal, attempt: 0, ok, result, by: SettledBy::OtherRun }))
}

/// Takes the key of an action whose intent comes next, if it needs one; false when the key is not known to be free.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub(super) fn take(draft: &mut Draft, action: &Action, keys: &DedupeKeys) -> Result<bool> {
    let (Some(key), Some(same)) = (&action.dedupe, action.same) else { return Ok(true) };
    let checkpoint = draft.checkpoint();
    if checkpoint.has_dedupe_key(action.ordinal) {
        return Ok(true);
    }
    let mine = checkpoint.dedupe_keys.as_ref().is_some_and(|mine| mine.values().any(|taken| taken == key));
    let free = match keys.get(key) {
        Some(None) => !mine,
        Some(Some(holder)) => is_own(checkpoint, holder, action.ordinal),
        None => false,
    };
    if free {
        draft.push(Event::DedupeTaken(DedupeTaken { ordinal: action.ordinal, key: key.clone(), same }))?;
    }
    Ok(free)
}
