//! Every Rust file begins with what it is for, and none is too long to be for one thing.
//!
//! Why: a reader who opens a file at random must learn in its first lines what it does and what it leaves to
//! others. A file that has grown past a few screens holds two things, and its first lines can only name one.

use super::tree::{Finding, Tree};

const MOST_LINES: usize = 600;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".rs") {
        if !text.starts_with("//!") {
            let mend = "begin with `//!`: what the file is for and what it does not do";
            findings.push(Finding::new(path, 1, "the file has no module documentation on its first line", mend));
        }
        let lines = text.lines().count();
        if lines > MOST_LINES {
            let what = format!("the file has {lines} lines, more than {MOST_LINES}");
            findings.push(Finding::new(path, MOST_LINES + 1, what, "split it by concept, a file each"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documented_file_of_any_length_up_to_the_limit_is_clean() {
        let longest = format!("//! For one thing.\n{}", "\n".repeat(MOST_LINES - 1));
        assert!(check(&Tree::of(&[("src/a.rs", &longest), ("README.md", "no docs")])).is_empty());
    }

    #[test]
    fn a_file_without_docs_or_over_the_limit_is_found() {
        let too_long = format!("//! For two things.\n{}", "\n".repeat(MOST_LINES));
        let found = check(&Tree::of(&[("src/a.rs", &too_long), ("tests/b.rs", "// Not a doc.\n")]));
        assert_eq!(
            found.iter().map(|it| (it.path.as_str(), it.line)).collect::<Vec<_>>(),
            [("src/a.rs", 601), ("tests/b.rs", 1)]
        );
    }
}
