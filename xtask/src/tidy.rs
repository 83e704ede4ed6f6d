//! `cargo xtask tidy`: the project's own rules about its sources and documents.
//!
//! Compilers and linters know Rust; these rules know this project. Each is a function from the tree's files to
//! what is wrong with them, in a module whose documentation says why the rule is there, and is tested on small
//! trees that exist only in memory. A finding names the file and line, what is wrong and how to mend it; a
//! document that a rule needs and does not find is a finding too.

mod dependency_reasons;
mod dependency_rule;
mod guarantees;
mod links;
mod machine_traces;
mod manifest;
mod module_docs;
mod module_names;
mod named_test;
mod pure_core;
mod rust_source;
mod scenarios;
mod tree;
mod unfinished;

use anyhow::{Result, bail};

use tree::{Finding, Tree};

type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

const RULES: &[Rule] = &[
    ("dependency rule", dependency_rule::check),
    ("pure core", pure_core::check),
    ("module docs", module_docs::check),
    ("module names", module_names::check),
    ("unfinished code", unfinished::check),
    ("dependency reasons", dependency_reasons::check),
    ("scenarios", scenarios::check),
    ("guarantees", guarantees::check),
    ("links", links::check),
    ("machine traces", machine_traces::check),
];

/// Checks the working tree, uncommitted files included, and prints every finding.
///
/// # Errors
///
/// If there is a finding, or the tree cannot be read.
pub fn run() -> Result<()> {
    let tree = Tree::read()?;
    let mut count = 0;
    for (name, check) in RULES {
        for finding in check(&tree) {
            println!("{finding}  [{name}]");
            count += 1;
        }
    }
    if count > 0 {
        bail!("tidy has {count} findings");
    }
    println!("tidy: {} files keep {} rules", tree.len(), RULES.len());
    Ok(())
}
