//! The checkpoint: a run's state after a transition, a pure fold of its events.
//!
//! Every collection in it is bounded by the run's [`Limits`], so that a resume costs the same after ten
//! actions and after a hundred thousand. Texts and results are named, not held: [`Stored`] says where they stand.

use std::collections::{BTreeMap, VecDeque};

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::definition::Limits;
use crate::digest::Digest;
use crate::effect::Class;
use crate::error::{Error, Result};
use crate::event::{DeniedBy, Ending, ErrorKind, Evidence, Gate, Origin, RefusalKind, Request, SettledBy, StopReason};
use crate::ids::{Ordinal, RunId, RunKey};
use crate::quota::{Quotas, Remaining};
use crate::time::Timestamp;
use crate::value::Stored;

mod model;
mod records;
mod repeats;
mod values;

pub use model::{DecisionText, ModelState, OpenCall};
pub use records::{ClosedRequest, Closing, ErrorEntry, Guidance, SeenElsewhere, Signal, Tally};
pub use repeats::{Loop, Repeats};

/// The version of the fold: the same journal gives the same checkpoint bytes within a version.
pub const FOLD_VERSION: u32 = 1;

/// How many closed requests a checkpoint remembers, so that a late answer learns what happened.
pub const CLOSED_REQUESTS: usize = 64;

/// How many notes a checkpoint holds: their bytes have limits of their own, and a note of one byte is a note.
pub const NOTES: usize = 128;

/// How many decisions' texts a checkpoint keeps for the context.
pub const RECENT_TEXTS: usize = 8;

/// How many words of guidance wait at most for a decision that has seen them.
pub const GUIDANCE: usize = 16;

/// How many signals wait at most for someone who takes them.
pub const SIGNALS: usize = 64;

/// A run's state.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Checkpoint {
    /// The namespace.
    #[n(0)]
    pub namespace: String,
    /// The run.
    #[n(1)]
    pub run: RunId,
    /// The agent's name.
    #[n(2)]
    pub agent: String,
    /// The pinned definition.
    #[n(3)]
    pub definition: Stored,
    /// The inputs.
    #[n(4)]
    pub inputs: Stored,
    /// The constants of the fold and the context.
    #[n(5)]
    pub limits: Limits,
    /// When the run began.
    #[n(6)]
    pub started_at: Timestamp,
    /// The last transition that is in it.
    #[n(7)]
    pub seq: u64,
    /// The head of the digest chain after that transition.
    #[n(8)]
    pub head: Digest,
    /// Journal time of that transition.
    #[n(9)]
    pub at: Timestamp,
    /// Where the run stands as a whole.
    #[n(10)]
    pub phase: Phase,
    /// The plan.
    #[n(11)]
    pub plan: Vec<Milestone>,
    /// The notes, by key.
    #[n(12)]
    pub notes: BTreeMap<String, Stored>,
    /// The model's side of the run.
    #[n(13)]
    pub model: ModelState,
    /// The decision whose actions are not all settled.
    #[n(14)]
    pub decision: Option<OpenDecision>,
    /// The last ordinal that was given.
    #[n(15)]
    pub last_ordinal: u32,
    /// Actions that are not settled.
    #[n(16)]
    pub pending: BTreeMap<Ordinal, Action>,
    /// The newest settled actions, oldest first.
    #[n(17)]
    pub recent: VecDeque<Settled>,
    /// Older settled actions, counted by tool.
    #[n(18)]
    pub older: BTreeMap<String, Counts>,
    /// Artifacts by name, the newest versions of the last ones saved.
    #[n(19)]
    pub artifacts: BTreeMap<String, Artifact>,
    /// How many versions of artifacts were saved in all, and the digest over them.
    #[n(20)]
    pub artifact_log: Tally,
    /// The artifacts shown in the context.
    #[n(21)]
    pub open_artifacts: Vec<String>,
    /// The newest errors, oldest first.
    #[n(22)]
    pub errors: VecDeque<ErrorEntry>,
    /// All errors, counted by kind.
    #[n(23)]
    pub error_counts: BTreeMap<ErrorKind, u64>,
    /// The quotas.
    #[n(24)]
    pub quota: Quotas,
    /// The position of the last message that was read.
    #[n(25)]
    pub inbox: u64,
    /// How many effects that can be the same as another had an intent, and the digest over them.
    #[n(26)]
    pub effect_log: Tally,
    /// How many finishes were refused.
    #[n(27)]
    pub refused_finishes: u32,
    /// Requests that are over, newest last.
    #[n(28)]
    pub closed_requests: VecDeque<ClosedRequest>,
    /// The last settled action and how often it came in a row.
    #[n(29)]
    pub repeats: Repeats,
    /// What people told the model and no decision has seen, oldest first.
    #[n(30)]
    pub guidance: VecDeque<Guidance>,
    /// Signals that no wait has taken, oldest first.
    #[n(31)]
    pub signals: VecDeque<Signal>,
    /// The dedupe keys that its actions have taken and not let go of; `None` when there are none.
    #[n(32)]
    pub dedupe_keys: Option<BTreeMap<Ordinal, String>>,
    /// Of a fork: where it left its origin, where that one left its own, and so on.
    #[n(36)]
    pub lineage: Vec<Origin>,
    /// The definitions that actions still go by which may have begun before an upgrade changed their tools; `None` when
    /// there are none.
    #[n(43)]
    pub earlier: Option<BTreeMap<Ordinal, Stored>>,
}

/// Where a run stands as a whole.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// It goes on.
    #[n(0)]
    Active,
    /// It stopped until a person acts.
    #[n(1)]
    Stopped {
        /// Why.
        #[n(0)]
        reason: StopReason,
        /// In words.
        #[n(1)]
        text: Stored,
        /// Since when.
        #[n(2)]
        since: Timestamp,
    },
    /// A cancel was read: nothing is sent any more.
    #[n(2)]
    Cancelling {
        /// Who.
        #[n(0)]
        by: String,
        /// Why.
        #[n(1)]
        reason: Stored,
        /// What was sent is waited for until then.
        #[n(2)]
        grace_until: Timestamp,
    },
    /// It is over.
    #[n(3)]
    Ended {
        /// How.
        #[n(0)]
        ending: Ending,
        /// The summary.
        #[n(1)]
        text: Stored,
        /// Since when.
        #[n(2)]
        since: Timestamp,
    },
}

/// A part of the plan.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Milestone {
    /// Its name.
    #[n(0)]
    pub id: String,
    /// What it means, when the model added it; the definition says it for its own.
    #[n(1)]
    pub title: Option<Stored>,
    /// The tool whose finished action is its evidence.
    #[n(2)]
    pub requires_action: Option<String>,
    /// True when the definition fixes it.
    #[n(3)]
    pub fixed: bool,
    /// The evidence, once it is reached.
    #[n(4)]
    pub reached: Option<Evidence>,
}

/// A decision whose actions are not all settled.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct OpenDecision {
    /// Its number.
    #[n(0)]
    pub decision: u32,
    /// Its actions, in call order.
    #[n(1)]
    pub actions: Vec<Ordinal>,
    /// How many it has when all are proposed.
    #[n(2)]
    pub expected: u32,
}

/// An action that is not settled.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Action {
    /// Its place in the run.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The decision it belongs to.
    #[n(1)]
    pub decision: u32,
    /// The provider's id for the call.
    #[n(2)]
    pub call_id: String,
    /// The tool.
    #[n(3)]
    pub tool: String,
    /// The class it was proposed with.
    #[n(4)]
    pub class: Class,
    /// The arguments that will be sent.
    #[n(5)]
    pub arguments: Stored,
    /// The tool's digest when it was proposed.
    #[n(6)]
    pub tool_digest: Digest,
    /// What makes it the same as another effect.
    #[n(7)]
    pub same: Option<Digest>,
    /// The idempotency key.
    #[n(8)]
    pub key: Option<String>,
    /// What it waits for.
    #[n(9)]
    pub state: ActionState,
    /// Attempts so far.
    #[n(10)]
    pub attempts: u32,
    /// How often the runtime tries by itself.
    #[n(11)]
    pub max_attempts: u32,
    /// How long the receiver keeps the key, in milliseconds.
    #[n(12)]
    pub key_valid_for_ms: u64,
    /// How long after the last possible send a lookup can be believed, in milliseconds.
    #[n(13)]
    pub settles_after_ms: u64,
    /// When the first attempt may have been sent.
    #[n(14)]
    pub first_sent: Option<Timestamp>,
    /// When it was proposed.
    #[n(15)]
    pub proposed_at: Timestamp,
    /// Who approved it, where that was asked.
    #[n(16)]
    pub approved_by: Option<String>,
    /// The person who proposed it in place of another.
    #[n(17)]
    pub proposed_by: Option<String>,
    /// True when it counts as a call of a tool.
    #[n(18)]
    pub counted: bool,
    /// True once an attempt of it may have reached the world.
    #[n(19)]
    pub maybe_sent: bool,
    /// The request that was approved; its expiry stops a first intent.
    #[n(20)]
    pub approved: Option<Request>,
    /// The key under which it happens once in its namespace.
    #[n(24)]
    pub dedupe: Option<String>,
    /// An equal effect of another run of the lineage, which a person was shown.
    #[n(21)]
    pub elsewhere: Option<SeenElsewhere>,
    /// No attempt of it begins from then on.
    #[n(25)]
    pub deadline: Option<Timestamp>,
}

/// What an action waits for.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ActionState {
    /// Its gate.
    #[n(0)]
    Gated {
        /// What stands before the first intent.
        #[n(0)]
        gate: Gate,
    },
    /// It may be sent, not before this time.
    #[n(1)]
    Ready {
        /// The earliest time.
        #[n(0)]
        not_before: Timestamp,
    },
    /// An attempt may have been sent.
    #[n(2)]
    Open {
        /// Which attempt.
        #[n(0)]
        attempt: u32,
        /// The epoch that sends it.
        #[n(1)]
        epoch: u64,
        /// Not sent after this time.
        #[n(2)]
        send_by: Timestamp,
    },
    /// Its tool's lookup is asked, not before this time.
    #[n(3)]
    LookUp {
        /// The earliest time.
        #[n(0)]
        not_before: Timestamp,
        /// The attempt in question.
        #[n(1)]
        attempt: u32,
    },
    /// A person has to say whether it happened.
    #[n(4)]
    Doubt {
        /// Since when.
        #[n(0)]
        since: Timestamp,
        /// The attempt in question.
        #[n(1)]
        attempt: u32,
        /// What was seen.
        #[n(2)]
        text: Stored,
    },
    /// Another action has its dedupe key, and it is not known yet what becomes of that one.
    #[n(7)]
    Held {
        /// The run of that action.
        #[n(0)]
        run: RunId,
        /// That action.
        #[n(1)]
        action: Ordinal,
        /// Since when.
        #[n(2)]
        since: Timestamp,
    },
}

/// How an action was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Done; the effect happened.
    #[n(0)]
    Done,
    /// Failed for good; the effect did not happen.
    #[n(1)]
    Failed,
    /// The call was refused before it was an action.
    #[n(2)]
    Refused(#[n(0)] RefusalKind),
    /// Denied before anything was sent.
    #[n(3)]
    Denied(#[n(0)] DeniedBy),
    /// Taken back before anything was sent.
    #[n(4)]
    Withdrawn,
    /// Given up by a person; whether it happened stays unknown.
    #[n(5)]
    Abandoned,
    /// Under way or in doubt in the run that this one was forked from: what came of it is known there.
    #[n(6)]
    Left,
}

/// A settled action.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Settled {
    /// Its place in the run.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The decision it belonged to.
    #[n(1)]
    pub decision: u32,
    /// The tool.
    #[n(2)]
    pub tool: String,
    /// The class.
    #[n(3)]
    pub class: Class,
    /// The arguments.
    #[n(4)]
    pub arguments: Stored,
    /// What the model is told.
    #[n(5)]
    pub result: Stored,
    /// How it was settled.
    #[n(6)]
    pub how: How,
    /// How that is known, for done and failed.
    #[n(7)]
    pub by: Option<SettledBy>,
    /// Attempts that were made.
    #[n(8)]
    pub attempts: u32,
    /// The key, for effects.
    #[n(9)]
    pub key: Option<String>,
    /// Its sameness, for effects.
    #[n(10)]
    pub same: Option<Digest>,
}

/// How often a tool's older actions were done and not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Counts {
    /// Done.
    #[n(0)]
    pub done: u64,
    /// Failed, refused, denied, withdrawn or abandoned.
    #[n(1)]
    pub not_done: u64,
}

/// The newest version of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct Artifact {
    /// Its version, from 1.
    #[n(0)]
    pub version: u32,
    /// Its bytes.
    #[n(1)]
    pub content: Stored,
}

impl Checkpoint {
    /// The run's key.
    pub fn key(&self) -> RunKey {
        RunKey { namespace: self.namespace.clone(), run: self.run.clone() }
    }

    /// When all of it has to be over, waiting included.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.quota.limits.deadline_ms.map(|ms| self.started_at.plus_ms(ms))
    }

    /// The run at the root of its lineage: itself, unless it is a fork.
    pub fn root(&self) -> &RunId {
        self.lineage.last().map_or(&self.run, |origin| &origin.run)
    }

    /// What is left of each limited quota at the journal's time.
    pub fn remaining(&self) -> Vec<Remaining> {
        self.quota.remaining(self.at.ms_since(self.started_at))
    }

    /// True once nothing can move the run any more but a late word on what was sent.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    /// Does that action of the run have its dedupe key?
    pub fn has_dedupe_key(&self, ordinal: Ordinal) -> bool {
        self.dedupe_keys.as_ref().is_some_and(|mine| mine.contains_key(&ordinal))
    }

    /// The definition before an upgrade that this action still goes by, if there is one.
    pub fn earlier_definition(&self, ordinal: Ordinal) -> Option<Stored> {
        self.earlier.as_ref()?.get(&ordinal).copied()
    }

    /// The newest settled action of that ordinal, while it is still kept in full.
    pub fn settled(&self, ordinal: Ordinal) -> Option<&Settled> {
        self.recent.iter().rev().find(|settled| settled.ordinal == ordinal)
    }

    /// The bytes that a snapshot holds.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Encoding into a vector can't fail.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// The state digest: over the snapshot's bytes, with the fold's version.
    pub fn state_digest(&self) -> Digest {
        Digest::over("lodestep state", &[&FOLD_VERSION.to_le_bytes(), &self.to_bytes()])
    }

    /// Reads a snapshot back.
    ///
    /// # Errors
    ///
    /// `store.undecodable` when the bytes are no checkpoint.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        minicbor::decode(bytes).map_err(|error| {
            Error::new(
                "store.undecodable",
                format!("a snapshot can't be read: {error}"),
                "`lodestep verify` names the damage; other runs go on",
            )
        })
    }
}
