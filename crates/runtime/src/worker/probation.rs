//! One suspect at a time: a run that has crashed its workers often is driven beside no other such run until it has an
//! outcome. Runs that were only there when the worker died come to theirs; the one that kills it is alone when it does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lodestep_core::definition::Definition;
use lodestep_core::rules::remind::Reminder;
use lodestep_core::{Checkpoint, Event, RunKey};
use lodestep_model::Progress;
use lodestep_store::{Claim, SUSPECT_CRASHES, Want};
use tokio::sync::Notify;

use crate::observe::Observer;

/// A worker's place for a suspect.
#[derive(Clone, Default)]
pub(super) struct Probation(Arc<Place>);

#[derive(Default)]
struct Place {
    is_taken: AtomicBool,
    left: Notify,
}

impl Probation {
    /// What a worker wants that has room for so many.
    pub(super) fn want(&self, most: usize) -> Want {
        if self.0.is_taken.load(Ordering::SeqCst) { Want::Unsuspected(most) } else { Want::Due(most) }
    }

    /// Puts a claimed run on probation if it is a suspect: it is, until its first outcome or the end of the claim.
    pub(super) fn watch(&self, claim: &Claim, observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
        if claim.crashes < SUSPECT_CRASHES {
            return observer;
        }
        self.0.is_taken.store(true, Ordering::SeqCst);
        Arc::new(Watched { observer, place: Mutex::new(Some(Taken(self.0.clone()))) })
    }

    /// Ends when the place is free again.
    pub(super) async fn left(&self) {
        self.0.left.notified().await;
    }
}

/// The place, taken.
struct Taken(Arc<Place>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::SeqCst);
        self.0.left.notify_one();
    }
}

/// A run on probation, as it is observed. Dropped with its claim, it leaves the place.
struct Watched {
    observer: Arc<dyn Observer>,
    place: Mutex<Option<Taken>>,
}

impl Observer for Watched {
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint) {
        if events.iter().any(|event| matches!(event, Event::CallAnswered(_) | Event::ActionFinished(_))) {
            self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.observer.committed(run, events, values, after);
    }

    fn taken(&self, run: &RunKey, definition: &Definition, after: &Checkpoint, crashes: u32) {
        self.observer.taken(run, definition, after, crashes);
    }

    fn streamed(&self, run: &RunKey, progress: Progress<'_>) {
        self.observer.streamed(run, progress);
    }

    fn reminded(&self, run: &RunKey, state: &Checkpoint, reminders: &[Reminder]) {
        self.observer.reminded(run, state, reminders);
    }
}
