//! Every effect of a run: its key, its attempts, and what is known of it. Drawn from the journal alone.

use std::collections::BTreeMap;

use lodestep_core::effect::Class;
use lodestep_core::event::{DeniedBy, Envelope, Event, Resolution, SettledBy, UnknownNext};
use lodestep_core::{Digest, Ordinal, Result, Timestamp, ValueRef};
use lodestep_store::{RunRef, Store};
use serde::Serialize;

use crate::inspect::walk;

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// The action.
    pub action: Ordinal,
    /// The tool.
    pub tool: String,
    /// The class that its intent was committed with.
    pub class: Class,
    /// The idempotency key.
    pub key: String,
    /// Every attempt that had an intent.
    pub attempts: Vec<EffectAttempt>,
    /// What is known: `proposed`, `sent`, `done`, `failed`, `in doubt`, `denied`, `withdrawn`, `given up`.
    pub state: String,
    /// How that is known, when it is settled.
    pub by: Option<KnownBy>,
    /// The person who said it, when it is known by one.
    pub said_by: Option<String>,
    /// The reason that they gave for a no.
    pub reason: Option<String>,
}

/// How the outcome of an effect is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// A person resolved a doubt, or said no.
    Person,
    /// The journal's own word.
    #[serde(untagged)]
    Settled(SettledBy),
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectAttempt {
    /// Which, from 1.
    pub attempt: u32,
    /// The epoch that sent it.
    pub epoch: u64,
    /// When its intent was committed.
    pub at: Timestamp,
    /// What came of it: `open`, `answered`, `not sent`, `unknown`.
    pub outcome: &'static str,
}

/// Every effect of a run, in the order of proposal.
///
/// # Errors
///
/// The store's errors; `store.undecodable` for a damaged transition.
pub async fn effects(store: &dyn Store, run: &RunRef) -> Result<Vec<Effect>> {
    let mut effects: BTreeMap<Ordinal, Effect> = BTreeMap::new();
    walk(store, run, 1, |row| {
        let envelope = Envelope::from_bytes(&row.envelope)?;
        for event in &envelope.events {
            take_in(&mut effects, &envelope, event, row.values.as_deref().unwrap_or_default());
        }
        Ok(true)
    })
    .await?;
    Ok(effects.into_values().collect())
}

/// `values` are those of the transition.
fn take_in(effects: &mut BTreeMap<Ordinal, Effect>, envelope: &Envelope, event: &Event, values: &[Vec<u8>]) {
    if let Event::ActionProposed(proposed) = event
        && !proposed.class.is_repeatable()
    {
        let effect = Effect {
            action: proposed.ordinal,
            tool: proposed.tool.clone(),
            class: proposed.class,
            key: proposed.key.clone().unwrap_or_default(),
            attempts: Vec::new(),
            state: "proposed".to_owned(),
            by: None,
            said_by: None,
            reason: None,
        };
        effects.insert(proposed.ordinal, effect);
        return;
    }
    let Some((ordinal, change)) = change_of(event) else { return };
    let Some(effect) = effects.get_mut(&ordinal) else { return };
    effect.state = change.state.to_owned();
    effect.by = change.by;
    effect.said_by = match event {
        Event::DoubtResolved(event) => Some(event.by.clone()),
        Event::ActionDenied(event) => event.by.clone(),
        _ => None,
    };
    effect.reason = match event {
        Event::ActionDenied(event) if event.why == DeniedBy::Person => reason(values, &event.text),
        _ => None,
    };
    match event {
        Event::AttemptStarted(started) => effect.attempts.push(EffectAttempt {
            attempt: started.attempt,
            epoch: envelope.epoch,
            at: envelope.at,
            outcome: "open",
        }),
        _ => {
            // That the action failed for good is no answer to an attempt that was never sent.
            let last = effect.attempts.last_mut().filter(|last| last.outcome != "not sent");
            if let (Some(outcome), Some(last)) = (change.outcome, last) {
                last.outcome = outcome;
            }
        }
    }
}

/// The reason in what the model is told of a person's no; `None` when none was given or the value was erased.
fn reason(values: &[Vec<u8>], told: &ValueRef) -> Option<String> {
    let told = values.iter().find(|value| Digest::of(value) == told.digest)?;
    String::from_utf8_lossy(told).strip_prefix("denied: ").map(str::to_owned)
}

struct Change {
    state: &'static str,
    by: Option<KnownBy>,
    outcome: Option<&'static str>,
}

fn change_of(event: &Event) -> Option<(Ordinal, Change)> {
    let change = |state, outcome| Change { state, by: None, outcome };
    Some(match event {
        Event::AttemptStarted(event) => (event.ordinal, change("sent", None)),
        Event::ActionFinished(event) => {
            let state = if event.ok { "done" } else { "failed" };
            let outcome = (event.by == SettledBy::Answer).then_some("answered");
            (event.ordinal, Change { state, by: Some(KnownBy::Settled(event.by)), outcome })
        }
        Event::AttemptNotSent(event) => (event.ordinal, change("proposed", Some("not sent"))),
        Event::AttemptUnknown(event) => {
            let state = if event.next == UnknownNext::Doubt { "in doubt" } else { "sent" };
            (event.ordinal, change(state, Some("unknown")))
        }
        Event::LookupInconclusive(event) if event.next == UnknownNext::Doubt => {
            (event.ordinal, change("in doubt", None))
        }
        Event::DoubtResolved(event) => {
            let state = match event.resolution {
                Resolution::Happened(_) => "done",
                Resolution::SendAgain => "proposed",
                Resolution::Abandoned(_) => "given up",
                Resolution::DidNotHappen(_) => "failed",
            };
            (event.ordinal, Change { state, by: Some(KnownBy::Person), outcome: None })
        }
        Event::ActionDenied(event) => {
            let by = (event.why == DeniedBy::Person).then_some(KnownBy::Person);
            (event.ordinal, Change { state: "denied", by, outcome: None })
        }
        Event::ActionWithdrawn(event) => (event.ordinal, change("withdrawn", None)),
        Event::DeadlinePassed(event) => (event.ordinal, change("failed: its deadline passed", None)),
        _ => return None,
    })
}
