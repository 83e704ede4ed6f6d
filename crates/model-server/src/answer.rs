//! A reply as it is about to be written, in no shape yet; and how a text is cut into deltas.

use lodestep_model::{Call, Reply, StopReason};

use crate::bill::Tokens;
use crate::plan::Fault;
use crate::question::Question;
use crate::tokens;

/// Stands in an answer's text for half of a surrogate pair, which no string here can hold; under that fault alone.
const HALF: char = '\u{e000}';
/// What the half is spelled as.
const HALF_SPELLED: &str = "\\ud99c";

/// Everything that an answer says.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Number of the request at this server; the ids are made of it.
    pub number: usize,
    pub model: String,
    pub reasoning: Option<String>,
    /// Text blocks. The OpenAI shape has one text: all of them.
    pub texts: Vec<String>,
    pub calls: Vec<Call>,
    pub stop: Stop,
    /// `None`: the answer says nothing of it.
    pub usage: Option<Tokens>,
    /// Whether a stream is to end with its usage.
    pub stream_usage: bool,
    pub oddity: Oddity,
}

/// Why it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    ToolCalls,
    OutputLimit,
    Refusal,
    ContentFilter,
}

/// How an answer is written otherwise than usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Oddity {
    #[default]
    None,
    UnknownEvents,
    WithoutIndex,
}

impl Answer {
    /// What the mind said, thought before and billed.
    pub fn new(number: usize, question: &Question, reply: Reply, reasoning: Option<String>) -> Self {
        let texts = if reply.text.is_empty() { Vec::new() } else { vec![reply.text] };
        let stop = match reply.stop {
            StopReason::End => Stop::End,
            StopReason::ToolCalls => Stop::ToolCalls,
            StopReason::OutputLimit => Stop::OutputLimit,
            StopReason::Refused => Stop::Refusal,
        };
        Self {
            number,
            model: question.model.clone(),
            reasoning,
            texts,
            calls: reply.calls.into_iter().enumerate().map(|(at, call)| with_id(call, number, at)).collect(),
            stop,
            usage: None,
            stream_usage: question.stream_usage,
            oddity: Oddity::None,
        }
    }

    /// Tokens of all that it says.
    pub fn output_tokens(&self) -> u64 {
        let texts = self.texts.iter().chain(&self.reasoning).map(|text| tokens::count(text)).sum::<u64>();
        texts + self.calls.iter().map(tokens::count_call).sum::<u64>()
    }

    /// Makes it what the fault wants, before it is billed. `last_ids` are those of the calls of the answer before.
    pub fn spoil(&mut self, fault: &Fault, last_ids: &[String]) {
        match fault {
            Fault::CallIdsRepeated => {
                for (call, id) in self.calls.iter_mut().zip(last_ids) {
                    call.id.clone_from(id);
                }
            }
            Fault::CallIdsDoubled => self.double_ids(),
            Fault::EmptyReply => self.say(Vec::new()),
            Fault::EmptyText => self.say(vec![String::new()]),
            Fault::LoneSurrogate => self.halve_a_pair(),
            Fault::OtherModel(name) => self.model.clone_from(name),
            Fault::OutputLimit => self.cut(),
            Fault::Refusal => self.refuse(Stop::Refusal),
            Fault::ContentFilter => self.refuse(Stop::ContentFilter),
            Fault::UnknownEvents => self.oddity = Oddity::UnknownEvents,
            Fault::EmptyArguments => self.calls.iter_mut().for_each(|call| call.arguments.clear()),
            Fault::DeltasWithoutIndex => self.oddity = Oddity::WithoutIndex,
            _ => {}
        }
    }

    fn double_ids(&mut self) {
        if let [only] = &self.calls[..] {
            self.calls.push(only.clone());
        }
        if let [first, second, ..] = &mut self.calls[..] {
            second.id.clone_from(&first.id);
        }
    }

    fn say(&mut self, texts: Vec<String>) {
        self.texts = texts;
        self.calls.clear();
        self.stop = Stop::End;
    }

    fn refuse(&mut self, stop: Stop) {
        self.calls.clear();
        self.stop = stop;
    }

    fn halve_a_pair(&mut self) {
        match self.texts.first_mut() {
            Some(text) => text.push(HALF),
            None => self.texts.push(HALF.into()),
        }
    }

    fn cut(&mut self) {
        let said = self.calls.last_mut().map(|call| &mut call.arguments).or(self.texts.last_mut());
        if let Some(said) = said {
            said.truncate(said.floor_char_boundary(said.len() / 2));
        }
        self.stop = Stop::OutputLimit;
    }

    /// The ids of its calls.
    pub fn call_ids(&self) -> Vec<String> {
        self.calls.iter().map(|call| call.id.clone()).collect()
    }
}

/// A call that its mind left without an id gets one, as a service gives it.
fn with_id(call: Call, number: usize, at: usize) -> Call {
    if call.id.is_empty() { Call { id: format!("call_{number:08}_{at}"), ..call } } else { call }
}

/// Bytes of a text of JSON, with the half of a pair put in as it is spelled.
pub(crate) fn spelled(json: &str) -> String {
    json.replace(HALF, HALF_SPELLED)
}

/// A JSON text in which every character beyond ASCII is escaped: as good JSON as the other, and what some servers send.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() || letter == HALF {
            text.push(letter);
        } else {
            let mut units = [0; 2];
            text.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// A text in pieces, as a model gives it: several of them, and cut where a reader is most easily wrong, behind a backslash
/// and within the digits of a `\u` escape.
pub(crate) fn deltas(text: &str) -> Vec<&str> {
    const PIECES: usize = 4;
    const SHORTEST: usize = 6;
    let even = (text.len() / PIECES).max(SHORTEST);
    let mut cuts: Vec<usize> = (even..text.len()).step_by(even).map(|at| text.floor_char_boundary(at)).collect();
    if let Some(at) = text.find('\\') {
        cuts.push(at + 1);
    }
    if let Some(at) = text.find("\\u") {
        cuts.push(text.floor_char_boundary((at + 4).min(text.len())));
    }
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in cuts.into_iter().chain([text.len()]) {
        if to > from {
            pieces.push(&text[from..to]);
            from = to;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_the_text_and_cut_escapes() {
        for text in ["", "a", "{}", r#"{"a":"é☃🦀 \n and \ud83e\udd80"}"#, "🦀🦀🦀🦀🦀🦀🦀"] {
            assert_eq!(deltas(text).concat(), text);
            assert!(deltas(text).iter().all(|piece| !piece.is_empty()), "{text}");
        }
        assert!(deltas(r#"{"a":"line\nbreak"}"#).iter().any(|piece| piece.ends_with('\\')));
        assert!(deltas(r#"{"a":"\u00e9"}"#).iter().any(|piece| piece.ends_with("\\u00") || piece.starts_with("e9")));
    }

    #[test]
    fn escaped_json_says_the_same() {
        let json = r#"{"a":"é☃🦀 \n"}"#;
        assert!(escaped(json).is_ascii());
        let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(read(&escaped(json)), read(json));
    }
}
