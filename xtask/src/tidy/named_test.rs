//! Whether a test that a document names is there: `crates/core/tests/fold.rs::a_torn_journal_is_refused`.
//!
//! Before the first `::` stands a file of the tree; without one (`fold::tests::name`, or the name alone), any
//! Rust file may hold the test. The function must carry an attribute that makes it a test: a claim that rests on
//! a function that no runner calls rests on nothing.

use super::rust_source::RustSource;
use super::tree::Tree;

/// What is wrong with the reference, if anything is.
pub fn fault(tree: &Tree, reference: &str) -> Option<String> {
    let name = reference.rsplit("::").next().unwrap_or(reference);
    let first = reference.split("::").next().unwrap_or(reference);
    if !first.ends_with(".rs") {
        let is_anywhere = tree.ending(".rs").any(|(path, text)| defines(path, text, name));
        return (!is_anywhere).then(|| format!("no file has a test `{name}`"));
    }
    match tree.text(first) {
        None => Some(format!("there is no file `{first}`")),
        Some(text) => (!defines(first, text, name)).then(|| format!("`{first}` has no test `{name}`")),
    }
}

fn defines(path: &str, text: &str, name: &str) -> bool {
    // Scanning is dear and most files do not hold the name.
    if name.is_empty() || !text.contains(name) {
        return false;
    }
    let source = RustSource::new(path, text);
    let definitions = source.find(&format!("fn {name}"));
    definitions.iter().any(|offset| has_test_attribute(&source.code[..*offset]))
}

/// Whether the lines right above an item, comments passed over, hold an attribute such as `#[tokio::test]`.
fn has_test_attribute(before: &str) -> bool {
    let above = before.lines().rev().skip(usize::from(!before.ends_with('\n')));
    let attributes = above.map(str::trim).take_while(|line| !line.ends_with(['}', ';', '{', ',']));
    let mut lines = attributes.filter(|line| line.starts_with("#["));
    lines.any(|line| line.contains("test]") || line.contains("test("))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! Docs.\nmod tests {\n    /// About it.\n    #[test]\n    #[should_panic]\n    // Why.\n    \
                        fn runs() {}\n\n    #[tokio::test(flavor = \"current_thread\")]\n    async fn waits() {}\n\n    \
                        fn is_called_by_others() {}\n}\n";

    #[test]
    fn tests_are_found_with_and_without_their_file() {
        let tree = Tree::of(&[("crates/a/src/fold.rs", TEXT)]);
        for reference in
            ["crates/a/src/fold.rs::runs", "crates/a/src/fold.rs::tests::waits", "fold::tests::runs", "waits"]
        {
            assert_eq!(fault(&tree, reference), None, "{reference}");
        }
    }

    #[test]
    fn what_is_no_test_is_refused() {
        let tree = Tree::of(&[("crates/a/src/fold.rs", TEXT)]);
        for (reference, wanted) in [
            ("crates/a/src/gone.rs::runs", "there is no file `crates/a/src/gone.rs`"),
            ("crates/a/src/fold.rs::run", "`crates/a/src/fold.rs` has no test `run`"),
            ("is_called_by_others", "no file has a test `is_called_by_others`"),
            ("", "no file has a test ``"),
        ] {
            assert_eq!(fault(&tree, reference).as_deref(), Some(wanted));
        }
    }
}
