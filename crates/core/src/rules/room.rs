//! Room in a quota: calls of tools that found none wait for it, and a run that nothing else moves stops until a top-up.

use crate::checkpoint::{Action, ActionState, Checkpoint, Phase};
use crate::definition::{Decide, Definition, ToolDefinition};
use crate::draft::Draft;
use crate::effect::request_name;
use crate::error::Result;
use crate::event::{Event, Gate, QuotaGranted, RunStopped, StopReason};
use crate::policy;
use crate::quota::{Amounts, Quota};
use crate::rules::decide;

/// What a call of a tool takes.
pub(super) const ONE_CALL: Amounts =
    Amounts { input_tokens: 0, output_tokens: 0, usd_micro: 0, model_calls: 0, tool_calls: 1 };

fn waits(action: &Action) -> bool {
    action.state == ActionState::Gated { gate: Gate::Quota }
}

/// Is there a call that waits for room, and either room or nothing else that could move?
pub(super) fn is_due(checkpoint: &Checkpoint) -> bool {
    let moves = |action: &Action| {
        matches!(action.state, ActionState::Ready { .. } | ActionState::Open { .. } | ActionState::LookUp { .. })
    };
    let pending = &checkpoint.pending;
    pending.values().any(waits) && (checkpoint.quota.refuses(ONE_CALL).is_none() || !pending.values().any(moves))
}

/// Holds back a call for each action that waits for one, in their order, as far as there is room.
pub(super) fn grant(draft: &mut Draft, definition: &Definition) -> Result<()> {
    let waiting: Vec<Action> = draft.checkpoint().pending.values().filter(|action| waits(action)).cloned().collect();
    for action in waiting {
        if draft.checkpoint().phase != Phase::Active || draft.checkpoint().quota.refuses(ONE_CALL).is_some() {
            return Ok(());
        }
        let run = draft.checkpoint().key();
        let (ordinal, arguments) = (action.ordinal, action.arguments.digest);
        let name = request_name(&run, ordinal, &action.tool, &action.tool_digest, &arguments);
        // A tool that is gone or has changed is taken back like any other that is ready.
        let gate = definition
            .tool(&action.tool)
            .map_or(Gate::Open, |tool| decide::approval_gate(asked(definition, tool, &action), name, draft.now()));
        draft.push(Event::QuotaGranted(QuotaGranted { ordinal, gate }))?;
    }
    Ok(())
}

/// What stands before it: the policy's word, or a person's where another branch of the lineage has had the effect.
fn asked(definition: &Definition, tool: &ToolDefinition, action: &Action) -> policy::Verdict {
    let verdict = policy::judge(definition, tool);
    let decide = if action.elsewhere.is_some() { Decide::Ask } else { verdict.decide };
    policy::Verdict { decide, ..verdict }
}

/// The run stops when only a top-up can move it. The calls stay, and are made once there is room.
pub(super) fn stop_without(draft: &mut Draft) -> Result<()> {
    let checkpoint = draft.checkpoint();
    if checkpoint.phase != Phase::Active || !is_due(checkpoint) {
        return Ok(());
    }
    let Some(quota) = checkpoint.quota.refuses(ONE_CALL) else { return Ok(()) };
    let calls: Vec<String> = checkpoint
        .pending
        .values()
        .filter(|action| waits(action))
        .map(|action| format!("{} (action {})", action.tool, action.ordinal))
        .collect();
    let wanted = format!("{}; it is done after a top-up and a resume", calls.join(", "));
    let text = draft.put(Quota::no_room(quota, &wanted));
    draft.push(Event::RunStopped(RunStopped { reason: StopReason::Quota, text }))
}
