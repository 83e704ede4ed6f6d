//! What the model was asked at a past decision: the request rebuilt from the state in which it was made and the stored
//! values, and compared with the digest that was recorded before it was sent. Nothing of it was ever stored whole.

use lodestep_core::context::memo::Memo;
use lodestep_core::context::{ASSEMBLER_VERSION, Manifest, assemble_from, wants};
use lodestep_core::event::{CallReserved, Envelope, Event};
use lodestep_core::{Checkpoint, Definition, Digest, Error, Result, Stored, ValueRef, fold};
use lodestep_model::Request;
use lodestep_store::{RunRef, Store};

use crate::inspect::opened::readable;
use crate::inspect::{self, walk};

/// Which of a run's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The last one.
    Newest,
    /// The last one that was reserved for at this transition or before it.
    AtStep(u64),
    /// The one whose reply became this decision.
    Decision(u32),
}

/// What the model was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The transition that reserved for it.
    pub step: u64,
    /// The call's number.
    pub call: u64,
    /// The decision that the reply became, if it became one.
    pub decision: Option<u32>,
    /// The digest that was recorded before the request was sent.
    pub digest: Digest,
    /// What it was made of, as it was recorded; `None` when that was erased.
    pub manifest: Option<Manifest>,
    /// The request, which has that digest; or why it can't be rebuilt, in words.
    pub request: std::result::Result<Request, String>,
}

/// Rebuilds a request.
///
/// # Errors
///
/// `context.not_asked` when there was no such request; `store.corrupt` when the journal can't be folded so far.
pub async fn request(store: &dyn Store, run: &RunRef, which: Which) -> Result<Asked> {
    let found = find(store, run, which).await?.ok_or_else(|| not_asked(run, which))?;
    let Found { step, reserved, decision } = found;
    let state = state_before(store, run, step).await?;
    let manifest = manifest(store, run, step, reserved.manifest).await?;
    let request = match rebuild(store, run, &state).await? {
        Rebuilt { request: Some((request, digest)), .. } if digest == reserved.request => Ok(request),
        rebuilt => Err(why_not(&rebuilt, manifest.as_ref(), &reserved.request)),
    };
    Ok(Asked { step, call: reserved.call, decision, digest: reserved.request, manifest, request })
}

struct Found {
    step: u64,
    reserved: CallReserved,
    decision: Option<u32>,
}

async fn find(store: &dyn Store, run: &RunRef, which: Which) -> Result<Option<Found>> {
    let mut newest: Option<Found> = None;
    walk(store, run, 1, |row| {
        let envelope = Envelope::from_bytes(&row.envelope)?;
        for event in envelope.events {
            let is_wanted = newest.as_ref().is_some_and(|found| match which {
                Which::Newest => false,
                Which::AtStep(_) => false,
                Which::Decision(wanted) => found.decision == Some(wanted),
            });
            match event {
                _ if is_wanted => return Ok(false),
                Event::CallReserved(_) if matches!(which, Which::AtStep(at) if row.seq > at) => return Ok(false),
                Event::CallReserved(reserved) => newest = Some(Found { step: row.seq, reserved, decision: None }),
                Event::DecisionOpened(opened) => {
                    if let Some(found) = &mut newest {
                        found.decision = Some(opened.decision);
                    }
                }
                _ => {}
            }
        }
        Ok(true)
    })
    .await?;
    Ok(newest.filter(|found| match which {
        Which::Decision(wanted) => found.decision == Some(wanted),
        Which::Newest | Which::AtStep(_) => true,
    }))
}

fn not_asked(run: &RunRef, which: Which) -> Error {
    let run = &run.key.run;
    let what = match which {
        Which::Newest => format!("run {run} has not asked its model anything yet"),
        Which::AtStep(at) => format!("run {run} had not asked its model anything by step {at}"),
        Which::Decision(decision) => format!("run {run} has no decision {decision}"),
    };
    Error::new("context.not_asked", what, format!("`lodestep log {run}` lists its calls of the model"))
}

/// The state in which the request was assembled: within its transition, just before the reservation.
async fn state_before(store: &dyn Store, run: &RunRef, step: u64) -> Result<Checkpoint> {
    let gone = || Error::new("store.corrupt", format!("run {}: step {step} is gone", run.key.run), "`lodestep verify`");
    let replay = inspect::replay(store, run, step - 1).await?;
    let mut state = replay.checkpoint.ok_or_else(gone)?;
    let row = store.journal(run, step, 1).await?.into_iter().next().ok_or_else(gone)?;
    let envelope = Envelope::from_bytes(&row.envelope)?;
    fold::fold_up_to(&mut state, &envelope, |event| matches!(event, Event::CallReserved(_)))?;
    Ok(state)
}

async fn manifest(store: &dyn Store, run: &RunRef, step: u64, value: ValueRef) -> Result<Option<Manifest>> {
    let blobs = readable(store, run, &[Stored::at(value, step)]).await?;
    Ok(blobs.get(&value.digest).and_then(|bytes| Manifest::from_bytes(bytes)))
}

/// What came of assembling it again.
struct Rebuilt {
    request: Option<(Request, Digest)>,
    /// What it could not be made of.
    missing: Vec<String>,
}

async fn rebuild(store: &dyn Store, run: &RunRef, state: &Checkpoint) -> Result<Rebuilt> {
    let pinned = readable(store, run, &[state.definition, state.inputs]).await?;
    let definition = pinned.get(&state.definition.digest).and_then(|bytes| Definition::from_bytes(bytes).ok());
    let inputs = pinned.get(&state.inputs.digest).and_then(|bytes| serde_json::from_slice(bytes).ok());
    let (Some(definition), Some(inputs)) = (&definition, &inputs) else {
        let missing = [("the definition", definition.is_none()), ("the inputs", inputs.is_none())];
        let missing = missing.into_iter().filter(|(_, missing)| *missing).map(|(what, _)| what.to_owned()).collect();
        return Ok(Rebuilt { request: None, missing });
    };
    let wanted = wants(state, definition);
    let blobs = readable(store, run, &wanted).await?;
    let missing = wanted.iter().filter(|stored| !blobs.contains_key(&stored.digest));
    let missing = missing.map(|stored| format!("value {} of step {}", stored.digest, stored.seq)).collect();
    let assembled = assemble_from(&mut Memo::default(), &wanted, state, definition, inputs, &blobs).ok();
    Ok(Rebuilt { request: assembled.map(|assembled| (assembled.request, assembled.digest)), missing })
}

fn why_not(rebuilt: &Rebuilt, manifest: Option<&Manifest>, recorded: &Digest) -> String {
    if let Some(by) = manifest.map(|manifest| manifest.assembler).filter(|by| *by != ASSEMBLER_VERSION) {
        return format!("assembler {by} made it, and this build has assembler {ASSEMBLER_VERSION}");
    }
    if !rebuilt.missing.is_empty() {
        return format!("erased or damaged: {}", rebuilt.missing.join(", "));
    }
    match &rebuilt.request {
        Some((_, digest)) => {
            format!("what is stored makes a request with the digest {digest}, and {recorded} was recorded")
        }
        None => "what is stored does not fit the model's window".to_owned(),
    }
}
