//! No code that its writer meant to come back to, no merge that was left half done, and no test that passes by luck or by not running.
//!
//! Why, one by one: `todo!` and `unimplemented!` are crashes in waiting; `dbg!` prints into the output that
//! programs read; an ignored test is a claim that nobody checks; a sleep in a test is a race that the test wins
//! on the machine where it was written (wait for the event, or move the injected clock); `.unwrap()` outside
//! tests says neither why it cannot fail nor what to do when it does.

use super::rust_source::{RustSource, is_word};
use super::tree::{Finding, Tree};

/// Where a piece of code is refused.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Anywhere,
    InTests,
    OutsideTests,
}

const REFUSED: &[(&str, Place, &str)] = &[
    ("todo!(", Place::Anywhere, "write it, or leave out what needs it"),
    ("unimplemented!(", Place::Anywhere, "write it, or leave out what needs it"),
    ("dbg!(", Place::Anywhere, "remove it"),
    ("#[ignore", Place::Anywhere, "mend the test or delete it"),
    ("thread::sleep", Place::InTests, "wait for the event itself, or move the injected clock"),
    ("time::sleep", Place::InTests, "wait for the event itself, or move the injected clock"),
    ("time::sleep_until", Place::InTests, "wait for the event itself, or move the injected clock"),
    ("sleep(", Place::InTests, "wait for the event itself, or move the injected clock"),
    (".unwrap()", Place::OutsideTests, "return the error, or say with `expect` why there is none"),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.ending(".rs").flat_map(|(path, text)| check_file(path, &RustSource::new(path, text)));
    sources.chain(tree.ending("").flat_map(|(path, text)| merges(path, text))).collect()
}

/// Marks of a merge that nobody ended, in whatever file.
fn merges(path: &str, text: &str) -> Vec<Finding> {
    let marks = ["<".repeat(7), ">".repeat(7)];
    let is_mark = |line: &str| {
        marks.iter().any(|mark| line.strip_prefix(mark.as_str()).is_some_and(|rest| rest.starts_with(' ')))
    };
    let at =
        |(number, _): (usize, &str)| Finding::new(path, number + 1, "a mark of a merge", "decide, and take it out");
    text.lines().enumerate().filter(|(_, line)| is_mark(line)).map(at).collect()
}

fn check_file(path: &str, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (code, place, mend) in REFUSED {
        for offset in source.find(code) {
            let is_refused_here = match place {
                Place::Anywhere => true,
                Place::InTests => source.is_test(offset),
                Place::OutsideTests => !source.is_test(offset),
            };
            if is_refused_here && !(*code == "sleep(" && is_another_sleep(&source.code[..offset])) {
                let whereabouts = if *place == Place::InTests { " in a test" } else { "" };
                let what = format!("`{code}`{whereabouts}");
                findings.push(Finding::new(path, source.line(offset), what, *mend));
            }
        }
    }
    findings
}

/// Whether the `sleep` behind this code is a method or a function's definition: an injected clock has one, too.
/// A path before it is either found by its own line above or is not the system's.
fn is_another_sleep(before: &str) -> bool {
    before.ends_with(['.', ':']) || before.trim_end().rsplit(|letter| !is_word(letter)).next() == Some("fn")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn unfinished_code_is_found_everywhere() {
        for text in ["todo!()", "unimplemented!(\"x\")", "dbg!(x)", "#[ignore]", "#[ignore = \"slow\"]"] {
            assert_eq!(found("crates/a/src/a.rs", text), 1, "{text}");
            assert_eq!(found("crates/a/tests/a.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn a_merge_that_nobody_ended_is_found_in_any_file() {
        for mark in ["<", ">"] {
            let text = format!("a\n{} HEAD\nb", mark.repeat(7));
            assert_eq!(found("docs/a.md", &text), 1);
            assert_eq!(found("docs/a.md", &text.replace(" HEAD", "")), 0, "a line of a table or a quote");
        }
    }

    #[test]
    fn a_sleep_is_found_in_tests_only() {
        for text in ["std::thread::sleep(x)", "tokio::time::sleep(x).await", "time::sleep_until(x)", "{ sleep(x) }"] {
            assert_eq!(found("crates/a/tests/a.rs", text), 1, "{text}");
            assert_eq!(found("crates/a/src/a.rs", text), 0, "{text}");
        }
        assert_eq!(found("crates/a/tests/a.rs", "fn sleep(x) {}  clock.sleep(x); Clock::sleep(x); \"sleep(1)\""), 0);
    }

    #[test]
    fn an_unwrap_is_found_outside_tests_only() {
        let text = "x.unwrap();\nx.unwrap_or(1);\n#[cfg(test)]\nmod tests { x.unwrap(); }";
        assert_eq!(found("crates/a/src/a.rs", text), 1);
        assert_eq!(found("crates/a/tests/a.rs", text), 0);
    }
}
