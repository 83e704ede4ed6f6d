//! Labels: what people call runs by, to find and to act on many. They mean nothing to a run, and never change.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// A run's labels, by name.
pub type Labels = BTreeMap<String, String>;

/// A run has so many labels at most.
pub const MOST: usize = 16;

/// A label's name and its value have so many bytes at most, each.
pub const BYTES: usize = 128;

/// Refuses labels that no run can have: more than [`MOST`]; a name that is not 1 to [`BYTES`] bytes of letters, digits and
/// `. _ - /`; a value that is empty, longer, or holds a control character.
///
/// # Errors
///
/// `run.label_invalid` names the label.
pub fn check(labels: &Labels) -> Result<()> {
    let refuse = |what: String, next: &str| Err(Error::new("run.label_invalid", what, next));
    if labels.len() > MOST {
        return refuse(format!("a run has at most {MOST} labels, and {} are given", labels.len()), "leave some out");
    }
    for (name, value) in labels {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        if name.is_empty() || name.len() > BYTES || !name.chars().all(plain) {
            let what = format!("`{}` can't be a label's name", name.escape_debug());
            return refuse(what, "use 1 to 128 letters, digits and . _ - /");
        }
        if value.is_empty() || value.len() > BYTES || value.chars().any(char::is_control) {
            let what = format!("`{}` can't be the value of the label {name}", value.escape_debug());
            return refuse(what, "use 1 to 128 bytes without control characters");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_name_and_a_short_text() {
        let labels = |name: &str, value: &str| Labels::from([(name.to_owned(), value.to_owned())]);
        for (name, value) in [("team", "billing"), ("a.b/c-d_e", "é = 1"), ("n", &"x".repeat(BYTES))] {
            assert_eq!(check(&labels(name, value)), Ok(()), "{name}={value}");
        }
        for (name, value) in
            [("", "x"), ("a b", "x"), ("a=b", "x"), ("é", "x"), ("a", ""), ("a", "x\ny"), ("a", &"x".repeat(BYTES + 1))]
        {
            assert_eq!(check(&labels(name, value)).expect_err("refused").code(), "run.label_invalid");
        }
        let many: Labels = (0..=MOST).map(|number| (number.to_string(), "x".to_owned())).collect();
        assert!(check(&many).is_err());
    }
}
