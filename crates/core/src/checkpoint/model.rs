//! The model's side of a run: what it was asked, what it said, and what went wrong with it in a row.

use std::collections::VecDeque;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::digest::Digest;
use crate::quota::Amounts;
use crate::time::Timestamp;
use crate::value::Stored;

/// The model's side of a run.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
pub struct ModelState {
    /// The last call's number.
    #[n(0)]
    pub calls: u64,
    /// The call that has no answer yet.
    #[n(1)]
    pub open: Option<OpenCall>,
    /// Calls in a row that brought no answer.
    #[n(2)]
    pub failed_in_row: u32,
    /// Replies in a row that were faulty.
    #[n(3)]
    pub faulty_in_row: u32,
    /// Not asked before this time.
    #[n(4)]
    pub not_before: Timestamp,
    /// The last decision's number.
    #[n(5)]
    pub decisions: u32,
    /// The newest decisions' texts.
    #[n(6)]
    pub texts: VecDeque<DecisionText>,
    /// How much larger a request is than its estimate, in thousandths, as a provider's refusal taught.
    #[n(7)]
    pub estimate_permille: u32,
    /// The digest of the last request that was reserved for.
    #[n(8)]
    pub last_request: Digest,
    /// The manifest of that request.
    #[n(9)]
    pub last_manifest: Option<Stored>,
    /// How many replies there were.
    #[n(10)]
    pub answered: u64,
    /// Refusals in a row because the request was longer than the model's context.
    #[n(11)]
    pub too_long_in_row: u32,
    /// Replies in a row that were cut at the output limit; `None` when the last one was not.
    #[n(12)]
    pub cut_in_row: Option<u32>,
    /// What the newest decision's provider wants to have back with it.
    #[n(13)]
    pub blocks: Option<DecisionText>,
    /// Calls whose answer was lost or broken, with no reply since; `None` when there is none.
    #[n(14)]
    pub lost_in_row: Option<u32>,
    /// Until when the provider asked to wait, if that was the last that was heard of it. A resume does not shorten it.
    #[n(15)]
    pub limited_until: Option<Timestamp>,
}

/// The text beside a decision's calls.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct DecisionText {
    /// The decision.
    #[n(0)]
    pub decision: u32,
    /// Its text.
    #[n(1)]
    pub text: Stored,
}

/// A call of the model that has no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode, Serialize)]
pub struct OpenCall {
    /// Its number.
    #[n(0)]
    pub call: u64,
    /// What is held back for it.
    #[n(1)]
    pub amounts: Amounts,
    /// The epoch that reserved it: a later one knows that the answer is lost.
    #[n(2)]
    pub epoch: u64,
}
