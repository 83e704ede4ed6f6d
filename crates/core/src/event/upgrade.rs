//! Events of upgrades: a run goes on with another definition, and what was not sent goes by it.

use minicbor::{Decode, Encode};

use super::{Gate, PlannedMilestone};
use crate::definition::{Limits, QuotaLimits};
use crate::digest::Digest;
use crate::effect::Class;
use crate::ids::Ordinal;
use crate::time::Timestamp;
use crate::value::ValueRef;

/// See [`Event::RunUpgraded`](super::Event::RunUpgraded).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct RunUpgraded {
    /// Who.
    #[n(0)]
    pub by: String,
    /// The definition that the run is pinned to from now on.
    #[n(1)]
    pub definition: ValueRef,
    /// Its constants of the fold and the context.
    #[n(2)]
    pub limits: Limits,
    /// What the run may spend from now on. What was spent is not lowered.
    #[n(3)]
    pub quota: QuotaLimits,
    /// Its milestones.
    #[n(4)]
    pub milestones: Vec<PlannedMilestone>,
    /// The actions that may have begun with a tool that is another one now: they end by the definition before.
    #[n(5)]
    pub kept: Vec<Ordinal>,
}

/// See [`Event::ActionRebound`](super::Event::ActionRebound).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionRebound {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The tool's class now.
    #[n(1)]
    pub class: Class,
    /// The tool's digest now.
    #[n(2)]
    pub tool_digest: Digest,
    /// Its sameness, for effects.
    #[n(3)]
    pub same: Option<Digest>,
    /// The idempotency key: the one that it has, or its first.
    #[n(4)]
    pub key: Option<String>,
    /// What stands before the first intent now.
    #[n(5)]
    pub gate: Gate,
    /// How long the receiver keeps the key, in milliseconds.
    #[n(6)]
    pub key_valid_for_ms: u64,
    /// How long after the last possible send a lookup can be believed, in milliseconds.
    #[n(7)]
    pub settles_after_ms: u64,
    /// How often the runtime tries by itself.
    #[n(8)]
    pub max_attempts: u32,
    /// The key under which it happens once in its namespace.
    #[n(9)]
    pub dedupe: Option<String>,
    /// From then on no attempt of it begins: the new tool's time, counted from the proposal.
    #[n(10)]
    pub deadline: Option<Timestamp>,
}
