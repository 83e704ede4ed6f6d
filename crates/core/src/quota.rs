//! Quotas: reserved before a call, settled after it, never reset, never shown below zero.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::definition::QuotaLimits;

/// Amounts of everything that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Amounts {
    /// Tokens of requests.
    #[n(0)]
    pub input_tokens: u64,
    /// Tokens of replies.
    #[n(1)]
    pub output_tokens: u64,
    /// Money, in millionths of a usd.
    #[n(2)]
    pub usd_micro: u64,
    /// Calls of the model.
    #[n(3)]
    pub model_calls: u64,
    /// Calls of tools.
    #[n(4)]
    pub tool_calls: u64,
}

impl Amounts {
    fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            usd_micro: self.usd_micro.saturating_add(other.usd_micro),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            usd_micro: self.usd_micro.saturating_sub(other.usd_micro),
            model_calls: self.model_calls.saturating_sub(other.model_calls),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
        }
    }

    /// Tokens of requests and replies together.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// A run's quotas: the limits, what is used, and what is reserved for calls under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Quotas {
    /// The limits; a top-up raises them.
    #[n(0)]
    pub limits: QuotaLimits,
    /// Spent for good.
    #[n(1)]
    pub used: Amounts,
    /// Held back for calls whose end is not known.
    #[n(2)]
    pub reserved: Amounts,
    /// Time held by a worker, in microseconds.
    #[n(3)]
    pub active_us: u64,
    /// Spent beyond what was reserved for it: what a provider reported above the estimate.
    #[n(4)]
    pub overrun: Amounts,
}

/// One row of what is left, for people and for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remaining {
    /// The quota's name in an agent file.
    pub quota: &'static str,
    /// What is neither used nor reserved; never below zero.
    pub left: u64,
    /// The limit.
    pub limit: u64,
}

impl Quotas {
    /// Fresh quotas under these limits.
    pub fn new(limits: QuotaLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The quota that `wanted` would pass, if there is one.
    pub fn refuses(&self, wanted: Amounts) -> Option<&'static str> {
        let after = self.used.plus(self.reserved).plus(wanted);
        let passes = |amount: u64, limit: Option<u64>| limit.is_some_and(|limit| amount > limit);
        let limits = &self.limits;
        [
            ("total_tokens", wanted.total_tokens() > 0 && passes(after.total_tokens(), limits.total_tokens)),
            ("input_tokens", wanted.input_tokens > 0 && passes(after.input_tokens, limits.input_tokens)),
            ("output_tokens", wanted.output_tokens > 0 && passes(after.output_tokens, limits.output_tokens)),
            ("usd", wanted.model_calls > 0 && passes(after.usd_micro, limits.usd_micro)),
            ("model_calls", wanted.model_calls > 0 && passes(after.model_calls, limits.model_calls)),
            ("tool_calls", wanted.tool_calls > 0 && passes(after.tool_calls, limits.tool_calls)),
            ("active_time", limits.active_time_ms.is_some_and(|limit| self.active_us / 1000 >= limit)),
        ]
        .into_iter()
        .find_map(|(name, over)| over.then_some(name))
    }

    /// Holds `amounts` back. The caller has asked [`Self::refuses`].
    pub fn reserve(&mut self, amounts: Amounts) {
        self.reserved = self.reserved.plus(amounts);
    }

    /// Turns a reservation into what was really used. What goes beyond it is an overrun: it counts as
    /// used, so that a limit it passes refuses the next reservation.
    pub fn settle(&mut self, reserved: Amounts, used: Amounts) {
        self.reserved = self.reserved.minus(reserved);
        self.used = self.used.plus(used);
        self.overrun = self.overrun.plus(used.minus(reserved));
    }

    /// What is left of each limited quota.
    pub fn remaining(&self) -> Vec<Remaining> {
        let taken = self.used.plus(self.reserved);
        let limits = &self.limits;
        [
            ("total_tokens", taken.total_tokens(), limits.total_tokens),
            ("input_tokens", taken.input_tokens, limits.input_tokens),
            ("output_tokens", taken.output_tokens, limits.output_tokens),
            ("usd_micro", taken.usd_micro, limits.usd_micro),
            ("model_calls", taken.model_calls, limits.model_calls),
            ("tool_calls", taken.tool_calls, limits.tool_calls),
            ("active_time_ms", self.active_us / 1000, limits.active_time_ms),
        ]
        .into_iter()
        .filter_map(|(quota, taken, limit)| {
            limit.map(|limit| Remaining { quota, left: limit.saturating_sub(taken), limit })
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input_tokens: u64, output_tokens: u64) -> Amounts {
        Amounts { input_tokens, output_tokens, model_calls: 1, ..Amounts::default() }
    }

    #[test]
    fn g09_reserved_counts_and_an_overrun_stops_the_next() {
        let limits = QuotaLimits { total_tokens: Some(100), ..QuotaLimits::default() };
        let mut quotas = Quotas::new(limits);
        assert_eq!(quotas.refuses(call(50, 50)), None);
        quotas.reserve(call(50, 50));
        assert_eq!(quotas.refuses(call(1, 0)), Some("total_tokens"));
        quotas.settle(call(50, 50), call(10, 10));
        assert_eq!(quotas.remaining()[0].left, 80);
        quotas.reserve(call(10, 10));
        quotas.settle(call(10, 10), call(500, 10));
        assert_eq!(quotas.remaining()[0].left, 0, "never below zero");
        assert_eq!(quotas.overrun.input_tokens, 490);
        assert_eq!(quotas.refuses(call(1, 0)), Some("total_tokens"));
    }
}
