//! Waits: for a signal and for a time. A wait is a gate that nothing is sent behind: it ends by a rule, in whatever
//! process looks at the run when it is due, and while it lasts nothing is held.

use serde_json::Value;

use crate::checkpoint::{Action, ActionState, Checkpoint, Phase};
use crate::definition::StateAct;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{Event, Gate, SignalTaken, SignalWait, TimerFired};
use crate::ids::Ordinal;
use crate::rules::inbox::is_signal_name;
use crate::time::Timestamp;

/// The longest wait, in seconds: ten years.
pub const LONGEST_WAIT_S: u64 = 3_650 * 86_400;

/// The gate of a wait with these arguments; what is wrong with them, for the model.
pub(crate) fn gate(act: StateAct, arguments: &Value, now: Timestamp) -> std::result::Result<Option<Gate>, String> {
    match act {
        StateAct::WaitForSignal => {
            let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
            if !is_signal_name(name) {
                return Err(format!("`{}` is no signal: use 1 to 64 of a-z A-Z 0-9 . _ -", name.escape_debug()));
            }
            let until = seconds(arguments, "timeout_seconds", now)?;
            Ok(Some(Gate::Signal(SignalWait { name: name.to_owned(), until })))
        }
        StateAct::Wait => {
            let given = (seconds(arguments, "seconds", now)?, time(arguments, now)?);
            match given {
                (Some(until), None) | (None, Some(until)) => Ok(Some(Gate::Timer(until))),
                _ => Err("give either `seconds` or `until`".to_owned()),
            }
        }
        _ => Ok(None),
    }
}

fn seconds(arguments: &Value, name: &str, now: Timestamp) -> std::result::Result<Option<Timestamp>, String> {
    let Some(value) = arguments.get(name) else { return Ok(None) };
    let seconds = value.as_u64().filter(|seconds| *seconds <= LONGEST_WAIT_S);
    let seconds = seconds.ok_or_else(|| format!("`{name}` is a whole number up to {LONGEST_WAIT_S}, not {value}"))?;
    Ok(Some(now.plus_ms(seconds * 1_000)))
}

fn time(arguments: &Value, now: Timestamp) -> std::result::Result<Option<Timestamp>, String> {
    let Some(value) = arguments.get("until") else { return Ok(None) };
    let time = value.as_str().and_then(Timestamp::parse);
    let time = time.ok_or_else(|| format!("`until` is a time such as 2026-12-01T09:00:00Z, not {value}"))?;
    if time > now.plus_ms(LONGEST_WAIT_S * 1_000) {
        return Err(format!("`until` is {time}, more than ten years from now ({now})"));
    }
    Ok(Some(time))
}

/// Has the action something to wait for no more?
pub(super) fn is_over(checkpoint: &Checkpoint, action: &Action) -> bool {
    match &action.state {
        ActionState::Gated { gate: Gate::Signal(wait) } => {
            let come = checkpoint.signals.iter().any(|signal| signal.name == wait.name);
            come || wait.until.is_some_and(|until| until <= checkpoint.at)
        }
        ActionState::Gated { gate: Gate::Timer(until) } => *until <= checkpoint.at,
        _ => false,
    }
}

/// Ends every wait that is over: signals in the order of the waits, then times in the order in which they fell due.
pub(super) fn end_waits(draft: &mut Draft) -> Result<()> {
    if draft.checkpoint().phase != Phase::Active {
        return Ok(());
    }
    take_signals(draft)?;
    let now = draft.now();
    let mut due: Vec<(Timestamp, Ordinal, String)> = Vec::new();
    for action in draft.checkpoint().pending.values() {
        match &action.state {
            ActionState::Gated { gate: Gate::Timer(until) } if *until <= now => {
                due.push((*until, action.ordinal, format!("the time has come: it is {now}")));
            }
            ActionState::Gated { gate: Gate::Signal(SignalWait { name, until: Some(until) }) } if *until <= now => {
                due.push((*until, action.ordinal, format!("no signal `{name}` came until {until}")));
            }
            _ => {}
        }
    }
    due.sort();
    for (_, ordinal, text) in due {
        let result = draft.put(text);
        draft.push(Event::TimerFired(TimerFired { ordinal, result }))?;
    }
    Ok(())
}

/// A signal that is there when a wait's time comes counts: it was accepted, and it is not lost.
fn take_signals(draft: &mut Draft) -> Result<()> {
    let waits = |action: &Action| match &action.state {
        ActionState::Gated { gate: Gate::Signal(wait) } => Some((action.ordinal, wait.name.clone())),
        _ => None,
    };
    let waiting: Vec<(Ordinal, String)> = draft.checkpoint().pending.values().filter_map(waits).collect();
    for (ordinal, name) in waiting {
        if draft.checkpoint().signals.iter().any(|signal| signal.name == name) {
            draft.push(Event::SignalTaken(SignalTaken { ordinal }))?;
        }
    }
    Ok(())
}
