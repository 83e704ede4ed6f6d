//! Loops: the same action with the same outcome over and over, or the same few in turn.

use std::collections::VecDeque;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::digest::Digest;

/// So many actions in turn are seen as a loop at most.
const LONGEST: usize = 4;

/// How often what settled last has come over and over. A wait between two actions, or a word of a person, begins anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Repeats {
    /// The digest over tool, arguments and result.
    #[n(0)]
    digest: Digest,
    /// How often in a row.
    #[n(1)]
    pub count: u32,
    /// Actions in turn; `None` until two different ones followed each other.
    #[n(2)]
    turns: Option<Turns>,
}

/// The newest actions, and for each number of them how many in a row were the same as that many before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
struct Turns {
    /// The newest last, at most [`LONGEST`].
    #[n(0)]
    newest: VecDeque<Digest>,
    /// For two, three and four.
    #[n(1)]
    same: [u32; LONGEST - 1],
}

/// What goes on over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// So many actions in turn.
    pub actions: u32,
    /// So many times in a row.
    pub times: u32,
}

impl Repeats {
    /// Counts an action that was settled, by the digest over tool, arguments and result.
    pub(crate) fn note(&mut self, settled: Digest) {
        if self.count > 0 && self.digest != settled && self.turns.is_none() {
            let newest = VecDeque::from(vec![self.digest; (self.count as usize).min(LONGEST)]);
            self.turns = Some(Turns { newest, same: [0; LONGEST - 1] });
        }
        self.count = if self.digest == settled { self.count.saturating_add(1) } else { 1 };
        self.digest = settled;
        if let Some(turns) = &mut self.turns {
            turns.note(settled);
        }
    }

    /// What has come most often in a row.
    pub fn worst(&self) -> Loop {
        let alone = Loop { actions: 1, times: self.count };
        let turns = self.turns.iter().flat_map(|turns| turns.same.iter().zip(2..));
        let turns =
            turns.filter(|(same, _)| **same > 0).map(|(same, actions)| Loop { actions, times: same / actions + 1 });
        // Of loops that came as often the shortest says most.
        turns.fold(alone, |worst, turn| if turn.times > worst.times { turn } else { worst })
    }
}

impl Turns {
    fn note(&mut self, settled: Digest) {
        for (same, actions) in self.same.iter_mut().zip(2..) {
            let before = self.newest.len().checked_sub(actions).map(|at| self.newest[at]);
            *same = if before == Some(settled) { same.saturating_add(1) } else { 0 };
        }
        self.newest.push_back(settled);
        if self.newest.len() > LONGEST {
            self.newest.pop_front();
        }
    }
}

impl std::fmt::Display for Loop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.actions {
            1 => write!(f, "the same action had the same outcome {} times in a row", self.times),
            some => write!(f, "the same {some} actions in turn had the same outcomes {} times in a row", self.times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(settled: &str) -> (u32, u32) {
        let mut repeats = Repeats::default();
        for one in settled.bytes() {
            repeats.note(Digest::of(&[one]));
        }
        let worst = repeats.worst();
        (worst.actions, worst.times)
    }

    #[test]
    fn loops_of_up_to_four_actions_are_counted() {
        for (settled, expected) in [
            ("", (1, 0)),
            ("a", (1, 1)),
            ("aaa", (1, 3)),
            ("aaab", (1, 1)),
            ("ab", (1, 1)),
            ("aba", (1, 1)),
            ("abab", (2, 2)),
            ("ababab", (2, 3)),
            ("aababab", (2, 3)),
            ("abcabcabc", (3, 3)),
            ("abcdabcdabcd", (4, 3)),
            ("abcdeabcdeabcde", (1, 1)),
            ("abababc", (1, 1)),
            ("ababaab", (1, 1)),
            ("aabaab", (3, 2)),
            ("xabcabab", (2, 2)),
        ] {
            assert_eq!(worst(settled), expected, "{settled}");
        }
    }
}
