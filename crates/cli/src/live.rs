//! One row of the terminal that says how far a reply of the model has come, and is gone when the reply is there.
//!
//! It says how much has come and of what kind, and never what: text that comes in pieces can't be searched for secrets.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestep::model::Progress;
use lodestep::observe::write_stderr;

use crate::text::{columns, compact, line};

/// The row is drawn at most so often.
const BETWEEN: Duration = Duration::from_millis(100);

/// Goes to the row's beginning and clears it.
const CLEAR: &str = "\r\x1b[2K";

/// The row. On what is no terminal nothing is drawn.
#[derive(Default)]
pub struct Live(Mutex<Coming>);

/// What has come of a reply.
#[derive(Default)]
struct Coming {
    reasoning: usize,
    text: usize,
    calls: usize,
    /// The tool whose arguments are coming, and how much of them has.
    call: Option<(String, usize)>,
    drawn: Option<Instant>,
}

impl Live {
    /// Counts a piece, and draws the row anew if it is time.
    pub fn take(&self, piece: Progress<'_>) {
        let Some(width) = columns(std::io::stderr()) else { return };
        let mut coming = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        coming.count(piece);
        if coming.drawn.is_none_or(|drawn| drawn.elapsed() >= BETWEEN) {
            coming.drawn = Some(Instant::now());
            write_stderr(format_args!("{CLEAR}{}", line(&coming.said(), width.saturating_sub(1).max(1))));
        }
    }

    /// The reply is over: the row is free for what is printed next.
    pub fn clear(&self) {
        let coming = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if coming.drawn.is_some() {
            write_stderr(format_args!("{CLEAR}"));
        }
    }
}

impl Coming {
    fn count(&mut self, piece: Progress<'_>) {
        match piece {
            Progress::Text(text) => self.text += text.chars().count(),
            Progress::Reasoning(text) => self.reasoning += text.chars().count(),
            Progress::Call(tool) => {
                self.calls += 1;
                self.call = Some((tool.to_owned(), 0));
            }
            Progress::Arguments(text) => {
                if let Some((_, characters)) = &mut self.call {
                    *characters += text.chars().count();
                }
            }
        }
    }

    fn said(&self) -> String {
        let characters = |count: usize| format!("{} characters", compact(count as u64));
        match (&self.call, self.text) {
            (Some((tool, count)), _) => {
                let nth = if self.calls > 1 { format!(" (call {})", self.calls) } else { String::new() };
                format!("the model calls {}{nth}: {}", line(tool, 64), characters(*count))
            }
            (None, 0) => format!("the model thinks: {}", characters(self.reasoning)),
            (None, text) => format!("the model writes: {}", characters(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_says_how_much_has_come_and_never_what() {
        let mut coming = Coming::default();
        let mut said = Vec::new();
        for piece in [
            Progress::Reasoning("secret"),
            Progress::Text("sécret"),
            Progress::Call("publish"),
            Progress::Arguments("{\"a\""),
            Progress::Arguments(":1}"),
            Progress::Call("note"),
        ] {
            coming.count(piece);
            said.push(coming.said());
        }
        assert_eq!(
            said,
            [
                "the model thinks: 6 characters",
                "the model writes: 6 characters",
                "the model calls publish: 0 characters",
                "the model calls publish: 4 characters",
                "the model calls publish: 7 characters",
                "the model calls note (call 2): 0 characters",
            ]
        );
    }
}
