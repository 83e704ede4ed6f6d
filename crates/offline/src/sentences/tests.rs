//! From text to sentences, through the block scanner: a table, and the invariant over odd inputs.

use super::*;
use crate::blocks::{Edge, Line, Place, scan};

fn lines(text: &str) -> Vec<Line<'_>> {
    (1..).zip(text.lines()).map(|(number, text)| Line { number, text, cut: false }).collect()
}

/// The sentences of a document that is read in ranges of `step` lines.
fn in_ranges(text: &str, step: usize) -> Vec<Sentence> {
    let lines = lines(text);
    let (mut place, mut found) = (Place::START, vec![]);
    while place.line as usize <= lines.len() {
        let from = place.line as usize - 1;
        let to = (from + step).min(lines.len());
        let scan = scan(&lines[from..to], place.edge, to == lines.len());
        found.extend(scan.blocks.iter().flat_map(split));
        assert!(scan.resume.line > place.line, "every range leads on");
        place = scan.resume;
    }
    found
}

fn check(text: &str, expected: &[(u64, u64, &str)]) {
    let found = in_ranges(text, usize::MAX >> 1);
    let found: Vec<_> = found.iter().map(|s| (s.from, s.to, s.text.as_str())).collect();
    assert_eq!(found, expected, "of {text:?}");
}

#[test]
fn prose_is_split_into_sentences() {
    check("One here. Two\nthere! Three?", &[(1, 1, "One here."), (1, 2, "Two there!"), (2, 2, "Three?")]);
    check("First para\n\nSecond. Para", &[(1, 1, "First para"), (3, 3, "Second."), (3, 3, "Para")]);
    check(
        "He said \"no.\" She left (at 3 p.m.). Yes.",
        &[(1, 1, "He said \"no.\""), (1, 1, "She left (at 3 p.m.)."), (1, 1, "Yes.")],
    );
    check(
        "**Bold.** Next _one._ `code` starts.",
        &[(1, 1, "**Bold.**"), (1, 1, "Next _one._"), (1, 1, "`code` starts.")],
    );
}

#[test]
fn some_full_stops_end_nothing() {
    for whole in [
        "Use it, e.g. Rust, i.e. This one, vs. That one, cf. Those.",
        "Pi is 3.14 and v1.2.3 is out, see foo.rs for more.",
        "By D. Knuth and Dr. Who, see Fig. 3.",
        "Call `a. B! C?` now.",
        "Call ``a `. B`` now.",
        "See [the link. It is long](http://a.b/c. D) here.",
        "It waits (for what? Nobody knows.) and waits.",
        "It goes on ... and on.",
        "2. The second of a paragraph is no item of its own.",
    ] {
        let text = format!("Before that:\n{whole}");
        let expected = format!("Before that: {whole}");
        check(&text, &[(1, 2, &expected)]);
    }
    // What never closes guards nothing.
    check("An (open one. A `tick. End.", &[(1, 1, "An (open one."), (1, 1, "A `tick."), (1, 1, "End.")]);
}

#[test]
fn list_items_go_without_their_marker() {
    check(
        "- One\n  more. Two.\n- [x] Three\n\n  Four.\n1) Five\n   - Six",
        &[(1, 2, "One more."), (2, 2, "Two."), (3, 3, "Three"), (5, 5, "Four."), (6, 6, "Five"), (7, 7, "Six")],
    );
    check("* - Nested\n+ \n-no item\n-5 degrees", &[(1, 1, "Nested"), (3, 4, "-no item -5 degrees")]);
}

#[test]
fn what_is_not_prose_is_left_out() {
    for nothing in [
        "---\ntitle: Front. Matter.\n---",
        "# Heading. Here",
        "Setext heading\n===",
        "Another one\n---",
        "```rust\nlet a = 1. Foo;\n\n# no\n```",
        "~~~~\n```\nstill. Code.\n~~~\n~~~~",
        "    indented. Code.",
        "- ```\n  code. In item.\n  ```",
        "> Quoted. Text\ngoes on.",
        "<!-- a comment. It\nspans. Lines. -->",
        "<div>\nHtml. Here.\n</div>",
        "| a. B | c |\n|---|---|\n| d. E | f |",
        "a. B | c\n--|--\nd. E | f",
        "[link]: http://a.b 'Title. Here.'",
        "[^1]: Footnote. Text.",
        "***",
        "",
        " \n \u{a0}\n",
    ] {
        check(nothing, &[]);
        let followed = in_ranges(&format!("{nothing}\n\nAfter it."), 1_000);
        assert_eq!(followed.last().map(|s| s.text.as_str()), Some("After it."), "after {nothing:?}");
    }
    check("Write `<!--` there. Go on.", &[(1, 1, "Write `<!--` there."), (1, 1, "Go on.")]);
    // Front matter that never ends is a rule.
    check("---\nText.", &[(2, 2, "Text.")]);
    // A comment within a paragraph takes the sentence that it stands in.
    check("Whole. Cut\nby <!-- this --> one. And\nthe rest. Again.", &[(1, 1, "Whole."), (3, 3, "Again.")]);
}

#[test]
fn a_cut_line_takes_its_sentence_with_it() {
    let mut lines = lines("One. Two is cu\nthree. Four.");
    lines[0].cut = true;
    let scan = scan(&lines, Edge::Clear, true);
    let found: Vec<_> = scan.blocks.iter().flat_map(split).map(|s| s.text).collect();
    assert_eq!(found, ["One.", "Four."]);
}

#[test]
fn ranges_bring_the_sentences_that_the_whole_brings() {
    let text = "Intro one. Intro\ntwo.\n\n- Item one\n  goes on.\n  - Deep item. With two.\n\n```\nCode. Not\n\nprose.\n```\n\
                | a | b |\n|--|--|\n| Row. One | x |\n| Row. Two | y |\n\n<!-- Long.\nComment. -->\nLast\nparagraph. End.";
    let whole = in_ranges(text, 1_000);
    assert_eq!(whole.len(), 7);
    for step in 3..30 {
        assert_eq!(in_ranges(text, step), whole, "in ranges of {step}");
    }
}

#[test]
fn only_whole_prose_may_be_cited() {
    assert!(is_citable("The tide turns twice a day, and nobody asks why."));
    assert!(!is_citable("Too short."));
    assert!(!is_citable(&"much too long ".repeat(40)));
    assert!(!is_citable("See [this very long link text here](https://example.org/a/b/c) and <https://example.org/x>"));
    assert!(!is_citable("`let x = some_function(with, many, arguments);` is it"));
    assert!(!is_citable("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"));
}

/// A generator of numbers (SplitMix64), so that odd inputs are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((mixed ^ (mixed >> 27)) >> 8) % limit as u64) as usize
    }
}

#[test]
fn every_sentence_is_in_the_lines_that_it_names() {
    const PARTS: &[&str] = &[
        "word ",
        "Ärger ",
        "日本語。",
        "e.g. ",
        ". ",
        "! ",
        "? ",
        "...",
        "\n",
        "\n\n",
        "\n- ",
        "\n  ",
        "\n    ",
        "\t",
        "\n1. ",
        "`",
        "``",
        "\n```\n",
        "\n~~~\n",
        "(",
        ")",
        "[",
        "](x)",
        "]: ",
        "<!--",
        "-->",
        "\n<p>",
        "\n| a |",
        "\n|--|",
        "\n---\n",
        "\n===\n",
        "\n# ",
        "\n> ",
        "\u{a0}",
        "\u{2028}",
        "\r\n",
        "\"",
        "**",
        "_",
        "É",
        "\u{1f600}",
        "\\",
        "\u{0}",
        "2. ",
    ];
    let mut numbers = Numbers(7);
    for _ in 0..3_000 {
        let length = 1 + numbers.below(60);
        let text: String = (0..length).map(|_| PARTS[numbers.below(PARTS.len())]).collect();
        let rows: Vec<&str> = text.lines().collect();
        for sentence in in_ranges(&text, 1 + numbers.below(12)) {
            let (from, to) = (sentence.from as usize, sentence.to as usize);
            let holds = |rows: &[&str]| fold(&rows.join("\n")).contains(&sentence.text);
            assert!(holds(&rows[from - 1..to]), "{sentence:?} of {text:?}");
            assert_eq!(fold(&sentence.text), sentence.text);
        }
    }
}

#[test]
fn the_time_grows_with_the_text() {
    for hostile in ["(", "[", "`", "``` `` `", ")", "a. B ", "- ", "[(", "\n<!--", "é. É"] {
        let found = in_ranges(&hostile.repeat(100_000), 400);
        drop(found);
    }
}
