//! Events of forks: a run that begins with another's state, and what the other gave it to spend.

use minicbor::{Decode, Encode};

use crate::checkpoint::Checkpoint;
use crate::definition::QuotaLimits;
use crate::digest::Digest;
use crate::ids::{Ordinal, RunId};
use crate::label::Labels;
use crate::value::ValueRef;

/// Where a fork left the run that it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub struct Origin {
    /// The run that it was made from; of the same namespace.
    #[n(0)]
    pub run: RunId,
    /// The last of that run's transitions that is the fork's past too.
    #[n(1)]
    pub seq: u64,
    /// The head of its chain after that transition.
    #[n(2)]
    pub head: Digest,
}

/// See [`Event::RunForked`](super::Event::RunForked).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct RunForked {
    /// The new run.
    #[n(0)]
    pub run: RunId,
    /// Where it comes from.
    #[n(1)]
    pub origin: Origin,
    /// The state of the origin there, as it was: a fork needs nothing of its origin to be read.
    #[n(2)]
    pub state: Box<Checkpoint>,
    /// The inputs, canonical JSON; the origin's or changed ones.
    #[n(3)]
    pub inputs: ValueRef,
    /// What the fork may spend. It has used nothing.
    #[n(4)]
    pub quota: QuotaLimits,
    /// Who made it.
    #[n(5)]
    pub by: String,
    /// What is told of actions that were not sent.
    #[n(6)]
    pub withdrawn: ValueRef,
    /// What is told of actions that may have been sent: the origin has them, and will know what came of them.
    #[n(7)]
    pub left: ValueRef,
    /// The origin's labels.
    #[n(8)]
    pub labels: Option<Labels>,
}

/// See [`Event::QuotaGiven`](super::Event::QuotaGiven).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct QuotaGiven {
    /// The fork that may spend it.
    #[n(0)]
    pub to: RunId,
    /// How much of each limited quota.
    #[n(1)]
    pub amounts: QuotaLimits,
    /// Who gave it.
    #[n(2)]
    pub by: String,
}

/// An equal effect of another run of the lineage, which is not this run's past.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub struct Elsewhere {
    /// The run.
    #[n(0)]
    pub run: RunId,
    /// Its action.
    #[n(1)]
    pub ordinal: Ordinal,
    /// The recorded outcome, if it was done; otherwise it is under way or in doubt there.
    #[n(2)]
    pub result: Option<ValueRef>,
}
