//! The request read back: the sections of its user messages, and the recent calls with their results.
//!
//! Reads defensively. What is not of the expected form is passed over, and what is missing is empty.

use std::sync::Arc;

use lodestep_model::{Call, Message, Request};
use serde_json::Value;

use crate::sections::{actions, criterion, inputs, milestone, notes, sections};

/// What a request says.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// The objective; all of the first message when it has no such section.
    pub(crate) objective: String,
    /// The inputs by name, in order.
    pub(crate) inputs: Vec<(String, String)>,
    /// The lines of "Done when".
    pub(crate) criteria: Vec<Criterion>,
    /// The milestones of the plan, and whether they are reached.
    pub(crate) plan: Vec<(String, bool)>,
    /// The notes by key.
    pub(crate) notes: Vec<(String, String)>,
    /// The actions completed, as far as they are listed.
    pub(crate) actions: Vec<Action>,
    /// The recent decisions' calls with their results, the newest decision last.
    pub(crate) recent: Vec<Vec<Outcome>>,
    /// Has a person said something since the newest decision?
    pub(crate) is_told: bool,
    /// How many model calls the run has left, when that is limited.
    pub(crate) calls_left: Option<u64>,
}

/// A condition of the run's end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Criterion {
    /// A milestone, and whether the runtime marks it by itself.
    Milestone { id: String, by_runtime: bool },
    /// An artifact of this name is there.
    Artifact(String),
}

/// A line of the completed actions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// The tool's name.
    pub(crate) tool: String,
    /// The arguments as shown; empty where calls are only counted.
    pub(crate) arguments: String,
    /// What it came to, such as `ok, 20 bytes` or `failed: exit status 3`.
    pub(crate) outcome: String,
}

/// A recent call and its result.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The tool's name.
    pub(crate) tool: String,
    /// The arguments; null when they are no JSON.
    pub(crate) arguments: Value,
    /// The result's text.
    pub(crate) text: String,
    /// True when it failed or was refused.
    pub(crate) failed: bool,
}

impl Outcome {
    /// An argument of the call.
    pub(crate) fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.get(name)
    }
}

impl View {
    /// Reads a request.
    pub(crate) fn new(request: &Request) -> Self {
        let mut view = Self { recent: decisions(&request.messages), ..Self::default() };
        let texts = request.messages.iter().filter_map(|message| match &**message {
            Message::User { text } => Some(text.as_str()),
            _ => None,
        });
        for (index, text) in texts.enumerate() {
            let sections = sections(text);
            if index == 0 && !sections.iter().any(|(heading, _)| *heading == "Objective") {
                view.objective = text.to_owned();
            }
            for (heading, body) in sections {
                view.section(heading, body);
            }
        }
        view
    }

    /// The newest decision's calls with their results.
    pub(crate) fn newest(&self) -> &[Outcome] {
        self.recent.last().map_or(&[], Vec::as_slice)
    }

    fn section(&mut self, heading: &str, body: &str) {
        match heading {
            "Objective" if self.objective.is_empty() => self.objective = body.trim().to_owned(),
            "Inputs" if self.inputs.is_empty() => self.inputs = inputs(body.trim_end()),
            "Done when" => self.criteria.extend(body.lines().filter_map(criterion)),
            "Plan" => self.plan.extend(body.lines().filter_map(milestone)),
            "Notes" => self.notes.extend(notes(body)),
            "Completed actions" => self.actions.extend(body.lines().flat_map(actions)),
            "Guidance" => self.is_told |= !body.trim().is_empty(),
            "Remaining" => {
                let left = body.lines().find_map(|line| line.strip_prefix("- model_calls: "));
                self.calls_left = left.and_then(|left| left.split(' ').next()?.parse().ok());
            }
            _ => {}
        }
    }
}

/// Each decision's calls with their results, in order.
fn decisions(messages: &[Arc<Message>]) -> Vec<Vec<Outcome>> {
    let mut decisions = Vec::new();
    let mut open: &[Call] = &[];
    for message in messages {
        match &**message {
            Message::Assistant { calls, .. } => open = calls,
            Message::Results { results } => {
                let outcome = |(call, result): (&Call, &lodestep_model::CallResult)| Outcome {
                    tool: call.name.clone(),
                    arguments: serde_json::from_str(&call.arguments).unwrap_or(Value::Null),
                    text: result.text.clone(),
                    failed: result.is_error,
                };
                // Results come in call order; the ids say nothing more.
                decisions.push(std::mem::take(&mut open).iter().zip(results).map(outcome).collect());
            }
            Message::User { .. } => {}
        }
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> View {
        let messages = vec![Message::User { text: text.to_owned() }.into()];
        View::new(&Request { system: String::new(), messages, tools: [].into(), max_output_tokens: 1, turn: 0 })
    }

    #[test]
    fn sections_are_read() {
        let view = view(
            "# Objective\nFind it.\n\n# Inputs\n- folder: docs\n- topic: why: tides\n\n# Done when\n\
             - milestone read: All read\n- milestone out: It is out (by a finished publish)\n- artifact a b.md\n\n\
             # Plan\n- [ ] read: All read\n- [x] out: It is out (action 14)\n\n# Notes\n## extracts\na\n # b\n## other\nc\n\n\
             # Completed actions\n- 40 earlier: documents_read 38 ok, note 2 failed\n\
             - #41 publish {\"body\":\"x -> y\"} -> failed: a -> b\n\n# Remaining\n- model_calls: 8 of 100\n",
        );
        assert_eq!(view.objective, "Find it.");
        assert_eq!(view.inputs[1], ("topic".into(), "why: tides".into()));
        assert_eq!(view.criteria[1], Criterion::Milestone { id: "out".into(), by_runtime: true });
        assert_eq!(view.criteria[2], Criterion::Artifact("a b.md".into()));
        assert_eq!(view.plan, [("read".into(), false), ("out".into(), true)]);
        assert_eq!(view.notes[0], ("extracts".into(), "a\n # b\n".into()));
        assert_eq!(view.actions.len(), 3);
        assert_eq!(view.actions[0].outcome, "ok");
        assert_eq!(view.actions[2].outcome, "failed: a -> b");
        assert_eq!(view.calls_left, Some(8));
    }

    #[test]
    fn a_heading_out_of_order_is_text() {
        let view = view("# Objective\nA\n# Notes\n## k\n# Plan\n- [ ] x: y\n");
        assert_eq!(view.plan, []);
        assert_eq!(view.notes[0].1, "# Plan\n- [ ] x: y\n");
    }

    #[test]
    fn text_without_sections_is_the_objective() {
        assert_eq!(view("just this").objective, "just this");
    }
}
