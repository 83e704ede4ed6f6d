//! A reply as a whole: what it is charged, why nothing of it may be executed, and when the run stops for such replies.

use lodestep_model::{StopReason as ModelStop, Usage};

use super::{CALLS_PER_REPLY, CALLS_READ, Question, shortened};
use crate::checkpoint::{Checkpoint, Phase};
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{AboutReply, CallAnswered, Event, RunStopped, StopReason};
use crate::quota::Amounts;

/// A second reply that is cut says that the limit is too small: a third would be as long.
const CUT_REPLIES: u32 = 2;

/// Was the reply cut at the output limit of its call? Some servers say that a call ended it although the limit did.
fn is_cut(checkpoint: &Checkpoint, question: &Question<'_>) -> bool {
    // So many tokens were allowed as were held back for them.
    let limit = checkpoint.model.open.map_or(u64::MAX, |open| open.amounts.output_tokens);
    let reached = question.reply.usage.is_some_and(|usage| usage.output_tokens >= limit);
    question.reply.stop == ModelStop::OutputLimit || (reached && question.reply.stop != ModelStop::Refused)
}

/// What the model is told of a reply that was cut: that the next one has more room, where it does.
fn cut_off(checkpoint: &Checkpoint, question: &Question<'_>) -> String {
    let model = &question.definition.model;
    let more = model.max_output_tokens_retry.filter(|retry| *retry > model.max_output_tokens);
    let advice = match more.filter(|_| checkpoint.model.cut_in_row.is_none()) {
        Some(tokens) => {
            format!("The next reply alone may have {tokens} tokens; if that is too little, say less at once.")
        }
        None => "Say less at once.".to_owned(),
    };
    format!("the reply was cut off at the output limit; nothing of it was done. {advice}")
}

/// Why nothing of a reply may be executed.
pub(super) fn whole_fault(checkpoint: &Checkpoint, question: &Question<'_>) -> Option<String> {
    let reply = question.reply;
    match reply.stop {
        _ if is_cut(checkpoint, question) => Some(cut_off(checkpoint, question)),
        ModelStop::Refused => Some(format!("the model refused: {}", shortened(&reply.text))),
        _ if reply.calls.len() > CALLS_READ => Some(format!(
            "the reply had {} tool calls; nothing of it was done. Make at most {CALLS_PER_REPLY} at once.",
            reply.calls.len()
        )),
        _ if reply.calls.is_empty() => Some(
            "the reply had no tool call; every reply has to make at least one. To end the run call `finish`."
                .to_owned(),
        ),
        _ => None,
    }
}

pub(super) fn charge(draft: &mut Draft, question: &Question<'_>, faulty: bool) -> Result<()> {
    let reserved = draft.checkpoint().model.open.map(|open| open.amounts).unwrap_or_default();
    // Where nothing is reported the upward estimates are charged; what came as JSON stands in the transcript a second time.
    let evidence = question.reply.ill_formed.as_ref().map_or(0, String::len) as u64;
    let estimate = || Usage {
        input_tokens: reserved.input_tokens,
        output_tokens: crate::context::estimate::tokens(question.transcript.len.saturating_sub(evidence)),
        ..Usage::default()
    };
    let usage = question.reply.usage.unwrap_or_else(estimate);
    let used = Amounts {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        usd_micro: question.definition.model.price.map_or(0, |price| price.of(&usage)),
        model_calls: 1,
        tool_calls: 0,
    };
    let about = AboutReply {
        model: question.reply.model.clone(),
        request_id: question.reply.request_id.clone(),
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        cut: is_cut(draft.checkpoint(), question),
        ill_formed: question.reply.ill_formed.as_ref().map(|_| true),
    };
    draft.push(Event::CallAnswered(CallAnswered {
        call: question.call,
        used,
        reported: question.reply.usage.is_some(),
        reply: question.transcript,
        faulty,
        about: (about != AboutReply::default()).then_some(about),
    }))
}

pub(super) fn stop_if_misbehaving(draft: &mut Draft, question: &Question<'_>) -> Result<()> {
    let faulty = draft.checkpoint().model.faulty_in_row;
    let active = draft.checkpoint().phase == Phase::Active;
    let cut = draft.checkpoint().model.cut_in_row.unwrap_or(0);
    let why = if cut >= CUT_REPLIES {
        let model = &question.definition.model;
        let (key, limit) = match model.max_output_tokens_retry {
            Some(retry) => ("max_output_tokens_retry", retry),
            None => ("max_output_tokens", model.max_output_tokens),
        };
        format!("{cut} replies in a row were cut off at the output limit: {key} = {limit} is too little")
    } else if faulty >= question.definition.model.max_faulty_replies {
        format!("{faulty} replies in a row had nothing that could be done; `show` has the reasons under errors")
    } else {
        return Ok(());
    };
    if !active {
        return Ok(());
    }
    let text = draft.put(why);
    draft.push(Event::RunStopped(RunStopped { reason: StopReason::Model, text }))
}
