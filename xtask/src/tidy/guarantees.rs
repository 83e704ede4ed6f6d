//! docs/guarantees.md has a row for each guarantee, and a row's proof is there: a test, and a mutation for it.
//!
//! Why: a guarantee is worth what would notice its loss. The test is what notices; the mutation, a patch that
//! breaks the guarantee on purpose, is what shows that the test notices. A row without one or the other says
//! `not yet` in its place, so that the table never claims more than it has.
//!
//! | id | guarantee | test | mutation |
//! |---|---|---|---|
//! | G4 | sentence | the test's name in backticks, or several | mutations/g04-sentence.patch, or several |

use crate::mutate::{FOLDER, Mutation};

use super::named_test;
use super::tree::{Finding, Tree};

const DOCUMENT: &str = "docs/guarantees.md";
const COUNT: usize = 15;
const NOT_YET: &str = "not yet";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = malformed_mutations(tree);
    let Some(text) = tree.text(DOCUMENT) else {
        findings.push(Finding::missing(DOCUMENT, "write it, with a row for each of G1 to G15"));
        return findings;
    };
    let rows: Vec<_> = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, cells(line)?))).collect();
    for id in (1..=COUNT).map(|number| format!("G{number}")) {
        let mut own = rows.iter().filter(|(_, cells)| cells[0] == id);
        match (own.next(), own.next()) {
            (None, _) => findings.push(Finding::new(DOCUMENT, 1, format!("{id} has no row"), "add it")),
            (Some(_), Some((line, _))) => {
                findings.push(Finding::new(DOCUMENT, *line, format!("{id} has a second row"), "name all tests in one"));
            }
            (Some((line, cells)), None) => {
                findings
                    .extend(row_faults(tree, &id, cells).map(|(what, mend)| Finding::new(DOCUMENT, *line, what, mend)));
            }
        }
    }
    findings
}

/// The cells of a table row about a guarantee, links and backticks left in.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix("| ")?.strip_suffix('|')?;
    row.starts_with('G').then(|| row.split('|').map(str::trim).collect())
}

fn row_faults(tree: &Tree, id: &str, cells: &[&str]) -> impl Iterator<Item = (String, String)> {
    let [_, _, tests, mutations] = cells else {
        let what = format!("the row of {id} has {} cells, not 4", cells.len());
        return vec![(what, "write | id | guarantee | test | mutation |".to_owned())].into_iter();
    };
    let mut faults = Vec::new();
    if *tests != NOT_YET {
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            faults.push((format!("{id} names no test"), format!("name it in backticks, or write `{NOT_YET}`")));
        }
        let gone = names.iter().filter_map(|name| named_test::fault(tree, name));
        faults.extend(
            gone.map(|fault| (format!("{id}: {fault}"), format!("name one that exists, or write `{NOT_YET}`"))),
        );
    }
    if *mutations != NOT_YET {
        let patches = patches(mutations);
        if patches.is_empty() {
            faults.push((format!("{id} names no mutation"), format!("name {FOLDER}….patch, or write `{NOT_YET}`")));
        }
        for patch in patches {
            faults.extend(mutation_fault(tree, id, patch));
        }
    }
    faults.into_iter()
}

fn mutation_fault(tree: &Tree, id: &str, patch: &str) -> Option<(String, String)> {
    let Some(text) = tree.text(patch) else {
        return Some((format!("{id}: there is no `{patch}`"), "write it; CONTRIBUTING.md says how".to_owned()));
    };
    // A malformed one has its own finding.
    let mutation = Mutation::parse(patch, text).ok()?;
    let what = format!("{id}: `{patch}` says that it breaks {}", mutation.breaks);
    (mutation.breaks != id).then(|| (what, "correct the row or the patch's header".to_owned()))
}

/// Every `mutations/….patch` in a cell, bare, in backticks or in a link.
fn patches(cell: &str) -> Vec<&str> {
    let starts = cell.match_indices(FOLDER).map(|(start, _)| &cell[start..]);
    let mut patches: Vec<_> =
        starts.filter_map(|rest| rest.find(".patch").map(|end| &rest[..end + ".patch".len()])).collect();
    patches.dedup();
    patches
}

fn malformed_mutations(tree: &Tree) -> Vec<Finding> {
    let patches = tree.ending(".patch").filter(|(path, _)| path.starts_with(FOLDER));
    let faults = patches.filter_map(|(path, text)| Some((path, Mutation::parse(path, text).err()?)));
    faults
        .map(|(path, fault)| Finding::new(path, 1, format!("{fault:#}"), "see mutations/README.md for the format"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str =
        "# breaks: G4 — it does it again\n# test: cargo test -p lodestep-core again\n--- a/x\n+++ b/x\n";

    fn found(fourth: &str) -> Vec<String> {
        let rest = (1..=COUNT).filter(|number| *number != 4);
        let rows: String = rest.map(|number| format!("| G{number} | s | not yet | not yet |\n")).collect();
        let text = format!("{fourth}\n{rows}");
        let tree = Tree::of(&[
            ("docs/guarantees.md", &text),
            ("mutations/g04-again.patch", PATCH),
            ("tests/a.rs", "//! A.\n#[test]\nfn works() {}\n"),
        ]);
        check(&tree).iter().map(|it| format!("{}: {}", it.line, it.what)).collect()
    }

    #[test]
    fn rows_that_name_their_proof_or_lack_it_openly_are_clean() {
        for row in [
            "| G4 | s | `works` | mutations/g04-again.patch |",
            "| G4 | s | `tests/a.rs::works`, `works` | [it](../mutations/g04-again.patch) |",
            "| G4 | s | `works` | not yet |",
            "| G4 | s | not yet | not yet |",
        ] {
            assert_eq!(found(row), Vec::<String>::new(), "{row}");
        }
    }

    #[test]
    fn rows_that_claim_too_much_are_found() {
        for (row, wanted) in [
            ("", "1: G4 has no row"),
            ("| G4 | s | `gone` | not yet |", "1: G4: no file has a test `gone`"),
            ("| G4 | s | soon | not yet |", "1: G4 names no test"),
            ("| G4 | s | `works` | soon |", "1: G4 names no mutation"),
            ("| G4 | s | `works` | mutations/gone.patch |", "1: G4: there is no `mutations/gone.patch`"),
            ("| G4 | s | `works` |", "1: the row of G4 has 3 cells, not 4"),
            ("| G4 | s | not yet | not yet |\n| G4 | s | not yet | not yet |", "2: G4 has a second row"),
        ] {
            assert_eq!(found(row), [wanted], "{row}");
        }
    }

    #[test]
    fn a_mutation_of_another_guarantee_or_without_a_header_is_found() {
        let tree = Tree::of(&[("mutations/a.patch", PATCH), ("mutations/b.patch", "--- a/x\n+++ b/x\n")]);
        assert!(mutation_fault(&tree, "G5", "mutations/a.patch").is_some());
        assert_eq!(
            malformed_mutations(&tree).iter().map(|it| it.path.as_str()).collect::<Vec<_>>(),
            ["mutations/b.patch"]
        );
    }

    #[test]
    fn a_missing_document_is_found() {
        assert_eq!(check(&Tree::of(&[]))[0].path, "docs/guarantees.md");
    }
}
