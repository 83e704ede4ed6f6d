//! Events of actions: proposed, gated, attempted, settled.

use minicbor::{Decode, Encode};

use super::fork::Elsewhere;
use crate::definition::OnExpiry;
use crate::digest::Digest;
use crate::effect::Class;
use crate::ids::Ordinal;
use crate::time::Timestamp;
use crate::value::ValueRef;

/// What stands between a proposed action and its first intent.
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Nothing: it may be done.
    #[n(0)]
    Open,
    /// A person's approval.
    #[n(1)]
    Approval(#[n(0)] Request),
    /// A person's answer.
    #[n(2)]
    Answer(#[n(0)] Request),
    /// Another action of the run that is the same effect: its outcome will be this one's.
    #[n(3)]
    Same(#[n(0)] Ordinal),
    /// The other actions of its decision: a finish is judged when they are settled.
    #[n(4)]
    Siblings,
    /// A signal of that name.
    #[n(5)]
    Signal(#[n(0)] SignalWait),
    /// A time.
    #[n(6)]
    Timer(#[n(0)] Timestamp),
    /// Room in a quota of tool calls: nothing is held back for it yet, and what else stands before its first intent is
    /// decided when there is room.
    #[n(7)]
    Quota,
}

/// What a wait for a signal waits for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub struct SignalWait {
    /// The signal's name.
    #[n(0)]
    pub name: String,
    /// Not waited for after this time.
    #[n(1)]
    pub until: Option<Timestamp>,
}

/// A request to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub struct Request {
    /// Its name is the digest of what is seen.
    #[n(0)]
    pub name: Digest,
    /// When it expires.
    #[n(1)]
    pub expires_at: Option<Timestamp>,
    /// What its expiry does.
    #[n(2)]
    pub on_expiry: OnExpiry,
    /// How long it stays open once it is asked, in milliseconds.
    #[n(3)]
    pub window_ms: Option<u64>,
    /// Since when it is asked; a run that is resumed asks anew what has expired.
    #[n(4)]
    pub asked_at: Timestamp,
    /// How often people are reminded of it while it is open, in milliseconds.
    #[n(5)]
    pub remind_ms: Option<u64>,
}

/// See [`Event::ActionProposed`](super::Event::ActionProposed).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionProposed {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The provider's id for the call; pairs the result with it and means nothing else.
    #[n(1)]
    pub call_id: String,
    /// The tool's name.
    #[n(2)]
    pub tool: String,
    /// The class, as the definition had it now.
    #[n(3)]
    pub class: Class,
    /// The canonical arguments that will be sent.
    #[n(4)]
    pub arguments: ValueRef,
    /// The tool's own digest, which an approval binds to.
    #[n(5)]
    pub tool_digest: Digest,
    /// What makes it the same as another effect; only for keyed, checkable and unsafe ones.
    #[n(6)]
    pub same: Option<Digest>,
    /// The idempotency key; only for keyed, checkable and unsafe ones.
    #[n(7)]
    pub key: Option<String>,
    /// What stands before its first intent.
    #[n(8)]
    pub gate: Gate,
    /// How long the receiver keeps the key, in milliseconds.
    #[n(9)]
    pub key_valid_for_ms: u64,
    /// How long after the last possible send a lookup can be believed, in milliseconds.
    #[n(10)]
    pub settles_after_ms: u64,
    /// How often the runtime tries by itself.
    #[n(11)]
    pub max_attempts: u32,
    /// The person who proposed it, when it was not the model: an edit in place of another action.
    #[n(12)]
    pub proposed_by: Option<String>,
    /// True when it counts as a call of a tool: the runtime's own state acts don't.
    #[n(13)]
    pub counted: bool,
    /// The key under which it happens once in its namespace, whichever run does it.
    #[n(15)]
    pub dedupe: Option<String>,
    /// An equal effect of another run of the lineage; a person is asked what it means for this one.
    #[n(14)]
    pub elsewhere: Option<Elsewhere>,
    /// No attempt of it begins from then on.
    #[n(16)]
    pub deadline: Option<Timestamp>,
}

/// Why a call of a reply was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// No tool has that name.
    #[n(0)]
    UnknownTool,
    /// The arguments are not valid.
    #[n(1)]
    InvalidArguments,
    /// The policy denies it.
    #[n(2)]
    Denied,
}

/// See [`Event::ActionRefused`](super::Event::ActionRefused).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionRefused {
    /// Its place among the run's actions.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The provider's id for the call.
    #[n(1)]
    pub call_id: String,
    /// The name that the model gave.
    #[n(2)]
    pub tool: String,
    /// Why.
    #[n(3)]
    pub kind: RefusalKind,
    /// The arguments as a JSON object that a later request can hold.
    #[n(4)]
    pub arguments: ValueRef,
    /// What the model is told.
    #[n(5)]
    pub text: ValueRef,
}

/// See [`Event::AttemptStarted`](super::Event::AttemptStarted).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct AttemptStarted {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// Which attempt, from 1.
    #[n(1)]
    pub attempt: u32,
    /// Not sent after this time: the writer's lease ends soon after.
    #[n(2)]
    pub send_by: Timestamp,
}

/// See [`Event::ActionFinished`](super::Event::ActionFinished).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionFinished {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The attempt that settled it; 0 when none was needed.
    #[n(1)]
    pub attempt: u32,
    /// True when it was done, false when it failed for good.
    #[n(2)]
    pub ok: bool,
    /// What the model is told.
    #[n(3)]
    pub result: ValueRef,
    /// How it is known.
    #[n(4)]
    pub by: SettledBy,
}

/// How an outcome is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// The attempt's own answer.
    #[n(0)]
    Answer,
    /// The tool's lookup.
    #[n(1)]
    Lookup,
    /// A worker that had lost its lease reported it.
    #[n(2)]
    LateReport,
    /// The same effect was done before; this is its outcome.
    #[n(3)]
    SameEffect,
    /// The core decided it: a state act.
    #[n(4)]
    Core,
    /// A signal came that it waited for.
    #[n(5)]
    Signal,
    /// Its time came.
    #[n(6)]
    Timer,
    /// Another run's action has the same dedupe key; this follows from what became of it.
    #[n(7)]
    OtherRun,
    /// Its deadline passed, and nothing of it is out there.
    #[n(8)]
    Deadline,
}

/// See [`Event::AttemptNotSent`](super::Event::AttemptNotSent).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct AttemptNotSent {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The attempt.
    #[n(1)]
    pub attempt: u32,
    /// Why.
    #[n(2)]
    pub text: ValueRef,
    /// Not tried again before this time.
    #[n(3)]
    pub not_before: Timestamp,
}

/// What was decided about an attempt whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub enum UnknownNext {
    /// Do it again, not before this time: a repeat leaves the same, or the key is still valid.
    #[n(0)]
    Again(#[n(0)] Timestamp),
    /// Look it up, not before this time.
    #[n(1)]
    LookUp(#[n(0)] Timestamp),
    /// A person has to say.
    #[n(2)]
    Doubt,
}

/// See [`Event::AttemptUnknown`](super::Event::AttemptUnknown).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct AttemptUnknown {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The attempt.
    #[n(1)]
    pub attempt: u32,
    /// What was seen.
    #[n(2)]
    pub text: ValueRef,
    /// What comes next.
    #[n(3)]
    pub next: UnknownNext,
}

/// See [`Event::LookupInconclusive`](super::Event::LookupInconclusive).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct LookupInconclusive {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// What was said.
    #[n(1)]
    pub text: ValueRef,
    /// What comes next: `Again` when the lookup says that it is absent.
    #[n(2)]
    pub next: UnknownNext,
}

/// How a person settled a doubt.
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub enum Resolution {
    /// It happened; this is its result.
    #[n(0)]
    Happened(#[n(0)] ValueRef),
    /// It did not happen; send it again under the same key.
    #[n(1)]
    SendAgain,
    /// Give it up; the model is told that the outcome stays unknown.
    #[n(2)]
    Abandoned(#[n(0)] ValueRef),
    /// It did not happen, and is not sent again; the model is told so.
    #[n(3)]
    DidNotHappen(#[n(0)] ValueRef),
}

/// See [`Event::DoubtResolved`](super::Event::DoubtResolved).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct DoubtResolved {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// Who.
    #[n(1)]
    pub by: String,
    /// What they said.
    #[n(2)]
    pub resolution: Resolution,
}

/// See [`Event::ActionApproved`](super::Event::ActionApproved).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionApproved {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// Who.
    #[n(1)]
    pub by: String,
}

/// Why an action was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum DeniedBy {
    /// A person said no.
    #[n(0)]
    Person,
    /// Nobody answered in time.
    #[n(1)]
    Expiry,
    /// A person's edited action took its place.
    #[n(2)]
    Edit,
}

/// See [`Event::ActionDenied`](super::Event::ActionDenied).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionDenied {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// Why.
    #[n(1)]
    pub why: DeniedBy,
    /// Who, when it was a person.
    #[n(2)]
    pub by: Option<String>,
    /// What the model is told.
    #[n(3)]
    pub text: ValueRef,
}

/// See [`Event::QuestionAnswered`](super::Event::QuestionAnswered).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct QuestionAnswered {
    /// The action that asked.
    #[n(0)]
    pub ordinal: Ordinal,
    /// Who answered.
    #[n(1)]
    pub by: String,
    /// The answer.
    #[n(2)]
    pub answer: ValueRef,
}

/// See [`Event::ActionWithdrawn`](super::Event::ActionWithdrawn).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ActionWithdrawn {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// What is told.
    #[n(1)]
    pub text: ValueRef,
}

/// See [`Event::ApprovalLapsed`](super::Event::ApprovalLapsed).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ApprovalLapsed {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
}

/// See [`Event::QuotaGranted`](super::Event::QuotaGranted).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct QuotaGranted {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// What else stands before its first intent.
    #[n(1)]
    pub gate: Gate,
}

/// See [`Event::SignalTaken`](super::Event::SignalTaken).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct SignalTaken {
    /// The action that waited; its result is what the signal carries.
    #[n(0)]
    pub ordinal: Ordinal,
}

/// See [`Event::TimerFired`](super::Event::TimerFired).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct TimerFired {
    /// The action that waited.
    #[n(0)]
    pub ordinal: Ordinal,
    /// What the model is told.
    #[n(1)]
    pub result: ValueRef,
}

/// See [`Event::DeadlinePassed`](super::Event::DeadlinePassed).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct DeadlinePassed {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// What the model is told.
    #[n(1)]
    pub text: ValueRef,
}
