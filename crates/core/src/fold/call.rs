//! The model's calls, and the decision that a reply becomes.

use super::Checked;
use crate::checkpoint::{Checkpoint, DecisionText, OpenCall, OpenDecision, Phase, RECENT_TEXTS};
use crate::event::{
    CallAnswered, CallFailed, CallFailure, CallLost, CallReserved, DecisionOpened, ErrorKind, HandedOver,
};
use crate::fold::state::log_error;
use crate::fold::word::{forget_seen_guidance, show_guidance};
use crate::quota::Amounts;
use crate::value::Stored;

pub(super) fn reserved(checkpoint: &mut Checkpoint, seq: u64, epoch: u64, event: &CallReserved) -> Checked {
    if checkpoint.model.open.is_some() {
        return Err("a call has no answer yet");
    }
    if checkpoint.decision.is_some() {
        return Err("a decision is open");
    }
    if checkpoint.phase != Phase::Active {
        return Err("only an active run asks the model");
    }
    if Some(event.call) != checkpoint.model.calls.checked_add(1) {
        return Err("the call's number does not follow");
    }
    checkpoint.model.calls = event.call;
    checkpoint.model.open = Some(OpenCall { call: event.call, amounts: event.amounts, epoch });
    checkpoint.model.last_request = event.request;
    checkpoint.model.last_manifest = Some(Stored::at(event.manifest, seq));
    checkpoint.quota.reserve(event.amounts);
    show_guidance(checkpoint, event.call);
    Ok(())
}

pub(super) fn answered(checkpoint: &mut Checkpoint, event: &CallAnswered) -> Checked {
    let open = take_open(checkpoint, event.call)?;
    checkpoint.quota.settle(open.amounts, event.used);
    if !event.reported {
        checkpoint.quota.unconfirmed(event.used);
    }
    if let Some(about) = &event.about {
        checkpoint.quota.cached(about.cache_read_tokens, about.cache_write_tokens);
    }
    let model = &mut checkpoint.model;
    model.answered = model.answered.saturating_add(1);
    model.failed_in_row = 0;
    model.lost_in_row = None;
    model.limited_until = None;
    model.too_long_in_row = 0;
    model.faulty_in_row = if event.faulty { model.faulty_in_row.saturating_add(1) } else { 0 };
    let cut = event.about.as_ref().is_some_and(|about| about.cut);
    model.cut_in_row = cut.then(|| model.cut_in_row.unwrap_or(0).saturating_add(1));
    Ok(())
}

pub(super) fn failed(checkpoint: &mut Checkpoint, seq: u64, event: &CallFailed) -> Checked {
    let open = take_open(checkpoint, event.call)?;
    let charged = match event.why {
        CallFailure::Lost => open.amounts.larger(event.charged.unwrap_or_default()),
        CallFailure::NotSent | CallFailure::Busy | CallFailure::TooLong | CallFailure::Rejected => Amounts::default(),
    };
    checkpoint.quota.settle(open.amounts, charged);
    checkpoint.quota.unconfirmed(charged);
    let model = &mut checkpoint.model;
    model.failed_in_row = model.failed_in_row.saturating_add(1);
    model.not_before = event.not_before;
    model.limited_until = (event.why == CallFailure::Busy).then_some(event.not_before);
    if event.why == CallFailure::Lost {
        model.lost_in_row = Some(model.lost_in_row.unwrap_or(0).saturating_add(1));
    }
    if event.why == CallFailure::TooLong {
        model.too_long_in_row = model.too_long_in_row.saturating_add(1);
        // The estimate was too low; a quarter more is the smaller request that is tried once.
        model.estimate_permille = model.estimate_permille.saturating_mul(5) / 4;
    }
    log_error(checkpoint, seq, ErrorKind::Model, None, event.text);
    Ok(())
}

pub(super) fn lost(checkpoint: &mut Checkpoint, event: &CallLost) -> Checked {
    let open = take_open(checkpoint, event.call)?;
    let charged = open.amounts.larger(event.charged.unwrap_or_default());
    checkpoint.quota.settle(open.amounts, charged);
    checkpoint.quota.unconfirmed(charged);
    Ok(())
}

pub(super) fn handed_over(checkpoint: &mut Checkpoint, event: &HandedOver) -> Checked {
    if let Some(call) = event.unsent_call {
        let open = take_open(checkpoint, call)?;
        checkpoint.quota.settle(open.amounts, Amounts::default());
    }
    Ok(())
}

pub(super) fn decided(checkpoint: &mut Checkpoint, seq: u64, event: &DecisionOpened) -> Checked {
    if checkpoint.decision.is_some() {
        return Err("a decision is open");
    }
    if checkpoint.model.open.is_some() {
        return Err("a call has no answer yet");
    }
    if Some(event.decision) != checkpoint.model.decisions.checked_add(1) {
        return Err("the decision's number does not follow");
    }
    if event.actions == 0 {
        return Err("a decision without actions would never close");
    }
    let model = &mut checkpoint.model;
    model.decisions = event.decision;
    model.blocks = event.blocks.map(|blocks| DecisionText { decision: event.decision, text: Stored::at(blocks, seq) });
    if let Some(text) = event.text {
        model.texts.push_back(DecisionText { decision: event.decision, text: Stored::at(text, seq) });
        while model.texts.len() > RECENT_TEXTS {
            model.texts.pop_front();
        }
    }
    checkpoint.decision = Some(OpenDecision { decision: event.decision, actions: Vec::new(), expected: event.actions });
    forget_seen_guidance(checkpoint);
    Ok(())
}

fn take_open(checkpoint: &mut Checkpoint, call: u64) -> Result<OpenCall, &'static str> {
    match checkpoint.model.open {
        Some(open) if open.call == call => {
            checkpoint.model.open = None;
            Ok(open)
        }
        _ => Err("no such call is open"),
    }
}
