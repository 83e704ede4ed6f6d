//! tests/scenarios.toml says of every step of every acceptance scenario which test covers it, or why none does.
//!
//! Why: "we have tests for that" decays silently. A scenario is a numbered list of statements; each number is
//! either covered by a test that exists, or open with a reason, never both and never neither.
//!
//! ```toml
//! [EFF-01]
//! title = "…"
//! covered = [{ steps = [1, 2], test = "crates/runtime/tests/effects.rs::killed_after_the_effect" }]
//! open = [{ steps = [3], why = "not built yet" }]
//! [EFF-01.steps]
//! 1 = "…"
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::named_test;
use super::tree::{Finding, Tree, line_at, line_where};

const DOCUMENT: &str = "tests/scenarios.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    title: String,
    covered: Vec<Covered>,
    open: Vec<Open>,
    /// By number, from 1 on. TOML's keys are text.
    steps: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Covered {
    steps: Vec<u32>,
    test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    steps: Vec<u32>,
    why: String,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(DOCUMENT) else {
        return vec![Finding::missing(DOCUMENT, "write it, with a table for each scenario")];
    };
    let scenarios = match toml::from_str::<BTreeMap<String, Scenario>>(text) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            let line = line_at(text, error.span().map_or(0, |span| span.start));
            return vec![Finding::new(
                DOCUMENT,
                line,
                error.message(),
                "see xtask/src/tidy/scenarios.rs for the format",
            )];
        }
    };
    let mut findings = Vec::new();
    for (id, scenario) in &scenarios {
        let line = line_where(text, |line| line == format!("[{id}]"));
        for (what, mend) in faults(tree, scenario) {
            findings.push(Finding::new(DOCUMENT, line, format!("{id}: {what}"), mend));
        }
    }
    findings
}

fn faults(tree: &Tree, scenario: &Scenario) -> Vec<(String, &'static str)> {
    let mut faults = Vec::new();
    if scenario.title.trim().is_empty() || scenario.steps.is_empty() {
        faults.push(("no title or no steps".to_owned(), "say what happens and what must hold"));
    }
    // Keys sort as text, "10" before "2": only their set matters.
    let expected: Vec<String> = (1..=scenario.steps.len()).map(|number| number.to_string()).collect();
    if !expected.iter().all(|number| scenario.steps.contains_key(number)) {
        faults.push(("the steps are not numbered 1, 2, 3 …".to_owned(), "number them without a gap"));
    }
    let is_covered = |number: &u32| scenario.covered.iter().any(|entry| entry.steps.contains(number));
    let times_open =
        |number: &u32| scenario.open.iter().flat_map(|entry| &entry.steps).filter(|it| *it == number).count();
    for number in scenario.steps.keys().filter_map(|key| key.parse().ok()) {
        match (is_covered(&number), times_open(&number)) {
            (true, 0) | (false, 1) => {}
            (false, 0) => faults
                .push((format!("step {number} is neither covered nor open"), "name its test, or say why it is open")),
            (true, _) => faults.push((format!("step {number} is covered and open"), "take it out of `open`")),
            (false, _) => faults.push((format!("step {number} is open twice"), "keep one reason")),
        }
    }
    let named = scenario.covered.iter().flat_map(|it| &it.steps).chain(scenario.open.iter().flat_map(|it| &it.steps));
    for number in named.filter(|number| !scenario.steps.contains_key(&number.to_string())) {
        faults.push((format!("there is no step {number}"), "correct the number"));
    }
    for entry in &scenario.covered {
        faults.extend(
            named_test::fault(tree, &entry.test)
                .map(|fault| (fault, "name a test that exists, or open the steps again")),
        );
    }
    for entry in scenario.open.iter().filter(|entry| entry.why.trim().is_empty()) {
        faults.push((format!("steps {:?} are open without a reason", entry.steps), "say why"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lists: &str) -> Vec<String> {
        let text = format!("# Head.\n[EFF-01]\ntitle = \"t\"\n{lists}\n[EFF-01.steps]\n1 = \"a\"\n2 = \"b\"\n");
        let tree = Tree::of(&[("tests/scenarios.toml", &text), ("tests/a.rs", "//! A.\n#[test]\nfn works() {}\n")]);
        check(&tree).iter().map(|it| format!("{}: {}", it.line, it.what)).collect()
    }

    #[test]
    fn a_scenario_with_every_step_in_one_list_is_clean() {
        for lists in [
            "covered = []\nopen = [{ steps = [1, 2], why = \"w\" }]",
            "covered = [{ steps = [1], test = \"tests/a.rs::works\" }]\nopen = [{ steps = [2], why = \"w\" }]",
            "covered = [{ steps = [1], test = \"works\" }, { steps = [1, 2], test = \"works\" }]\nopen = []",
        ] {
            assert_eq!(found(lists), Vec::<String>::new(), "{lists}");
        }
    }

    #[test]
    fn steps_in_no_list_two_lists_or_none_that_exists_are_found() {
        for (lists, wanted) in [
            ("covered = []\nopen = [{ steps = [1], why = \"w\" }]", "step 2 is neither covered nor open"),
            (
                "covered = [{ steps = [1], test = \"works\" }]\nopen = [{ steps = [1, 2], why = \"w\" }]",
                "step 1 is covered and open",
            ),
            ("covered = []\nopen = [{ steps = [1, 2, 2], why = \"w\" }]", "step 2 is open twice"),
            ("covered = []\nopen = [{ steps = [1, 2, 3], why = \"w\" }]", "there is no step 3"),
            ("covered = []\nopen = [{ steps = [1, 2], why = \" \" }]", "steps [1, 2] are open without a reason"),
            ("covered = [{ steps = [1, 2], test = \"gone\" }]\nopen = []", "no file has a test `gone`"),
        ] {
            assert_eq!(found(lists), [format!("2: EFF-01: {wanted}")], "{lists}");
        }
    }

    #[test]
    fn a_gap_in_the_numbers_is_found() {
        let text = "[A-01]\ntitle = \"t\"\ncovered = []\nopen = [{ steps = [1, 3], why = \"w\" }]\n[A-01.steps]\n1 = \"a\"\n3 = \"b\"\n";
        let found = check(&Tree::of(&[("tests/scenarios.toml", text)]));
        assert_eq!(found[0].what, "A-01: the steps are not numbered 1, 2, 3 …");
    }

    #[test]
    fn a_file_that_is_missing_or_not_in_the_format_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
        let found = check(&Tree::of(&[("tests/scenarios.toml", "[A-01]\ntitle = 1\n")]));
        assert_eq!((found.len(), found[0].line), (1, 2));
    }
}
