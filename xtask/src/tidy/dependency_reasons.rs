//! Every dependency from outside has its line of reason in ARCHITECTURE.md, under `## Dependencies`.
//!
//! Why: each one is code that we answer for, build time that everyone pays, and a licence. Who adds one says
//! what it is for and why not less; who removes one takes its line along, or the list stops being true.
//!
//! A line is a list item or a table row that begins with the package's name in backticks, or with several:
//! "- `serde`, `serde_json`: …". What else stands in backticks on the line is its own affair.

use std::collections::BTreeMap;

use super::manifest;
use super::tree::{Finding, Tree};

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Dependencies";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = match manifest::read_all(tree) {
        Ok(manifests) => manifests,
        Err(finding) => return vec![finding],
    };
    let Some(document) = tree.text(DOCUMENT) else {
        return vec![Finding::missing(
            DOCUMENT,
            "write it, with the reason of each dependency under `## Dependencies`",
        )];
    };
    let Some(reasons) = reasons(document) else {
        let mend = "add it, with a line for each dependency";
        return vec![Finding::new(DOCUMENT, 1, format!("there is no heading `{HEADING}`"), mend)];
    };
    // Where each is named first.
    let mut used = BTreeMap::new();
    for manifest in &manifests {
        for dependency in &manifest.dependencies {
            if manifests.iter().all(|ours| ours.package != dependency.name) {
                used.entry(dependency.name.as_str()).or_insert((manifest.path.as_str(), dependency.line));
            }
        }
    }
    let unexplained = used.iter().filter(|(name, _)| !reasons.contains_key(*name)).map(|(name, (path, line))| {
        let mend = format!("add \"- `{name}`: what it is for\" to {DOCUMENT} under `{HEADING}`, or do without it");
        Finding::new(path, *line, format!("nothing says why `{name}` is depended on"), mend)
    });
    let gone = reasons
        .iter()
        .filter(|(name, _)| !used.contains_key(*name))
        .map(|(name, line)| Finding::new(DOCUMENT, *line, format!("no crate depends on `{name}`"), "remove its line"));
    unexplained.chain(gone).collect()
}

/// Each name that a line of the section begins with, and the line.
fn reasons(document: &str) -> Option<BTreeMap<&str, usize>> {
    let mut lines = document.lines().enumerate().skip_while(|(_, line)| line.trim_end() != HEADING);
    lines.next()?;
    let section = lines.take_while(|(_, line)| !line.starts_with("## ") && !line.starts_with("# "));
    Some(section.flat_map(|(index, line)| leading_names(line).into_iter().map(move |name| (name, index + 1))).collect())
}

fn leading_names(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let Some(mut rest) = ["- ", "* ", "| "].iter().find_map(|marker| line.trim_start().strip_prefix(marker)) else {
        return names;
    };
    while let Some((name, behind)) = rest.strip_prefix('`').and_then(|open| open.split_once('`')) {
        names.push(name);
        rest = behind.strip_prefix(", ").or_else(|| behind.strip_prefix(" and ")).unwrap_or_default();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "[package]\nname = \"lodestep\"\n[dependencies]\nserde = \"1\"\nserde_json = \"1\"\nlodestep-core = \"0\"";

    fn found(architecture: &[(&str, &str)]) -> Vec<String> {
        let mut files =
            vec![("crates/a/Cargo.toml", MANIFEST), ("crates/b/Cargo.toml", "[package]\nname = \"lodestep-core\"\n")];
        files.extend(architecture);
        check(&Tree::of(&files)).iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.what)).collect()
    }

    #[test]
    fn explained_dependencies_are_clean() {
        for section in
            ["- `serde`, `serde_json`: files, with `derive`", "| `serde` | files |\n| `serde_json` and more | x |"]
        {
            let text = format!("# A\n\n## Dependencies\n\n{section}\n\n## Other\n\n- `unrelated`: x\n");
            assert_eq!(found(&[("ARCHITECTURE.md", &text)]), Vec::<String>::new());
        }
    }

    #[test]
    fn unexplained_and_gone_dependencies_are_found() {
        let text = "## Dependencies\n- `serde`: files\n- `zstd`: values\n";
        let wanted = [
            "crates/a/Cargo.toml:5: nothing says why `serde_json` is depended on",
            "ARCHITECTURE.md:3: no crate depends on `zstd`",
        ];
        assert_eq!(found(&[("ARCHITECTURE.md", text)]), wanted);
    }

    #[test]
    fn a_missing_document_or_heading_is_found() {
        assert_eq!(found(&[]), ["ARCHITECTURE.md:1: the file is missing"]);
        assert_eq!(
            found(&[("ARCHITECTURE.md", "# A\n")]),
            ["ARCHITECTURE.md:1: there is no heading `## Dependencies`"]
        );
    }
}
