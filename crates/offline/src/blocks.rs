//! Lines of Markdown into blocks of prose: paragraphs and list items.
//!
//! A line scanner, not a parser: what it is unsure of, it leaves out. Left out are fenced and indented code,
//! tables, block quotes, HTML, comments, link definitions and front matter. Headings are returned apart.
//!
//! A document comes in ranges, so a scan starts in the middle of one and ends in another. A block that is
//! still open at the end of a range is not used; the next range starts at its first line ([`Scan::resume`]).
//! Only a block that fills a whole range is used cut, without the sentence at the seam.

use crate::lines::{comment, fence, heading, indent, is_html, is_link_definition, is_table_rule, is_underline, marker};

/// Where to read on, and what stands open there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The next line, from 1.
    pub(crate) line: u64,
    /// What the line stands in.
    pub(crate) edge: Edge,
}

/// What the first line of a range stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Nothing: the line before it closed all.
    Clear,
    /// It starts a block that the range before left to this one.
    Block,
    /// Perhaps the middle of a block whose head is lost.
    Cut,
    /// A table, quote or HTML that goes on until a blank line.
    Skip,
    /// An HTML comment.
    Comment,
    /// A fence of this sign and length.
    Fence(u8, usize),
}

impl Place {
    /// The start of a document.
    pub(crate) const START: Self = Self { line: 1, edge: Edge::Clear };
}

/// A paragraph or list item: its lines with their numbers, without a list marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// Line numbers and texts, in order.
    pub(crate) lines: Vec<(u64, &'a str)>,
    /// True when its first words may be missing.
    pub(crate) head_cut: bool,
    /// True when its last words may be missing.
    pub(crate) tail_cut: bool,
}

/// What a range holds.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// The prose, in order.
    pub(crate) blocks: Vec<Block<'a>>,
    /// The headings' texts, in order.
    pub(crate) headings: Vec<String>,
    /// Where the next range starts; past the last line at the end of a document.
    pub(crate) resume: Place,
}

/// A line of a document as a range shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// Its text.
    pub(crate) text: &'a str,
    /// True when the end of the line was left out.
    pub(crate) cut: bool,
}

/// Scans consecutive lines. `at_end` says that the last of them is the last of the document.
pub(crate) fn scan<'a>(lines: &[Line<'a>], edge: Edge, at_end: bool) -> Scan<'a> {
    let mut scanner = Scanner::new(edge, lines);
    for line in lines.iter().skip(front_matter(lines)) {
        scanner.line(*line);
    }
    let next = lines.last().map_or(1, |line| line.number.saturating_add(1));
    let resume = scanner.end(next, lines.first().map_or(1, |line| line.number), at_end);
    Scan { blocks: scanner.blocks, headings: scanner.headings, resume }
}

/// How many lines at the head of a document are front matter. Without a closing line there is none.
fn front_matter(lines: &[Line<'_>]) -> usize {
    let Some(first) = lines.first().filter(|line| line.number == 1) else {
        return 0;
    };
    let mark = first.text.trim_end();
    if mark != "---" && mark != "+++" {
        return 0;
    }
    lines.iter().skip(1).position(|line| line.text.trim_end() == mark).map_or(0, |at| at + 2)
}

struct Scanner<'a> {
    blocks: Vec<Block<'a>>,
    headings: Vec<String>,
    /// The block that is open; no lines when none is.
    open: Block<'a>,
    /// Whether the open block is a list item.
    in_item: bool,
    /// The column at which the text of the list item begins; 0 outside lists.
    item_indent: usize,
    edge: Edge,
}

impl<'a> Scanner<'a> {
    fn new(edge: Edge, lines: &[Line<'a>]) -> Self {
        // A nested list item is no indented code; that it was in a list is known only to the range before.
        let item_indent = if edge == Edge::Block { lines.first().map_or(0, |line| indent(line.text)) } else { 0 };
        let edge = if edge == Edge::Block { Edge::Clear } else { edge };
        Self { blocks: vec![], headings: vec![], open: Block::default(), in_item: false, item_indent, edge }
    }

    fn line(&mut self, line: Line<'a>) {
        let text = line.text.trim();
        match self.edge {
            Edge::Fence(sign, length) => {
                if fence(text).is_some_and(|(s, n)| s == sign && n >= length && text.len() == n) {
                    self.edge = Edge::Clear;
                }
            }
            Edge::Comment => {
                if text.contains("-->") {
                    self.edge = Edge::Clear;
                }
            }
            _ if text.is_empty() => {
                self.close();
                self.edge = Edge::Clear;
            }
            Edge::Skip => {}
            Edge::Clear | Edge::Block | Edge::Cut => self.content(line),
        }
    }

    /// A line that is neither blank nor within something that is left out.
    fn content(&mut self, line: Line<'a>) {
        let mut text = line.text.trim_end();
        let mut indented = indent(text);
        if self.open.lines.is_empty() {
            if indented < self.item_indent {
                self.item_indent = 0;
            }
            if indented >= self.item_indent + 4 {
                return;
            }
        }
        // A marker may be followed by another marker, a fence or a heading.
        for _ in 0..8 {
            let Some(width) = marker(text.trim_start()).filter(|_| self.may_start_item(text.trim_start())) else {
                break;
            };
            self.close();
            self.edge = Edge::Clear;
            let start = text.len() - text.trim_start().len() + width;
            let rest = text[start..].trim_start();
            indented += width + (text.len() - start - rest.len());
            self.item_indent = indented;
            self.in_item = true;
            text = rest;
        }
        if !text.trim().is_empty() && !self.special(text.trim()) {
            self.prose(line, text);
        }
    }

    /// In the midst of a paragraph only "1." starts a list; "2." there is a number at the start of a line.
    fn may_start_item(&self, text: &str) -> bool {
        self.open.lines.is_empty() || self.in_item || !text.starts_with(|c: char| c.is_ascii_digit() && c != '1')
    }

    /// Deals with a line that is not prose. False when it is prose.
    fn special(&mut self, text: &str) -> bool {
        if let Some((sign, length)) = fence(text) {
            self.close();
            self.edge = Edge::Fence(sign, length);
        } else if let Some(at) = comment(text) {
            self.open.tail_cut = true;
            self.close();
            self.edge = if text[at..].contains("-->") { Edge::Cut } else { Edge::Comment };
        } else if let Some(heading) = heading(text) {
            self.close();
            self.headings.push(heading.to_owned());
        } else if is_underline(text) {
            // Under text it makes the text a heading; alone it is a rule.
            let lines = std::mem::take(&mut self.open).lines;
            self.headings.extend(lines.iter().map(|(_, text)| text.trim().to_owned()));
            self.close();
        } else if is_table_rule(text) {
            self.open = Block::default();
            self.edge = Edge::Skip;
        } else if text.starts_with(['|', '>']) || is_html(text) {
            self.close();
            self.edge = Edge::Skip;
        } else if is_link_definition(text) {
            self.close();
        } else {
            return false;
        }
        true
    }

    fn prose(&mut self, line: Line<'a>, text: &'a str) {
        if self.open.lines.is_empty() {
            self.open.head_cut = self.edge == Edge::Cut;
            self.edge = Edge::Clear;
        }
        self.open.lines.push((line.number, text));
        if line.cut {
            self.open.tail_cut = true;
            self.close();
            self.edge = Edge::Cut;
        }
    }

    fn close(&mut self) {
        let block = std::mem::take(&mut self.open);
        self.in_item = false;
        if !block.lines.is_empty() {
            self.blocks.push(block);
        }
    }

    /// Ends the range: says where the next one starts, which is past `first` whatever happens.
    fn end(&mut self, next: u64, first: u64, at_end: bool) -> Place {
        let Some((start, _)) = self.open.lines.first().copied() else {
            return Place { line: next, edge: self.edge };
        };
        if at_end {
            self.close();
            return Place { line: next, edge: Edge::Clear };
        }
        if start > first {
            self.open = Block::default();
            return Place { line: start, edge: Edge::Block };
        }
        self.open.tail_cut = true;
        self.close();
        Place { line: next, edge: Edge::Cut }
    }
}
