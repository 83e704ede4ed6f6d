//! Searching all documents for words.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use super::lines::SHOWN_BYTES;
use super::{ANSWER_BYTES, at_least_one, documents};
use crate::tools::rooted::Rooted;

/// How many lines are shown when no number is given.
const LIMIT_DEFAULT: u64 = 10;
/// How many are shown at most.
const LIMIT_MOST: u64 = 100;
/// Larger files are not searched; they are data more often than text.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// How much is shown before the first word in a line that is too long.
const BEFORE_BYTES: usize = 200;
/// How many names of files that were not searched are shown.
const NAMES: usize = 3;

/// Finds lines with words of `query`, in any case and also inside of longer words; shows `limit` of
/// them (10 unless given, 100 at most) or as many as fit into 24,000 bytes.
///
/// ```text
/// 2349-pin.md:62: a line with most of the words
/// 1 of 40 lines
/// ```
///
/// First those with most distinct words, then by name and line. Files over 16 MiB are not searched,
/// and the last line says so.
///
/// # Errors
///
/// A query without a word, a limit of 0, or a root that cannot be read.
pub fn search(root: &Rooted, query: &str, limit: Option<u64>) -> Result<String, String> {
    let limit = at_least_one("limit", limit, LIMIT_DEFAULT)?.min(LIMIT_MOST) as usize;
    let words = words_of(query);
    if words.is_empty() {
        return Err(format!("the query {query:?} has no word: give one or more words to look for"));
    }
    let mut best = Best { limit, found: Vec::new(), count: 0 };
    let (mut large, mut unreadable) = (Vec::new(), Vec::new());
    let listing = documents(root)?;
    for file in &listing.files {
        if file.bytes > FILE_BYTES {
            large.push(file.name.as_str());
            continue;
        }
        let opened = root.open_for_read(&file.name).map_err(io::Error::other);
        if opened.and_then(|opened| search_file(opened, &file.name, &words, &mut best)).is_err() {
            unreadable.push(file.name.as_str());
        }
    }
    let mut text = best.into_text();
    text += &not_searched("over 16 MiB and not searched", &large);
    text += &not_searched("not readable", &unreadable);
    if listing.unreadable_folders > 0 {
        text += &format!("; {} folders could not be read", listing.unreadable_folders);
    }
    Ok(text)
}

/// The distinct words in lower case, without the punctuation of a sentence around them.
fn words_of(query: &str) -> Vec<String> {
    const AROUND: &[char] = &['.', ',', ';', ':', '?', '!', '"', '\'', '(', ')', '“', '”', '„', '‘', '’'];
    let mut words: Vec<String> = Vec::new();
    for word in query.split_whitespace() {
        let bare = word.trim_matches(AROUND);
        // A word of punctuation alone is looked for as it is.
        let word = if bare.is_empty() { word } else { bare }.to_lowercase();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn search_file(file: File, name: &str, words: &[String], best: &mut Best) -> io::Result<()> {
    // It may have grown since it was listed.
    let mut from = BufReader::new(file.take(FILE_BYTES));
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        if from.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
        number += 1;
        let line = String::from_utf8_lossy(&bytes);
        let lower = line.to_lowercase();
        let places: Vec<usize> = words.iter().filter_map(|word| lower.find(word.as_str())).collect();
        if let Some(&first) = places.iter().min() {
            let text = || excerpt(line.trim_end_matches(['\n', '\r']), first);
            best.add(Reverse(places.len()), name, number, text);
        }
    }
}

/// The line, or when it is long the part of it around `place`.
fn excerpt(line: &str, place: usize) -> String {
    if line.len() <= SHOWN_BYTES {
        return line.to_string();
    }
    // `place` was found in lower case, which can be a little longer or shorter; near is enough.
    let start = if place < SHOWN_BYTES - BEFORE_BYTES { 0 } else { place - BEFORE_BYTES };
    let start = line.floor_char_boundary(start.min(line.len() - SHOWN_BYTES));
    let end = line.floor_char_boundary(start + SHOWN_BYTES);
    let left_out = |bytes: usize| {
        if bytes == 0 { String::new() } else { format!("[… {bytes} bytes left out]") }
    };
    let parts = [left_out(start), line[start..end].to_string(), left_out(line.len() - end)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

fn not_searched(why: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("; {why}: {}{more}", names[..names.len().min(NAMES)].join(", "))
}

/// The best lines so far. Holds at most twice what is shown.
struct Best {
    limit: usize,
    found: Vec<Found>,
    /// All lines that matched.
    count: u64,
}

/// Orders as it is shown: most words first, then name and line.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    words: Reverse<usize>,
    name: String,
    number: u64,
    text: String,
}

impl Best {
    fn add(&mut self, words: Reverse<usize>, name: &str, number: u64, text: impl FnOnce() -> String) {
        self.count += 1;
        self.found.push(Found { words, name: name.to_string(), number, text: text() });
        if self.found.len() >= 2 * self.limit {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.found.sort_unstable();
        self.found.truncate(self.limit);
    }

    fn into_text(mut self) -> String {
        self.cut();
        let mut text = String::new();
        let mut shown = 0;
        for found in &self.found {
            let line = format!("{}:{}: {}\n", found.name, found.number, found.text);
            if text.len() + line.len() > ANSWER_BYTES {
                break;
            }
            text += &line;
            shown += 1;
        }
        text + &format!("{shown} of {} lines", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_distinct_and_bare() {
        for (query, words) in [
            ("", &[][..]),
            (" \t\n", &[]),
            ("Why does async need Pin?", &["why", "does", "async", "need", "pin"]),
            ("pin Pin PIN", &["pin"]),
            ("\"C++\" (Über)", &["c++", "über"]),
            ("?", &["?"]),
        ] {
            assert_eq!(words_of(query), words, "{query:?}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_word() {
        let line = "x".repeat(3000) + "word" + &"y".repeat(3000);
        let shown = excerpt(&line, 3000);
        assert!(shown.starts_with("[… 2800 bytes left out] xxx") && shown.contains("xwordy"), "{shown}");
        assert!(shown.ends_with("y [… 1204 bytes left out]"), "{shown}");
        for place in [0, 1, 1999, 2000, 5999, 6004, 6100] {
            assert!(excerpt(&"ä€".repeat(1200), place).len() < 2100, "{place}");
        }
    }
}
