//! The core knows no clock, no disk, no network, no environment, no thread and no chance.
//!
//! Why: a journal must fold to the same state on every machine and in every year, and a rule about effects must
//! give the same answer when it is asked again after a crash. Whatever the core would read from its surroundings
//! is an input: the runtime reads it once and the journal keeps it. `async` is refused for the same reason: a
//! pure function has nothing to wait for.

use super::rust_source::{RustSource, block_end};
use super::tree::{Finding, Tree};

const IMPURE_STD: &[&str] = &["time", "fs", "net", "env", "thread"];
const IMPURE_WORDS: &[&str] = &["SystemTime", "Instant", "rand", "getrandom", "async"];
const MEND: &str = "take what it would give as an argument (a length of time is `core::time::Duration`)";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let core = tree.ending(".rs").filter(|(path, _)| path.starts_with("crates/core/src/"));
    core.flat_map(|(path, text)| check_file(path, &RustSource::new(path, text))).collect()
}

fn check_file(path: &str, source: &RustSource) -> Vec<Finding> {
    let paths = IMPURE_STD.iter().map(|module| format!("std::{module}"));
    let words = paths.chain(IMPURE_WORDS.iter().map(|word| (*word).to_owned()));
    let plain = words.flat_map(|word| {
        let places = source.find(&word);
        places.into_iter().map(move |offset| (offset, word.clone()))
    });
    plain
        .chain(grouped_imports(source))
        .map(|(offset, word)| Finding::new(path, source.line(offset), format!("the core uses `{word}`"), MEND))
        .collect()
}

/// The impure modules in `use std::{…}`, which no search for `std::time` finds.
fn grouped_imports(source: &RustSource) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for start in source.find("std::{") {
        let group = &source.code[start..block_end(&source.code, start)];
        let inside = group.trim_start_matches("std::{").trim_end_matches('}');
        let mut depth = 0_usize;
        let members = inside.split(|letter: char| {
            depth = match letter {
                '{' => depth + 1,
                '}' => depth.saturating_sub(1),
                _ => depth,
            };
            letter == ',' && depth == 0
        });
        for member in members {
            let module = member.trim().split([':', ' ']).next().unwrap_or_default();
            if IMPURE_STD.contains(&module) {
                found.push((start, format!("std::{module}")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn what_reads_the_surroundings_is_found() {
        for text in [
            "use std::time::Duration;",
            "use std::{collections::{BTreeMap, BTreeSet}, fs::File};",
            "fn f() { std::env::var(\"A\"); }",
            "pub async fn f() {}",
            "let now = Instant::now();",
            "let x = rand::random();",
        ] {
            assert_eq!(found("crates/core/src/a.rs", text), 1, "{text}");
        }
    }

    #[test]
    fn pure_code_comments_and_other_crates_are_clean() {
        let pure = "//! Never std::time.\nuse core::time::Duration;\nuse std::{collections::BTreeMap, fmt};\n\
                    fn operand() -> &'static str { \"std::env\" }";
        assert_eq!(found("crates/core/src/a.rs", pure), 0);
        assert_eq!(found("crates/runtime/src/a.rs", "use std::time::Instant;"), 0);
    }
}
