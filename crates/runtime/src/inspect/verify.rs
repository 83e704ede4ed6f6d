//! Does the journal still say what it said? The chain is computed anew, every transition folded again, every
//! snapshot and value compared.

use std::collections::BTreeSet;

use lodestep_core::checkpoint::Checkpoint;
use lodestep_core::event::{Envelope, Event, Resolution};
use lodestep_core::{Digest, INLINE_VALUE_BYTES, Result, RunKey, Stored, ValueRef, fold};
use lodestep_store::{RunRef, Store};
use serde::Serialize;

use crate::inspect::walk;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The run.
    pub run: RunKey,
    /// Transitions that were folded again.
    pub transitions: u64,
    /// Snapshots that were compared.
    pub snapshots: u64,
    /// Values whose bytes are what their digest says.
    pub values: u64,
    /// Values that were erased. The journal verifies without them.
    pub erased: u64,
    /// The head's digest.
    pub head: Digest,
    /// The state's digest.
    pub state: Digest,
    /// What does not fit, in words; empty when all is well.
    pub faults: Vec<String>,
}

/// Verifies one run. Damage is a finding, not an error.
///
/// # Errors
///
/// `run.not_found` and the store's own errors.
pub async fn verify(store: &dyn Store, key: &RunKey) -> Result<Report> {
    let loaded = store.load(key).await?;
    let run = loaded.row.run.clone();
    let snapshots = store.snapshots(&run).await?;
    let mut refolded = Refolded::default();
    walk(store, &run, 1, |row| {
        refolded.take_in(row, &snapshots);
        Ok(refolded.faults.is_empty())
    })
    .await?;
    let Refolded { checkpoint, transitions, compared, mut values, erased, mut faults, files } = refolded;
    match &checkpoint {
        Some(checkpoint) if faults.is_empty() => {
            if checkpoint.seq != loaded.row.seq || checkpoint.head != loaded.row.head {
                faults.push(format!(
                    "the journal ends at transition {} with {}, the head says {} with {}",
                    checkpoint.seq, checkpoint.head, loaded.row.seq, loaded.row.head
                ));
            }
        }
        Some(_) => {}
        None => faults.push("the journal has no readable first transition".to_owned()),
    }
    values += check_files(store, &run, &files, &mut faults).await;
    Ok(Report {
        run: key.clone(),
        transitions,
        snapshots: compared,
        values,
        erased,
        head: loaded.row.head,
        state: checkpoint.map(|checkpoint| checkpoint.state_digest()).unwrap_or_default(),
        faults,
    })
}

#[derive(Default)]
struct Refolded {
    checkpoint: Option<Checkpoint>,
    transitions: u64,
    compared: u64,
    values: u64,
    erased: u64,
    faults: Vec<String>,
    files: BTreeSet<Stored>,
}

impl Refolded {
    fn take_in(&mut self, row: lodestep_store::JournalRow, snapshots: &[(u64, Vec<u8>)]) {
        let folded = match &mut self.checkpoint {
            None => fold::fold_first(&row.envelope).map(|(checkpoint, envelope)| {
                self.checkpoint = Some(checkpoint);
                envelope
            }),
            Some(checkpoint) => fold::fold(checkpoint, &row.envelope),
        };
        let envelope = match folded {
            Ok(envelope) => envelope,
            Err(error) => return self.faults.push(format!("transition {}: {}", row.seq, error.what())),
        };
        self.transitions += 1;
        self.compare_snapshot(row.seq, snapshots);
        self.compare_values(&row, &envelope);
    }

    fn compare_snapshot(&mut self, seq: u64, snapshots: &[(u64, Vec<u8>)]) {
        let Some((_, bytes)) = snapshots.iter().find(|(at, _)| *at == seq) else { return };
        let same = self.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.to_bytes() == *bytes);
        if same {
            self.compared += 1;
        } else {
            self.faults.push(format!("the snapshot at transition {seq} is not what its journal folds to"));
        }
    }

    fn compare_values(&mut self, row: &lodestep_store::JournalRow, envelope: &Envelope) {
        let present: Option<BTreeSet<Digest>> =
            row.values.as_ref().map(|values| values.iter().map(|bytes| Digest::of(bytes)).collect());
        for value in envelope.events.iter().flat_map(named_by) {
            if value.len > INLINE_VALUE_BYTES as u64 {
                self.files.insert(Stored::at(value, row.seq));
                continue;
            }
            match &present {
                None => self.erased += 1,
                Some(present) if present.contains(&value.digest) => self.values += 1,
                // A result can be that of an earlier action, whose row was checked before.
                Some(_) if envelope.events.iter().any(|event| repeats(event, &value)) => {}
                Some(_) => {
                    self.faults.push(format!("transition {}: value {} is missing or altered", row.seq, value.digest))
                }
            }
        }
    }
}

/// Values that a transition brings. The raw reply is left out: it is evidence, and may be emptied.
fn named_by(event: &Event) -> Vec<ValueRef> {
    match event {
        Event::RunStarted(event) => vec![event.definition, event.inputs],
        Event::CallReserved(event) => vec![event.manifest],
        Event::CallFailed(event) => vec![event.text],
        Event::DecisionOpened(event) => event.text.into_iter().collect(),
        Event::ActionProposed(event) => vec![event.arguments],
        Event::ActionRefused(event) => vec![event.arguments, event.text],
        Event::ActionFinished(event) => vec![event.result],
        Event::AttemptNotSent(event) => vec![event.text],
        Event::AttemptUnknown(event) => vec![event.text],
        Event::LookupInconclusive(event) => vec![event.text],
        Event::DoubtResolved(event) => match &event.resolution {
            Resolution::Happened(value) | Resolution::Abandoned(value) => vec![*value],
            Resolution::SendAgain => Vec::new(),
        },
        Event::ActionDenied(event) => vec![event.text],
        Event::QuestionAnswered(event) => vec![event.answer],
        Event::ActionWithdrawn(event) => vec![event.text],
        Event::NoteTaken(event) => event.text.into_iter().collect(),
        Event::MilestoneMarked(event) => event.title.into_iter().collect(),
        Event::ArtifactSaved(event) => vec![event.content],
        Event::ErrorLogged(event) => vec![event.text],
        Event::RunStopped(event) => vec![event.text],
        Event::CancelRequested(event) => vec![event.reason],
        Event::RunEnded(event) => vec![event.text],
        _ => Vec::new(),
    }
}

/// Does this event name a value that stands with an earlier transition?
fn repeats(event: &Event, value: &ValueRef) -> bool {
    match event {
        Event::ActionFinished(event) => {
            event.by == lodestep_core::event::SettledBy::SameEffect && event.result.digest == value.digest
        }
        Event::RunEnded(event) => event.text.digest == value.digest,
        _ => false,
    }
}

async fn check_files(store: &dyn Store, run: &RunRef, files: &BTreeSet<Stored>, faults: &mut Vec<String>) -> u64 {
    let mut sound = 0;
    for stored in files {
        match store.values(run, &[*stored]).await {
            Ok(blobs) if blobs.contains_key(&stored.digest) => sound += 1,
            Ok(_) => faults.push(format!("transition {}: the file of value {} is missing", stored.seq, stored.digest)),
            Err(error) => faults.push(format!("transition {}: {}", stored.seq, error.what())),
        }
    }
    sound
}
