//! A run in memory: tools over documents in a map, and a context that shows the model the notes, the
//! completed actions and the newest two decisions, and nothing else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::task::{Context, Poll, Waker};

use lodestep_model::{Call, CallResult, Message, Model, ModelError, Reply, Request, ToolSpec};
use lodestep_offline::OfflineModel;
use serde_json::{Value, json};

/// How many decisions the context shows in full.
const RECENT: usize = 2;

/// The most bytes of text in one range, as the documents tool has it.
const RANGE_BYTES: usize = 24_000;

pub struct Run {
    pub topic: String,
    pub documents: BTreeMap<String, String>,
    pub tools: Vec<ToolSpec>,
    /// What the tools that are not built in answer, by name: text, and whether it is an error.
    pub answers: BTreeMap<String, (String, bool)>,
    /// Results longer than this are shown without their middle.
    pub shown_bytes: usize,
    /// Longer notes are refused.
    pub note_bytes: usize,
    /// What finish still says before it lets the run end.
    pub refusals: Vec<String>,
    /// Documents whose reads fail.
    pub unreadable: Vec<String>,
    /// Why the list can't be had, when it can't.
    pub unlisted: Option<String>,
    pub calls_left: u64,
    /// What a person says, shown to the next decision alone.
    pub guidance: Option<String>,
    pub notes: BTreeMap<String, String>,
    pub artifacts: BTreeMap<String, String>,
    pub reached: BTreeMap<String, String>,
    /// Every call with its result, decision by decision.
    pub history: Vec<(Vec<Call>, Vec<CallResult>)>,
    pub summary: Option<String>,
    pub longest_note: usize,
    pub usage: Vec<lodestep_model::Usage>,
}

impl Run {
    pub fn new(topic: &str, documents: &[(&str, &str)]) -> Self {
        Self {
            topic: topic.into(),
            documents: documents.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
            tools: tools(),
            answers: BTreeMap::new(),
            shown_bytes: usize::MAX,
            note_bytes: 8 * 1024,
            refusals: vec![],
            unreadable: vec![],
            unlisted: None,
            calls_left: 1_000,
            guidance: None,
            notes: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            reached: BTreeMap::new(),
            history: vec![],
            summary: None,
            longest_note: 0,
            usage: vec![],
        }
    }

    /// Adds a tool that is not built in, and what it answers.
    pub fn offer(&mut self, name: &str, input: Value, answer: &str, is_error: bool) {
        self.tools.push(ToolSpec { name: name.into(), description: "Of the agent.".into(), input });
        self.answers.insert(name.into(), (answer.into(), is_error));
    }

    /// Runs to the finish, or panics when it does not come.
    pub fn finish(&mut self) {
        for _ in 0..400 {
            self.step();
            if self.summary.is_some() {
                return;
            }
        }
        panic!("no finish; the last decision was {:?}", self.history.last());
    }

    pub fn step(&mut self) {
        let reply = ask(&self.request()).expect("the tools are all there");
        self.guidance = None;
        assert!(!reply.calls.is_empty(), "every reply makes a call");
        self.usage.extend(reply.usage);
        self.calls_left -= 1;
        let results = reply.calls.iter().map(|call| self.perform(call)).collect();
        self.history.push((reply.calls, results));
    }

    /// The calls of one tool in the whole run, with their arguments and results.
    pub fn calls(&self, tool: &str) -> Vec<(Value, &CallResult)> {
        let all = self.history.iter().flat_map(|(calls, results)| calls.iter().zip(results));
        let of_tool = all.filter(|(call, _)| call.name == tool);
        of_tool.map(|(call, result)| (serde_json::from_str(&call.arguments).expect("JSON"), result)).collect()
    }

    pub fn report(&self) -> &str {
        &self.artifacts["report.md"]
    }

    /// Citations by document, in the order of the report. Panics when one is not in the lines that it names.
    pub fn citations(&self) -> Vec<(String, usize)> {
        let mut by_document: Vec<(String, usize)> = vec![];
        if self.report().ends_with("No sentence of the documents answers this.\n") {
            return by_document;
        }
        for line in self.report().lines().filter(|line| !line.is_empty()).skip(1) {
            if let Some(name) = line.strip_prefix("## ") {
                by_document.push((name.into(), 0));
                continue;
            }
            let (sentence, place) = line.strip_prefix("- ").and_then(|l| l.rsplit_once(" [")).expect("a citation");
            let (name, span) = place.strip_suffix(']').and_then(|p| p.rsplit_once(':')).expect("a place");
            let (from, to) = span.split_once('-').expect("a span");
            let lines: Vec<_> = self.documents[name].lines().collect();
            let cited = fold(&lines[from.parse::<usize>().expect("from") - 1..to.parse().expect("to")].join("\n"));
            assert!(cited.contains(&fold(sentence)), "{name}:{span} does not hold {sentence:?}");
            let last = by_document.last_mut().expect("a heading before the citation");
            assert_eq!(last.0, name);
            last.1 += 1;
        }
        by_document
    }

    pub fn request(&self) -> Request {
        let mut text = format!("# Objective\nWrite a report.\n\n# Inputs\n- topic: {}\n\n# Done when\n", self.topic);
        text.push_str("- milestone read: Every document was read\n");
        text.push_str("- milestone out: It is out (by a finished publish)\n- artifact report.md\n\n# Plan\n");
        for id in ["read", "out"] {
            let mark = if self.reached.contains_key(id) { "x" } else { " " };
            let _ = writeln!(text, "- [{mark}] {id}: …");
        }
        text.push_str("\n# Notes\n");
        for (key, note) in &self.notes {
            let _ = writeln!(text, "## {key}\n{}", note.trim_end());
        }
        let recent = self.history.len().saturating_sub(RECENT);
        text.push_str(&self.completed(recent));
        let mut messages = vec![Message::User { text }];
        for (calls, results) in &self.history[recent..] {
            messages.push(Message::Assistant { text: String::new(), calls: calls.clone(), blocks: None });
            let results = results.iter().map(|r| CallResult { text: self.shown(&r.text), ..r.clone() }).collect();
            messages.push(Message::Results { results });
        }
        let guidance = self.guidance.as_ref().map(|said| format!("# Guidance\n{said}\n")).unwrap_or_default();
        let remaining = format!("# Remaining\n- model_calls: {} of 1000\n", self.calls_left);
        messages.push(Message::User { text: guidance + &remaining });
        Request {
            system: "Work.".into(),
            messages: messages.into_iter().map(Into::into).collect(),
            tools: self.tools.clone().into(),
            max_output_tokens: 4_000,
            turn: 0,
        }
    }

    fn completed(&self, upto: usize) -> String {
        let mut text = "\n# Completed actions\n- 3 earlier: documents_read 3 ok\n".to_owned();
        for (call, result) in self.history[..upto].iter().flat_map(|(calls, results)| calls.iter().zip(results)) {
            let outcome = match (result.is_error, result.text.starts_with("denied")) {
                (false, _) => format!("ok, {} bytes", result.text.len()),
                (true, true) => result.text.clone(),
                (true, false) => format!("failed: {}", result.text),
            };
            let short = if call.arguments.len() > 400 { "{…}" } else { &call.arguments };
            let _ = writeln!(text, "- #9 {} {short} -> {outcome}", call.name);
        }
        text
    }

    /// The text, without its middle when it is too long: cut at bytes, not at lines.
    fn shown(&self, text: &str) -> String {
        if text.len() <= self.shown_bytes {
            return text.into();
        }
        let head = text.floor_char_boundary(self.shown_bytes / 2);
        let tail = text.ceil_char_boundary(text.len() - self.shown_bytes / 2);
        format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
    }

    fn perform(&mut self, call: &Call) -> CallResult {
        let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
        let argument = |name: &str| arguments[name].as_str().unwrap_or("").to_owned();
        let number = |name: &str, default| arguments[name].as_u64().map_or(default, |n| n as usize);
        let (text, is_error) = match call.name.as_str() {
            "documents_list" if self.unlisted.is_some() => (self.unlisted.clone().unwrap_or_default(), true),
            "documents_list" => (self.list(&argument("after"), number("limit", 100)), false),
            "documents_read" => self.read(&argument("name"), number("from", 1), number("lines", 200)),
            "artifact_save" => {
                self.artifacts.insert(argument("name"), argument("text"));
                ("saved report.md, version 1, 9 bytes".into(), false)
            }
            "note" if argument("text").len() > self.note_bytes => ("the note is too long".into(), true),
            "note" => {
                self.longest_note = self.longest_note.max(argument("text").len());
                self.notes.insert(argument("key"), argument("text"));
                ("noted".into(), false)
            }
            "plan" => {
                self.reached.insert(argument("milestone"), argument("evidence"));
                ("marked".into(), false)
            }
            "finish" if !self.refusals.is_empty() => (self.refusals.remove(0), true),
            "finish" => {
                self.summary = Some(argument("summary"));
                ("finished".into(), false)
            }
            other => self.answers[other].clone(),
        };
        CallResult { id: call.id.clone(), name: call.name.clone(), text, is_error }
    }

    fn list(&self, after: &str, limit: usize) -> String {
        let page: Vec<_> = self.documents.iter().filter(|(name, _)| name.as_str() > after).take(limit).collect();
        let mut text = String::new();
        for (name, document) in &page {
            let _ = writeln!(text, "{name}\t{} lines\t{} bytes", document.lines().count(), document.len());
        }
        let _ = write!(text, "{} of {} documents", page.len(), self.documents.len());
        if let (Some(last), Some(very_last)) = (page.last(), self.documents.keys().last())
            && last.0 != very_last
        {
            let _ = write!(text, "; more after \"{}\"", last.0);
        }
        text
    }

    fn read(&self, name: &str, from: usize, lines: usize) -> (String, bool) {
        let document = self.documents.get(name).filter(|_| !self.unreadable.iter().any(|n| n == name));
        let Some(document) = document else {
            return (format!("there is no document {name}"), true);
        };
        assert!(lines <= 400, "the schema says at most 400 lines");
        let total = document.lines().count();
        let (mut body, mut last) = (String::new(), from.saturating_sub(1));
        for (index, line) in document.lines().enumerate().skip(from.saturating_sub(1)).take(lines) {
            let cut = line.floor_char_boundary(2_000);
            let mut row = format!("{}| {}", index + 1, &line[..cut]);
            if cut < line.len() {
                let _ = write!(row, " [… {} bytes left out]", line.len() - cut);
            }
            if body.len() + row.len() > RANGE_BYTES && !body.is_empty() {
                break;
            }
            body.push_str(&row);
            body.push('\n');
            last = index + 1;
        }
        (format!("{name} lines {from}-{last} of {total}\n{body}"), false)
    }
}

/// Asks the model once.
pub fn ask(request: &Request) -> Result<Reply, ModelError> {
    match OfflineModel.ask(request).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the offline model waits for nothing"),
    }
}

pub fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tools() -> Vec<ToolSpec> {
    let text = || json!({"type": "string"});
    let tool = |name: &str, properties: Value| ToolSpec {
        name: name.into(),
        description: "Built in.".into(),
        input: json!({"type": "object", "properties": properties}),
    };
    vec![
        tool("documents_list", json!({"after": text(), "limit": {"type": "integer", "maximum": 500}})),
        tool(
            "documents_read",
            json!({"name": text(), "from": {"type": "integer"}, "lines": {"type": "integer", "maximum": 400}}),
        ),
        tool("documents_search", json!({"query": text(), "limit": {"type": "integer"}})),
        tool("artifact_save", json!({"name": text(), "text": text()})),
        tool("artifact_open", json!({"name": text()})),
        tool("artifact_close", json!({"name": text()})),
        tool("artifact_search", json!({"name": text(), "query": text()})),
        tool("note", json!({"key": text(), "text": text()})),
        tool("plan", json!({"milestone": text(), "status": text(), "evidence": text()})),
        tool("ask", json!({"question": text(), "choices": {"type": "array"}})),
        tool("finish", json!({"summary": text()})),
    ]
}
