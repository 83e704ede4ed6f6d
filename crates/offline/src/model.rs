//! The trait, and what to do next.

use std::future;

use lodestep_model::{Call, Model, ModelError, ModelFuture, Reply, Request, StopReason, Usage};
use serde_json::{Value, json};

use crate::closing::{self, Calls, Closing};
use crate::memory::{Listing, Memory};
use crate::note;
use crate::publish;
use crate::rank;
use crate::reading;
use crate::recall;
use crate::report;
use crate::terms;
use crate::tools::Tools;
use crate::view::{Criterion, View};

/// Extractive research without a network. See the [crate's documentation](crate).
///
/// A reply always has at least one call. The estimate of its usage is a quarter of the bytes of the request
/// and of the reply as JSON, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfflineModel;

/// The name of the report where no artifact is asked for.
const REPORT: &str = "report.md";

/// How many calls of the model the end of a run takes beside those for the publishing tools: the save, the
/// milestones, finish, and finish once more.
const CLOSING_CALLS: u64 = 5;

impl Model for OfflineModel {
    /// Answers at once; the future is ready when it is returned.
    ///
    /// # Errors
    ///
    /// [`ModelError::Rejected`] when the request does not offer the tools that the work needs: documents to
    /// list and read, `artifact_save`, `note` and `finish`. It names those that are missing.
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(future::ready(answer(request)))
    }
}

fn answer(request: &Request) -> Result<Reply, ModelError> {
    let tools = Tools::find(&request.tools).map_err(ModelError::Rejected)?;
    let view = View::new(request);
    let (text, calls) = decide(&view, &tools);
    let call = |(index, (name, arguments)): (usize, (String, Value))| Call {
        id: format!("call-{}", index + 1),
        name,
        arguments: arguments.to_string(),
    };
    let calls = calls.into_iter().enumerate().map(call).collect();
    let mut reply = Reply { text, calls, stop: StopReason::ToolCalls, ..Reply::default() };
    let output_tokens = tokens(serde_json::to_vec(&reply));
    reply.usage = Some(Usage { input_tokens: tokens(serde_json::to_vec(request)), output_tokens, ..Usage::default() });
    Ok(reply)
}

/// An estimate: four bytes of JSON are a token.
fn tokens(json: serde_json::Result<Vec<u8>>) -> u64 {
    json.map_or(0, |json| json.len().div_ceil(4) as u64)
}

/// What to say, and what to call.
fn decide(view: &View, tools: &Tools) -> (String, Calls) {
    let (topic, terms) = topic(view);
    let artifact = artifact(view);
    let saved = publish::ended(view, &tools.save.name);
    let known = view.notes.iter().find(|(key, _)| key == note::KEY).and_then(|(_, text)| recall::read(text, &terms));
    let memory = known.unwrap_or_else(|| Memory::new(terms));
    if let Some(saved) = &saved {
        let report = report::write(&topic, &memory);
        let closing =
            Closing { view, tools, memory: &memory, topic: &topic, artifact: &artifact, report: &report, saved };
        return ("The report is written.".to_owned(), closing.next_calls());
    }
    research(view, tools, memory, &topic, &artifact)
}

/// Takes the newest results in; then asks for more to read, or saves the report.
fn research(view: &View, tools: &Tools, mut memory: Memory, topic: &str, artifact: &str) -> (String, Calls) {
    let mut changed = reading::absorb(&mut memory, view.newest(), tools);
    changed |= lower_limit(&mut memory, view, tools);
    let needed = CLOSING_CALLS + tools.publishing.len() as u64;
    if memory.is_reading() && view.calls_left.is_some_and(|left| left <= needed) {
        memory.stop_reading();
        changed = true;
    }
    if !memory.is_reading() && memory.tally_so_far().documents == 0 {
        return ("There is nothing to read.".to_owned(), closing::give_up(&memory, view, tools));
    }
    let mut calls = Calls::new();
    if changed && memory.limit >= note::MIN_BYTES {
        let arguments = json!({"key": note::KEY, "text": note::write(&memory)});
        calls.push((tools.note.name.clone(), arguments));
    }
    let read = memory.tally.documents;
    if memory.is_reading() {
        calls.extend(reading::next_calls(&memory, tools));
        return (format!("{read} documents read; reading on."), calls);
    }
    let report = report::write(topic, &memory);
    let arguments = json!({"name": artifact, "text": report.text});
    calls.push((tools.save.name.clone(), arguments));
    let text = format!("{read} documents read; {} sentences to cite.", report.citations);
    (text, calls)
}

/// Halves the note when the last one was refused; gives reading up when it cannot be made small enough.
/// True when it was refused.
fn lower_limit(memory: &mut Memory, view: &View, tools: &Tools) -> bool {
    let refused = view.newest().iter().filter(|outcome| outcome.tool == tools.note.name && outcome.failed);
    let bytes = |text: &Value| text.as_str().map_or(0, str::len);
    let Some(bytes) = refused.filter_map(|outcome| outcome.argument("text").map(bytes)).min() else {
        return false;
    };
    memory.limit = memory.limit.min(bytes) / 2;
    if memory.limit < note::MIN_BYTES {
        // What is known goes into the report at once, and has to fit nowhere.
        memory.listing = Listing::Stopped;
    } else {
        rank::fit(memory);
    }
    true
}

/// The topic, and the stems of its terms.
fn topic(view: &View) -> (String, Vec<String>) {
    match view.inputs.iter().find(|(name, value)| name == "topic" && !value.trim().is_empty()) {
        Some((_, topic)) => (topic.clone(), terms::topic_terms(topic)),
        None => (view.objective.clone(), terms::objective_terms(&view.objective)),
    }
}

fn artifact(view: &View) -> String {
    let named = view.criteria.iter().find_map(|criterion| match criterion {
        Criterion::Artifact(name) if !name.is_empty() => Some(name.clone()),
        _ => None,
    });
    named.unwrap_or_else(|| REPORT.to_owned())
}
