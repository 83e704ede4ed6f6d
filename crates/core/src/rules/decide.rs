//! A reply becomes a decision: each call is judged, nothing is repaired, nothing is executed here.

use std::collections::BTreeMap;

use lodestep_model::{Call, Reply};
use serde_json::{Map, Value, json};

use crate::checkpoint::{Action, Checkpoint, How, Settled};
use crate::definition::{Decide, Definition, StateAct, ToolDefinition, ToolKind};
use crate::digest::Digest;
use crate::draft::Draft;
use crate::effect::{dedupe_key, effect_key, request_name, sameness};
use crate::error::Result;
use crate::event::{
    ActionFinished, ActionProposed, ActionRefused, DecisionOpened, Elsewhere, ErrorKind, ErrorLogged, Event, Gate,
    RefusalKind, Request, SettledBy,
};
use crate::ids::{Ordinal, RunId};
use crate::json::{canonical, parse_strict};
use crate::policy::{self, Verdict};
use crate::rules::decide::state_act::act;
use crate::rules::decide::whole::{charge, stop_if_misbehaving, whole_fault};
use crate::rules::room::ONE_CALL;
use crate::rules::wait;
use crate::time::Timestamp;
use crate::value::ValueRef;

pub mod artifacts;
mod state_act;
mod whole;

/// The most calls of one reply; more are refused one by one.
pub const CALLS_PER_REPLY: usize = 64;

/// A reply with more calls than this is refused as a whole: each refusal is kept in the checkpoint for the next request.
pub const CALLS_READ: usize = 256;

/// The argument that the runtime adds to effects: why an equal effect is wanted again.
pub const REPEAT_REASON: &str = "repeat_reason";

/// An effect of the lineage that is the same as a wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prior {
    /// Its action.
    pub ordinal: Ordinal,
    /// The recorded outcome.
    pub result: Vec<u8>,
}

/// An effect of another run of the lineage that is the same as a wanted one and not this run's past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The run.
    pub run: RunId,
    /// Its action.
    pub ordinal: Ordinal,
    /// The recorded outcome, if it was done.
    pub result: Option<Vec<u8>>,
}

/// What deciding needs besides the state.
pub struct Question<'a> {
    /// The run's definition.
    pub definition: &'a Definition,
    /// The call that was answered.
    pub call: u64,
    /// The reply.
    pub reply: &'a Reply,
    /// The name of the raw reply, which is stored as the transcript.
    pub transcript: ValueRef,
    /// Checks arguments against a tool's schema; says what is wrong.
    pub check: &'a dyn Fn(&ToolDefinition, &Value) -> std::result::Result<(), String>,
    /// Finished effects that have left the checkpoint, by sameness.
    pub priors: &'a BTreeMap<Digest, Prior>,
    /// Equal effects of the lineage that are not this run's past, by sameness. A person says what they mean.
    pub apart: &'a BTreeMap<Digest, Apart>,
}

/// A call that was judged.
enum Judged<'a> {
    Sound(Sound<'a>),
    Refused { kind: RefusalKind, text: String },
}

struct Sound<'a> {
    tool: &'a ToolDefinition,
    arguments: Value,
    again: bool,
    dedupe: Option<String>,
}

/// Pushes what a reply means: its charge, and its actions or its refusal.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn decide(draft: &mut Draft, question: &Question<'_>) -> Result<()> {
    let reply = question.reply;
    let checkpoint = draft.checkpoint();
    let judged: Vec<Judged<'_>> =
        reply.calls.iter().enumerate().map(|(at, call)| judge(checkpoint, question, at, call)).collect();
    let whole = whole_fault(checkpoint, question);
    let sound = judged.iter().any(|judged| matches!(judged, Judged::Sound(_)));
    charge(draft, question, whole.is_some() || !sound)?;
    if let Some(fault) = whole {
        let text = draft.put(fault);
        draft.push(Event::ErrorLogged(ErrorLogged { kind: ErrorKind::Reply, ordinal: None, text }))?;
        return stop_if_misbehaving(draft, question);
    }
    let text = (!reply.text.trim().is_empty()).then(|| draft.put(reply.text.as_str()));
    let blocks = reply.blocks.as_ref().map(|blocks| draft.put(serde_json::to_vec(blocks).unwrap_or_default()));
    draft.push(Event::DecisionOpened(DecisionOpened {
        decision: draft.checkpoint().model.decisions.saturating_add(1),
        text,
        actions: judged.len() as u32,
        blocks,
    }))?;
    for (call, judged) in reply.calls.iter().zip(judged) {
        match judged {
            Judged::Sound(sound) => propose(draft, question, call, sound)?,
            Judged::Refused { kind, text } => refuse(draft, call, kind, &text)?,
        }
    }
    if draft.checkpoint().model.faulty_in_row > 0 {
        return stop_if_misbehaving(draft, question);
    }
    Ok(())
}

fn judge<'a>(checkpoint: &Checkpoint, question: &Question<'a>, at: usize, call: &Call) -> Judged<'a> {
    let refused = |kind, text: String| Judged::Refused { kind, text };
    let Some(tool) = question.definition.tool(&call.name) else {
        let names: Vec<&str> = question.definition.tools.iter().map(|tool| tool.name.as_str()).collect();
        let text = format!("there is no tool `{}`. The tools are: {}", shortened(&call.name), names.join(", "));
        return refused(RefusalKind::UnknownTool, text);
    };
    if at >= CALLS_PER_REPLY {
        return refused(RefusalKind::InvalidArguments, format!("at most {CALLS_PER_REPLY} calls of a reply are taken"));
    }
    let mut arguments = match parse_strict(&call.arguments) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(other) => {
            let text = format!("the arguments have to be a JSON object, not {}", kind_of(&other));
            return refused(RefusalKind::InvalidArguments, text);
        }
        Err(fault) => return refused(RefusalKind::InvalidArguments, format!("the arguments are {fault}")),
    };
    let again = !tool.class.is_repeatable() && take_repeat_reason(&mut arguments);
    let mut arguments = Value::Object(arguments);
    if let Err(fault) = (question.check)(tool, &arguments) {
        return refused(RefusalKind::InvalidArguments, format!("the arguments don't fit: {fault}"));
    }
    if let Err(fault) = artifacts::pin(tool, &mut arguments, checkpoint) {
        return refused(RefusalKind::InvalidArguments, fault);
    }
    if let ToolKind::State { act } = tool.kind
        && let Err(fault) = wait::gate(act, &arguments, checkpoint.at)
    {
        return refused(RefusalKind::InvalidArguments, format!("the arguments don't fit: {fault}"));
    }
    if policy::judge(question.definition, tool).decide == Decide::Deny {
        return refused(RefusalKind::Denied, format!("not permitted: the policy denies `{}`", tool.name));
    }
    match tool.dedupe.as_deref().map(|text| dedupe_key(text, &arguments)).transpose() {
        Ok(dedupe) => Judged::Sound(Sound { tool, arguments, again, dedupe }),
        Err(fault) => refused(RefusalKind::InvalidArguments, fault),
    }
}

/// What makes a call's effect the same as another: as it will be proposed, without a reason to repeat and with its
/// artifacts pinned. Nothing for a call that is no effect or is not sound.
pub fn same_of(checkpoint: &Checkpoint, definition: &Definition, call: &Call) -> Option<Digest> {
    let tool = definition.tool(&call.name).filter(|tool| !tool.class.is_repeatable())?;
    let Ok(Value::Object(mut arguments)) = parse_strict(&call.arguments) else { return None };
    take_repeat_reason(&mut arguments);
    let mut arguments = Value::Object(arguments);
    artifacts::pin(tool, &mut arguments, checkpoint).ok()?;
    Some(sameness(&tool.name, &arguments, tool.same_by.as_deref()))
}

fn take_repeat_reason(arguments: &mut Map<String, Value>) -> bool {
    let given = arguments.remove(REPEAT_REASON);
    given.is_some_and(|reason| reason.as_str().is_some_and(|text| !text.trim().is_empty()))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// At most 200 characters of a text that a model gave.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

fn refuse(draft: &mut Draft, call: &Call, kind: RefusalKind, why: &str) -> Result<()> {
    let ordinal = next_ordinal(draft);
    // What a later request holds is well-formed; the raw text stays in the transcript.
    let arguments = match parse_strict(&call.arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({ "unreadable": shortened(&call.arguments) }),
    };
    let arguments = draft.put(canonical(&arguments));
    let text = draft.put(why);
    draft.push(Event::ActionRefused(ActionRefused {
        ordinal,
        call_id: call.id.clone(),
        tool: shortened(&call.name),
        kind,
        arguments,
        text,
    }))
}

fn next_ordinal(draft: &Draft) -> Ordinal {
    Ordinal(draft.checkpoint().last_ordinal.saturating_add(1))
}

fn propose(draft: &mut Draft, question: &Question<'_>, call: &Call, sound: Sound<'_>) -> Result<()> {
    let tool = sound.tool;
    let run = draft.checkpoint().key();
    let ordinal = next_ordinal(draft);
    let canonical_arguments = canonical(&sound.arguments);
    let effect = !tool.class.is_repeatable();
    let same = effect.then(|| sameness(&tool.name, &sound.arguments, tool.same_by.as_deref()));
    let known = same.filter(|_| !sound.again).map_or(Known::Nothing, |same| look_for_same(draft, question, same));
    let arguments = draft.put(canonical_arguments.clone());
    let tool_digest = question.definition.tool_digest(tool);
    let name = request_name(&run, ordinal, &tool.name, &tool_digest, &arguments.digest);
    let apart = same.and_then(|same| question.apart.get(&same)).filter(|_| matches!(known, Known::Nothing));
    let verdict = policy::judge(question.definition, tool);
    let is_call = !matches!(tool.kind, ToolKind::State { .. });
    let short = is_call && draft.checkpoint().quota.refuses(ONE_CALL).is_some();
    // What is the same as another effect makes no call of its own: it needs no room.
    let counted = is_call && (!short || matches!(known, Known::Nothing));
    let gate = match known {
        Known::Pending(of) => Gate::Same(of),
        Known::Done(_) => Gate::Open,
        Known::Nothing if short => Gate::Quota,
        // Whatever the policy says: another branch of the lineage has had this effect.
        Known::Nothing if apart.is_some() => {
            gate(draft, tool, Verdict { decide: Decide::Ask, ..verdict }, name, &sound.arguments)
        }
        Known::Nothing => gate(draft, tool, verdict, name, &sound.arguments),
    };
    let elsewhere = apart.map(|apart| Elsewhere {
        run: apart.run.clone(),
        ordinal: apart.ordinal,
        result: apart.result.as_ref().map(|result| draft.put(result.clone())),
    });
    draft.push(Event::ActionProposed(ActionProposed {
        ordinal,
        call_id: call.id.clone(),
        tool: tool.name.clone(),
        class: tool.class,
        arguments,
        tool_digest,
        same,
        key: effect.then(|| effect_key(&run, ordinal, &tool.name, &canonical_arguments)),
        gate,
        key_valid_for_ms: tool.key_valid_for_ms,
        settles_after_ms: tool.settles_after_ms,
        max_attempts: tool.max_attempts,
        proposed_by: None,
        counted,
        dedupe: sound.dedupe.clone(),
        elsewhere,
        deadline: tool.deadline_ms.map(|ms| draft.now().plus_ms(ms)),
    }))?;
    if let Known::Done(result) = known {
        return draft.push(Event::ActionFinished(ActionFinished {
            ordinal,
            attempt: 0,
            ok: true,
            result,
            by: SettledBy::SameEffect,
        }));
    }
    match tool.kind {
        ToolKind::State { act: which } => act(draft, ordinal, which, &sound.arguments),
        _ => Ok(()),
    }
}

/// What is known of an equal effect.
enum Known {
    Nothing,
    Done(ValueRef),
    Pending(Ordinal),
}

/// Has the run this effect already? Done → its outcome, open or in doubt → wait for it. One that was denied
/// or failed did not happen, and may be wanted anew.
fn look_for_same(draft: &mut Draft, question: &Question<'_>, same: Digest) -> Known {
    let equal = |action: &&Action| action.same == Some(same);
    if let Some(action) = draft.checkpoint().pending.values().find(equal) {
        return Known::Pending(action.ordinal);
    }
    let done = |settled: &&Settled| settled.same == Some(same) && settled.how == How::Done;
    if let Some(settled) = draft.checkpoint().recent.iter().rev().find(done) {
        return Known::Done(settled.result.value());
    }
    match question.priors.get(&same) {
        Some(prior) => Known::Done(draft.put(prior.result.clone())),
        None => Known::Nothing,
    }
}

fn gate(draft: &Draft, tool: &ToolDefinition, verdict: Verdict, name: Digest, arguments: &Value) -> Gate {
    match &tool.kind {
        ToolKind::State { act: StateAct::Ask } => Gate::Answer(request(verdict, name, draft.now())),
        ToolKind::State { act: StateAct::Finish } => Gate::Siblings,
        // The arguments were judged with the reply.
        ToolKind::State { act } => wait::gate(*act, arguments, draft.now()).ok().flatten().unwrap_or(Gate::Open),
        _ => approval_gate(verdict, name, draft.now()),
    }
}

/// What the policy puts before an action of the world.
pub(super) fn approval_gate(verdict: Verdict, name: Digest, now: Timestamp) -> Gate {
    if verdict.decide == Decide::Ask { Gate::Approval(request(verdict, name, now)) } else { Gate::Open }
}

fn request(verdict: Verdict, name: Digest, now: Timestamp) -> Request {
    Request {
        name,
        expires_at: verdict.expires_ms.map(|ms| now.plus_ms(ms)),
        on_expiry: verdict.on_expiry,
        window_ms: verdict.expires_ms,
        asked_at: now,
        remind_ms: verdict.remind_ms,
    }
}
