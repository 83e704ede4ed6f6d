//! How large a request may be, and how what does not fit is shortened.

use crate::checkpoint::Checkpoint;
use crate::context::estimate;
use crate::definition::Definition;

/// A twentieth of the window is left free: the estimate is upward, and framing differs by provider.
const MARGIN: u64 = 20;

/// The most that a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In estimated tokens.
    pub tokens: u64,
    /// In bytes of canonical JSON.
    pub bytes: u64,
    permille: u64,
}

impl Budget {
    /// The window less the reply and the margin, by the estimate as corrected for this run.
    pub fn of(checkpoint: &Checkpoint, definition: &Definition) -> Self {
        let model = &definition.model;
        let window = model.context_window.saturating_sub(model.output_limit(checkpoint.model.cut_in_row));
        let tokens = window - window / MARGIN;
        let permille = u64::from(checkpoint.model.estimate_permille.max(1));
        Self {
            tokens,
            bytes: tokens.saturating_mul(estimate::BYTES_PER_TOKEN).saturating_mul(1000) / permille,
            permille,
        }
    }

    /// The estimated tokens of so many bytes, as corrected for this run.
    pub fn tokens_of(&self, bytes: u64) -> u64 {
        estimate::tokens(bytes.saturating_mul(self.permille) / 1000)
    }
}

/// Shortens a text to at most `room` bytes, on character boundaries: two thirds from its start, the rest from
/// its end, and a line between them that says how much is missing.
pub fn shorten(text: &str, room: u64) -> String {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if text.len() <= room {
        return text.to_owned();
    }
    let longest_note = "\n[… 18,446,744,073,709,551,615 bytes left out …]\n".len();
    let kept = room.saturating_sub(longest_note);
    let head = floor_boundary(text, kept * 2 / 3);
    let tail = text.len() - (kept - kept * 2 / 3);
    let tail = (tail..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let note = format!("\n[… {} bytes left out …]\n", grouped((tail - head) as u64));
    if kept == 0 {
        return text[..floor_boundary(text, room)].to_owned();
    }
    format!("{}{note}{}", &text[..head], &text[tail..])
}

/// Cuts a text to at most `room` bytes on a character boundary, in one line, with an ellipsis.
pub fn one_line(text: &str, room: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() <= room {
        return line;
    }
    format!("{}…", &line[..floor_boundary(&line, room)])
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A number with commas between the thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_texts_keep_their_bound_and_their_characters() {
        let text = "äöü🦀".repeat(500);
        for room in [0, 1, 5, 49, 50, 51, 60, 100, 101, 102, 103, 1_000, 4_999, 5_000] {
            let short = shorten(&text, room);
            assert!(short.len() as u64 <= room, "{room}: {}", short.len());
        }
        assert!(shorten(&text, 1_000).contains("bytes left out"));
        assert_eq!(shorten("short", 10), "short");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
    }
}
