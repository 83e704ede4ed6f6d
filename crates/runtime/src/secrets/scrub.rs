//! Values of secrets taken out of what is about to be digested or stored.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};

use super::spellings;

/// So many bytes of a spelling at a cut end are taken out with it; fewer say nothing.
const TELLING_BYTES: usize = 4;

/// How often a value was taken out, by the name of its variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed(BTreeMap<String, u64>);

impl Removed {
    /// Counts more.
    pub fn add(&mut self, other: Self) {
        for (name, count) in other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    /// What is noted in the run's journal, for people and the model; nothing when nothing was taken out.
    pub fn note(&self, whence: &str) -> Option<String> {
        let times = |count: &u64| if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        let counts: Vec<String> = self.0.iter().map(|(name, count)| format!("{name} {}", times(count))).collect();
        let counts = counts.join(", ");
        (!counts.is_empty()).then(|| format!("{whence} held secrets, which were taken out: {counts} [secret.removed]"))
    }
}

/// Finds the spellings of some values.
#[derive(Default)]
pub struct Scrubber {
    /// Nothing when there is nothing to find.
    automaton: Option<AhoCorasick>,
    /// By pattern: its bytes and what stands in its place.
    patterns: Vec<(Vec<u8>, String)>,
}

impl Scrubber {
    /// One that finds these values, each under the name of its variable.
    pub fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut patterns: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for (name, value) in values {
            for spelling in spellings::of(value) {
                patterns.entry(spelling).or_insert_with(|| name.to_owned());
            }
        }
        let patterns: Vec<(Vec<u8>, String)> = patterns.into_iter().collect();
        if patterns.is_empty() {
            return Self::default();
        }
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns.iter().map(|(bytes, _)| bytes));
        // It fails only beyond two thousand million states: some gigabytes of variables.
        Self { automaton: built.ok(), patterns }
    }

    /// Takes every spelling out of the bytes, and puts `[secret NAME]` in its place.
    pub fn scrub(&self, bytes: &mut Vec<u8>) -> Removed {
        let mut removed = Removed::default();
        let Some(automaton) = &self.automaton else { return removed };
        let mut clean = Vec::new();
        let mut from = 0;
        for found in automaton.find_iter(bytes.as_slice()) {
            let name = &self.patterns[found.pattern().as_usize()].1;
            clean.extend_from_slice(&bytes[from..found.start()]);
            clean.extend_from_slice(placeholder(name).as_bytes());
            from = found.end();
            *removed.0.entry(name.clone()).or_default() += 1;
        }
        if from > 0 {
            clean.extend_from_slice(&bytes[from..]);
            *bytes = clean;
        }
        removed
    }

    /// As [`Self::scrub`], for bytes whose end was cut off: what may be the beginning of a spelling is taken out, too.
    pub fn scrub_cut(&self, bytes: &mut Vec<u8>) -> Removed {
        let mut removed = self.scrub(bytes);
        let begun = self.patterns.iter().filter_map(|(pattern, name)| {
            let longest = pattern.len().saturating_sub(1).min(bytes.len());
            let length = (TELLING_BYTES..=longest).rev().find(|length| bytes.ends_with(&pattern[..*length]))?;
            Some((length, name))
        });
        if let Some((length, name)) = begun.max_by_key(|(length, _)| *length) {
            bytes.truncate(bytes.len() - length);
            bytes.extend_from_slice(placeholder(name).as_bytes());
            *removed.0.entry(name.clone()).or_default() += 1;
        }
        removed
    }

    /// As [`Self::scrub`], for a text.
    pub fn scrub_text(&self, text: &mut String) -> Removed {
        let mut bytes = std::mem::take(text).into_bytes();
        let removed = self.scrub(&mut bytes);
        *text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        removed
    }
}

fn placeholder(name: &str) -> String {
    format!("[secret {name}]")
}
