//! A mutation as its patch file says it: what it breaks and which test must notice.
//!
//! ```text
//! # breaks: G4 — a completed action is performed again after a resume
//! # test: cargo test -p lodestep-core a_completed_action_is_not_owed
//! --- a/crates/core/src/owed.rs
//! +++ b/crates/core/src/owed.rs
//! …
//! ```
//!
//! A third line, `# starts: lodestep`, has the program built with the mutation for a test that starts it.

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
    /// What must notice.
    pub test: NamedTest,
}

/// The test that a mutation names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedTest {
    /// Its command without `cargo`; split at spaces, there is no quoting.
    pub command: Vec<String>,
    /// Whether it starts the `lodestep` program, which cargo builds only for the tests of the program's package.
    pub starts_program: bool,
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
            let mut values = header.filter_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": "));
            values.next().with_context(|| format!("{path} has no header line `# {name}: …`"))
        };
        let (breaks, sentence) = field("breaks")?.split_once(' ').unwrap_or_default();
        let sentence = sentence.trim_start_matches(['—', '-', ' ']);
        ensure!(!breaks.is_empty() && !sentence.is_empty(), "{path} does not say `# breaks: ID — how`");
        let line = field("test")?;
        let words = line.strip_prefix("cargo ").unwrap_or_default().split_whitespace().map(str::to_owned);
        let command: Vec<String> = words.collect();
        ensure!(command.first().is_some_and(|word| word == "test"), "{path}: `{line}` is not a `cargo test`");
        ensure!(text.lines().any(|line| line.starts_with("+++ ")), "{path} holds no diff");
        let starts_program = match field("starts") {
            Ok(program) => {
                ensure!(program == "lodestep", "{path}: there is no program `{program}`");
                true
            }
            Err(_) => false,
        };
        let name = path.trim_start_matches(FOLDER).trim_end_matches(".patch");
        Ok(Mutation {
            path: path.to_owned(),
            name: name.to_owned(),
            breaks: breaks.to_owned(),
            sentence: sentence.to_owned(),
            test: NamedTest { command, starts_program },
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
        assert_eq!((mutation.name.as_str(), mutation.breaks.as_str()), ("g04-again", "G4"));
        assert_eq!(mutation.sentence, "it is done again");
        assert_eq!(mutation.test.command, ["test", "-p", "a", "name", "--", "--exact"]);
        assert!(!mutation.test.starts_program);
    }

    #[test]
    fn a_test_that_starts_the_program_says_so() {
        let text = "# breaks: G1 — x\n# test: cargo test a\n# starts: lodestep\n+++ b/x\n";
        assert!(Mutation::parse("mutations/a.patch", text).unwrap().test.starts_program);
    }

    #[test]
    fn a_header_that_lacks_something_is_refused() {
        for text in [
            "# test: cargo test a\n+++ b/x\n",
            "# breaks: G4 — x\n+++ b/x\n",
            "# breaks: G4\n# test: cargo test a\n+++ b/x\n",
            "# breaks: G4 — x\n# test: make test\n+++ b/x\n",
            "# breaks: G4 — x\n# test: cargo test a\n# starts: other\n+++ b/x\n",
            "# breaks: G4 — x\n# test: cargo test a\n",
            "+++ b/x\n# breaks: G4 — x\n# test: cargo test a\n",
        ] {
            assert!(Mutation::parse("mutations/a.patch", text).is_err(), "{text}");
        }
    }
}
