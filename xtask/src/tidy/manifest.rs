//! What each crate's `Cargo.toml` says it is and depends on.

use toml::{Table, Value};

use super::tree::{Finding, Tree, line_at, line_where};

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// One crate of the workspace.
pub struct Manifest {
    pub path: String,
    pub package: String,
    pub dependencies: Vec<Dependency>,
}

/// One crate that another names, for whatever purpose: to run, to build or to test.
pub struct Dependency {
    /// The package's own name, also where the manifest renames it.
    pub name: String,
    pub line: usize,
}

/// Every crate of the tree.
///
/// # Errors
///
/// The finding for the first manifest that is not TOML.
pub fn read_all(tree: &Tree) -> Result<Vec<Manifest>, Finding> {
    let shared = match tree.text("Cargo.toml") {
        Some(text) => parse("Cargo.toml", text)?,
        None => Table::new(),
    };
    let shared = shared.get("workspace").and_then(|workspace| workspace.get("dependencies")).and_then(Value::as_table);
    let mut manifests = Vec::new();
    for (path, text) in tree.ending("Cargo.toml") {
        let table = parse(path, text)?;
        let name = table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
        if let Some(package) = name {
            let dependencies = dependencies(&table, text, shared);
            manifests.push(Manifest { path: path.to_owned(), package: package.to_owned(), dependencies });
        }
    }
    Ok(manifests)
}

fn parse(path: &str, text: &str) -> Result<Table, Finding> {
    text.parse::<Table>().map_err(|error| {
        let line = line_at(text, error.span().map_or(0, |span| span.start));
        Finding::new(path, line, format!("not TOML: {}", error.message()), "correct the manifest")
    })
}

fn dependencies(manifest: &Table, text: &str, shared: Option<&Table>) -> Vec<Dependency> {
    let per_target = manifest.get("target").and_then(Value::as_table);
    let targets = per_target.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let lists = std::iter::once(manifest).chain(targets).flat_map(|table| KINDS.map(|kind| table.get(kind)));
    let entries = lists.flatten().filter_map(Value::as_table).flatten();
    entries
        .map(|(key, value)| {
            let inherited = value.get("workspace").is_some().then(|| shared?.get(key)).flatten();
            let renamed = inherited.unwrap_or(value).get("package").and_then(Value::as_str);
            Dependency { name: renamed.unwrap_or(key).to_owned(), line: line_where(text, |line| names(line, key)) }
        })
        .collect()
}

/// Whether a manifest's line is about the dependency: `key = …`, `key.workspace = …` or `[dependencies.key]`.
fn names(line: &str, key: &str) -> bool {
    let begins = line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    begins || line.trim_end().ends_with(&format!("dependencies.{key}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_dependency_is_read_by_its_package_name() {
        let root = "[workspace.dependencies]\nshort = { package = \"long-name\", version = \"1\" }";
        let member = "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\nshort.workspace = true\n\
                      [dev-dependencies.c]\nversion = \"1\"\n[target.'cfg(unix)'.build-dependencies]\nd = { package = \"e\" }";
        let tree = Tree::of(&[("Cargo.toml", root), ("crates/a/Cargo.toml", member)]);
        let manifests = read_all(&tree).unwrap();
        let mut found: Vec<_> = manifests[0].dependencies.iter().map(|it| (it.name.as_str(), it.line)).collect();
        found.sort_unstable();
        assert_eq!(found, [("b", 4), ("c", 6), ("e", 9), ("long-name", 5)]);
    }

    #[test]
    fn a_broken_manifest_is_a_finding() {
        let found = read_all(&Tree::of(&[("a/Cargo.toml", "[package]\nname =")])).err().unwrap();
        assert_eq!((found.path.as_str(), found.line), ("a/Cargo.toml", 2));
    }
}
