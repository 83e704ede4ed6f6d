//! The memory as the text of the note; [`recall`](crate::recall) reads it back.
//!
//! One line each: what is looked for and how far reading has come, then each document with its counts,
//! followed by its sentences (`- 60-61: text`). No line starts with `#`. A note that is not of this form, or
//! was written for other terms, is as good as none: reading starts anew.

use std::fmt::Write as _;

use crate::blocks::Edge;
use crate::memory::{Document, Listing, Memory};
use crate::sentences::Sentence;

/// The key of the note.
pub(crate) const KEY: &str = "extracts";

/// A note that is refused with less room than this cannot be kept at all.
pub(crate) const MIN_BYTES: usize = 512;

/// The note's text.
pub(crate) fn write(memory: &Memory) -> String {
    let mut text = head(memory);
    for document in &memory.documents {
        write_document(&mut text, "read", document);
    }
    if !memory.queue.is_empty() {
        write_document(&mut text, "reading", &memory.current);
    }
    text
}

/// The part of the note that is there whatever is kept.
fn head(memory: &Memory) -> String {
    let tally = &memory.tally;
    let listing = match memory.listing {
        Listing::More => "more",
        Listing::All => "all",
        Listing::Failed => "failed",
        Listing::Stopped => "stopped",
    };
    let mut text = format!(
        "terms: {}\nlimits: {} bytes, {} lines\ntally: {} documents, {} skipped, {} sentences, {} words\nhaving: {}\nlisted: {listing} {}\n",
        memory.terms.join(" "),
        memory.limit,
        memory.step,
        tally.documents,
        tally.skipped,
        tally.sentences,
        tally.words,
        numbers(&tally.having),
        memory.listed_to,
    );
    if !memory.queue.is_empty() {
        let _ = writeln!(text, "at: {} {}", memory.place.line, edge(memory.place.edge));
    }
    for entry in &memory.queue {
        let _ = writeln!(text, "next: {} lines, {} bytes, {}", entry.lines, entry.bytes, entry.name);
    }
    text
}

fn write_document(text: &mut String, word: &str, document: &Document) {
    let counts = numbers(&document.counts);
    let Document { sentences, words, titled, name, .. } = document;
    let _ = writeln!(text, "{word}: {sentences} sentences, {words} words, {counts} terms, {titled} titled, {name}");
    for Sentence { from, to, text: sentence } in &document.kept {
        let _ = writeln!(text, "- {from}-{to}: {sentence}");
    }
}

/// How many bytes of the note a sentence takes.
pub(crate) fn sentence_bytes(sentence: &Sentence) -> usize {
    "- -: \n".len() + sentence.from.to_string().len() + sentence.to.to_string().len() + sentence.text.len()
}

/// How many bytes of the note a document takes, without its sentences.
pub(crate) fn document_bytes(document: &Document) -> usize {
    let mut text = String::new();
    let bare = Document { kept: vec![], ..document.clone() };
    write_document(&mut text, "read", &bare);
    text.len()
}

fn numbers(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("/")
}

fn edge(edge: Edge) -> String {
    match edge {
        Edge::Clear => "clear".into(),
        Edge::Block => "block".into(),
        Edge::Cut => "cut".into(),
        Edge::Skip => "skip".into(),
        Edge::Comment => "comment".into(),
        Edge::Fence(sign, length) => format!("fence {length} {}", char::from(sign)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Place;
    use crate::memory::Tally;
    use crate::page::Entry;
    use crate::recall::read;

    fn sample() -> Memory {
        let mut memory = Memory::new(vec!["tide".into(), "moon".into()]);
        let kept = vec![Sentence { from: 3, to: 4, text: "The tide: it turns.".into() }];
        memory.tally = Tally { documents: 2, skipped: 1, sentences: 30, words: 400, having: vec![2, 1] };
        memory.documents =
            vec![Document { name: "a, b.md".into(), counts: vec![4, 1], titled: 2, kept, ..Document::default() }];
        memory.queue.push_back(Entry { name: "c: d.md".into(), lines: 9, bytes: 99 });
        memory.place = Place { line: 5, edge: Edge::Fence(b'~', 4) };
        memory.listed_to = "c: d.md".into();
        memory
    }

    #[test]
    fn what_is_written_is_read_back() {
        let memory = sample();
        assert_eq!(read(&write(&memory), &memory.terms), Some(memory));
        let none = Memory::new(vec![]);
        assert_eq!(read(&write(&none), &[]), Some(none));
    }

    #[test]
    fn another_note_is_none() {
        let memory = sample();
        assert_eq!(read(&write(&memory), &["tide".into()]), None);
        for text in ["", "- a list", "free text", "terms: tide moon", "having: 1", "at: 0 clear", "- 1-2: x"] {
            assert_eq!(read(text, &memory.terms), None, "{text}");
        }
    }

    #[test]
    fn every_prefix_of_a_note_is_read_without_a_panic() {
        let text = write(&sample());
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = read(&text[..end], &sample().terms);
        }
    }
}
