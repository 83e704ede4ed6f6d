//! What a checkpoint remembers beside its actions: errors, closed requests, and words that wait to be taken.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::{Action, ActionState};
use crate::digest::Digest;
use crate::effect::Class;
use crate::event::{ErrorKind, Gate};
use crate::ids::{Ordinal, RunId};
use crate::time::Timestamp;
use crate::value::Stored;

/// Something that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct ErrorEntry {
    /// Its kind.
    #[n(0)]
    pub kind: ErrorKind,
    /// The action it belongs to.
    #[n(1)]
    pub ordinal: Option<Ordinal>,
    /// What was said.
    #[n(2)]
    pub text: Stored,
    /// When.
    #[n(3)]
    pub at: Timestamp,
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct ClosedRequest {
    /// Its name.
    #[n(0)]
    pub name: Digest,
    /// Its action.
    #[n(1)]
    pub ordinal: Ordinal,
    /// What happened to it.
    #[n(2)]
    pub how: Closing,
    /// Who, when it was a person.
    #[n(3)]
    pub by: Option<String>,
    /// The digest of the answer, or of the reason.
    #[n(4)]
    pub word: Digest,
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Approved.
    #[n(0)]
    Approved,
    /// Denied by a person.
    #[n(1)]
    Denied,
    /// A question was answered.
    #[n(2)]
    Answered,
    /// Nobody answered in time.
    #[n(3)]
    Expired,
    /// An edited action took its place.
    #[n(4)]
    Edited,
    /// The run was cancelled or ended.
    #[n(5)]
    Withdrawn,
    /// The outcome of an equal effect of the lineage was taken for it.
    #[n(6)]
    Reused,
    /// Its action's deadline passed.
    #[n(7)]
    Deadline,
    /// Its action's tool or policy changed, and it was asked anew under another name.
    #[n(43)]
    Superseded,
}

/// What a person told the model.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Guidance {
    /// Who.
    #[n(0)]
    pub by: String,
    /// What.
    #[n(1)]
    pub text: Stored,
    /// When it was read.
    #[n(2)]
    pub at: Timestamp,
    /// The newest call of the model whose request shows it.
    #[n(3)]
    pub shown_in: Option<u64>,
}

/// A signal that no wait has taken.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Signal {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// Who sent it.
    #[n(1)]
    pub by: String,
    /// What it carries, canonical JSON.
    #[n(2)]
    pub value: Stored,
    /// When it was read.
    #[n(3)]
    pub at: Timestamp,
}

/// An equal effect of another run of the lineage.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct SeenElsewhere {
    /// The run.
    #[n(0)]
    pub run: RunId,
    /// Its action.
    #[n(1)]
    pub ordinal: Ordinal,
    /// The recorded outcome, if it was done there.
    #[n(2)]
    pub result: Option<Stored>,
}

impl Action {
    /// Is it sure that nothing of it was sent, and that nothing is under way?
    pub fn is_unsent(&self) -> bool {
        !self.maybe_sent
            && matches!(self.state, ActionState::Gated { .. } | ActionState::Ready { .. } | ActionState::Held { .. })
    }

    /// Would it be sent again under its key, of which an attempt may have done something?
    pub fn is_a_resend(&self) -> bool {
        self.class == Class::Keyed && self.maybe_sent && matches!(self.state, ActionState::Ready { .. })
    }

    /// Does its deadline, once it passes, settle it as it stands? Then nothing of it is out there: it was never sent, or
    /// its last attempt is known to have done nothing; a repeatable action may have been begun.
    pub fn fails_at_its_deadline(&self) -> bool {
        match &self.state {
            ActionState::Gated { gate: Gate::Approval(_) | Gate::Quota } | ActionState::Held { .. } => true,
            ActionState::Ready { .. } => !self.is_a_resend(),
            // The others are no actions of the world, or end with another one.
            ActionState::Gated { .. } => false,
            ActionState::Open { .. } | ActionState::LookUp { .. } | ActionState::Doubt { .. } => false,
        }
    }

    /// When its deadline moves it as it stands: to its end, or, what may have done something, to a person.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.deadline.filter(|_| self.fails_at_its_deadline() || self.is_a_resend())
    }

    /// When the request that it waits for ends by itself: it expires, or the action's deadline passes.
    pub fn asked_until(&self) -> Option<Timestamp> {
        match &self.state {
            ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => {
                request.expires_at.into_iter().chain(self.ends_at()).min()
            }
            _ => None,
        }
    }
}

/// A count and a digest over something that is kept in a table of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Tally {
    /// How many.
    #[n(0)]
    pub count: u64,
    /// The digest over all of them, in order.
    #[n(1)]
    pub root: Digest,
}

impl Tally {
    /// Counts an effect with its sameness and the transition of its first intent: in the order of first intents, those of
    /// one transition by ordinal.
    pub fn add_effect(&mut self, ordinal: Ordinal, same: &Digest, seq: u64) {
        self.add(&[&ordinal.0.to_le_bytes(), same.as_bytes(), &seq.to_le_bytes()]);
    }

    /// Counts one more.
    pub fn add(&mut self, parts: &[&[u8]]) {
        let mut chained: Vec<&[u8]> = vec![self.root.as_bytes()];
        chained.extend_from_slice(parts);
        self.root = Digest::over("lodestep tally 1", &chained);
        self.count = self.count.saturating_add(1);
    }
}
