//! Events of words that mean the run and none of its actions: guidance, signals, top-ups.

use minicbor::{Decode, Encode};

use crate::quota::Quota;
use crate::value::ValueRef;

/// See [`Event::GuidanceGiven`](super::Event::GuidanceGiven).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct GuidanceGiven {
    /// Who.
    #[n(0)]
    pub by: String,
    /// What the model is told.
    #[n(1)]
    pub text: ValueRef,
}

/// See [`Event::SignalArrived`](super::Event::SignalArrived).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct SignalArrived {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// Who sent it.
    #[n(1)]
    pub by: String,
    /// What it carries, canonical JSON.
    #[n(2)]
    pub value: ValueRef,
}

/// See [`Event::QuotaRaised`](super::Event::QuotaRaised).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct QuotaRaised {
    /// Who.
    #[n(0)]
    pub by: String,
    /// Which quota.
    #[n(1)]
    pub quota: Quota,
    /// By how much, in the quota's unit: a count, millionths of a usd, or milliseconds.
    #[n(2)]
    pub amount: u64,
}
