//! A run moved to another definition, and what that means for each action that is not settled.
//!
//! - What nothing was sent of goes by its tool as it is now. When that changed, an approval no longer means it: it is
//!   asked anew, or taken back when it can't be done as it stands.
//! - What may have begun ends as it began, by its stored class and key and by the definition before: a tool that has
//!   become weaker since does not weaken what a crash leads to.
//! - What the run has done, spent and reached stays.

use minicbor::{Decode, Encode};

use crate::checkpoint::{Action, ActionState, Checkpoint, Phase};
use crate::definition::{Decide, Definition, QuotaLimits, StateAct, ToolDefinition, ToolKind};
use crate::digest::Digest;
use crate::draft::Draft;
use crate::effect::request_name;
use crate::error::{Error, Result};
use crate::event::{
    ActionRebound, ActionWithdrawn, Event, Gate, PlannedMilestone, RunResumed, RunUpgraded, StopReason,
};
use crate::ids::Ordinal;
use crate::policy;
use crate::rules::decide::approval_gate;
use crate::rules::inbox::{Verdict, accept, refused};
use crate::rules::owed::forbidden;
use crate::time::Timestamp;

/// What is said to a run that shall go on with another definition.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Upgrade {
    /// The definition that the run has, as whoever says this saw it.
    #[n(0)]
    pub from: Digest,
    /// The other definition's bytes.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub definition: Vec<u8>,
    /// What the definition that the run has lets it spend; `None` where it can't be read: the limits then stay.
    #[n(2)]
    pub quota: Option<QuotaLimits>,
    /// What the arguments of actions that were not sent mean to their tools as these are now.
    #[n(3)]
    pub bindings: Vec<Binding>,
}

/// What an action's arguments, which the core does not hold, mean to its tool in the other definition.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Binding {
    /// The action.
    #[n(0)]
    pub ordinal: Ordinal,
    /// The digest of the arguments.
    #[n(1)]
    pub arguments: Digest,
    /// Why they don't fit the tool, if they don't.
    #[n(2)]
    pub misfit: Option<String>,
    /// Their idempotency key.
    #[n(3)]
    pub key: String,
    /// Their sameness.
    #[n(4)]
    pub same: Digest,
    /// Their dedupe key, for tools that have one.
    #[n(5)]
    pub dedupe: Option<String>,
}

/// What becomes of an action.
enum Fate {
    /// Nothing changes.
    Stays,
    /// It may have begun: it ends by the definition before.
    Kept,
    /// It goes by the tool as it is now.
    Rebound(Box<ActionRebound>),
    /// It is taken back, and the model is told why.
    Withdrawn(String),
}

/// The milestones of a definition as a run plans them.
pub fn planned(definition: &Definition) -> Vec<PlannedMilestone> {
    let milestones = definition.milestones.iter();
    let planned = milestones.map(|milestone| PlannedMilestone {
        id: milestone.id.clone(),
        requires_action: milestone.requires_action.clone(),
    });
    planned.collect()
}

/// Did the run stop for what a definition says, so that another one mends it?
pub fn mends(reason: StopReason) -> bool {
    use StopReason::{Completion, Context, Model, Secret, Version};
    matches!(reason, Version | Model | Secret | Completion | Context)
}

/// Moves the run to the other definition, and gives each action its fate.
pub(super) fn upgrade(draft: &mut Draft, by: &str, upgrade: &Upgrade) -> Result<Verdict> {
    let definition = match judge(draft.checkpoint(), upgrade) {
        Ok(Some(definition)) => definition,
        Ok(None) => return Ok(Verdict::AlreadyGiven("the run has this definition".to_owned())),
        Err(error) => return refused(error.code(), error.what(), error.next()),
    };
    let (checkpoint, now) = (draft.checkpoint(), draft.now());
    let fates: Vec<(Ordinal, Fate)> = checkpoint
        .pending
        .values()
        .map(|action| {
            (action.ordinal, New { checkpoint, definition: &definition, now }.fate(&upgrade.bindings, action))
        })
        .collect();
    let limits = checkpoint.quota.limits;
    let resumes = matches!(checkpoint.phase, Phase::Stopped { reason, .. } if mends(reason));
    let kept = fates.iter().filter(|(_, fate)| matches!(fate, Fate::Kept)).map(|(ordinal, _)| *ordinal);
    let event = RunUpgraded {
        by: by.to_owned(),
        kept: kept.collect(),
        limits: definition.limits,
        quota: upgrade.quota.map_or(limits, |before| limits.moved(&before, &definition.quota)),
        milestones: planned(&definition),
        definition: draft.put(upgrade.definition.clone()),
    };
    draft.push(Event::RunUpgraded(event))?;
    for (ordinal, fate) in fates {
        match fate {
            Fate::Stays | Fate::Kept => {}
            Fate::Rebound(rebound) => draft.push(Event::ActionRebound(*rebound))?,
            Fate::Withdrawn(why) => {
                let text = draft.put(why);
                draft.push(Event::ActionWithdrawn(ActionWithdrawn { ordinal, text }))?;
            }
        }
    }
    accept(draft, resumes.then(|| Event::RunResumed(RunResumed { by: by.to_owned() })))
}

/// The other definition, if the run can be moved to it; `None` when it has it already.
fn judge(checkpoint: &Checkpoint, upgrade: &Upgrade) -> Result<Option<Definition>> {
    let now = checkpoint.definition.digest;
    match checkpoint.phase {
        Phase::Cancelling { .. } | Phase::Ended { .. } => {
            let next = "`lodestep run FILE` starts another run, with the new definition";
            return Err(Error::new("run.over", "the run is cancelled or over: it keeps its definition", next));
        }
        Phase::Active | Phase::Stopped { .. } if Digest::of(&upgrade.definition) == now => return Ok(None),
        Phase::Active | Phase::Stopped { .. } => {}
    }
    if upgrade.from != now {
        let what = "the run was moved to another definition since this was drawn up";
        return Err(Error::new("upgrade.stale", what, "look at what changes now, and say it again; nothing changed"));
    }
    let definition = Definition::from_bytes(&upgrade.definition)?;
    if definition.name != checkpoint.agent {
        let what = format!(
            "the definition is of the agent `{}`, and the run is of `{}`",
            definition.name.escape_debug(),
            checkpoint.agent.escape_debug()
        );
        return Err(Error::new("upgrade.other_agent", what, "name a file of the run's own agent; nothing changed"));
    }
    Ok(Some(definition))
}

/// The run and its new definition.
struct New<'a> {
    checkpoint: &'a Checkpoint,
    definition: &'a Definition,
    now: Timestamp,
}

impl New<'_> {
    fn fate(&self, bindings: &[Binding], action: &Action) -> Fate {
        let definition = self.definition;
        let tool = definition.tool(&action.tool);
        let is_finish = tool.is_some_and(|tool| matches!(tool.kind, ToolKind::State { act: StateAct::Finish }));
        match &action.state {
            ActionState::Gated { gate: Gate::Approval(_) | Gate::Quota } => self.unsent(bindings, action),
            // It waits for a person's answer, a signal, a time or others of its run: no tool of the world is meant.
            ActionState::Gated { .. } => Fate::Stays,
            ActionState::Ready { .. } if is_finish => {
                Fate::Withdrawn("the run's definition changed while its check judged this; finish again".to_owned())
            }
            // It begins without an intent, so that nobody can tell here whether it has.
            ActionState::Ready { .. } if action.class.is_repeatable() => match forbidden(definition, action) {
                Some(_) => Fate::Kept,
                None => Fate::Stays,
            },
            ActionState::Ready { .. } | ActionState::Held { .. }
                if action.first_sent.is_none() && !action.maybe_sent =>
            {
                self.unsent(bindings, action)
            }
            _ if tool.is_some_and(|tool| definition.tool_digest(tool) == action.tool_digest) => Fate::Stays,
            _ => Fate::Kept,
        }
    }

    /// Nothing of it was sent: it goes by the new definition, or is taken back.
    fn unsent(&self, bindings: &[Binding], action: &Action) -> Fate {
        let definition = self.definition;
        let Some(tool) = definition.tool(&action.tool).filter(|tool| !matches!(tool.kind, ToolKind::State { .. }))
        else {
            return Fate::Withdrawn(format!("there is no tool `{}` any more; nothing was sent", action.tool));
        };
        if policy::judge(definition, tool).decide == Decide::Deny {
            return Fate::Withdrawn(format!("the policy denies `{}` now; nothing was sent", action.tool));
        }
        if definition.tool_digest(tool) == action.tool_digest {
            let waits = matches!(action.state, ActionState::Ready { .. } | ActionState::Held { .. });
            let asks = waits && forbidden(definition, action).is_some();
            let kept = (action.key.clone(), action.same, action.dedupe.clone());
            return if asks { self.rebound(tool, action, kept) } else { Fate::Stays };
        }
        let changed = || format!("the tool `{}` has changed since this was proposed; nothing was sent", action.tool);
        let is_its =
            |binding: &&Binding| (binding.ordinal, binding.arguments) == (action.ordinal, action.arguments.digest);
        let Some(binding) = bindings.iter().find(is_its) else { return Fate::Withdrawn(changed()) };
        if let Some(why) = &binding.misfit {
            return Fate::Withdrawn(format!("{}. Its arguments don't fit any more: {why}", changed()));
        }
        if tool.dedupe.is_some() && binding.dedupe.is_none() {
            return Fate::Withdrawn(changed());
        }
        let effect = !tool.class.is_repeatable();
        let key = action.key.clone().or_else(|| effect.then(|| binding.key.clone()));
        let dedupe = binding.dedupe.clone().filter(|_| tool.dedupe.is_some());
        self.rebound(tool, action, (key, effect.then_some(binding.same), dedupe))
    }

    /// What was asked is asked anew, also when the policy would let it pass now: a person has it before them.
    fn rebound(
        &self,
        tool: &ToolDefinition,
        action: &Action,
        (key, same, dedupe): (Option<String>, Option<Digest>, Option<String>),
    ) -> Fate {
        let (ordinal, tool_digest) = (action.ordinal, self.definition.tool_digest(tool));
        let was_asked = matches!(action.state, ActionState::Gated { gate: Gate::Approval(_) })
            || action.approved_by.is_some()
            || action.elsewhere.is_some();
        let verdict = policy::judge(self.definition, tool);
        let decide = if was_asked { Decide::Ask } else { verdict.decide };
        let name = request_name(&self.checkpoint.key(), ordinal, &tool.name, &tool_digest, &action.arguments.digest);
        let gate = match &action.state {
            // What else stands before it is decided when there is room.
            ActionState::Gated { gate: Gate::Quota } => Gate::Quota,
            _ => approval_gate(policy::Verdict { decide, ..verdict }, name, self.now),
        };
        Fate::Rebound(Box::new(ActionRebound {
            ordinal,
            class: tool.class,
            tool_digest,
            same,
            key,
            gate,
            key_valid_for_ms: tool.key_valid_for_ms,
            settles_after_ms: tool.settles_after_ms,
            max_attempts: tool.max_attempts,
            dedupe,
            deadline: tool.deadline_ms.map(|ms| action.proposed_at.plus_ms(ms)),
        }))
    }
}
