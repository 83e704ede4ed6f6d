//! After the report is saved: milestones, the publishing tools, and the end of the run; and the end of one without a report.

use serde_json::{Value, json};

use crate::memory::{Listing, Memory};
use crate::note;
use crate::publish::{self, Ended, Material};
use crate::report::{self, Report};
use crate::tools::Tools;
use crate::view::{Criterion, View};

/// What is known when the report is written.
pub(crate) struct Closing<'a> {
    pub(crate) view: &'a View,
    pub(crate) tools: &'a Tools<'a>,
    pub(crate) memory: &'a Memory,
    pub(crate) topic: &'a str,
    /// The name of the report's artifact.
    pub(crate) artifact: &'a str,
    pub(crate) report: &'a Report,
    /// How saving the report ended.
    pub(crate) saved: &'a Ended,
}

/// Calls, by the names of their tools.
pub(crate) type Calls = Vec<(String, Value)>;

impl Closing<'_> {
    /// What to call next: the milestones together, each publishing tool alone, then finish.
    pub(crate) fn next_calls(&self) -> Calls {
        let refused =
            self.view.recent.iter().flatten().filter(|outcome| outcome.tool == self.tools.finish.name).count();
        let was_just_refused = self.view.newest().iter().any(|outcome| outcome.tool == self.tools.finish.name);
        if was_just_refused && refused == 1 {
            let remedies = self.remedies();
            if !remedies.is_empty() {
                return remedies;
            }
        }
        let mut calls = self.milestones(|id| !self.was_tried(id));
        if calls.is_empty() {
            calls.extend(self.publication());
        }
        if calls.is_empty() {
            calls.push((self.tools.finish.name.clone(), json!({"summary": self.summary()})));
        }
        calls
    }

    /// What can be done once more after finish was refused: save what is not saved, mark what is open.
    fn remedies(&self) -> Calls {
        match self.saved {
            Ended::Ok => self.milestones(|_| true),
            Ended::Not(why) if why.starts_with("denied") => vec![],
            Ended::Not(_) => {
                vec![(self.tools.save.name.clone(), json!({"name": self.artifact, "text": self.report.text}))]
            }
        }
    }

    /// Marks the open milestones that are the model's to mark. The report is the evidence, so it has to be saved.
    fn milestones(&self, wanted: impl Fn(&str) -> bool) -> Calls {
        let Some(plan) = self.tools.plan.filter(|_| *self.saved == Ended::Ok) else {
            return vec![];
        };
        let evidence = format!("artifact {}", self.artifact);
        let open = open_milestones(self.view);
        let mark =
            |id: String| (plan.name.clone(), json!({"milestone": id, "status": "reached", "evidence": evidence}));
        open.into_iter().filter(|id| wanted(id)).map(mark).collect()
    }

    /// Whether the milestone was to be marked before, whatever came of it.
    fn was_tried(&self, id: &str) -> bool {
        let Some(plan) = self.tools.plan else {
            return true;
        };
        let is_for_it = |arguments: &Value| arguments.get("milestone").and_then(Value::as_str) == Some(id);
        let listed = self.view.actions.iter().filter(|action| action.tool == plan.name);
        let recent = self.view.recent.iter().flatten().filter(|outcome| outcome.tool == plan.name);
        listed.into_iter().any(|action| serde_json::from_str(&action.arguments).is_ok_and(|value| is_for_it(&value)))
            || recent.into_iter().any(|outcome| is_for_it(&outcome.arguments))
    }

    /// The first publishing tool that was not called yet and can be. None once one was denied or has failed: no
    /// other tool gets round that, and what was not published is not announced. One that was denied is asked for once
    /// more when a person has said something since: it takes another yes, so that no word approves anything.
    fn publication(&self) -> Option<(String, Value)> {
        if *self.saved != Ended::Ok {
            return None;
        }
        if let Some(tool) = self.held_up_by() {
            let is_denied =
                matches!(publish::ended(self.view, &tool.name), Some(Ended::Not(why)) if why.starts_with("denied"));
            let again = self.view.is_told && is_denied;
            return self.arguments(tool).ok().filter(|_| again).map(|arguments| (tool.name.clone(), arguments));
        }
        let untried = self.tools.publishing.iter().filter(|tool| publish::ended(self.view, &tool.name).is_none());
        untried.into_iter().find_map(|tool| Some((tool.name.clone(), self.arguments(tool).ok()?)))
    }

    /// The publishing tool that was denied or has failed.
    fn held_up_by(&self) -> Option<&lodestep_model::ToolSpec> {
        let not =
            |tool: &&&lodestep_model::ToolSpec| matches!(publish::ended(self.view, &tool.name), Some(Ended::Not(_)));
        self.tools.publishing.iter().find(not).copied()
    }

    fn arguments(&self, tool: &lodestep_model::ToolSpec) -> Result<Value, String> {
        let title = report::title(self.topic);
        let published = self
            .tools
            .publishing
            .iter()
            .any(|tool| publish::takes_report(tool) && publish::ended(self.view, &tool.name) == Some(Ended::Ok));
        let done = if published { "published".to_owned() } else { format!("saved as {}", self.artifact) };
        let line = format!("The report on \"{title}\" is {done}, with {}.", count(self.report.citations, "citation"));
        publish::arguments(tool, &Material { artifact: self.artifact, title: &title, line: &line })
    }

    /// What was done and, as plainly, what was not.
    fn summary(&self) -> String {
        let tally = &self.memory.tally;
        let Report { citations, documents, .. } = self.report;
        let mut sentences = vec![match self.saved {
            Ended::Ok => format!("The report on \"{}\" is saved as {}.", report::title(self.topic), self.artifact),
            Ended::Not(why) => format!("The report could not be saved: {why}."),
        }];
        sentences.push(format!(
            "It cites {} of {}; {} read.",
            count(*citations, "sentence"),
            count(*documents, "document"),
            count(tally.documents as usize, "document")
        ));
        if tally.skipped > 0 {
            sentences.push(format!("{} could not be read.", count(tally.skipped as usize, "document")));
        }
        match self.memory.listing {
            Listing::Failed => sentences.push("The list of documents could not be had to its end.".into()),
            Listing::Stopped | Listing::More => {
                sentences.push("Reading was stopped before all documents were read.".into())
            }
            Listing::All => {}
        }
        sentences.extend(self.tools.publishing.iter().filter_map(|tool| self.unpublished(tool)));
        sentences.join(" ")
    }

    /// Says why a publishing tool did not do its part.
    fn unpublished(&self, tool: &lodestep_model::ToolSpec) -> Option<String> {
        match publish::ended(self.view, &tool.name) {
            Some(Ended::Ok) => None,
            Some(Ended::Not(why)) => {
                Some(format!("{} did not go through ({why}) and was not called again.", tool.name))
            }
            None if *self.saved != Ended::Ok => {
                Some(format!("{} was not called: there is nothing to publish.", tool.name))
            }
            None => Some(match (self.arguments(tool), self.held_up_by()) {
                (Err(why), _) => format!("{} was not called: {why}.", tool.name),
                (Ok(_), by) => format!("{} was not called, since {} did not go through.", tool.name, by?.name),
            }),
        }
    }
}

/// Gives up when there is nothing to read: no report, no milestone, only finish. When that is refused, the next
/// decision looks for documents once more, as nothing of this one was noted.
pub(crate) fn give_up(memory: &Memory, view: &View, tools: &Tools) -> Calls {
    let failure = |tool: &str| {
        let outcome = view.newest().iter().rev().find(|outcome| outcome.tool == tool && outcome.failed);
        outcome.map(|outcome| format!(" ({})", publish::first_line(&outcome.text))).unwrap_or_default()
    };
    let skipped = memory.tally.skipped as usize;
    let why = match memory.listing {
        Listing::Failed => format!("{} failed{}", tools.list.name, failure(&tools.list.name)),
        Listing::All | Listing::More if skipped == 0 => format!("{} lists no document", tools.list.name),
        Listing::All | Listing::More => {
            format!("{} could not be read{}", count(skipped, "document"), failure(&tools.read.name))
        }
        Listing::Stopped if memory.limit < note::MIN_BYTES => "no note could be kept of what was read".to_owned(),
        Listing::Stopped => "too few calls of the model are left to read anything".to_owned(),
    };
    let summary = format!("There was nothing to read: {why}. No report was written, and nothing was published.");
    vec![(tools.finish.name.clone(), json!({ "summary": summary }))]
}

/// The milestones that are not reached and that the runtime does not mark itself.
fn open_milestones(view: &View) -> Vec<String> {
    let by_runtime = |id: &str| {
        view.criteria
            .iter()
            .any(|criterion| matches!(criterion, Criterion::Milestone { id: i, by_runtime: true } if i == id))
    };
    let planned = view.plan.iter().filter(|(_, reached)| !reached).map(|(id, _)| id.clone());
    let unplanned = view.criteria.iter().filter_map(|criterion| match criterion {
        Criterion::Milestone { id, .. } if !view.plan.iter().any(|(planned, _)| planned == id) => Some(id.clone()),
        _ => None,
    });
    planned.chain(unplanned).filter(|id| !by_runtime(id)).collect()
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
