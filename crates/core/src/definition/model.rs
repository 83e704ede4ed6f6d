//! `[model]`: who is asked, what a call may take, and what it costs.

use lodestep_model::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which model to ask, and what it can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// `offline`, `script`, `anthropic`, `openai`, or a name that a program gives.
    pub provider: String,
    /// The model's name with that provider, or the script's file. A provider's may hold `${env:…}`.
    #[serde(default)]
    pub name: String,
    /// Where the service is; may hold `${env:…}`. The provider's own when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The key, as references to variables. `None` for a service that needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// What a request says besides, sent as it is.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The field of a chat completion that says how long the reply may be, `max_tokens` or `max_completion_tokens`, if not the
    /// one that is usual for the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit_field: Option<String>,
    /// Is the reply asked for in one piece, and not as a stream?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// How long a call may take, in milliseconds, if not as long as is usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a stream may say nothing, in milliseconds, if not as long as is usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// The most tokens of one reply.
    pub max_output_tokens: u64,
    /// The most tokens of the one reply that is asked for after one was cut at its limit; no fewer. The same when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens_retry: Option<u64>,
    /// Tokens of request and reply together.
    pub context_window: u64,
    /// Price in usd per million tokens, as micro-usd per million; needed by a usd quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How many replies in a row may be faulty before the run stops.
    pub max_faulty_replies: u32,
    /// So many calls whose answer was lost, with no reply between them, stop the run; so do as many that were not sent, if there
    /// never was a reply.
    pub max_attempts: u32,
}

impl Default for ModelSpec {
    /// The offline model, with the limits of a file that says none.
    fn default() -> Self {
        Self {
            provider: "offline".to_owned(),
            name: String::new(),
            base_url: None,
            api_key: None,
            params: Map::new(),
            output_limit_field: None,
            whole: false,
            timeout_ms: None,
            idle_timeout_ms: None,
            max_output_tokens: 4_096,
            max_output_tokens_retry: None,
            context_window: 32_000,
            price: None,
            max_faulty_replies: 3,
            max_attempts: 5,
        }
    }
}

impl ModelSpec {
    /// The most tokens of the next reply, when so many before it were cut at their limit.
    pub fn output_limit(&self, cut_in_row: Option<u32>) -> u64 {
        match (cut_in_row, self.max_output_tokens_retry) {
            (Some(_), Some(retry)) => retry,
            _ => self.max_output_tokens,
        }
    }
}

/// Micro-usd per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// For tokens of the request.
    pub input_micro_usd: u64,
    /// For tokens of the reply.
    pub output_micro_usd: u64,
    /// For tokens of the request that the provider's cache had, if not that of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_micro_usd: Option<u64>,
    /// For tokens of the request that the provider's cache took, if not that of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_micro_usd: Option<u64>,
}

impl Price {
    /// The cost of a call in micro-usd, rounded up.
    pub fn of(&self, usage: &Usage) -> u64 {
        let read = usage.cache_read_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - read);
        let cost: u128 = [
            (usage.input_tokens - read - written, self.input_micro_usd),
            (read, self.cache_read_micro_usd.unwrap_or(self.input_micro_usd)),
            (written, self.cache_write_micro_usd.unwrap_or(self.input_micro_usd)),
            (usage.output_tokens, self.output_micro_usd),
        ]
        .iter()
        .map(|(tokens, price)| u128::from(*tokens) * u128::from(*price))
        .sum();
        u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The most that a call of so many tokens can cost, in micro-usd.
    pub fn at_most(&self, input_tokens: u64, output_tokens: u64) -> u64 {
        let dearest = self.input_micro_usd.max(self.cache_write_micro_usd.unwrap_or(0));
        let price = Self { input_micro_usd: dearest, output_micro_usd: self.output_micro_usd, ..Self::default() };
        price.of(&Usage { input_tokens, output_tokens, ..Usage::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_price_and_the_sum_is_rounded_up() {
        let price = Price {
            input_micro_usd: 3_000_000,
            output_micro_usd: 15_000_000,
            cache_read_micro_usd: Some(300_000),
            cache_write_micro_usd: Some(3_750_000),
        };
        let usage = |input_tokens, output_tokens, cache_read_tokens, cache_write_tokens| Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
        };
        assert_eq!(price.of(&usage(1_000, 100, 0, 0)), 4_500);
        assert_eq!(price.of(&usage(1_000, 100, 900, 0)), 300 + 270 + 1_500);
        assert_eq!(price.of(&usage(1_000, 0, 0, 900)), 300 + 3_375);
        assert_eq!(price.of(&usage(1, 0, 1, 0)), 1, "a third of a micro-usd is one");
        assert_eq!(price.of(&usage(10, 0, 50, 50)), 3, "no more tokens than there are");
        assert_eq!(price.at_most(1_000, 100), 3_750 + 1_500, "as if all of it were written to the cache");
        let plain = Price { cache_read_micro_usd: None, cache_write_micro_usd: None, ..price };
        assert_eq!(plain.of(&usage(1_000, 100, 900, 50)), 4_500);
        assert_eq!(price.of(&usage(u64::MAX, u64::MAX, 0, 0)), u64::MAX);
    }
}
