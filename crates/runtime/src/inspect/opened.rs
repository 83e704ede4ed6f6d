//! A run with its definition, its inputs and the texts that its checkpoint names.

use lodestep_core::checkpoint::{Action, ActionState, Phase};
use lodestep_core::context::Blobs;
use lodestep_core::definition::{StateAct, ToolKind};
use lodestep_core::hold::Held;
use lodestep_core::rules::inbox::{Message, read};
use lodestep_core::rules::standing::{Standing, standing_under};
use lodestep_core::{Checkpoint, Definition, Draft, Error, Result, RunKey, Stored, Timestamp};
use lodestep_store::loaded::undecodable;
use lodestep_store::{Hold, Replay, RunRef, RunRow, Store};
use serde_json::Value;

use crate::inspect::{self, walk};

/// A run, read at one moment, as far as it can be read.
pub struct Opened {
    /// Its row; the holder is left out when it is dead.
    pub row: RunRow,
    /// Its state.
    pub checkpoint: Checkpoint,
    /// The messages that no transition has read.
    pub unread: Vec<(u64, Message)>,
    /// Its state as it will be when those are read; its state, when there are none.
    pub ahead: Checkpoint,
    /// When it was read; of a past state when that was committed.
    pub at: Timestamp,
    /// Where it stands.
    pub standing: Standing,
    /// Its pinned definition, if it can be read.
    pub definition: Option<Definition>,
    /// Its inputs; null when they can't be read.
    pub inputs: Value,
    /// What of it can't be read, in words; empty when all is well.
    pub damage: Vec<String>,
    blobs: Blobs,
}

impl Opened {
    /// A text that the checkpoint names; says so when it was erased.
    pub fn text(&self, stored: &Stored) -> String {
        match self.blobs.get(&stored.digest) {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None => format!("({} bytes, erased or damaged)", stored.len),
        }
    }

    /// A value that the checkpoint names, as JSON.
    pub fn json(&self, stored: &Stored) -> Value {
        serde_json::from_slice(self.blobs.get(&stored.digest).map(Vec::as_slice).unwrap_or_default())
            .unwrap_or(Value::Null)
    }

    /// What a question may be answered with; empty when it takes any text.
    pub fn choices(&self, question: &Action) -> Vec<String> {
        let arguments = self.json(&question.arguments);
        let choices = arguments.get("choices").and_then(Value::as_array);
        choices.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What the model said when it last called finish, whatever came of it.
    pub fn last_word(&self) -> Option<String> {
        let finish = |tool: &str| {
            let kind = self.definition.as_ref().and_then(|definition| definition.tool(tool)).map(|tool| &tool.kind);
            matches!(kind, Some(ToolKind::State { act: StateAct::Finish }))
        };
        let settled = self.checkpoint.recent.iter().rev().find(|settled| finish(&settled.tool))?;
        self.json(&settled.arguments).get("summary").and_then(Value::as_str).map(str::to_owned)
    }
}

/// Reads a run with everything that its checkpoint names, as far as it can be read. Of a damaged journal the state is that
/// before the damage.
///
/// # Errors
///
/// `run.not_found`; `store.corrupt` when not even the first transition can be read.
pub async fn open(store: &dyn Store, run: &RunKey) -> Result<Opened> {
    let state = match store.load(run).await {
        Ok(loaded) => match (loaded.checkpoint(), loaded.standing()) {
            (Ok(checkpoint), Ok(standing)) => {
                State { row: loaded.row, checkpoint, unread: loaded.unread, standing, damage: Vec::new() }
            }
            (Err(error), _) | (_, Err(error)) => before_damage(store, run, &error).await?,
        },
        Err(error) if error.code() == "run.not_found" => return Err(error),
        Err(error) => before_damage(store, run, &error).await?,
    };
    with_values(store, state).await
}

/// Reads a run as it was after the transition `at`: its state folded from the journal's beginning, with everything that
/// the state names. The row is today's; words that no transition has read belong to no past state.
///
/// # Errors
///
/// `run.not_found`; `run.no_such_step` names the last one; `store.corrupt` when the journal can't be folded so far.
pub async fn open_at(store: &dyn Store, row: &RunRow, at: u64) -> Result<Opened> {
    let damaged = |error: Error| {
        let what = format!("run {} can't be folded up to step {at}: {}", row.run.key.run, error.what());
        Error::new("store.corrupt", what, format!("`lodestep verify {}` says more", row.run.key.run))
    };
    let replay = inspect::replay(store, &row.run, at).await.map_err(damaged)?;
    let checkpoint = replay.checkpoint.filter(|checkpoint| checkpoint.seq == at);
    let checkpoint = checkpoint.ok_or_else(|| no_such_step(row, at))?;
    let standing = lodestep_core::rules::standing::standing(&checkpoint);
    let state = State { row: row.clone(), checkpoint, unread: Vec::new(), standing, damage: Vec::new() };
    let at = state.checkpoint.at;
    Ok(Opened { at, ..with_values(store, state).await? })
}

fn no_such_step(row: &RunRow, at: u64) -> Error {
    let what = format!("run {} has no step {at}: its last one is {}", row.run.key.run, row.seq);
    Error::new("run.no_such_step", what, format!("`lodestep log {}` lists its steps", row.run.key.run))
}

/// Reads what a state names.
async fn with_values(store: &dyn Store, state: State) -> Result<Opened> {
    let State { row, checkpoint, unread, standing, mut damage } = state;
    let blobs = readable(store, &row.run, &named(&checkpoint)).await?;
    let mut missing = |what: &str| damage.push(format!("its {what} is gone or damaged; `lodestep verify` says more"));
    let definition = blobs.get(&checkpoint.definition.digest).and_then(|bytes| Definition::from_bytes(bytes).ok());
    if definition.is_none() {
        missing("definition");
    }
    let standing = match (&definition, row.hold) {
        (Some(definition), None | Some(Hold::Parked)) => {
            standing_under(&checkpoint, &Held::of(&store.dispatch_holds().await?.open, definition))
        }
        _ => standing,
    };
    let inputs = blobs.get(&checkpoint.inputs.digest).and_then(|bytes| serde_json::from_slice(bytes).ok());
    if inputs.is_none() {
        missing("inputs value");
    }
    let inputs = inputs.unwrap_or(Value::Null);
    let row = RunRow { holder: row.holder.filter(|worker| store.is_alive(worker)), ..row };
    let at = store.now();
    let ahead = ahead(&checkpoint, &unread, at);
    Ok(Opened { at, row, checkpoint, unread, ahead, standing, definition, inputs, damage, blobs })
}

/// The state with the unread messages applied, each as it was accepted; as far as they fit it.
fn ahead(checkpoint: &Checkpoint, unread: &[(u64, Message)], now: Timestamp) -> Checkpoint {
    let mut draft = Draft::next(checkpoint.clone(), now, 0, 0);
    for (position, message) in unread {
        let mut next = draft.clone();
        // A message that does not fit is for the worker that reads it to tell of.
        if read(&mut next, *position, message).is_err() {
            break;
        }
        draft = next;
    }
    draft.checkpoint().clone()
}

/// What is known of a run's state.
struct State {
    row: RunRow,
    checkpoint: Checkpoint,
    unread: Vec<(u64, Message)>,
    standing: Standing,
    damage: Vec<String>,
}

/// The state after the last transition that can be read, or the error if there is none.
async fn before_damage(store: &dyn Store, run: &RunKey, error: &Error) -> Result<State> {
    let found = store.find(&run.namespace, run.run.as_str(), 1).await?;
    let row = found.into_iter().find(|row| row.run.key.as_ref() == run).ok_or_else(|| error.clone())?;
    let mut sound = 0;
    let mut replay = Replay::default();
    let walked = walk(store, &row.run, 1, |journal| {
        replay.take_in(&journal.envelope)?;
        sound = journal.seq;
        Ok(true)
    })
    .await;
    if walked.is_err() {
        // An event that does not fit may have left the state half changed.
        replay = inspect::replay(store, &row.run, sound).await?;
    }
    let checkpoint = replay.checkpoint.ok_or_else(|| error.clone())?;
    let damage =
        vec![error.what().to_owned(), format!("what follows is the state after transition {}", checkpoint.seq)];
    Ok(State { row, checkpoint, unread: Vec::new(), standing: undecodable(), damage })
}

/// The values that can be read: a run with a damaged one can still be looked at.
pub(super) async fn readable(store: &dyn Store, run: &RunRef, wanted: &[Stored]) -> Result<Blobs> {
    match store.values(run, wanted).await {
        Err(error) if error.code() == "store.value_damaged" => {}
        read => return read,
    }
    let mut blobs = Blobs::default();
    for stored in wanted {
        match store.values(run, &[*stored]).await {
            Ok(read) => blobs.extend(read),
            Err(error) if error.code() == "store.value_damaged" => {}
            Err(error) => return Err(error),
        }
    }
    Ok(blobs)
}

/// Every value that a checkpoint names, but the bytes of artifacts.
fn named(checkpoint: &Checkpoint) -> Vec<Stored> {
    let mut named = vec![checkpoint.definition, checkpoint.inputs];
    match &checkpoint.phase {
        Phase::Active => {}
        Phase::Stopped { text, .. } | Phase::Ended { text, .. } => named.push(*text),
        Phase::Cancelling { reason, .. } => named.push(*reason),
    }
    named.extend(checkpoint.notes.values());
    named.extend(checkpoint.plan.iter().filter_map(|milestone| milestone.title));
    named.extend(checkpoint.errors.iter().map(|error| error.text));
    named.extend(checkpoint.recent.iter().flat_map(|settled| [settled.arguments, settled.result]));
    named.extend(checkpoint.guidance.iter().map(|guidance| guidance.text));
    named.extend(checkpoint.signals.iter().map(|signal| signal.value));
    for action in checkpoint.pending.values() {
        named.push(action.arguments);
        if let ActionState::Doubt { text, .. } = &action.state {
            named.push(*text);
        }
        named.extend(action.elsewhere.as_ref().and_then(|found| found.result));
    }
    named.sort_unstable();
    named.dedup_by_key(|stored| stored.digest);
    named
}
