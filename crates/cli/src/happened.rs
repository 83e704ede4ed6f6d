//! What of a transition is too plain for progress, in a few words: whoever watches gets a line for each transition.

use lodestep::core::event::{Event, Gate};

use crate::text::line;

/// A transition of which progress tells nothing, in words.
pub fn in_words(events: &[Event]) -> String {
    let proposed: Vec<String> = events.iter().filter_map(proposed).collect();
    let mut told: Vec<String> = Vec::new();
    for event in events {
        let words = match event {
            Event::DecisionOpened(_) if proposed.is_empty() => "decides".to_owned(),
            Event::DecisionOpened(_) => format!("decides on {}", proposed.join(", ")),
            other => match plain(other) {
                Some(words) => words.to_owned(),
                None => continue,
            },
        };
        if !told.contains(&words) {
            told.push(words);
        }
    }
    if told.is_empty() { "goes on".to_owned() } else { told.join("; ") }
}

fn proposed(event: &Event) -> Option<String> {
    let Event::ActionProposed(action) = event else { return None };
    let waits = match &action.gate {
        Gate::Approval(_) => ", which asks for approval",
        Gate::Answer(_) => ", which asks a person",
        _ => "",
    };
    Some(format!("{}{waits}", line(&action.tool, 64)))
}

/// An event without its particulars. `None` where another of its transition says as much, or progress tells of it.
fn plain(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::RunStarted(_) => "started",
        Event::RunForked(_) => "begins with the state of another run",
        Event::CallReserved(_) => "asks its model",
        Event::AttemptStarted(_) => "is about to send",
        Event::LookupInconclusive(_) => "a lookup could not tell what happened",
        Event::DoubtResolved(_) => "a doubt is resolved",
        Event::QuestionAnswered(_) => "a question is answered",
        Event::ActionWithdrawn(_) => "an action is taken back",
        Event::NoteTaken(_) => "takes a note",
        Event::MilestoneMarked(_) => "marks a milestone",
        Event::ArtifactSaved(_) => "saves an artifact",
        Event::ArtifactShown(_) => "opens or closes an artifact",
        Event::ErrorLogged(_) => "notes an error",
        Event::FinishRefused(_) => "may not finish yet",
        Event::RunResumed(_) => "is resumed",
        Event::CheckStarted(_) => "checks whether it is complete",
        Event::SignalArrived(_) => "a signal came",
        Event::QuotaGranted(_) => "a call has room in its quota again",
        Event::QuotaGiven(_) => "gives a part of its quotas to a fork",
        Event::ApprovalLapsed(_) => "an approval came too late",
        Event::ActionHeld(_) => "an action is held",
        Event::DedupeTaken(_) | Event::DedupeClosed(_) => "settles who does an effect of several runs",
        Event::AttemptNotSent(_) => "was not sent and is tried again",
        Event::CallAnswered(_) | Event::DecisionOpened(_) | Event::ActionProposed(_) | Event::InboxRead(_) => {
            return None;
        }
        // Of these progress tells.
        Event::CallFailed(_)
        | Event::CallLost(_)
        | Event::ActionRefused(_)
        | Event::ActionFinished(_)
        | Event::AttemptUnknown(_)
        | Event::ActionApproved(_)
        | Event::ActionDenied(_)
        | Event::RunStopped(_)
        | Event::CancelRequested(_)
        | Event::RunEnded(_)
        | Event::HandedOver(_)
        | Event::GuidanceGiven(_)
        | Event::SignalTaken(_)
        | Event::TimerFired(_)
        | Event::QuotaRaised(_)
        | Event::RunUpgraded(_)
        | Event::ActionRebound(_)
        | Event::DeadlinePassed(_) => return None,
    })
}
