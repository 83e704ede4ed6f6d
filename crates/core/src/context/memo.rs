//! What a run's requests were made of before: a decision that a request shows as the one before did is not rendered anew.
//!
//! It changes no byte of a request. An entry counts only while everything that it was rendered from is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestep_model::Message;

use crate::checkpoint::{How, Settled};
use crate::digest::Digest;
use crate::ids::Ordinal;
use crate::value::Stored;

/// The decisions of one run's requests, as far as they were shown whole.
#[derive(Default)]
pub struct Memo(BTreeMap<u32, Rendered>);

impl Memo {
    /// The decision's messages, if they were rendered from just this.
    pub(super) fn get(&self, text: Option<Stored>, group: &[&Settled]) -> Option<&Rendered> {
        let rendered = self.0.get(&group.first()?.decision)?;
        let is_of =
            rendered.text == text && rendered.actions.iter().copied().eq(group.iter().map(|one| Source::of(one)));
        is_of.then_some(rendered)
    }

    /// Keeps a decision whose values were all there and which was not shortened.
    pub(super) fn keep(&mut self, text: Option<Stored>, group: &[&Settled], weight: u64, pieces: &[Piece; 2]) {
        let Some(first) = group.first() else { return };
        let actions = group.iter().map(|one| Source::of(one)).collect();
        self.0.insert(first.decision, Rendered { text, actions, weight, pieces: pieces.clone() });
    }

    /// Drops what was shown before this decision: no later request shows it again.
    pub(super) fn forget_before(&mut self, decision: u32) {
        self.0 = self.0.split_off(&decision);
    }
}

/// One decision: what it was rendered from, and what that gave.
pub(super) struct Rendered {
    text: Option<Stored>,
    actions: Vec<Source>,
    /// What it takes of the room.
    pub(super) weight: u64,
    /// Its calls and their results.
    pub(super) pieces: [Piece; 2],
}

/// What may change of an action that is settled: nothing, but where a later observation settles it otherwise.
#[derive(Clone, Copy, PartialEq)]
struct Source {
    ordinal: Ordinal,
    arguments: Digest,
    result: Stored,
    is_done: bool,
}

impl Source {
    fn of(settled: &Settled) -> Self {
        Self {
            ordinal: settled.ordinal,
            arguments: settled.arguments.digest,
            result: settled.result,
            is_done: settled.how == How::Done,
        }
    }
}

/// A message, and what the request's size and digest need of it.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) message: Arc<Message>,
    /// The bytes of its JSON.
    pub(super) bytes: u64,
    /// The digest of its JSON.
    pub(super) digest: Digest,
}

impl Piece {
    pub(super) fn of(message: Message) -> Self {
        Self::shared(Arc::new(message))
    }

    pub(super) fn shared(message: Arc<Message>) -> Self {
        // Encoding into a vector can't fail.
        let json = serde_json::to_vec(&message).unwrap_or_default();
        Self { message, bytes: json.len() as u64, digest: Digest::of(&json) }
    }
}
