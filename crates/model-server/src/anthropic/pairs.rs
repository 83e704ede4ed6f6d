//! Calls and their results: which goes with which.
//!
//! As "Handle tool calls" says: the results of a message's calls are in the message right after it, one for each, before
//! any other content. How each mistake is called is what the service says.

use std::collections::HashSet;

use serde_json::Value;

use super::{ensure, refuse};
use crate::refusal::{Checked, Kind};

/// Judges messages whose blocks are good in themselves.
pub fn check(messages: &[Value]) -> Checked {
    let mut ids = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        for (nth, id) in blocks(message, "tool_use", "id") {
            ensure(ids.insert(id), Kind::CallIdTwice, || {
                format!("messages.{at}.content.{nth}: `tool_use` ids must be unique")
            })?;
        }
    }
    for (at, message) in messages.iter().enumerate() {
        results_belong(at, message, at.checked_sub(1).map(|before| &messages[before]))?;
        calls_are_answered(at, message, messages.get(at + 1))?;
    }
    Ok(())
}

/// The blocks of a type in a message: where, and the id in this field.
fn blocks<'a>(message: &'a Value, of: &'a str, id: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let all = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let typed = all.iter().enumerate().filter(move |(_, block)| block["type"] == of);
    typed.filter_map(move |(at, block)| Some((at, block[id].as_str()?)))
}

fn results_belong(at: usize, message: &Value, before: Option<&Value>) -> Checked {
    let calls: HashSet<&str> =
        before.into_iter().flat_map(|before| blocks(before, "tool_use", "id")).map(|(_, id)| id).collect();
    let mut answered = HashSet::new();
    for (nth, id) in blocks(message, "tool_result", "tool_use_id") {
        ensure(calls.contains(id), Kind::ResultOrphan, || {
            format!(
                "messages.{at}.content.{nth}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        })?;
        ensure(answered.insert(id), Kind::ResultTwice, || {
            format!(
                "messages.{at}.content.{nth}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}"
            )
        })?;
    }
    Ok(())
}

/// Results count only while nothing else stands before them. The last message may end in calls: it is gone on with.
fn calls_are_answered(at: usize, message: &Value, next: Option<&Value>) -> Checked {
    let leading = next.and_then(|next| next["content"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let leading = leading.iter().take_while(|block| block["type"] == "tool_result");
    let answered: HashSet<&str> = leading.filter_map(|block| block["tool_use_id"].as_str()).collect();
    let open: Vec<&str> = blocks(message, "tool_use", "id").map(|(_, id)| id).collect();
    let open: Vec<&str> = open.into_iter().filter(|id| !answered.contains(id)).collect();
    if open.is_empty() {
        return Ok(());
    }
    Err(refuse(
        Kind::ResultMissing,
        format!(
            "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            open.join(", ")
        ),
    ))
}
