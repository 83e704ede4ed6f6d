//! The copy of the working tree that mutations are tried in, kept in the target folder between runs.
//!
//! A file is written only where it differs, so that cargo rebuilds only what a patch touched; the builds have a
//! target folder of their own, or a mutated object could end up in the developer's next build.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The copy; equal to the working tree except while a patch is applied.
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes or refreshes the copy.
    pub fn create() -> Result<Scratch> {
        let scratch = Scratch { folder: workspace::target().join("mutate") };
        fs::create_dir_all(scratch.tree()).with_context(|| format!("cannot create {}", scratch.tree().display()))?;
        scratch.restore()?;
        Ok(scratch)
    }

    /// The copy's root.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// The builds' target folder.
    pub fn build(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// Where the builds put the `lodestep` program.
    pub fn program(&self) -> PathBuf {
        self.build().join("debug").join(format!("lodestep{}", std::env::consts::EXE_SUFFIX))
    }

    /// Where the last trial's output is kept.
    pub fn log(&self) -> PathBuf {
        self.folder.join("last.log")
    }

    /// Makes the copy equal to the working tree again.
    pub fn restore(&self) -> Result<()> {
        mirror(&workspace::root(), &workspace::files()?, &self.tree())
    }

    /// Applies a patch, given by its path from the working tree's root, to the copy.
    ///
    /// # Errors
    ///
    /// With git's words if it does not apply whole; then the copy is as before.
    pub fn apply(&self, patch: &str) -> Result<()> {
        let output = Command::new("git")
            .args(["apply", "--whitespace=nowarn"])
            .arg(workspace::root().join(patch))
            .current_dir(self.tree())
            // The copy lies inside the real working tree: git must not find that one and skip every path.
            .env("GIT_CEILING_DIRECTORIES", self.folder.canonicalize()?)
            .output()
            .context("cannot start git")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "));
        }
        Ok(())
    }
}

fn mirror(from: &Path, files: &[String], to: &Path) -> Result<()> {
    for file in files {
        let wanted = fs::read(from.join(file)).with_context(|| format!("cannot read {file}"))?;
        let copy = to.join(file);
        if fs::read(&copy).ok().as_ref() != Some(&wanted) {
            if let Some(folder) = copy.parent() {
                fs::create_dir_all(folder)?;
            }
            // `copy` keeps the permissions: a test may start a script of the tree.
            fs::copy(from.join(file), &copy).with_context(|| format!("cannot write {}", copy.display()))?;
        }
    }
    remove_others(to, to, &files.iter().map(PathBuf::from).collect())
}

fn remove_others(root: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(root, &path, files)?;
        } else if !files.contains(path.strip_prefix(root)?) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}
