//! Events of the model's calls, and of the decision that a reply becomes.

use minicbor::{Decode, Encode};

use crate::digest::Digest;
use crate::quota::Amounts;
use crate::time::Timestamp;
use crate::value::ValueRef;

/// See [`Event::CallReserved`](super::Event::CallReserved).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct CallReserved {
    /// The call's number in its run, from 1.
    #[n(0)]
    pub call: u64,
    /// What is held back.
    #[n(1)]
    pub amounts: Amounts,
    /// The digest of the request that will be sent.
    #[n(2)]
    pub request: Digest,
    /// What the request was made of: sections and tokens.
    #[n(3)]
    pub manifest: ValueRef,
}

/// See [`Event::CallAnswered`](super::Event::CallAnswered).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct CallAnswered {
    /// The call.
    #[n(0)]
    pub call: u64,
    /// What it used.
    #[n(1)]
    pub used: Amounts,
    /// False when the provider reported nothing and the numbers are estimates.
    #[n(2)]
    pub reported: bool,
    /// The raw reply, kept as the transcript.
    #[n(3)]
    pub reply: ValueRef,
    /// True when the reply as a whole could not be taken: nothing of it is executed.
    #[n(4)]
    pub faulty: bool,
    /// What there is to say of it besides.
    #[n(5)]
    pub about: Option<AboutReply>,
}

/// What there is to say of a reply besides the text, the calls and the tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, serde::Serialize)]
pub struct AboutReply {
    /// The model that answered.
    #[n(0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's name for the call.
    #[n(1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Of the request's tokens those that its cache had.
    #[n(2)]
    pub cache_read_tokens: u64,
    /// Of the request's tokens those that its cache took.
    #[n(3)]
    pub cache_write_tokens: u64,
    /// True when it was cut at the output limit.
    #[n(4)]
    pub cut: bool,
    /// True when its text held half of a surrogate pair, which was replaced; the transcript has it as it came.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ill_formed: Option<bool>,
}

/// Why a call brought no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum CallFailure {
    /// Nothing was sent; nothing is charged.
    #[n(0)]
    NotSent,
    /// The provider asked to wait; nothing is charged.
    #[n(1)]
    Busy,
    /// The answer was lost or broken; the reservation is charged, or what was reported where that is more.
    #[n(2)]
    Lost,
    /// The request is longer than the model's context; nothing is charged.
    #[n(3)]
    TooLong,
    /// The provider will not take it; nothing is charged.
    #[n(4)]
    Rejected,
}

/// See [`Event::CallFailed`](super::Event::CallFailed).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct CallFailed {
    /// The call.
    #[n(0)]
    pub call: u64,
    /// Why.
    #[n(1)]
    pub why: CallFailure,
    /// What was said.
    #[n(2)]
    pub text: ValueRef,
    /// Not asked again before this time.
    #[n(3)]
    pub not_before: Timestamp,
    /// What is charged, where the provider had reported more than was held back before its answer was lost.
    #[n(4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged: Option<Amounts>,
}

/// See [`Event::CallLost`](super::Event::CallLost).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct CallLost {
    /// The call.
    #[n(0)]
    pub call: u64,
    /// What is charged, where the provider had reported more than was held back.
    #[n(1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged: Option<Amounts>,
}

/// See [`Event::DecisionOpened`](super::Event::DecisionOpened).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct DecisionOpened {
    /// The decision's number in its run, from 1.
    #[n(0)]
    pub decision: u32,
    /// The text beside the calls.
    #[n(1)]
    pub text: Option<ValueRef>,
    /// How many actions follow: the decision closes when so many are there and all are settled.
    #[n(2)]
    pub actions: u32,
    /// What the provider wants to have back with the calls, byte for byte.
    #[n(3)]
    pub blocks: Option<ValueRef>,
}
