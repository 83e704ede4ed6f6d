//! No module is called after nothing: `util`, `common`, `helpers` and their kin.
//!
//! Why: such a name says what a thing is not. It gathers whatever has no home, everything comes to depend on it,
//! and the next reader cannot guess what is in it. A thing that two places need has a name of its own.

use super::rust_source::{RustSource, is_word};
use super::tree::{Finding, Tree};

const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helpers", "types", "manager"];
const MEND: &str = "name it after what it holds";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let parts = path.trim_end_matches(".rs").split('/');
        for part in parts.filter(|part| EMPTY_NAMES.contains(part)) {
            findings.push(Finding::new(path, 1, format!("a module or folder is called `{part}`"), MEND));
        }
        findings.extend(inline_modules(path, &RustSource::new(path, text)));
    }
    findings
}

/// Modules written out in the file; those in files of their own are known by their paths.
fn inline_modules(path: &str, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for offset in source.find("mod") {
        let rest = source.code[offset + "mod".len()..].trim_start();
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if EMPTY_NAMES.contains(&name) && behind.trim_start().starts_with('{') {
            findings.push(Finding::new(path, source.line(offset), format!("a module is called `{name}`"), MEND));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_in_paths_and_in_code() {
        let tree = Tree::of(&[
            ("crates/a/src/util.rs", ""),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/src/lib.rs", "mod fold;\nmod helpers { }"),
        ]);
        let found: Vec<_> = check(&tree).iter().map(|it| format!("{}:{}", it.path, it.line)).collect();
        assert_eq!(found, ["crates/a/src/lib.rs:2", "crates/a/src/util.rs:1", "crates/a/tests/common/mod.rs:1"]);
    }

    #[test]
    fn names_that_say_something_are_clean() {
        let text = "mod tests { }\nmod prototypes { }\n// mod util { }\nlet types = 1;";
        assert!(check(&Tree::of(&[("crates/a/src/utility_meter.rs", text)])).is_empty());
    }
}
