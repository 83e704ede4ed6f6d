//! Which values an event names: what has to be there for it to be read in full.

use crate::event::{Event, Resolution};
use crate::fold::fork::inherited;
use crate::value::{Stored, ValueRef};

/// The values that an event names, in no order. The raw reply is left out: it is evidence, and may be emptied.
pub fn named_by(event: &Event) -> Vec<ValueRef> {
    match event {
        Event::RunStarted(event) => vec![event.definition, event.inputs],
        Event::RunUpgraded(event) => vec![event.definition],
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
        Event::DeadlinePassed(event) => vec![event.text],
        Event::NoteTaken(event) => event.text.into_iter().collect(),
        Event::MilestoneMarked(event) => event.title.into_iter().collect(),
        Event::ArtifactSaved(event) => vec![event.content],
        Event::ErrorLogged(event) => vec![event.text],
        Event::RunStopped(event) => vec![event.text],
        Event::CancelRequested(event) => vec![event.reason],
        Event::RunEnded(event) => vec![event.text],
        Event::GuidanceGiven(event) => vec![event.text],
        Event::SignalArrived(event) => vec![event.value],
        Event::TimerFired(event) => vec![event.result],
        // What a signal carries and what a key's effect came to stand where they came in.
        Event::SignalTaken(_) | Event::DedupeClosed(_) => Vec::new(),
        // Each event is listed, so that one with a value is not forgotten.
        Event::CallAnswered(_)
        | Event::CallLost(_)
        | Event::AttemptStarted(_)
        | Event::ActionApproved(_)
        | Event::InboxRead(_)
        | Event::ArtifactShown(_)
        | Event::FinishRefused(_)
        | Event::RunResumed(_)
        | Event::HandedOver(_)
        | Event::CheckStarted(_)
        | Event::QuotaRaised(_)
        | Event::QuotaGranted(_)
        | Event::ApprovalLapsed(_)
        | Event::DedupeTaken(_)
        | Event::ActionHeld(_)
        | Event::QuotaGiven(_)
        | Event::ActionRebound(_) => Vec::new(),
    }
}
