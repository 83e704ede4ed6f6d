//! Events of the run as a whole: its start, stops and end, and what was read of its inbox.

use minicbor::{Decode, Encode};

use crate::definition::{Limits, QuotaLimits};
use crate::ids::RunId;
use crate::label::Labels;
use crate::time::Timestamp;
use crate::value::ValueRef;

/// See [`Event::RunStarted`](super::Event::RunStarted).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct RunStarted {
    /// The namespace.
    #[n(0)]
    pub namespace: String,
    /// The run.
    #[n(1)]
    pub run: RunId,
    /// The agent's name.
    #[n(2)]
    pub agent: String,
    /// The definition that the run is pinned to.
    #[n(3)]
    pub definition: ValueRef,
    /// The inputs, canonical JSON.
    #[n(4)]
    pub inputs: ValueRef,
    /// The constants of the fold and the context.
    #[n(5)]
    pub limits: Limits,
    /// What the run may spend.
    #[n(6)]
    pub quota: QuotaLimits,
    /// The plan's fixed milestones.
    #[n(7)]
    pub milestones: Vec<PlannedMilestone>,
    /// What people find the run by; `None` when there is nothing.
    #[n(8)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

/// A milestone of the definition.
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct PlannedMilestone {
    /// Its name.
    #[n(0)]
    pub id: String,
    /// The tool whose finished action is its evidence.
    #[n(1)]
    pub requires_action: Option<String>,
}

/// See [`Event::InboxRead`](super::Event::InboxRead).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct InboxRead {
    /// The position of the last message that was read.
    #[n(0)]
    pub position: u64,
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A quota has no room.
    #[n(0)]
    Quota,
    /// An operator said so.
    #[n(1)]
    Operator,
    /// The irreducible part of the context does not fit.
    #[n(2)]
    Context,
    /// The same action with the same outcome over and over.
    #[n(3)]
    Loop,
    /// The model gave no usable reply, or its provider none at all.
    #[n(4)]
    Model,
    /// This build or this machine can't go on with the definition.
    #[n(5)]
    Version,
    /// A secret or a file is missing.
    #[n(6)]
    Secret,
    /// Finish was refused too often.
    #[n(7)]
    Completion,
    /// Its workers crashed on it again and again: quarantined.
    #[n(8)]
    Crashes,
    /// Something of it can't be read as it was stored: quarantined.
    #[n(9)]
    Undecodable,
    /// Its store was put back to an older copy: quarantined.
    #[n(10)]
    Rewound,
    /// It came from another store, where it may go on: quarantined.
    #[n(20)]
    Imported,
}

impl StopReason {
    /// Does a run that stopped for this go on only when a person releases it?
    pub fn is_quarantine(self) -> bool {
        matches!(self, Self::Crashes | Self::Undecodable | Self::Rewound | Self::Imported)
    }

    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Operator => "operator",
            Self::Context => "context",
            Self::Loop => "loop",
            Self::Model => "model",
            Self::Version => "version",
            Self::Secret => "secret",
            Self::Completion => "completion",
            Self::Crashes => "crashes",
            Self::Undecodable => "undecodable",
            Self::Rewound => "rewound",
            Self::Imported => "imported",
        }
    }
}

/// See [`Event::RunStopped`](super::Event::RunStopped).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct RunStopped {
    /// Why.
    #[n(0)]
    pub reason: StopReason,
    /// In words, with the next step.
    #[n(1)]
    pub text: ValueRef,
}

/// See [`Event::RunResumed`](super::Event::RunResumed).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct RunResumed {
    /// Who.
    #[n(0)]
    pub by: String,
}

/// See [`Event::CancelRequested`](super::Event::CancelRequested).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct CancelRequested {
    /// Who.
    #[n(0)]
    pub by: String,
    /// Why.
    #[n(1)]
    pub reason: ValueRef,
    /// What was sent is waited for until then.
    #[n(2)]
    pub grace_until: Timestamp,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The criteria hold.
    #[n(0)]
    Completed,
    /// It can't be reached.
    #[n(1)]
    Failed,
    /// A person cancelled it.
    #[n(2)]
    Cancelled,
}

/// See [`Event::RunEnded`](super::Event::RunEnded).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct RunEnded {
    /// How.
    #[n(0)]
    pub ending: Ending,
    /// The summary.
    #[n(1)]
    pub text: ValueRef,
}

/// See [`Event::HandedOver`](super::Event::HandedOver).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct HandedOver {
    /// The call of the model that was given up unanswered, if there was one.
    #[n(0)]
    pub unsent_call: Option<u64>,
}
