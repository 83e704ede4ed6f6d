//! Events: what happened, in the past tense, in a compact format that is read for ever.
//!
//! An [`Envelope`] is one transition: its events in order, with the sequence number, the journal's time and
//! the epoch of its writer. It is encoded as CBOR arrays with numbered fields (RFC 8949): a field or an event is
//! only ever added, under a number that was never used. Payloads are named by [`ValueRef`](crate::value::ValueRef), never held, so that
//! a payload can be erased and the journal still verifies.

mod action;
mod call;
mod dedupe;
mod fork;
mod named;
mod run;
mod state;
mod upgrade;
mod word;

use minicbor::{Decode, Encode};

use crate::error::{Error, Result};
use crate::time::Timestamp;

pub use action::*;
pub use call::*;
pub use dedupe::*;
pub use fork::*;
pub use named::named_by;
pub use run::*;
pub use state::*;
pub use upgrade::*;
pub use word::*;

/// The version of the format that this build writes. Older ones are read for ever; newer ones are refused by name.
pub const FORMAT: u32 = 1;

/// One transition of a run, as it is stored and digested.
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct Envelope {
    /// The format version of everything in it.
    #[n(0)]
    pub format: u32,
    /// The transition's number in its run, from 1.
    #[n(1)]
    pub seq: u64,
    /// Journal time; never before that of the transition before.
    #[n(2)]
    pub at: Timestamp,
    /// The epoch of the claim that wrote it; 0 for the start.
    #[n(3)]
    pub epoch: u64,
    /// How long its writer worked on it, in microseconds; waiting does not count.
    #[n(4)]
    pub active_us: u64,
    /// What happened, in order.
    #[n(5)]
    pub events: Vec<Event>,
}

impl Envelope {
    /// The bytes that are stored and chained.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Encoding into a vector can't fail.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// Reads an envelope back.
    ///
    /// # Errors
    ///
    /// `store.newer_format` for a format that this build does not know, `store.undecodable` for bytes that are no envelope.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let undecodable = |error: minicbor::decode::Error| {
            Error::new(
                "store.undecodable",
                format!("a transition can't be read: {error}"),
                "`lodestep verify` names the damage; other runs go on",
            )
        };
        let mut decoder = minicbor::Decoder::new(bytes);
        decoder.array().map_err(undecodable)?;
        let format = decoder.u32().map_err(undecodable)?;
        if format > FORMAT {
            return Err(Error::new(
                "store.newer_format",
                format!("a transition has format {format}; this build reads up to {FORMAT}"),
                "use a newer lodestep",
            ));
        }
        minicbor::decode(bytes).map_err(undecodable)
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub enum Event {
    /// The run began.
    #[n(0)]
    RunStarted(#[n(0)] RunStarted),
    /// Quota was held back for a call of the model, which may be sent from now on.
    #[n(1)]
    CallReserved(#[n(0)] CallReserved),
    /// The model answered, whole.
    #[n(2)]
    CallAnswered(#[n(0)] CallAnswered),
    /// A call brought no answer.
    #[n(3)]
    CallFailed(#[n(0)] CallFailed),
    /// A call's worker died: the answer, if there was one, is lost and the whole reservation is charged.
    #[n(4)]
    CallLost(#[n(0)] CallLost),
    /// A reply was taken as a decision; the next actions belong to it.
    #[n(5)]
    DecisionOpened(#[n(0)] DecisionOpened),
    /// An action was proposed: it has an ordinal, a class and arguments from now on.
    #[n(6)]
    ActionProposed(#[n(0)] ActionProposed),
    /// A call of a reply was refused; it was never an action of the world.
    #[n(7)]
    ActionRefused(#[n(0)] ActionRefused),
    /// Intent: the attempt may be sent from now on.
    #[n(8)]
    AttemptStarted(#[n(0)] AttemptStarted),
    /// Outcome: the action is settled.
    #[n(9)]
    ActionFinished(#[n(0)] ActionFinished),
    /// The attempt provably sent nothing; it is tried again.
    #[n(10)]
    AttemptNotSent(#[n(0)] AttemptNotSent),
    /// The attempt may have been sent and its outcome is unknown.
    #[n(11)]
    AttemptUnknown(#[n(0)] AttemptUnknown),
    /// A lookup did not settle the action.
    #[n(12)]
    LookupInconclusive(#[n(0)] LookupInconclusive),
    /// A person settled a doubt.
    #[n(13)]
    DoubtResolved(#[n(0)] DoubtResolved),
    /// A person approved an action.
    #[n(14)]
    ActionApproved(#[n(0)] ActionApproved),
    /// A person, the policy's expiry or a cancel denied an action.
    #[n(15)]
    ActionDenied(#[n(0)] ActionDenied),
    /// A person answered a question.
    #[n(16)]
    QuestionAnswered(#[n(0)] QuestionAnswered),
    /// An action was taken back before anything was sent.
    #[n(17)]
    ActionWithdrawn(#[n(0)] ActionWithdrawn),
    /// The inbox was read up to here.
    #[n(18)]
    InboxRead(#[n(0)] InboxRead),
    /// A note was replaced or removed.
    #[n(19)]
    NoteTaken(#[n(0)] NoteTaken),
    /// A milestone changed.
    #[n(20)]
    MilestoneMarked(#[n(0)] MilestoneMarked),
    /// A version of an artifact exists.
    #[n(21)]
    ArtifactSaved(#[n(0)] ArtifactSaved),
    /// An artifact is shown in the context, or no longer.
    #[n(22)]
    ArtifactShown(#[n(0)] ArtifactShown),
    /// Something went wrong that is not an action's outcome.
    #[n(23)]
    ErrorLogged(#[n(0)] ErrorLogged),
    /// A finish was refused.
    #[n(24)]
    FinishRefused(#[n(0)] FinishRefused),
    /// The run stopped until a person acts.
    #[n(25)]
    RunStopped(#[n(0)] RunStopped),
    /// A person let a stopped or quarantined run go on.
    #[n(26)]
    RunResumed(#[n(0)] RunResumed),
    /// A person cancelled the run: no intent from now on.
    #[n(27)]
    CancelRequested(#[n(0)] CancelRequested),
    /// The run reached its end.
    #[n(28)]
    RunEnded(#[n(0)] RunEnded),
    /// A worker gave the run back by its own will.
    #[n(29)]
    HandedOver(#[n(0)] HandedOver),
    /// The criteria of the state hold, and the definition's check judges a finish.
    #[n(30)]
    CheckStarted(#[n(0)] CheckStarted),
    /// A person told the model something: it is shown until a decision has seen it.
    #[n(31)]
    GuidanceGiven(#[n(0)] GuidanceGiven),
    /// A signal came: it is kept until a wait takes it.
    #[n(32)]
    SignalArrived(#[n(0)] SignalArrived),
    /// A wait took the oldest signal of its name and is settled by it.
    #[n(33)]
    SignalTaken(#[n(0)] SignalTaken),
    /// A wait's time came: a timer is done, a wait for a signal has failed.
    #[n(34)]
    TimerFired(#[n(0)] TimerFired),
    /// A person raised a quota's limit; nothing that was spent is lowered.
    #[n(35)]
    QuotaRaised(#[n(0)] QuotaRaised),
    /// A quota has room for an action that waited for it: it is held back from now on.
    #[n(36)]
    QuotaGranted(#[n(0)] QuotaGranted),
    /// An approval expired before the first intent: its request is open again, as expired.
    #[n(37)]
    ApprovalLapsed(#[n(0)] ApprovalLapsed),
    /// An effect's dedupe key was taken: no other run has it, and its intent follows.
    #[n(38)]
    DedupeTaken(#[n(0)] DedupeTaken),
    /// A dedupe key was let go of, or kept for ever with what became of its effect.
    #[n(39)]
    DedupeClosed(#[n(0)] DedupeClosed),
    /// An action waits for the action that has its dedupe key.
    #[n(42)]
    ActionHeld(#[n(0)] ActionHeld),
    /// The run began with another's state: the first event of a fork, in the place of `RunStarted`.
    #[n(40)]
    RunForked(#[n(0)] RunForked),
    /// A part of what the run may spend was given to a fork of it.
    #[n(41)]
    QuotaGiven(#[n(0)] QuotaGiven),
    /// A person moved the run to another definition.
    #[n(43)]
    RunUpgraded(#[n(0)] RunUpgraded),
    /// An action that was not sent goes by its tool as the run's new definition has it.
    #[n(44)]
    ActionRebound(#[n(0)] ActionRebound),
    /// An action's deadline passed before it was sent, or sent again: it has failed, and nothing of it is out there.
    #[n(46)]
    DeadlinePassed(#[n(0)] DeadlinePassed),
}

impl Event {
    /// The event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "RunStarted",
            Self::CallReserved(_) => "CallReserved",
            Self::CallAnswered(_) => "CallAnswered",
            Self::CallFailed(_) => "CallFailed",
            Self::CallLost(_) => "CallLost",
            Self::DecisionOpened(_) => "DecisionOpened",
            Self::ActionProposed(_) => "ActionProposed",
            Self::ActionRefused(_) => "ActionRefused",
            Self::AttemptStarted(_) => "AttemptStarted",
            Self::ActionFinished(_) => "ActionFinished",
            Self::AttemptNotSent(_) => "AttemptNotSent",
            Self::AttemptUnknown(_) => "AttemptUnknown",
            Self::LookupInconclusive(_) => "LookupInconclusive",
            Self::DoubtResolved(_) => "DoubtResolved",
            Self::ActionApproved(_) => "ActionApproved",
            Self::ActionDenied(_) => "ActionDenied",
            Self::QuestionAnswered(_) => "QuestionAnswered",
            Self::ActionWithdrawn(_) => "ActionWithdrawn",
            Self::InboxRead(_) => "InboxRead",
            Self::NoteTaken(_) => "NoteTaken",
            Self::MilestoneMarked(_) => "MilestoneMarked",
            Self::ArtifactSaved(_) => "ArtifactSaved",
            Self::ArtifactShown(_) => "ArtifactShown",
            Self::ErrorLogged(_) => "ErrorLogged",
            Self::FinishRefused(_) => "FinishRefused",
            Self::RunStopped(_) => "RunStopped",
            Self::RunResumed(_) => "RunResumed",
            Self::CancelRequested(_) => "CancelRequested",
            Self::RunEnded(_) => "RunEnded",
            Self::HandedOver(_) => "HandedOver",
            Self::CheckStarted(_) => "CheckStarted",
            Self::GuidanceGiven(_) => "GuidanceGiven",
            Self::SignalArrived(_) => "SignalArrived",
            Self::SignalTaken(_) => "SignalTaken",
            Self::TimerFired(_) => "TimerFired",
            Self::QuotaRaised(_) => "QuotaRaised",
            Self::QuotaGranted(_) => "QuotaGranted",
            Self::ApprovalLapsed(_) => "ApprovalLapsed",
            Self::DedupeTaken(_) => "DedupeTaken",
            Self::DedupeClosed(_) => "DedupeClosed",
            Self::ActionHeld(_) => "ActionHeld",
            Self::RunForked(_) => "RunForked",
            Self::QuotaGiven(_) => "QuotaGiven",
            Self::RunUpgraded(_) => "RunUpgraded",
            Self::ActionRebound(_) => "ActionRebound",
            Self::DeadlinePassed(_) => "DeadlinePassed",
        }
    }
}
