//! Does the journal still say what it said, and do the tables beside it? The chain is computed anew, every transition
//! folded again, every snapshot, value and row compared.

mod tables;

use std::collections::BTreeSet;

use lodestep_core::event::{Envelope, Event, Resolution};
use lodestep_core::fold::fork::inherited;
use lodestep_core::{Digest, INLINE_VALUE_BYTES, Result, RunKey, Stored, ValueRef};
use lodestep_store::{JournalRow, Replay, RunRef, Store};
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
    /// Rows beside the journal that were compared.
    pub rows: u64,
    /// The head's digest.
    pub head: Digest,
    /// The state's digest.
    pub state: Digest,
    /// What does not fit, in words; empty when all is well.
    pub faults: Vec<String>,
}

/// How often a run that moves meanwhile is looked at anew.
const LOOKS: u32 = 8;

/// Verifies one run. Damage is a finding, not an error. The tables beside a journal are compared when the journal
/// itself is sound: what it folds to is then what they have to say. Of a run that never stands still for as long as
/// that takes, the journal alone is verified, and `rows` is 0.
///
/// # Errors
///
/// `run.not_found` and the store's own errors.
pub async fn verify(store: &dyn Store, run: &RunRef) -> Result<Report> {
    let mut looks = 0;
    loop {
        looks += 1;
        let beside = store.beside(run).await?;
        let mut refolded = Refolded::of(store, run).await;
        let mut rows = 0;
        if refolded.faults.is_empty() {
            let (compared, faults) = tables::compare(store, run, &refolded.replay, &beside).await?;
            let moved = !faults.is_empty() && store.beside(run).await?.row != beside.row;
            if moved && looks < LOOKS {
                continue;
            }
            if !moved {
                rows = compared;
                refolded.faults.extend(faults);
            }
        }
        return Ok(refolded.report(store, run, rows, beside.row.head).await);
    }
}

#[derive(Default)]
struct Refolded {
    snapshots: Vec<(u64, Vec<u8>)>,
    replay: Replay,
    transitions: u64,
    compared: u64,
    values: u64,
    erased: u64,
    faults: Vec<String>,
    files: BTreeSet<Stored>,
}

impl Refolded {
    async fn of(store: &dyn Store, run: &RunRef) -> Self {
        let mut refolded = Self::default();
        match store.snapshots(run).await {
            Ok(snapshots) => refolded.snapshots = snapshots,
            Err(error) => refolded.faults.push(error.what().to_owned()),
        }
        let walked = walk(store, run, 1, |row| Ok(refolded.take_in(&row))).await;
        if let Err(error) = walked {
            refolded.faults.push(error.what().to_owned());
        }
        refolded.look_for_strange_snapshots();
        refolded
    }

    async fn report(self, store: &dyn Store, run: &RunRef, rows: u64, head: Digest) -> Report {
        let Self { replay, transitions, compared, mut values, erased, mut faults, files, .. } = self;
        values += check_files(store, run, &files, &mut faults).await;
        Report {
            run: run.key.as_ref().clone(),
            transitions,
            snapshots: compared,
            values,
            erased,
            rows,
            head,
            state: replay.checkpoint.map(|checkpoint| checkpoint.state_digest()).unwrap_or_default(),
            faults,
        }
    }

    /// False when it makes no sense to go on.
    fn take_in(&mut self, row: &JournalRow) -> bool {
        let envelope = match self.replay.take_in(&row.envelope) {
            Ok(envelope) => envelope,
            Err(error) => {
                self.faults.push(format!("transition {}: {}", row.seq, error.what()));
                return false;
            }
        };
        if envelope.seq != row.seq {
            self.faults.push(format!("table journal: transition {} stands under the number {}", envelope.seq, row.seq));
        }
        self.transitions += 1;
        self.compare_snapshot(row.seq);
        self.compare_values(row, &envelope);
        self.compare_transcript(row, &envelope);
        true
    }

    fn compare_snapshot(&mut self, seq: u64) {
        let Some((_, bytes)) = self.snapshots.iter().find(|(at, _)| *at == seq) else { return };
        let same = self.replay.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.to_bytes() == *bytes);
        if same {
            self.compared += 1;
        } else {
            self.faults.push(format!("the snapshot at transition {seq} is not what its journal folds to"));
        }
    }

    fn look_for_strange_snapshots(&mut self) {
        let last = self.replay.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.seq);
        let strange = self.snapshots.iter().filter(|(seq, _)| *seq > last || *seq == 0);
        let words =
            strange.map(|(seq, _)| format!("table snapshot: there is one of transition {seq}, and no such transition"));
        self.faults.extend(words.collect::<Vec<_>>());
    }

    fn compare_values(&mut self, row: &JournalRow, envelope: &Envelope) {
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

    /// A raw reply may be emptied; one that is there is what the journal says that it was.
    fn compare_transcript(&mut self, row: &JournalRow, envelope: &Envelope) {
        let Some(found) = row.transcript.as_ref().map(|bytes| Digest::of(bytes)) else { return };
        let answered = envelope.events.iter().find_map(|event| match event {
            Event::CallAnswered(answered) => Some(answered.reply.digest),
            _ => None,
        });
        if answered.is_some_and(|digest| digest != found) {
            self.faults.push(format!("transition {}: its transcript is altered", row.seq));
        }
    }
}

/// Values that a transition brings. The raw reply is left out: it is evidence, and may be emptied.
pub(crate) fn named_by(event: &Event) -> Vec<ValueRef> {
    match event {
        Event::RunStarted(event) => vec![event.definition, event.inputs],
        Event::RunForked(event) => inherited(&event.state)
            .iter()
            .map(Stored::value)
            .chain([event.inputs, event.withdrawn, event.left])
            .collect(),
        Event::CallReserved(event) => vec![event.manifest],
        Event::CallFailed(event) => vec![event.text],
        Event::DecisionOpened(event) => event.text.into_iter().collect(),
        Event::ActionProposed(event) => {
            let found = event.elsewhere.as_ref().and_then(|found| found.result);
            found.into_iter().chain([event.arguments]).collect()
        }
        Event::ActionRefused(event) => vec![event.arguments, event.text],
        Event::ActionFinished(event) => vec![event.result],
        Event::AttemptNotSent(event) => vec![event.text],
        Event::AttemptUnknown(event) => vec![event.text],
        Event::LookupInconclusive(event) => vec![event.text],
        Event::DoubtResolved(event) => match &event.resolution {
            Resolution::Happened(value) | Resolution::Abandoned(value) | Resolution::DidNotHappen(value) => {
                vec![*value]
            }
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
pub(crate) fn repeats(event: &Event, value: &ValueRef) -> bool {
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
