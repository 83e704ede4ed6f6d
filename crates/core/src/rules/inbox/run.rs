//! Words that mean a run as a whole: cancel, pause, resume, release, guidance, signals, top-ups.

use super::{CANCEL_GRACE_MS, Verdict, accept, refused};
use crate::checkpoint::{GUIDANCE, Phase, SIGNALS};
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{
    CancelRequested, Ending, Event, GuidanceGiven, QuotaRaised, RunResumed, RunStopped, SignalArrived, StopReason,
};
use crate::quota::Quota;

/// The most bytes of one word of guidance.
pub const GUIDANCE_BYTES: usize = 8 * 1024;

/// Can a signal have that name: 1 to 64 of `a-z A-Z 0-9 . _ -`?
pub fn is_signal_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

pub(super) fn cancel(draft: &mut Draft, by: &str, reason: &str) -> Result<Verdict> {
    match &draft.checkpoint().phase {
        Phase::Cancelling { by, .. } => Ok(Verdict::AlreadyGiven(format!("{by} cancelled it"))),
        Phase::Ended { ending: Ending::Cancelled, .. } => Ok(Verdict::AlreadyGiven("the run is cancelled".to_owned())),
        Phase::Ended { ending, .. } => {
            let what = format!("the run is over: {ending:?}").to_lowercase();
            refused("run.over", what, "nothing changed")
        }
        Phase::Active | Phase::Stopped { .. } => {
            let grace_until = draft.now().plus_ms(CANCEL_GRACE_MS);
            let text = if reason.is_empty() { format!("cancelled by {by}") } else { reason.to_owned() };
            let reason = draft.put(text);
            let event = CancelRequested { by: by.to_owned(), reason, grace_until };
            accept(draft, [Event::CancelRequested(event)])
        }
    }
}

/// A pause is a stop by an operator: nothing new is begun, and what is under way ends.
pub(super) fn pause(draft: &mut Draft, by: &str, reason: &str) -> Result<Verdict> {
    match &draft.checkpoint().phase {
        Phase::Active => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let text = draft.put(format!("paused by {by}{why}"));
            accept(draft, [Event::RunStopped(RunStopped { reason: StopReason::Operator, text })])
        }
        Phase::Stopped { reason, .. } => Ok(Verdict::AlreadyGiven(format!("the run is stopped: {}", reason.as_str()))),
        Phase::Cancelling { .. } | Phase::Ended { .. } => over("a run that is cancelled or over can't be paused"),
    }
}

fn over(what: &str) -> Result<Verdict> {
    refused("run.over", what, "`lodestep show RUN` says how it ended; nothing changed")
}

pub(super) fn resume(draft: &mut Draft, by: &str) -> Result<Verdict> {
    match &draft.checkpoint().phase {
        Phase::Stopped { reason, .. } if reason.is_quarantine() => refused(
            "run.quarantined",
            format!("the run is quarantined: {}", reason.as_str()),
            "look at `lodestep show RUN`, mend the cause, then `lodestep release RUN`",
        ),
        _ => release(draft, by),
    }
}

pub(super) fn release(draft: &mut Draft, by: &str) -> Result<Verdict> {
    match &draft.checkpoint().phase {
        Phase::Active => Ok(Verdict::AlreadyGiven("the run is not stopped".to_owned())),
        Phase::Stopped { .. } => {
            let event = RunResumed { by: by.to_owned() };
            accept(draft, [Event::RunResumed(event)])
        }
        Phase::Cancelling { .. } | Phase::Ended { .. } => {
            refused("run.over", "the run is cancelled or over", "start another with `lodestep run`")
        }
    }
}

/// Is there a decision still to come that a word could reach?
fn goes_on(draft: &Draft) -> bool {
    matches!(draft.checkpoint().phase, Phase::Active | Phase::Stopped { .. })
}

/// Guidance is kept until a decision has seen it, so that a stopped run finds it when it goes on.
pub(super) fn tell(draft: &mut Draft, by: &str, text: &str) -> Result<Verdict> {
    if !goes_on(draft) {
        return over("the run is cancelled or over: no decision will read this");
    }
    if text.trim().is_empty() || text.len() > GUIDANCE_BYTES {
        let what = format!("guidance has 1 to {GUIDANCE_BYTES} bytes, not {}", text.len());
        return refused("guidance.size", what, "say it shorter, or name a document that the run can read");
    }
    if draft.checkpoint().guidance.len() >= GUIDANCE {
        let what = format!("{GUIDANCE} words of guidance wait for the run's next decision already");
        return refused("guidance.full", what, "tell it again once the run has decided; nothing changed");
    }
    let text = draft.put(text);
    accept(draft, [Event::GuidanceGiven(GuidanceGiven { by: by.to_owned(), text })])
}

/// A signal that nothing waits for yet is kept for the wait that will.
pub(super) fn signal(draft: &mut Draft, by: &str, name: &str, value: &[u8]) -> Result<Verdict> {
    if !goes_on(draft) {
        return over("the run is cancelled or over: nothing will wait for this signal");
    }
    if !is_signal_name(name) {
        let what = format!("`{}` is no name for a signal", name.escape_debug());
        return refused("signal.name_invalid", what, "use 1 to 64 of a-z A-Z 0-9 . _ -");
    }
    if draft.checkpoint().signals.len() >= SIGNALS {
        let what = format!("{SIGNALS} signals wait to be taken by this run already");
        return refused("signal.full", what, "send it again once the run has waited for some; nothing changed");
    }
    let value = draft.put(value);
    let event = SignalArrived { name: name.to_owned(), by: by.to_owned(), value };
    accept(draft, [Event::SignalArrived(event)])
}

/// A top-up raises the limit. The run stays stopped until someone resumes it.
pub(super) fn top_up(draft: &mut Draft, by: &str, quota: Quota, amount: u64) -> Result<Verdict> {
    if !goes_on(draft) {
        return over("the run is cancelled or over: it spends nothing more");
    }
    if amount == 0 {
        return refused("quota.nothing", "a top-up of 0 adds nothing", "name an amount; nothing changed");
    }
    if quota.limit(&draft.checkpoint().quota.limits).is_none() {
        let what = format!("the run has no limit of {}", quota.as_str());
        return refused("quota.not_limited", what, "`lodestep quota show RUN` lists its limits");
    }
    accept(draft, [Event::QuotaRaised(QuotaRaised { by: by.to_owned(), quota, amount })])
}
