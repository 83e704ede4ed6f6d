//! Words that mean the run and none of its actions: guidance, signals, top-ups. Every queue keeps its bound here.

use super::Checked;
use crate::checkpoint::{Checkpoint, GUIDANCE, Guidance, SIGNALS, Signal};
use crate::event::{GuidanceGiven, QuotaRaised, SignalArrived};
use crate::value::Stored;

pub(super) fn guidance_given(checkpoint: &mut Checkpoint, seq: u64, event: &GuidanceGiven) -> Checked {
    if checkpoint.guidance.len() >= GUIDANCE {
        return Err("too much guidance waits for a decision");
    }
    let text = Stored::at(event.text, seq);
    checkpoint.guidance.push_back(Guidance { by: event.by.clone(), text, at: checkpoint.at, shown_in: None });
    Ok(())
}

/// The request of this call shows all guidance that there is.
pub(super) fn show_guidance(checkpoint: &mut Checkpoint, call: u64) {
    checkpoint.guidance.iter_mut().for_each(|guidance| guidance.shown_in = Some(call));
}

/// The reply to the newest call became a decision: what its request showed was seen.
pub(super) fn forget_seen_guidance(checkpoint: &mut Checkpoint) {
    let call = Some(checkpoint.model.calls);
    checkpoint.guidance.retain(|guidance| guidance.shown_in != call);
}

pub(super) fn signal_arrived(checkpoint: &mut Checkpoint, seq: u64, event: &SignalArrived) -> Checked {
    if checkpoint.signals.len() >= SIGNALS {
        return Err("too many signals wait to be taken");
    }
    checkpoint.signals.push_back(Signal {
        name: event.name.clone(),
        by: event.by.clone(),
        value: Stored::at(event.value, seq),
        at: checkpoint.at,
    });
    Ok(())
}

pub(super) fn quota_raised(checkpoint: &mut Checkpoint, event: &QuotaRaised) -> Checked {
    if event.quota.limit(&checkpoint.quota.limits).is_none() {
        return Err("the quota has no limit");
    }
    event.quota.raise(&mut checkpoint.quota.limits, event.amount);
    Ok(())
}
