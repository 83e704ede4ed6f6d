//! What has to hold at the end: the journals verify, what was acknowledged is there, and the world has of each effect
//! what its run says.

use std::collections::BTreeMap;

use lodestep_core::checkpoint::How;
use lodestep_core::rules::standing::standing;
use lodestep_core::{Ordinal, Result, RunKey};

use super::Outcome;
use super::outside::Effect;
use super::simulation::World;
use crate::inspect::verify;

/// Checks each run and the ledger, and says what came of them.
pub(super) async fn check(world: &World, runs: &[RunKey], outcome: &mut Outcome) {
    let ledger = world.outside.ledger();
    for run in runs {
        if let Err(error) = check_run(world, run, &ledger, outcome).await {
            outcome.faults.push(format!("run {} can't be read: {error}", run.run));
        }
    }
    let effects = ledger.values().filter(|effect| !effect.class.is_repeatable());
    outcome.applied = effects.map(|effect| u64::from(effect.times)).sum();
    outcome.faults.extend(doubled(&ledger));
}

async fn check_run(
    world: &World,
    run: &RunKey,
    ledger: &BTreeMap<(String, u32), Effect>,
    outcome: &mut Outcome,
) -> Result<()> {
    let opened = world.machine.store();
    let store = opened.store();
    let loaded = store.load(run).await?;
    let state = loaded.checkpoint()?;
    let name = run.run.to_string();
    let verified = verify(store, &loaded.row.run).await?;
    outcome.faults.extend(verified.faults.into_iter().map(|fault| format!("run {name} does not verify: {fault}")));
    let settled = world.machine.witness.settled(&name);
    for ordinal in (1..=state.last_ordinal).map(Ordinal) {
        let times = ledger.get(&(name.clone(), ordinal.0)).map_or(0, |effect| effect.times);
        let is_effect = ledger.get(&(name.clone(), ordinal.0)).is_some_and(|effect| !effect.class.is_repeatable());
        let fault = match settled.get(&ordinal) {
            None => Some("was never settled".to_owned()),
            Some(How::Failed | How::Refused(_) | How::Denied(_) | How::Withdrawn | How::Abandoned)
                if is_effect && times > 0 =>
            {
                Some(format!("is settled as {:?} and was applied {times} times", settled[&ordinal]))
            }
            _ => None,
        };
        outcome.faults.extend(fault.map(|fault| format!("run {name}: action {ordinal} {fault}")));
    }
    let letters = store.beside(&loaded.row.run).await?.letters;
    for id in world.accepted(&name) {
        if !letters.iter().any(|letter| letter.id == id) {
            outcome.faults.push(format!("run {name}: the word {id} was accepted and is not there"));
        }
    }
    let hows: Vec<String> = settled.iter().map(|(ordinal, how)| format!("{ordinal} {how:?}")).collect();
    outcome.results.insert(name, format!("{}: {}", standing(&state).status.as_str(), hows.join(", ")));
    Ok(())
}

/// An effect happens once for its run, its tool and its arguments, whatever the actions are that want it.
fn doubled(ledger: &BTreeMap<(String, u32), Effect>) -> Vec<String> {
    let mut times: BTreeMap<(&str, &str, &str), u32> = BTreeMap::new();
    for ((run, _), effect) in ledger.iter().filter(|(_, effect)| !effect.class.is_repeatable()) {
        *times.entry((run, &effect.tool, &effect.arguments)).or_default() += effect.times;
    }
    let doubled = times.into_iter().filter(|(_, times)| *times > 1);
    doubled
        .map(|((run, tool, arguments), times)| format!("run {run}: {tool} {arguments} was applied {times} times"))
        .collect()
}
