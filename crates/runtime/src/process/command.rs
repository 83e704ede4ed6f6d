//! What to run, and how it ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::cage::Cage;

/// A program to run under a holder.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments. A program without a `/` is looked for in the `PATH` of `env`;
    /// one with a `/` that is not absolute is taken from `cwd`.
    pub argv: Vec<String>,
    /// The folder that the program starts in.
    pub cwd: PathBuf,
    /// The whole environment of the program. Nothing is inherited; start from
    /// [`clean_environment`].
    pub env: BTreeMap<String, String>,
    /// Given to the program on its standard input, which is then closed. A program may leave it
    /// unread.
    pub stdin: Vec<u8>,
    /// Counted from the call of `run`; then every process of the tool is killed.
    pub timeout: Duration,
    /// How many bytes of the standard output are kept. The rest is read, counted and dropped.
    pub stdout_limit: u64,
    /// The same for the standard error.
    pub stderr_limit: u64,
    /// A file on which the holder keeps a shared lock for its whole life; made when missing.
    pub lock_file: Option<PathBuf>,
    /// What the program is kept from.
    pub cage: Cage,
}

/// What a program printed, and how it ended.
///
/// Output may be there after any end, also a timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The first bytes of the standard output, at most the limit.
    pub stdout: Vec<u8>,
    /// The true length in bytes, when `stdout` is not all of it.
    pub stdout_truncated: Option<u64>,
    /// The first bytes of the standard error, at most the limit.
    pub stderr: Vec<u8>,
    /// The true length in bytes, when `stderr` is not all of it.
    pub stderr_truncated: Option<u64>,
    /// How it ended.
    pub ended: Ended,
}

/// How a tool's run ended.
///
/// After each but `HolderLost` no process of the tool is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The program ended by itself with this status, 0 to 255. Also when a timeout or stop came
    /// just too late.
    Exited(i32),
    /// The program was ended by this signal, by someone else than its holder.
    Signalled(i32),
    /// It was killed because its time was up. What it did before is unknown.
    TimedOut,
    /// It was killed because `stop` was ready. What it did before is unknown.
    Stopped,
    /// The program provably never ran, so there is no effect and it may be tried again. Says why.
    NotStarted(String),
    /// The holder went away or did not confirm the end. The program may have run, and may still.
    /// Says why.
    HolderLost(String),
}

impl Output {
    pub(super) fn without_text(ended: Ended) -> Self {
        Output { stdout: Vec::new(), stdout_truncated: None, stderr: Vec::new(), stderr_truncated: None, ended }
    }
}

/// The part of this process's environment that a tool may see.
///
/// `PATH HOME LANG LC_* TMPDIR TZ USER SHELL TERM`: what programs need to find others and to print,
/// and nothing that usually carries a secret. A value that is not UTF-8 is left out.
pub fn clean_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| is_clean(key))
        .collect()
}

fn is_clean(key: &str) -> bool {
    const NAMES: [&str; 8] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER", "SHELL", "TERM"];
    NAMES.contains(&key) || key.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::is_clean;

    #[test]
    fn only_listed_names_are_clean() {
        for (key, clean) in [
            ("PATH", true),
            ("LC_ALL", true),
            ("LC_", true),
            ("LANGUAGE", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("LD_PRELOAD", false),
            ("path", false),
        ] {
            assert_eq!(is_clean(key), clean, "{key}");
        }
    }
}
