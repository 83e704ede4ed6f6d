//! No file names a folder of the machine that it was written on, or a package registry of its own.
//!
//! Why: both work for one person. A path under someone's home directory breaks for everyone else and says who
//! wrote it; a registry's address in a file sends every user's build to a host that only one network has. The
//! only registry is cargo's default one.

use super::tree::{Finding, Tree, line_at};

// In pieces, or this file would be its own first finding.
const ROOTS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/")];
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];
const REGISTRIES: &[&str] = &[
    concat!("sparse", "+http"),
    concat!("registry", "+http"),
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("registry", "=http"),
];
const DEFAULT_REGISTRY: &str = concat!("registry", "+https://github.com/rust-", "lang/crates", ".io-index");

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter() {
        for offset in machine_paths(text) {
            let what = "a path of one machine";
            findings.push(Finding::new(
                path,
                line_at(text, offset),
                what,
                "make it relative, or take it from the environment",
            ));
        }
        let registries = REGISTRIES.iter().flat_map(|word| text.match_indices(word));
        for (offset, _) in registries.filter(|(offset, _)| !text[*offset..].starts_with(DEFAULT_REGISTRY)) {
            let what = "a package registry of its own";
            findings.push(Finding::new(
                path,
                line_at(text, offset),
                what,
                "leave it to each machine's own cargo configuration",
            ));
        }
    }
    findings
}

fn machine_paths(text: &str) -> Vec<usize> {
    // Part of a longer path or address: not the machine's root.
    let begins = |offset: &usize| {
        let before = text[..*offset].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "._-~/}*".contains(letter))
    };
    let roots = ROOTS.iter().flat_map(|root| text.match_indices(root)).map(|(offset, _)| offset);
    let homes = HOMES.iter().flat_map(|home| text.match_indices(home)).filter_map(|(offset, home)| {
        let name = text[offset + home.len()..]
            .split(|letter: char| !letter.is_alphanumeric() && !"._-".contains(letter))
            .next()?;
        let is_whole = !name.is_empty() && text[offset + home.len() + name.len()..].starts_with('/');
        is_whole.then_some(offset)
    });
    roots.chain(homes).filter(begins).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("a.md", text)])).iter().map(|it| it.line).collect()
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for text in [format!("\ncd {}x", ROOTS[0]), format!("\n\"{}x\"", ROOTS[1]), format!("\n{}ada/x", HOMES[0])] {
            assert_eq!(found(&text), [2], "{text}");
        }
    }

    #[test]
    fn registries_are_found_except_the_default_one() {
        assert_eq!(found(&format!("{}://example.org", REGISTRIES[0])), [1]);
        assert_eq!(found(&format!("{} = \"x\"", REGISTRIES[2])), [1]);
        assert!(found(DEFAULT_REGISTRY).is_empty());
    }

    #[test]
    fn other_paths_are_clean() {
        for text in
            [format!("https://example.org{}x", ROOTS[1]), "/etc/passwd /tmp/x".to_owned(), format!("~{}x", ROOTS[0])]
        {
            assert!(found(&text).is_empty(), "{text}");
        }
    }
}
