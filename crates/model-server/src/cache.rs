//! A prompt cache, as the two services report it.
//!
//! Nothing expires: time is no part of a test. What a service would keep for five minutes is kept until the server stops.

use std::collections::{HashSet, VecDeque};

use crate::tokens::{Prompt, Segment};

/// The shortest prefix that is kept, as the prompt caching guides of both services say of most models.
const SHORTEST_TOKENS: u64 = 1_024;
/// How many blocks before a mark are looked at for something that is kept: the Messages API's guide.
const LOOK_BACK: usize = 20;
/// OpenAI reports hits in steps: 1,024, 1,152, 1,280 …
const STEP_TOKENS: u64 = 128;
/// How many prompts are compared with. A service forgets older ones sooner.
const RECENT: usize = 64;

/// What a cache had and took of a prompt, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hit {
    pub read: u64,
    pub write: u64,
}

/// Both caches. Prompts of different models have nothing in common: a model's name is their first block.
#[derive(Default)]
pub(crate) struct Cache {
    marked: HashSet<blake3::Hash>,
    recent: VecDeque<Vec<Segment>>,
}

impl Cache {
    /// By marks: reads the longest prefix that a mark finds, and takes the rest up to the last mark.
    pub fn by_marks(&mut self, prompt: &Prompt) -> Hit {
        let kept = |at: &&Segment| at.marked && at.tokens >= SHORTEST_TOKENS;
        let Some(last) = prompt.segments.iter().rfind(kept) else { return Hit::default() };
        let marks = prompt.segments.iter().enumerate().filter(|(_, segment)| segment.marked);
        let found = marks.filter_map(|(at, _)| self.look_back(&prompt.segments[..=at])).max();
        let read = found.unwrap_or(0);
        self.marked.extend(prompt.segments.iter().filter(kept).map(|segment| segment.prefix));
        Hit { read, write: last.tokens.saturating_sub(read) }
    }

    fn look_back(&self, until_mark: &[Segment]) -> Option<u64> {
        let near = until_mark.iter().rev().take(LOOK_BACK + 1);
        near.filter(|segment| self.marked.contains(&segment.prefix)).map(|segment| segment.tokens).next()
    }

    /// By itself: reads what a prompt before began with as well.
    pub fn by_prefix(&mut self, prompt: &Prompt) -> Hit {
        let same = |before: &Vec<Segment>| {
            let pairs = prompt.segments.iter().zip(before).take_while(|(now, then)| now.prefix == then.prefix);
            pairs.last().map_or(0, |(now, _)| now.tokens)
        };
        let longest = self.recent.iter().map(same).max().unwrap_or(0);
        self.recent.push_back(prompt.segments.clone());
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let read = if longest < SHORTEST_TOKENS { 0 } else { longest / STEP_TOKENS * STEP_TOKENS };
        Hit { read, write: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A prompt of blocks of so many bytes each; a negative number is marked.
    fn prompt(blocks: &[i64]) -> Prompt {
        let mut prompt = Prompt::default();
        for (at, bytes) in blocks.iter().enumerate() {
            let text = format!("{at}").repeat(bytes.unsigned_abs() as usize);
            prompt.push("user", &json!(text), *bytes < 0);
        }
        prompt
    }

    #[test]
    fn a_mark_writes_once_and_reads_what_an_earlier_mark_wrote() {
        let mut cache = Cache::default();
        assert_eq!(cache.by_marks(&prompt(&[-4_000])), Hit::default(), "1,004 tokens are too short");
        assert_eq!(cache.by_marks(&prompt(&[-8_000])), Hit { read: 0, write: 2_004 });
        assert_eq!(cache.by_marks(&prompt(&[-8_000])), Hit { read: 2_004, write: 0 });
        assert_eq!(cache.by_marks(&prompt(&[8_000, -400])), Hit { read: 2_004, write: 104 });
        assert_eq!(cache.by_marks(&prompt(&[8_000])), Hit::default(), "nothing is asked for");
        let far = [vec![8_000; 1], vec![4; 21], vec![-4; 1]].concat();
        assert_eq!(cache.by_marks(&prompt(&far)).read, 0, "more than 20 blocks back");
    }

    #[test]
    fn a_common_prefix_is_read_in_steps() {
        let mut cache = Cache::default();
        assert_eq!(cache.by_prefix(&prompt(&[8_000, 8])).read, 0);
        assert_eq!(cache.by_prefix(&prompt(&[8_000, 12])).read, 1_920);
        assert_eq!(cache.by_prefix(&prompt(&[4_000, 12])).read, 0);
        assert_eq!(cache.by_prefix(&prompt(&[4_000, 16])).read, 0, "1,004 tokens are too short");
    }
}
