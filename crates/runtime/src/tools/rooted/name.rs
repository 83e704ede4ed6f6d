//! Which names a file below a root may have.
//!
//! Names come from a model, so they are checked as text before any file system sees them. The rules
//! are the same on every system: a run that was saved on one must not change its meaning on
//! another.

use std::fmt;

/// The longest part that common file systems take.
const PART_BYTES: usize = 255;
/// Enough for a deep folder, and well under what systems take for a whole path.
const NAME_BYTES: usize = 1024;
/// Devices on Windows, in every folder and with any ending.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Devices that are followed by a digit, where Windows counts `¹²³` as digits.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];
/// How much of a bad name an error repeats.
const SHOWN_CHARACTERS: usize = 80;

/// A name that was refused. Its text says which, why, and what a good one looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError {
    /// The name as it was given, shortened when it is long.
    pub name: String,
    /// What is wrong with it.
    pub problem: NameProblem,
}

/// What can be wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameProblem {
    /// The name, or a part between two `/`, is empty.
    Empty,
    /// It starts with `/`.
    Absolute,
    /// A part is `.` or `..`.
    Dots,
    /// It holds a backslash, which separates folders on Windows.
    Backslash,
    /// It holds a colon, which names a drive or a hidden stream on Windows.
    Colon,
    /// It holds a NUL, a line end or another control character, or one that changes how text is
    /// shown.
    Control,
    /// It holds a `%`-coded dot, slash, backslash, percent or control character, which another
    /// program may decode.
    Encoded,
    /// A part is the name of a device on Windows.
    Device,
    /// A part ends in a dot or a space, which Windows drops.
    Ending,
    /// A part is over 255 bytes, or the whole over 1,024.
    TooLong,
}

impl std::error::Error for NameError {}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.problem {
            NameProblem::Empty => "it has an empty part",
            NameProblem::Absolute => "it starts with /",
            NameProblem::Dots => "it has a part that is . or ..",
            NameProblem::Backslash => "it has a backslash",
            NameProblem::Colon => "it has a colon",
            NameProblem::Control => "it has a control character",
            NameProblem::Encoded => "it has a %-coded dot, slash or control character",
            NameProblem::Device => "a part of it is a device on Windows",
            NameProblem::Ending => "a part of it ends in a dot or a space",
            NameProblem::TooLong => "it is longer than 255 bytes a part or 1,024 bytes in all",
        };
        write!(f, "the name {:?} is refused: {why}; use a relative name such as notes/report.md", self.name)
    }
}

/// Checks that `name` is relative, stays below its root and means the same file on every system.
///
/// Only the text is looked at. It says nothing on whether the file exists, or on links.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let problem = problem_of(name);
    problem.map_or(Ok(()), |problem| Err(NameError { name: name.chars().take(SHOWN_CHARACTERS).collect(), problem }))
}

fn problem_of(name: &str) -> Option<NameProblem> {
    if name.len() > NAME_BYTES {
        return Some(NameProblem::TooLong);
    }
    if name.starts_with('/') {
        return Some(NameProblem::Absolute);
    }
    if name.contains('\\') {
        return Some(NameProblem::Backslash);
    }
    if name.contains(':') {
        return Some(NameProblem::Colon);
    }
    if name.chars().any(misleads) {
        return Some(NameProblem::Control);
    }
    if hides_something(name.as_bytes()) {
        return Some(NameProblem::Encoded);
    }
    name.split('/').find_map(problem_of_part)
}

fn problem_of_part(part: &str) -> Option<NameProblem> {
    match part {
        "" => Some(NameProblem::Empty),
        "." | ".." => Some(NameProblem::Dots),
        _ if part.len() > PART_BYTES => Some(NameProblem::TooLong),
        _ if part.ends_with(['.', ' ']) => Some(NameProblem::Ending),
        _ if is_device(part) => Some(NameProblem::Device),
        _ => None,
    }
}

/// Control characters, line separators, and the marks that turn the direction of text.
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether decoding `%xx` would bring out what is refused in plain, or another `%`.
fn hides_something(name: &[u8]) -> bool {
    name.windows(3).any(|window| {
        let digits = window.strip_prefix(b"%").and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        byte.is_some_and(|byte| byte.is_ascii_control() || b"./\\:%".contains(&byte))
    })
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_uppercase();
    let numbered = |device: &str| {
        let mut rest = stem.strip_prefix(device).unwrap_or_default().chars();
        matches!((rest.next(), rest.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(|device| numbered(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn art_02_bad_names_are_refused() {
        use NameProblem::*;
        let (long, long_part) = ("x/".repeat(2500), "x".repeat(256));
        for (name, problem) in [
            ("", Empty),
            ("a//b", Empty),
            ("a/", Empty),
            (".", Dots),
            ("..", Dots),
            ("../x", Dots),
            ("a/../../x", Dots),
            ("a/./x", Dots),
            ("/", Absolute),
            ("/etc/x", Absolute),
            ("//host/x", Absolute),
            ("C:\\x", Backslash),
            ("C:x", Colon),
            ("C:/x", Colon),
            ("a.md:stream", Colon),
            ("\\\\host\\x", Backslash),
            ("..\\x", Backslash),
            ("x\0.txt", Control),
            ("a\nb", Control),
            ("a\u{7f}", Control),
            ("a\u{85}", Control),
            ("a\u{202e}dm.exe", Control),
            ("%2e%2e/x", Encoded),
            ("%2E%2E%2Fx", Encoded),
            ("a%5cb", Encoded),
            ("a%00", Encoded),
            ("%252e", Encoded),
            ("CON", Device),
            ("nul.txt", Device),
            ("a/Com1.tar.gz", Device),
            ("LPT³", Device),
            ("aux .md", Device),
            ("conout$", Device),
            ("a.", Ending),
            ("a /b", Ending),
            ("...", Ending),
            (&long, TooLong),
            (&long_part, TooLong),
        ] {
            let error = check_name(name).unwrap_err();
            assert_eq!(error.problem, problem, "{name:?}");
            assert!(error.to_string().contains("notes/report.md"), "{error}");
            assert!(error.name.chars().count() <= SHOWN_CHARACTERS);
        }
    }

    #[test]
    fn good_names_are_taken() {
        let part = "x".repeat(255);
        for name in [
            "report.md",
            "a/b/c.txt",
            ".hidden",
            "..a",
            "a..b",
            "Über uns.md",
            "100%.md",
            "50%20off.md",
            "console.md",
            "COM.md",
            "COM10",
            "nulls",
            "~",
            &part,
        ] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }
}
