//! A mutation as its patch file says it: what it breaks and which test must notice.
//!
//! ```text
//! # breaks: G4 — a completed action is performed again after a resume
//! # test: cargo test -p lodestep-core a_completed_action_is_not_owed
//! --- a/crates/core/src/owed.rs
//! +++ b/crates/core/src/owed.rs
//! …
//! ```

use anyhow::{Context, Result, ensure};

/// The folder that holds the patches.
pub const FOLDER: &str = "mutations/";

/// One way to break the product.
#[derive(Debug, PartialEq)]
pub struct Mutation {
    /// The patch's path from the root.
    pub path: String,
    /// The patch's file name without its ending.
    pub name: String,
    /// The id of what it breaks: a guarantee's, mostly.
    pub breaks: String,
    /// How it breaks it.
    pub sentence: String,
    /// The test's command without `cargo`; split at spaces, there is no quoting.
    pub test: Vec<String>,
}

impl Mutation {
    /// Reads a patch file's header.
    ///
    /// # Errors
    ///
    /// If a header line is missing or empty, the test is not a `cargo test`, or no diff follows.
    pub fn parse(path: &str, text: &str) -> Result<Mutation> {
        let field = |name: &str| {
            let header = text.lines().take_while(|line| line.starts_with('#'));
            let mut values = header.filter_map(|line| {
                line.strip_prefix("# ")?
                    .strip_prefix(name)?
                    .strip_prefix(": ")
            });
            values
                .next()
                .with_context(|| format!("{path} has no header line `# {name}: …`"))
        };
        let (breaks, sentence) = field("breaks")?.split_once(' ').unwrap_or_default();
        let sentence = sentence.trim_start_matches(['—', '-', ' ']);
        ensure!(
            !breaks.is_empty() && !sentence.is_empty(),
            "{path} does not say `# breaks: ID — how`"
        );
        let command = field("test")?;
        let test = command
            .strip_prefix("cargo ")
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned);
        let test: Vec<String> = test.collect();
        ensure!(
            test.first().is_some_and(|word| word == "test"),
            "{path}: `{command}` is not a `cargo test`"
        );
        ensure!(
            text.lines().any(|line| line.starts_with("+++ ")),
            "{path} holds no diff"
        );
        let name = path.trim_start_matches(FOLDER).trim_end_matches(".patch");
        Ok(Mutation {
            path: path.to_owned(),
            name: name.to_owned(),
            breaks: breaks.to_owned(),
            sentence: sentence.to_owned(),
            test,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let text = "# breaks: G4 — it is done again\n# test: cargo test -p a name -- --exact\ndiff\n--- a/x\n+++ b/x\n";
        let mutation = Mutation::parse("mutations/g04-again.patch", text).unwrap();
        assert_eq!(
            (mutation.name.as_str(), mutation.breaks.as_str()),
            ("g04-again", "G4")
        );
        assert_eq!(mutation.sentence, "it is done again");
        assert_eq!(mutation.test, ["test", "-p", "a", "name", "--", "--exact"]);
    }

    #[test]
    fn a_header_that_lacks_something_is_refused() {
        for text in [
            "# test: cargo test a\n+++ b/x\n",
            "# breaks: G4 — x\n+++ b/x\n",
            "# breaks: G4\n# test: cargo test a\n+++ b/x\n",
            "# breaks: G4 — x\n# test: make test\n+++ b/x\n",
            "# breaks: G4 — x\n# test: cargo test a\n",
            "+++ b/x\n# breaks: G4 — x\n# test: cargo test a\n",
        ] {
            assert!(
                Mutation::parse("mutations/a.patch", text).is_err(),
                "{text}"
            );
        }
    }
}
