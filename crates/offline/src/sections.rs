//! The sections of a request's user messages, line by line.

use serde_json::Value;

use crate::view::{Action, Criterion};

/// The headings that a request may have, in their order. Another line of that form is text.
const HEADINGS: &[&str] = &[
    "Objective",
    "Inputs",
    "Done when",
    "Plan",
    "Notes",
    "Completed actions",
    "Open artifacts",
    "Errors",
    "Answers",
    "Guidance",
    "Remaining",
];

/// The sections of a user message: known headings in their order, with the text below them.
pub(crate) fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut starts: Vec<(usize, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let heading = line.strip_prefix("# ").map(str::trim_end);
        let position = heading.and_then(|heading| HEADINGS.iter().position(|known| *known == heading));
        if let Some(position) = position
            && starts.last().is_none_or(|(_, _, last)| *last < position)
        {
            starts.push((at, at + line.len(), position));
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(start, _, _)| *start).chain([text.len()]);
    let section =
        |((_, body, position), end): (&(usize, usize, usize), usize)| (HEADINGS[*position], &text[*body..end]);
    starts.iter().zip(ends).map(section).collect()
}

/// `- name: value`; lines that follow belong to the value.
pub(crate) fn inputs(body: &str) -> Vec<(String, String)> {
    let mut inputs: Vec<(String, String)> = Vec::new();
    for line in body.lines() {
        match (line.strip_prefix("- ").and_then(|item| item.split_once(':')), inputs.last_mut()) {
            (Some((name, value)), _) => inputs.push((name.to_owned(), value.trim().to_owned())),
            (None, Some((_, value))) => {
                value.push('\n');
                value.push_str(line);
            }
            (None, None) => {}
        }
    }
    inputs
}

/// `- milestone id: description`, or `- artifact name`.
pub(crate) fn criterion(line: &str) -> Option<Criterion> {
    let line = line.strip_prefix("- ")?;
    if let Some(name) = line.strip_prefix("artifact ") {
        return Some(Criterion::Artifact(name.trim().to_owned()));
    }
    let (id, description) = line.strip_prefix("milestone ")?.split_once(':')?;
    let by_runtime = description.contains("(by a finished ");
    Some(Criterion::Milestone { id: id.trim().to_owned(), by_runtime })
}

/// `- [ ] id: description`, and whether it is reached.
pub(crate) fn milestone(line: &str) -> Option<(String, bool)> {
    let (reached, rest) = match line.strip_prefix("- [ ] ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("- [x] ")?),
    };
    Some((rest.split(':').next()?.trim().to_owned(), reached))
}

/// `## key`, and the text below it.
pub(crate) fn notes(body: &str) -> Vec<(String, String)> {
    let mut notes: Vec<(String, String)> = Vec::new();
    for line in body.lines() {
        match (line.strip_prefix("## "), notes.last_mut()) {
            (Some(key), _) => notes.push((key.trim().to_owned(), String::new())),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    notes
}

/// `- #42 tool {…} -> outcome`, or `- 40 earlier: tool 38 ok, tool 2 failed`.
pub(crate) fn actions(line: &str) -> Vec<Action> {
    let Some(line) = line.strip_prefix("- ") else {
        return vec![];
    };
    if let Some((_, counted)) = line.split_once(" earlier: ") {
        let action = |part: &str| {
            let mut words = part.trim().splitn(3, ' ');
            let (tool, _, outcome) = (words.next()?, words.next()?, words.next()?);
            Some(Action { tool: tool.to_owned(), arguments: String::new(), outcome: outcome.to_owned() })
        };
        return counted.split(',').filter_map(action).collect();
    }
    let action = || {
        let (_, rest) = line.strip_prefix('#')?.split_once(' ')?;
        let (tool, rest) = rest.split_once(' ')?;
        // The arguments may hold an arrow of their own; so may the outcome.
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let end = if matches!(values.next(), Some(Ok(_))) { values.byte_offset() } else { 0 };
        let arrow = end + rest[end..].find("-> ")?;
        let (arguments, outcome) = (rest[..arrow].trim().to_owned(), rest[arrow + 3..].trim().to_owned());
        Some(Action { tool: tool.to_owned(), arguments, outcome })
    };
    action().into_iter().collect()
}
