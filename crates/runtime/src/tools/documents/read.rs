//! Reading a part of one document.

use super::lines::Lines;
use super::{ANSWER_BYTES, at_least_one, open};
use crate::tools::rooted::Rooted;

/// How many lines are shown when no number is given.
const LINES_DEFAULT: u64 = 200;
/// How many are shown at most.
const LINES_MOST: u64 = 400;

/// Shows lines of a document: from line `from` (1 unless given), `lines` of them (200 unless given,
/// 400 at most) or as many as fit into 24,000 bytes.
///
/// ```text
/// 2349-pin.md lines 60-61 of 403
/// 60| text of the line
/// 61|
/// ```
///
/// The first line tells what was shown; go on with the line after. An empty document has `lines 0-0
/// of 0`. The header of a document that is not UTF-8 ends in `, not UTF-8: shown with
/// replacements`.
///
/// # Errors
///
/// An unknown or refused name, a number of 0, a `from` after the end, or a file that the system
/// does not read.
pub fn read(root: &Rooted, name: &str, from: Option<u64>, lines: Option<u64>) -> Result<String, String> {
    let from = at_least_one("from", from, 1)?;
    let lines = at_least_one("lines", lines, LINES_DEFAULT)?.min(LINES_MOST);
    let mut page = Page { from, end: from.saturating_add(lines), text: String::new(), shown: 0, full: false };
    let mut all = Lines::new(open(root, name)?);
    let mut count = 0;
    // To the end, also after the last line that is shown: the header has the number of all.
    while let Some(line) =
        all.next().map_err(|error| format!("could not read {name:?}: {error}; try another document"))?
    {
        count += 1;
        if page.wants(count) {
            page.add(count, &line.shown());
        }
    }
    if from > count.max(1) {
        return Err(format!("{name:?} has {count} lines: from is {from}, give at most {}", count.max(1)));
    }
    let note = if all.is_utf8() { "" } else { ", not UTF-8: shown with replacements" };
    let (first, last) = if count == 0 { (0, 0) } else { (from, from + page.shown - 1) };
    Ok(format!("{name} lines {first}-{last} of {count}{note}{}", page.text))
}

/// The lines that are shown.
struct Page {
    from: u64,
    /// The first line that is not shown any more.
    end: u64,
    text: String,
    shown: u64,
    /// A line did not fit; none after it is shown.
    full: bool,
}

impl Page {
    fn wants(&self, number: u64) -> bool {
        !self.full && (self.from..self.end).contains(&number)
    }

    fn add(&mut self, number: u64, line: &str) {
        let line = format!("\n{number}| {line}");
        if self.text.len() + line.len() > ANSWER_BYTES {
            self.full = true;
            return;
        }
        self.text += &line;
        self.shown += 1;
    }
}
