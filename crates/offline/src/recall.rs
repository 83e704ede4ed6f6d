//! The text of the note back into the memory.
//!
//! [`note`](crate::note) describes the format.

use crate::blocks::{Edge, Place};
use crate::memory::{Document, Listing, MAX_STEP, Memory, NOTE_BYTES, Tally};
use crate::page::Entry;
use crate::sentences::Sentence;

/// Reads a note that was written for `terms`. `None` when it is another.
pub(crate) fn read(text: &str, terms: &[String]) -> Option<Memory> {
    let mut memory = Memory::new(terms.to_vec());
    let mut seen_head = false;
    let mut document: Option<(bool, Document)> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(sentence) = line.strip_prefix("- ") {
            document.as_mut()?.1.kept.push(parse_sentence(sentence)?);
            continue;
        }
        let (word, rest) = line.split_once(':')?;
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        if matches!(word, "read" | "reading") {
            place_document(&mut memory, document.take());
            document = Some((word == "reading", parse_document(rest, terms.len())?));
        } else {
            seen_head |= word == "having";
            parse_head(&mut memory, word, rest)?;
        }
    }
    place_document(&mut memory, document);
    seen_head.then_some(memory)
}

fn place_document(memory: &mut Memory, document: Option<(bool, Document)>) {
    match document {
        Some((true, document)) => memory.current = document,
        Some((false, document)) => memory.documents.push(document),
        None => {}
    }
}

fn parse_head(memory: &mut Memory, word: &str, rest: &str) -> Option<()> {
    match word {
        "terms" => (rest.trim_end() == memory.terms.join(" ")).then_some(())?,
        "limits" => {
            let (bytes, lines) = rest.strip_suffix(" lines")?.split_once(" bytes, ")?;
            memory.limit = bytes.parse::<usize>().ok()?.min(NOTE_BYTES);
            memory.step = lines.parse::<u64>().ok()?.clamp(1, MAX_STEP);
        }
        "tally" => {
            let mut fields = rest.split(", ").map(number);
            let mut next = || fields.next().flatten();
            let (documents, skipped, sentences, words) = (next()?, next()?, next()?, next()?);
            memory.tally = Tally { documents, skipped, sentences, words, having: memory.tally.having.clone() };
        }
        "having" => memory.tally.having = parse_numbers(rest, memory.terms.len())?,
        "listed" => {
            let (listing, name) = rest.split_once(' ').unwrap_or((rest, ""));
            memory.listing = match listing {
                "more" => Listing::More,
                "all" => Listing::All,
                "failed" => Listing::Failed,
                "stopped" => Listing::Stopped,
                _ => return None,
            };
            memory.listed_to = name.to_owned();
        }
        "at" => memory.place = parse_place(rest)?,
        "next" => {
            let mut fields = rest.splitn(3, ", ");
            let (lines, bytes) = (number(fields.next()?)?, number(fields.next()?)?);
            memory.queue.push_back(Entry { name: fields.next()?.to_owned(), lines, bytes });
        }
        _ => return None,
    }
    Some(())
}

fn parse_place(text: &str) -> Option<Place> {
    let mut words = text.split(' ');
    let line = words.next()?.parse().ok().filter(|line| *line > 0)?;
    let edge = match words.next()? {
        "clear" => Edge::Clear,
        "block" => Edge::Block,
        "cut" => Edge::Cut,
        "skip" => Edge::Skip,
        "comment" => Edge::Comment,
        "fence" => Edge::Fence(words.next_back()?.bytes().next()?, words.next()?.parse().ok()?),
        _ => return None,
    };
    Some(Place { line, edge })
}

fn parse_document(text: &str, terms: usize) -> Option<Document> {
    let mut fields = text.splitn(5, ", ");
    let (sentences, words) = (number(fields.next()?)?, number(fields.next()?)?);
    let counts = parse_numbers(fields.next()?.strip_suffix("terms")?.trim_end(), terms)?;
    let titled = u32::try_from(number(fields.next()?)?).ok()?;
    let name = fields.next().unwrap_or("").to_owned();
    Some(Document { name, sentences, words, counts, titled, kept: vec![] })
}

fn parse_sentence(text: &str) -> Option<Sentence> {
    let (lines, text) = text.split_once(": ")?;
    let (from, to) = lines.split_once('-')?;
    Some(Sentence { from: from.parse().ok()?, to: to.parse().ok()?, text: text.to_owned() })
}

/// The number at the head of a field such as `12 words`.
fn number(field: &str) -> Option<u64> {
    field.split(' ').next()?.parse().ok()
}

/// As many numbers as there are terms; none is an empty text.
fn parse_numbers(text: &str, expected: usize) -> Option<Vec<u64>> {
    let parts = text.split('/').filter(|part| !part.is_empty());
    let numbers = parts.map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    (numbers.len() == expected).then_some(numbers)
}
