//! Blocks of prose into sentences, each with the smallest line range that holds it.
//!
//! The invariant that a report rests on: a sentence, with white space folded, is a substring of its lines,
//! with white space folded. Nothing is trimmed, joined or rewritten inside a sentence.
//!
//! A sentence ends at `.`, `!` or `?` (and closing quotes or marks) before white space, unless the next
//! letter is a small one, the word is an abbreviation, or the place is within inline code, brackets or
//! parentheses that close. The end of the block ends a sentence too.

use std::collections::HashMap;

use crate::blocks::Block;

/// A sentence of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// Its first line, from 1.
    pub(crate) from: u64,
    /// Its last line.
    pub(crate) to: u64,
    /// Its text, white space folded.
    pub(crate) text: String,
}

/// The length of a sentence that may be cited, in characters: shorter ones say little alone, longer ones are
/// mostly lists or prose that was not split.
const CITED_CHARS: std::ops::RangeInclusive<usize> = 40..=400;

/// The fewest words outside links that a cited sentence has.
const MIN_PROSE_WORDS: usize = 4;

/// Words after which a full stop ends nothing.
const ABBREVIATIONS: &[&str] = &[
    "a.k.a", "al", "approx", "ca", "cf", "dr", "e.g", "eds", "eg", "esp", "est", "etc", "i.e", "ie", "incl", "jr",
    "mr", "mrs", "prof", "resp", "sr", "st", "u.k", "u.s", "viz", "vs", "w.r.t",
];

/// Words after which a full stop ends nothing when a number follows: "Fig. 3", but "He said no."
const ABBREVIATIONS_OF_NUMBERED: &[&str] = &["ch", "eq", "fig", "no", "p", "pp", "sec", "vol"];

/// The sentences of a block, in order.
///
/// Where the block was cut at its head or tail, the first or last sentence may be part of one, and is left out.
pub(crate) fn split(block: &Block) -> Vec<Sentence> {
    let mut text = String::new();
    let mut starts = Vec::with_capacity(block.lines.len());
    for (number, line) in &block.lines {
        starts.push((text.len(), *number));
        text.push_str(line);
        text.push('\n');
    }
    let line_at = |at: usize| match starts.partition_point(|(start, _)| *start <= at) {
        0 => 0,
        after => starts[after - 1].1,
    };
    let mut pieces = pieces(&text);
    if block.tail_cut {
        pieces.pop();
    }
    let skipped = usize::from(block.head_cut);
    let sentence = |(start, end): (usize, usize)| Sentence {
        from: line_at(start),
        to: line_at(end - 1),
        text: fold(&text[start..end]),
    };
    pieces.into_iter().skip(skipped).map(sentence).collect()
}

/// The text with each run of white space as one blank, and none at its ends.
pub(crate) fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True for a sentence that may stand in a report: long enough, short enough, and prose beside its links.
pub(crate) fn is_citable(text: &str) -> bool {
    CITED_CHARS.contains(&text.chars().count()) && prose_words(text) >= MIN_PROSE_WORDS
}

/// How many words with letters there are outside links, addresses and inline code.
fn prose_words(text: &str) -> usize {
    let hidden = code_spans(text);
    let mut depth = 0_i64;
    let mut plain = String::with_capacity(text.len());
    let mut hidden = hidden.iter().peekable();
    for (at, c) in text.char_indices() {
        while hidden.next_if(|(_, end)| *end <= at).is_some() {}
        let in_code = hidden.peek().is_some_and(|(start, _)| *start <= at);
        depth += i64::from(c == '[' && !in_code);
        plain.push(if in_code || depth > 0 { ' ' } else { c });
        if c == ']' && !in_code {
            depth = (depth - 1).max(0);
        }
    }
    let is_word = |word: &&str| word.chars().any(char::is_alphabetic) && !word.contains("://") && !word.contains('/');
    plain.split_whitespace().filter(is_word).count()
}

/// The byte ranges of the sentences in a block's text, without white space at their ends.
fn pieces(text: &str) -> Vec<(usize, usize)> {
    let guarded = guarded(text);
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    let mut guards = guarded.iter().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        while guards.next_if(|(_, end)| *end <= at).is_some() {}
        if guards.peek().is_some_and(|(from, _)| *from <= at) {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((at, c)) = chars.next_if(|(_, c)| closes(*c)) {
            end = at + c.len_utf8();
        }
        if ends_here(&text[start..at], c, &text[end..]) {
            pieces.push((start, end));
            start = end;
        }
    }
    pieces.push((start, text.len()));
    pieces.iter().filter_map(|(start, end)| trimmed(text, *start, *end)).collect()
}

fn trimmed(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let piece = &text[start..end];
    let start = start + piece.len() - piece.trim_start().len();
    let end = start + piece.trim().len();
    (start < end).then_some((start, end))
}

/// What may stand between the sign that ends a sentence and the white space after it.
fn closes(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | ')' | ']' | '"' | '\'' | '*' | '_' | '”' | '’' | '»')
}

/// Whether a sentence that has come to `before` ends with `sign`, given what follows.
fn ends_here(before: &str, sign: char, after: &str) -> bool {
    if !after.starts_with(char::is_whitespace) {
        return false;
    }
    let next = after.trim_start().trim_start_matches(['*', '_', '"', '\'', '(', '[', '“', '‘']);
    if next.starts_with(char::is_lowercase) {
        return false;
    }
    sign != '.' || !is_abbreviation(before, next.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the last word of `before` is one that a full stop belongs to.
fn is_abbreviation(before: &str, number_follows: bool) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or("");
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    // An enumeration within a paragraph: "2. The second", at the head of a sentence or a line.
    let heads_its_line = before.rsplit('\n').next().is_some_and(|line| line.trim() == word);
    let enumerates = heads_its_line && word.chars().all(|c| c.is_ascii_digit());
    // An initial: "D. Knuth". "I" is a word.
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    let lower = word.to_lowercase();
    enumerates
        || is_initial
        || ABBREVIATIONS.contains(&lower.as_str())
        || (number_follows && ABBREVIATIONS_OF_NUMBERED.contains(&lower.as_str()))
}

/// The byte ranges in which no sentence ends, in order and apart: inline code, and brackets and parentheses
/// that close within the block.
fn guarded(text: &str) -> Vec<(usize, usize)> {
    let code = code_spans(text);
    let mut spans = code.clone();
    let mut code = code.into_iter().peekable();
    let mut open: Vec<(char, usize)> = Vec::new();
    for (at, c) in text.bytes().enumerate().map(|(at, b)| (at, char::from(b))) {
        while code.next_if(|(_, end)| *end <= at).is_some() {}
        if code.peek().is_some_and(|(start, _)| *start <= at) {
            continue;
        }
        match c {
            '(' | '[' => open.push((c, at)),
            ')' | ']' => {
                let opener = if c == ')' { '(' } else { '[' };
                // Only the innermost few are looked at, so that a text of nothing but brackets stays linear.
                let nearest = open.iter().rev().take(8).position(|(o, _)| *o == opener);
                if let Some(back) = nearest {
                    let index = open.len() - 1 - back;
                    spans.push((open[index].1, at));
                    open.truncate(index);
                }
            }
            _ => {}
        }
    }
    merged(spans)
}

fn merged(mut spans: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        match merged.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// The byte ranges of inline code: from a run of backticks to the next run of the same length.
fn code_spans(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, b)| *b == b'`') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    let mut next_same = vec![None; runs.len()];
    let mut seen = HashMap::new();
    for (index, (_, length)) in runs.iter().enumerate().rev() {
        next_same[index] = seen.insert(*length, index);
    }
    let mut spans = Vec::new();
    let mut index = 0;
    while index < runs.len() {
        match next_same[index] {
            Some(closing) => {
                spans.push((runs[index].0, runs[closing].0 + runs[closing].1));
                index = closing + 1;
            }
            None => index += 1,
        }
    }
    spans
}

#[cfg(test)]
mod tests;
