//! Dependencies point one way: model ← core ← store ← runtime ← cli, with the models and their test server beside core.
//!
//! Why: the core is where every promise about effects is decided. It can be tested by the million only while it
//! needs no store, no clock and no runtime, and a store can be replaced only while it knows no runtime. One
//! convenient dependency the wrong way ends that, and no compiler objects. What only tests or builds need counts
//! too: a crate that cannot be tested without the layer above it depends on that layer.

use super::manifest::{self, Manifest};
use super::tree::{Finding, Tree};

/// Each crate, and the crates of this workspace that it may name.
const ALLOWED: &[(&str, &[&str])] = &[
    ("lodestep-model", &[]),
    ("lodestep-offline", &["lodestep-model"]),
    // Only the tests of the others name it: it judges whoever asks a model, and shares no code with them.
    ("lodestep-model-server", &["lodestep-model"]),
    ("lodestep-providers", &["lodestep-model", "lodestep-model-server", "lodestep-providers"]),
    ("lodestep-core", &["lodestep-model"]),
    ("lodestep-store", &["lodestep-model", "lodestep-core"]),
    // Itself: its own tests turn its features on.
    (
        "lodestep",
        &[
            "lodestep-model",
            "lodestep-model-server",
            "lodestep-offline",
            "lodestep-providers",
            "lodestep-core",
            "lodestep-store",
            "lodestep",
        ],
    ),
    (
        "lodestep-cli",
        &["lodestep-model", "lodestep-model-server", "lodestep-offline", "lodestep-core", "lodestep-store", "lodestep"],
    ),
    // Not shipped: it gives each of them what nobody meant.
    ("lodestep-fuzz", &["lodestep-model", "lodestep-providers", "lodestep-core", "lodestep-store", "lodestep"]),
    // A chore must run while the product does not compile.
    ("xtask", &[]),
];

/// What would give the core a runtime, a disk, a system or chance.
const NOT_IN_CORE: &[&str] = &["tokio", "rusqlite", "rustix", "rand", "getrandom"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    match manifest::read_all(tree) {
        Ok(manifests) => manifests.iter().flat_map(|manifest| check_crate(manifest, &manifests)).collect(),
        Err(finding) => vec![finding],
    }
}

fn check_crate(manifest: &Manifest, all: &[Manifest]) -> Vec<Finding> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(package, _)| *package == manifest.package) else {
        let what = format!("the crate `{}` has no place in the dependency rule", manifest.package);
        return vec![Finding::new(&manifest.path, 1, what, "give it a line in xtask/src/tidy/dependency_rule.rs")];
    };
    let is_ours = |name: &str| all.iter().any(|other| other.package == name);
    let mut findings = Vec::new();
    for dependency in &manifest.dependencies {
        let name = dependency.name.as_str();
        let (package, path, line) = (&manifest.package, &manifest.path, dependency.line);
        if is_ours(name) && !allowed.contains(&name) {
            let what = format!("`{package}` may not depend on `{name}`");
            findings.push(Finding::new(path, line, what, "move what both need down to a crate that both may use"));
        }
        if package == "lodestep-core" && NOT_IN_CORE.contains(&name) {
            let what = format!("the core may not depend on `{name}`");
            findings.push(Finding::new(path, line, what, "take the value as an argument and let the runtime get it"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(package: &str, dependencies: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{package}\"\n{dependencies}");
        let other = |name: &str| format!("[package]\nname = \"{name}\"\n");
        let tree = Tree::of(&[
            ("crates/it/Cargo.toml", &manifest),
            ("crates/one/Cargo.toml", &other("lodestep-cli")),
            ("crates/two/Cargo.toml", &other("lodestep-store")),
            ("crates/three/Cargo.toml", &other("lodestep-model")),
        ]);
        check(&tree).iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn dependencies_that_point_down_are_clean() {
        assert!(found("lodestep-core", "[dependencies]\nlodestep-model = \"0\"\nblake3 = \"1\"").is_empty());
        assert!(found("lodestep", "[dependencies]\nlodestep-store.workspace = true\ntokio = \"1\"").is_empty());
    }

    #[test]
    fn dependencies_that_point_up_or_sideways_are_found() {
        for (package, dependency) in [
            ("lodestep-offline", "[dependencies]\nlodestep-store = \"0\""),
            ("lodestep-core", "[dev-dependencies]\nlodestep-store = \"0\""),
            ("lodestep", "[dependencies]\nlodestep-cli = \"0\""),
            ("xtask", "[dependencies]\nlodestep-model = \"0\""),
            ("lodestep-core", "[dependencies]\ntokio = \"1\""),
            ("lodestep-core", "[dependencies]\ngetrandom.workspace = true"),
        ] {
            assert_eq!(found(package, dependency), ["crates/it/Cargo.toml:4"], "{package}: {dependency}");
        }
    }

    #[test]
    fn a_crate_that_the_rule_does_not_know_is_found() {
        assert_eq!(found("lodestep-extra", ""), ["crates/it/Cargo.toml:1"]);
    }
}
