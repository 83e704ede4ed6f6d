//! The results of the document tools, read: a page of the list, a range of a document.

use crate::blocks::Line;

/// A document as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// How many lines it has.
    pub(crate) lines: u64,
    /// How many bytes it has.
    pub(crate) bytes: u64,
}

/// A page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListPage {
    /// The documents on it, in order.
    pub(crate) entries: Vec<Entry>,
    /// True when the list goes on.
    pub(crate) more: bool,
}

/// A range of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RangePage<'a> {
    /// The last line that was asked for and given.
    pub(crate) last: u64,
    /// How many lines the document has.
    pub(crate) total: u64,
    /// The lines that are there, consecutive from the first one.
    pub(crate) lines: Vec<Line<'a>>,
    /// True when lines up to `last` are missing.
    pub(crate) shortened: bool,
}

/// Reads a page of the list. Lines that are not of its format are passed over.
pub(crate) fn list(text: &str) -> ListPage {
    let mut page = ListPage { entries: vec![], more: false };
    let mut after_gap = false;
    for line in text.lines() {
        if is_gap(line) {
            // The lines beside a gap may be cut, and what was in it has to be asked for again.
            page.entries.pop();
            page.more = true;
            after_gap = true;
        } else if !after_gap {
            page.entries.extend(entry(line));
            page.more |= line.contains(" documents; more after ");
        }
    }
    page
}

fn entry(line: &str) -> Option<Entry> {
    let mut fields = line.rsplitn(3, '\t');
    let bytes = fields.next()?.strip_suffix(" bytes").or_else(|| line.strip_suffix(" byte"))?;
    let lines = fields.next()?;
    let lines = lines.strip_suffix(" lines").or_else(|| lines.strip_suffix(" line"))?;
    let name = fields.next().filter(|name| !name.is_empty())?;
    Some(Entry { name: name.to_owned(), lines: lines.parse().ok()?, bytes: bytes.parse().unwrap_or(0) })
}

/// Reads a range of the document `name` that starts at line `from`. `None` when it is not of that format.
pub(crate) fn range<'a>(text: &'a str, name: &str, from: u64) -> Option<RangePage<'a>> {
    let mut rows = text.lines();
    let head = rows.next()?.strip_prefix(name)?.strip_prefix(" lines ")?;
    let (span, total) = head.split_once(" of ")?;
    let (first, last) = span.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    let total = total.trim().parse().ok()?;
    if first != from {
        return None;
    }
    let mut page = RangePage { last, total, lines: vec![], shortened: false };
    for row in rows {
        match line(row).filter(|line| Some(line.number) == from.checked_add(page.lines.len() as u64)) {
            Some(line) => page.lines.push(line),
            None => {
                // The line before a gap may be cut at any place.
                page.lines.pop();
                break;
            }
        }
    }
    page.shortened = page.lines.last().map_or(0, |line| line.number) < last && last >= from;
    Some(page)
}

fn line(row: &str) -> Option<Line<'_>> {
    let (number, text) = row.split_once('|')?;
    let number = number.trim().parse().ok()?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    // A byte order mark belongs to the file, not to its first word.
    let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
    Some(match text.rfind(" [… ").filter(|at| is_gap(&text[at + 1..])) {
        Some(at) => Line { number, text: &text[..at], cut: true },
        None => Line { number, text, cut: false },
    })
}

/// The mark that stands where bytes were left out, such as `[… 4,120 bytes left out …]`.
fn is_gap(text: &str) -> bool {
    text.strip_prefix("[… ").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(" left out") && rest.trim_end().ends_with(']')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(page: &RangePage<'a>) -> Vec<&'a str> {
        page.lines.iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_list_has_names_with_blanks_and_says_whether_it_goes_on() {
        let page = list("a b.md\t3 lines\t40 bytes\nc.md\t1 line\t9 bytes\n2 of 5 documents; more after \"c.md\"\n");
        assert_eq!(page.entries.len(), 2);
        assert_eq!(page.entries[0], Entry { name: "a b.md".into(), lines: 3, bytes: 40 });
        assert!(page.more);
        assert!(!list("0 of 0 documents").more);
    }

    #[test]
    fn a_shortened_list_is_read_up_to_the_gap() {
        let page = list(
            "a.md\t3 lines\t4 bytes\nb.md\t3 lines\t4 b\n[… 90 bytes left out …]\nz.md\t1 lines\t1 bytes\n9 of 9 documents",
        );
        // The row at the gap is of no format, so the whole row before it goes with it: it is asked for again.
        assert_eq!(page.entries, []);
        assert!(page.more);
    }

    #[test]
    fn a_range_is_read_up_to_the_first_gap() {
        let page = range("a.md lines 2-9 of 12\n2| x\n3|\n4| cut he\n[… 70 bytes left out …]\n9| y", "a.md", 2)
            .expect("a range");
        assert_eq!((texts(&page), page.shortened, page.total), (vec!["x", ""], true, 12));
        let whole = range("a.md lines 1-2 of 2\n1| x [… 40 bytes left out]\n2| y\n", "a.md", 1).expect("a range");
        assert_eq!((texts(&whole), whole.shortened), (vec!["x", "y"], false));
        assert!(whole.lines[0].cut && !whole.lines[1].cut);
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        let page = range("a.md lines 1-1 of 1\n1| \u{feff}# A", "a.md", 1).expect("a range");
        assert_eq!(texts(&page), ["# A"]);
    }

    #[test]
    fn another_format_is_no_range() {
        for text in [
            "",
            "a.md",
            "a.md lines 1-2",
            "a.md lines x-2 of 3",
            "b.md lines 1-1 of 1\n1| x",
            "a.md lines 2-2 of 3\n2| x",
        ] {
            assert_eq!(range(text, "a.md", 1), None, "{text}");
        }
    }
}
