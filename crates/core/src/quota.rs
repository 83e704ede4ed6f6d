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

    /// Of each kind the larger of both.
    pub(crate) fn larger(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.max(other.input_tokens),
            output_tokens: self.output_tokens.max(other.output_tokens),
            usd_micro: self.usd_micro.max(other.usd_micro),
            model_calls: self.model_calls.max(other.model_calls),
            tool_calls: self.tool_calls.max(other.tool_calls),
        }
    }

    /// The part that counts against a quota; nothing for those of time.
    pub fn of(&self, quota: Quota) -> u64 {
        match quota {
            Quota::TotalTokens => self.total_tokens(),
            Quota::InputTokens => self.input_tokens,
            Quota::OutputTokens => self.output_tokens,
            Quota::Usd => self.usd_micro,
            Quota::ModelCalls => self.model_calls,
            Quota::ToolCalls => self.tool_calls,
            Quota::ActiveTime | Quota::Deadline => 0,
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
    /// Of what is spent that which no provider reported: lost replies at their reservations or at what was reported before, others as estimated.
    /// `None` when there is none.
    #[n(5)]
    pub unconfirmed: Option<Amounts>,
    /// Of the tokens of requests those that providers' caches had or took. `None` when there are none.
    #[n(6)]
    pub cached: Option<Cached>,
}

/// Tokens of requests that providers' caches had or took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Cached {
    /// Read from them.
    #[n(0)]
    pub read: u64,
    /// Written to them.
    #[n(1)]
    pub written: u64,
}

/// What a run says when it stops for its deadline.
pub(crate) const DEADLINE_PASSED: &str = "the run's deadline has passed";

/// Before what a call asks for that found no room.
const ASKS: &str = ": it asks for ";

/// What a run can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Quota {
    /// Tokens of requests and replies together.
    #[n(0)]
    TotalTokens,
    /// Tokens of requests.
    #[n(1)]
    InputTokens,
    /// Tokens of replies.
    #[n(2)]
    OutputTokens,
    /// Money, in millionths of a usd.
    #[n(3)]
    Usd,
    /// Calls of the model.
    #[n(4)]
    ModelCalls,
    /// Calls of tools.
    #[n(5)]
    ToolCalls,
    /// Time held by a worker, in milliseconds.
    #[n(6)]
    ActiveTime,
    /// Time since the start, in milliseconds.
    #[n(7)]
    Deadline,
}

impl Quota {
    /// Every quota, in the order of its number.
    pub const ALL: [Self; 8] = [
        Self::TotalTokens,
        Self::InputTokens,
        Self::OutputTokens,
        Self::Usd,
        Self::ModelCalls,
        Self::ToolCalls,
        Self::ActiveTime,
        Self::Deadline,
    ];

    /// What a run says when it stops as this quota, by its name, has no room for what is wanted.
    pub(crate) fn no_room(name: &str, wanted: &str) -> String {
        format!("the quota {name} has no room for {wanted}")
    }

    /// As [`Self::no_room`] for a call of the model, with what it asks for and what is left, where these are amounts.
    pub(crate) fn no_room_for_a_call(quotas: &Quotas, name: &str, wanted: Amounts) -> String {
        let said = Self::no_room(name, "another call of the model");
        let row = quotas.remaining(0).into_iter().find(|row| row.quota.as_str() == name);
        match row.filter(|row| row.quota.is_an_amount()) {
            Some(Remaining { quota, left, .. }) => {
                let (asked, left) = (quota.shown(wanted.of(quota)), quota.shown(left));
                format!("{said}{ASKS}{asked}, and {left} is left")
            }
            None => said,
        }
    }

    /// Does a call take another amount of it each time? Of calls it takes one, and of time what it happens to last.
    pub fn is_an_amount(self) -> bool {
        matches!(self, Self::TotalTokens | Self::InputTokens | Self::OutputTokens | Self::Usd)
    }

    /// What was asked for of this quota when a run stopped that said this; `None` where it did not say.
    pub fn asked(self, said: &str) -> Option<u64> {
        let (_, amounts) = said.split_once(ASKS)?;
        let (asked, _) = amounts.split_once(", and ")?;
        if self != Self::Usd {
            return asked.parse().ok();
        }
        let (whole, decimals) = asked.split_once('.')?;
        let micro = format!("{decimals:0<6}").parse::<u64>().ok().filter(|_| decimals.len() <= 6)?;
        whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micro)
    }

    /// The quota for which a run stopped that said this.
    pub fn without_room(said: &str) -> Option<Self> {
        if said == DEADLINE_PASSED {
            return Some(Self::Deadline);
        }
        let (name, _) = said.strip_prefix("the quota ")?.split_once(" has no room for ")?;
        Self::from_name(name)
    }

    /// Its name in an agent file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TotalTokens => "total_tokens",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Usd => "usd",
            Self::ModelCalls => "model_calls",
            Self::ToolCalls => "tool_calls",
            Self::ActiveTime => "active_time",
            Self::Deadline => "deadline",
        }
    }

    /// The quota of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quota| quota.as_str() == name)
    }

    /// The limit, where there is one.
    pub fn limit(self, limits: &QuotaLimits) -> Option<u64> {
        match self {
            Self::TotalTokens => limits.total_tokens,
            Self::InputTokens => limits.input_tokens,
            Self::OutputTokens => limits.output_tokens,
            Self::Usd => limits.usd_micro,
            Self::ModelCalls => limits.model_calls,
            Self::ToolCalls => limits.tool_calls,
            Self::ActiveTime => limits.active_time_ms,
            Self::Deadline => limits.deadline_ms,
        }
    }

    /// The limit, to be changed.
    pub fn limit_mut(self, limits: &mut QuotaLimits) -> &mut Option<u64> {
        match self {
            Self::TotalTokens => &mut limits.total_tokens,
            Self::InputTokens => &mut limits.input_tokens,
            Self::OutputTokens => &mut limits.output_tokens,
            Self::Usd => &mut limits.usd_micro,
            Self::ModelCalls => &mut limits.model_calls,
            Self::ToolCalls => &mut limits.tool_calls,
            Self::ActiveTime => &mut limits.active_time_ms,
            Self::Deadline => &mut limits.deadline_ms,
        }
    }

    /// Raises the limit; what has none stays without. Stops at the largest number.
    pub fn raise(self, limits: &mut QuotaLimits, amount: u64) {
        let limit = self.limit_mut(limits);
        *limit = limit.map(|limit| limit.saturating_add(amount));
    }

    /// An amount as people read it: `2.50`, `1h 5m`, `12`.
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::Usd => format!("{}.{:0>2}", amount / 1_000_000, trimmed(amount % 1_000_000)),
            Self::ActiveTime | Self::Deadline => span(amount / 1_000),
            _ => amount.to_string(),
        }
    }
}

/// Six decimal places, without the zeros at the end beyond the second.
fn trimmed(micro: u64) -> String {
    let mut digits = format!("{micro:06}");
    while digits.len() > 2 && digits.ends_with('0') {
        digits.pop();
    }
    digits
}

/// A length of time by its two largest units.
fn span(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let first = units.iter().position(|(of, _)| seconds >= *of).unwrap_or(units.len() - 1);
    let (of, unit) = units[first];
    let rest = units.get(first + 1).filter(|(smaller, _)| seconds % of >= *smaller);
    let rest = rest.map(|(smaller, unit)| format!(" {}{unit}", seconds % of / smaller)).unwrap_or_default();
    format!("{}{unit}{rest}", seconds / of)
}

/// One row of what is left, for people and for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remaining {
    /// Which quota.
    pub quota: Quota,
    /// Spent for good.
    pub used: u64,
    /// Held back for what is under way or in doubt.
    pub reserved: u64,
    /// What is neither used nor reserved; never below zero.
    pub left: u64,
    /// The limit.
    pub limit: u64,
}

impl Remaining {
    /// Is no more than a fifth left? The model is told so.
    pub fn is_low(&self) -> bool {
        self.left.saturating_mul(5) <= self.limit
    }
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

    /// Notes that nobody reported this part of what is spent.
    pub fn unconfirmed(&mut self, amounts: Amounts) {
        if amounts != Amounts::default() {
            self.unconfirmed = Some(self.unconfirmed.unwrap_or_default().plus(amounts));
        }
    }

    /// Notes tokens that a provider's cache had or took.
    pub fn cached(&mut self, read: u64, written: u64) {
        if read > 0 || written > 0 {
            let before = self.cached.unwrap_or_default();
            let (read, written) = (before.read.saturating_add(read), before.written.saturating_add(written));
            self.cached = Some(Cached { read, written });
        }
    }

    /// Turns a reservation into what was really used. What goes beyond it is an overrun: it counts as
    /// used, so that a limit it passes refuses the next reservation.
    pub fn settle(&mut self, reserved: Amounts, used: Amounts) {
        self.reserved = self.reserved.minus(reserved);
        self.used = self.used.plus(used);
        self.overrun = self.overrun.plus(used.minus(reserved));
    }

    /// What is left of each limited quota, so many milliseconds after the run's start.
    pub fn remaining(&self, age_ms: u64) -> Vec<Remaining> {
        let row = |quota: Quota| {
            let limit = quota.limit(&self.limits)?;
            let (used, reserved) = match quota {
                Quota::ActiveTime => (self.active_us / 1000, 0),
                Quota::Deadline => (age_ms, 0),
                counted => (self.used.of(counted), self.reserved.of(counted)),
            };
            let left = limit.saturating_sub(used.saturating_add(reserved));
            Some(Remaining { quota, used, reserved, left, limit })
        };
        Quota::ALL.into_iter().filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input_tokens: u64, output_tokens: u64) -> Amounts {
        Amounts { input_tokens, output_tokens, model_calls: 1, ..Amounts::default() }
    }

    #[test]
    fn amounts_are_shown_as_people_say_them() {
        for (quota, amount, shown) in [
            (Quota::Usd, 2_500_000, "2.50"),
            (Quota::Usd, 1, "0.000001"),
            (Quota::Usd, 0, "0.00"),
            (Quota::ActiveTime, 999, "0s"),
            (Quota::ActiveTime, 3_900_000, "1h 5m"),
            (Quota::Deadline, 1_209_600_000, "14d"),
            (Quota::Deadline, 90_061_000, "1d 1h"),
            (Quota::ToolCalls, 12, "12"),
        ] {
            assert_eq!(quota.shown(amount), shown);
        }
        assert!(Quota::ALL.into_iter().all(|quota| Quota::from_name(quota.as_str()) == Some(quota)));
    }

    #[test]
    fn the_quota_that_a_run_stopped_for_is_read_from_what_it_said() {
        for quota in Quota::ALL {
            let said = Quota::no_room(quota.as_str(), "pay (action 2); it is done after a top-up and a resume");
            assert_eq!(Quota::without_room(&said), Some(quota), "{said}");
        }
        let quotas = Quotas::new(QuotaLimits {
            total_tokens: Some(900),
            usd_micro: Some(2_500_000),
            model_calls: Some(0),
            ..QuotaLimits::default()
        });
        let wanted = Amounts { usd_micro: 12_345_600, ..call(1_000, 24) };
        for (quota, asked) in [(Quota::TotalTokens, 1_024), (Quota::Usd, 12_345_600)] {
            let said = Quota::no_room_for_a_call(&quotas, quota.as_str(), wanted);
            assert_eq!((Quota::without_room(&said), quota.asked(&said)), (Some(quota), Some(asked)), "{said}");
        }
        let said = Quota::no_room_for_a_call(&quotas, "model_calls", wanted);
        assert_eq!(said, "the quota model_calls has no room for another call of the model");
        assert_eq!(Quota::Usd.asked("the quota usd has no room for x: it asks for 1, and 2"), None);
        assert_eq!(Quota::without_room(DEADLINE_PASSED), Some(Quota::Deadline));
        for said in ["", "paused by ada: the quota usd has no room for lunch", "the quota gold has no room for it"] {
            assert_eq!(Quota::without_room(said), None, "{said}");
        }
    }

    #[test]
    fn a_top_up_raises_the_limit_and_lowers_nothing_that_was_spent() {
        let limits = QuotaLimits { model_calls: Some(2), ..QuotaLimits::default() };
        let mut quotas = Quotas::new(limits);
        quotas.reserve(call(1, 1));
        quotas.settle(call(1, 1), call(1, 1));
        let used = quotas.used;
        Quota::ModelCalls.raise(&mut quotas.limits, 3);
        Quota::ToolCalls.raise(&mut quotas.limits, 3);
        assert_eq!((quotas.used, quotas.limits.model_calls, quotas.limits.tool_calls), (used, Some(5), None));
        assert_eq!(quotas.remaining(0)[0].left, 4);
        Quota::ModelCalls.raise(&mut quotas.limits, u64::MAX);
        assert_eq!(quotas.limits.model_calls, Some(u64::MAX));
    }

    #[test]
    fn g09_reserved_counts_and_an_overrun_stops_the_next() {
        let limits = QuotaLimits { total_tokens: Some(100), ..QuotaLimits::default() };
        let mut quotas = Quotas::new(limits);
        assert_eq!(quotas.refuses(call(50, 50)), None);
        quotas.reserve(call(50, 50));
        assert_eq!(quotas.refuses(call(1, 0)), Some("total_tokens"));
        quotas.settle(call(50, 50), call(10, 10));
        assert_eq!(quotas.remaining(0)[0].left, 80);
        quotas.reserve(call(10, 10));
        quotas.settle(call(10, 10), call(500, 10));
        assert_eq!(quotas.remaining(0)[0].left, 0, "never below zero");
        assert_eq!(quotas.overrun.input_tokens, 490);
        assert_eq!(quotas.refuses(call(1, 0)), Some("total_tokens"));
    }
}
