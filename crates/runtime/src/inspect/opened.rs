//! A run with its definition, its inputs and the texts that its checkpoint names.

use lodestep_core::checkpoint::{Action, ActionState, Phase};
use lodestep_core::context::Blobs;
use lodestep_core::definition::{StateAct, ToolKind};
use lodestep_core::rules::inbox::Message;
use lodestep_core::rules::standing::{Standing, standing};
use lodestep_core::{Checkpoint, Definition, Error, Result, RunKey, Stored};
use lodestep_store::{RunRef, RunRow, Store};
use serde_json::Value;

/// A run, read at one moment.
pub struct Opened {
    /// Its row; the holder is left out when it is dead.
    pub row: RunRow,
    /// Its state.
    pub checkpoint: Checkpoint,
    /// The messages that no transition has read.
    pub unread: Vec<(u64, Message)>,
    /// Where it stands.
    pub standing: Standing,
    /// Its pinned definition.
    pub definition: Definition,
    /// Its inputs.
    pub inputs: Value,
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
            let kind = self.definition.tool(tool).map(|tool| &tool.kind);
            matches!(kind, Some(ToolKind::State { act: StateAct::Finish }))
        };
        let settled = self.checkpoint.recent.iter().rev().find(|settled| finish(&settled.tool))?;
        self.json(&settled.arguments).get("summary").and_then(Value::as_str).map(str::to_owned)
    }
}

/// Reads a run with everything that its checkpoint names.
///
/// # Errors
///
/// `run.not_found`, `store.corrupt`, `store.value_missing`.
pub async fn open(store: &dyn Store, run: &RunKey) -> Result<Opened> {
    let loaded = store.load(run).await?;
    let checkpoint = loaded.checkpoint()?;
    let blobs = readable(store, &loaded.row.run, &named(&checkpoint)).await?;
    let missing = |what: &str| {
        let what = format!("run {}: its {what} is gone", run.run);
        Error::new("store.value_missing", what, "`lodestep verify` says what else is missing")
    };
    let definition = blobs.get(&checkpoint.definition.digest).ok_or_else(|| missing("definition"))?;
    let definition = Definition::from_bytes(definition)?;
    let inputs = blobs.get(&checkpoint.inputs.digest).ok_or_else(|| missing("inputs"))?;
    let inputs = serde_json::from_slice(inputs).map_err(|_| missing("inputs"))?;
    Ok(Opened {
        standing: standing(&checkpoint),
        row: RunRow { holder: loaded.row.holder.filter(|worker| store.is_alive(worker)), ..loaded.row },
        unread: loaded.unread,
        checkpoint,
        definition,
        inputs,
        blobs,
    })
}

/// The values that can be read: a run with a damaged one can still be looked at.
async fn readable(store: &dyn Store, run: &RunRef, wanted: &[Stored]) -> Result<Blobs> {
    match store.values(run, wanted).await {
        Err(error) if error.code() == "store.value_damaged" => {}
        read => return read,
    }
    let mut blobs = Blobs::new();
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
    for action in checkpoint.pending.values() {
        named.push(action.arguments);
        if let ActionState::Doubt { text, .. } = &action.state {
            named.push(*text);
        }
    }
    named.sort_unstable();
    named.dedup_by_key(|stored| stored.digest);
    named
}
