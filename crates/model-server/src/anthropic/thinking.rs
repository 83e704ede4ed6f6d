//! Thinking: when it may be on, and its blocks, which come back as they were given or not at all.

use serde_json::{Map, Value};

use super::{ensure, refuse};
use crate::options::Options;
use crate::question::Thinking;
use crate::refusal::{Checked, Kind};

/// The least budget, as the reference says of `thinking.budget_tokens`.
const LEAST_BUDGET: i64 = 1_024;

/// The signature of what this server thought: a digest that only who has its key can make.
pub fn signature(thinking: &str, options: &Options) -> String {
    let key = blake3::derive_key("lodestep model server: signature of a thinking block", options.key.as_bytes());
    blake3::keyed_hash(&key, thinking.as_bytes()).to_hex().to_string()
}

/// As "Extended thinking" says: with a budget the model always thinks; where it is `adaptive`, when it likes.
pub fn wanted(thinking: &Value) -> Thinking {
    match thinking["type"].as_str() {
        Some("enabled") => Thinking::Must,
        Some("adaptive") => Thinking::May,
        _ => Thinking::Off,
    }
}

/// Judges `thinking` and, where it is on, the blocks of earlier replies.
pub fn check(fields: &Map<String, Value>, messages: &[Value], options: &Options) -> Checked {
    let Some(thinking) = fields.get("thinking").filter(|value| !value.is_null()) else { return Ok(()) };
    match thinking["type"].as_str() {
        Some("disabled") => return Ok(()),
        Some("adaptive") => {}
        Some("enabled") => {
            budget(&thinking["budget_tokens"], &fields["max_tokens"])?;
            begins_with_thinking(messages)?;
        }
        _ => {
            return Err(refuse(
                Kind::Thinking,
                "thinking: Input tag found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', \
                 'enabled'",
            ));
        }
    }
    goes_with(fields)?;
    signatures(messages, options)
}

fn budget(budget: &Value, limit: &Value) -> Checked {
    let Some(tokens) = budget.as_i64() else {
        return Err(refuse(Kind::Thinking, "thinking.enabled.budget_tokens: Field required"));
    };
    ensure(tokens >= LEAST_BUDGET, Kind::Thinking, || {
        format!("thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_BUDGET}")
    })?;
    ensure(limit.as_i64() > Some(tokens), Kind::Thinking, || {
        "`max_tokens` must be greater than `thinking.budget_tokens`.".into()
    })
}

/// As "Extended thinking" says: it does not go together with another temperature than 1, with `top_k`, or with a tool that
/// is forced.
fn goes_with(fields: &Map<String, Value>) -> Checked {
    let temperature = fields.get("temperature").and_then(Value::as_f64);
    ensure(temperature.is_none_or(|degree| degree == 1.0), Kind::Thinking, || {
        "`temperature` may only be set to 1 when thinking is enabled.".into()
    })?;
    let has_top_k = fields.get("top_k").is_some_and(|value| !value.is_null());
    ensure(!has_top_k, Kind::Thinking, || "`top_k` must be unset when thinking is enabled.".into())?;
    let choice = fields.get("tool_choice").and_then(|choice| choice["type"].as_str());
    ensure(!matches!(choice, Some("any" | "tool")), Kind::Thinking, || {
        "Thinking may not be enabled when tool_choice forces tool use.".into()
    })
}

/// While the results of the last calls are handed in, those calls belong to a reply that is still going on, and what was
/// thought before them must be there.
fn begins_with_thinking(messages: &[Value]) -> Checked {
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let Some((last, before)) = messages.split_last() else { return Ok(()) };
    let results = blocks(last);
    if results.is_empty() || results.iter().any(|block| block["type"] != "tool_result") {
        return Ok(());
    }
    let Some(first) = before.last().map(blocks).unwrap_or_default().into_iter().next() else { return Ok(()) };
    let found = first["type"].as_str().unwrap_or_default();
    ensure(matches!(found, "thinking" | "redacted_thinking"), Kind::ThinkingMissing, || {
        format!(
            "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` \
             is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of \
             `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`.",
            before.len() - 1
        )
    })
}

fn signatures(messages: &[Value], options: &Options) -> Checked {
    for (at, message) in messages.iter().enumerate() {
        for (nth, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            if block["type"] != "thinking" {
                continue;
            }
            let is_ours = block["thinking"].as_str().is_some_and(|it| block["signature"] == signature(it, options));
            ensure(is_ours, Kind::ThinkingAltered, || {
                format!("messages.{at}.content.{nth}: Invalid `signature` in `thinking` block")
            })?;
        }
    }
    Ok(())
}
