//! Results into memory, and which pages and ranges to ask for next.

use serde_json::{Map, Value, json};

use crate::blocks::{self, Edge, Place};
use crate::memory::{Listing, MAX_STEP, Memory};
use crate::page::{self, Entry, RangePage};
use crate::rank;
use crate::sentences::{self, Sentence};
use crate::terms;
use crate::tools::{self, Tools};
use crate::view::Outcome;

/// How many names one page of the list has.
const LIST_LIMIT: u64 = 10;

/// The most bytes of names and sizes that wait in the note. The rest of a page is listed again later.
const QUEUE_BYTES: usize = 1_000;

/// A document with a longer name is not read: it would leave the note no room.
const MAX_NAME_BYTES: usize = 500;

/// The fewest lines to ask for, however short the results are made.
const MIN_STEP: u64 = 25;

/// The most bytes that one read is expected to give; it ends earlier than asked where lines are long.
const RANGE_BYTES: u64 = 22_000;

/// Takes in what the newest decision brought. True when the memory has changed.
pub(crate) fn absorb(memory: &mut Memory, newest: &[Outcome], tools: &Tools) -> bool {
    let before = memory.clone();
    for outcome in newest {
        if outcome.tool == tools.list.name {
            absorb_list(memory, outcome);
        } else if outcome.tool == tools.read.name {
            absorb_range(memory, outcome);
        }
    }
    let changed = *memory != before;
    if changed {
        rank::fit(memory);
    }
    changed
}

fn absorb_list(memory: &mut Memory, outcome: &Outcome) {
    let after = outcome.argument("after").and_then(Value::as_str).unwrap_or("");
    if memory.listing != Listing::More || after != memory.listed_to {
        return;
    }
    if outcome.failed {
        memory.listing = Listing::Failed;
        return;
    }
    let mut page = page::list(&outcome.text);
    // Only what lies further on counts, so that a list that repeats itself comes to an end.
    page.entries.retain(|entry| entry.name > memory.listed_to);
    let mut room = QUEUE_BYTES;
    let mut taken = 0;
    for entry in page.entries.iter().take(LIST_LIMIT as usize) {
        room = room.saturating_sub(entry.name.len().min(MAX_NAME_BYTES) + 30);
        if room == 0 && taken > 0 {
            break;
        }
        enqueue(memory, entry);
        taken += 1;
    }
    let more = page.more || taken < page.entries.len();
    memory.listing = match more {
        true if taken == 0 => Listing::Failed,
        true => Listing::More,
        false => Listing::All,
    };
}

fn enqueue(memory: &mut Memory, entry: &Entry) {
    if entry.name.len() <= MAX_NAME_BYTES {
        memory.listed_to = entry.name.clone();
        memory.queue.push_back(entry.clone());
        return;
    }
    // The list goes on after any text, so one that sorts behind the name does as well as the name.
    let end = entry.name.floor_char_boundary(MAX_NAME_BYTES);
    memory.listed_to = format!("{}{}", &entry.name[..end], char::MAX);
    memory.tally.skipped = memory.tally.skipped.saturating_add(1);
}

fn absorb_range(memory: &mut Memory, outcome: &Outcome) {
    let from = memory.place.line;
    let asked = outcome.argument("from").and_then(Value::as_u64).unwrap_or(1);
    let name = outcome.argument("name").and_then(Value::as_str);
    let Some(entry) = memory.queue.front_mut().filter(|entry| Some(entry.name.as_str()) == name && asked == from)
    else {
        return;
    };
    let Some(page) = page::range(&outcome.text, &entry.name, from).filter(|_| !outcome.failed) else {
        memory.skip_document();
        return;
    };
    entry.lines = page.total;
    memory.step = next_step(memory.step, &page);
    let last = page.lines.last().map_or(page.last.max(from), |line| line.number);
    let at_end = last >= page.total;
    let scan = blocks::scan(&page.lines, memory.place.edge, at_end);
    count_headings(memory, &scan.headings);
    let found = count_prose(memory, &scan.blocks);
    // A range without a line leads on past itself, so that every result brings reading forward.
    memory.place =
        if page.lines.is_empty() { Place { line: last.saturating_add(1), edge: Edge::Cut } } else { scan.resume };
    rank::add(memory, found);
    if at_end {
        memory.finish_document();
    }
}

/// How many lines to ask for after this page.
fn next_step(step: u64, page: &RangePage<'_>) -> u64 {
    if page.shortened {
        // The lines are those before the gap, about half of what may be shown: ask for what fits whole.
        let fits = page.lines.len() as u64 * 3 / 2;
        fits.clamp(MIN_STEP, step.max(MIN_STEP))
    } else {
        // Lines differ in length, so what fits is found out again and again.
        step.saturating_add(step / 4).min(MAX_STEP)
    }
}

/// Headings count like a sentence each; the first one also as the document's title.
fn count_headings(memory: &mut Memory, headings: &[String]) {
    let at_start = memory.place == Place::START;
    let name = memory.queue.front().map_or("", |entry| entry.name.as_str());
    let title = if at_start { headings.first().map(String::as_str) } else { None };
    let stems = terms::stems(&format!("{name} {}", title.unwrap_or("")));
    for (index, count) in terms::counts(&memory.terms, &stems).into_iter().enumerate() {
        memory.current.titled |= u32::from(count > 0) << index;
    }
    for heading in headings {
        let stems = terms::stems(heading);
        count_words(memory, &stems);
    }
}

/// Counts all sentences, and returns those that may be cited and have a term.
fn count_prose(memory: &mut Memory, blocks: &[blocks::Block<'_>]) -> Vec<Sentence> {
    let mut found = Vec::new();
    for sentence in blocks.iter().flat_map(sentences::split) {
        let stems = terms::stems(&sentence.text);
        memory.current.sentences = memory.current.sentences.saturating_add(1);
        if count_words(memory, &stems) && sentences::is_citable(&sentence.text) {
            found.push(sentence);
        }
    }
    found
}

/// Adds words to the counts of the open document. True when a term is among them.
fn count_words(memory: &mut Memory, stems: &[String]) -> bool {
    let counts = terms::counts(&memory.terms, stems);
    memory.current.words = memory.current.words.saturating_add(stems.len() as u64);
    for (total, count) in memory.current.counts.iter_mut().zip(&counts) {
        *total = total.saturating_add(*count);
    }
    counts.iter().any(|count| *count > 0)
}

/// The reads, and the page of the list, to ask for next: about 600 lines at once.
pub(crate) fn next_calls(memory: &Memory, tools: &Tools) -> Vec<(String, Value)> {
    let step = memory.step.min(tools::maximum(tools.read, "lines").unwrap_or(memory.step)).max(1);
    let mut room = (step + step / 2, RANGE_BYTES + RANGE_BYTES / 2);
    let mut calls = Vec::new();
    let mut reaches_end = true;
    for (index, entry) in memory.queue.iter().enumerate() {
        let from = if index == 0 { memory.place.line } else { 1 };
        let lines = step.min((entry.lines.saturating_add(1)).saturating_sub(from)).max(1);
        let bytes = (u128::from(entry.bytes) * u128::from(lines) / u128::from(entry.lines.max(1))) as u64;
        if !reaches_end || (index > 0 && (lines > room.0 || bytes > room.1)) {
            reaches_end = false;
            break;
        }
        room = (room.0.saturating_sub(lines), room.1.saturating_sub(bytes));
        calls.push((tools.read.name.clone(), read_arguments(tools, &entry.name, from, step)));
        reaches_end = from.saturating_add(lines) > entry.lines && bytes <= RANGE_BYTES;
    }
    if reaches_end && memory.listing == Listing::More {
        calls.push((tools.list.name.clone(), list_arguments(memory, tools)));
    }
    calls
}

fn read_arguments(tools: &Tools, name: &str, from: u64, lines: u64) -> Value {
    let mut arguments = Map::from_iter([("name".to_owned(), json!(name)), ("from".to_owned(), json!(from))]);
    if tools::property(tools.read, "lines").is_some() {
        arguments.insert("lines".into(), json!(lines));
    }
    Value::Object(arguments)
}

fn list_arguments(memory: &Memory, tools: &Tools) -> Value {
    let mut arguments = Map::new();
    if !memory.listed_to.is_empty() {
        arguments.insert("after".into(), json!(memory.listed_to));
    }
    if tools::property(tools.list, "limit").is_some() {
        arguments.insert("limit".into(), json!(LIST_LIMIT));
    }
    Value::Object(arguments)
}
