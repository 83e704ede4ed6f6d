//! Names as people type them: which are plain, which of the known ones was meant, and how they are shown.

/// The known name that is closest to a given one, if it is close.
pub(super) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |name: &str| name.to_lowercase().replace('-', "_");
    let given = fold(given);
    let scored = known.into_iter().map(|name| (strsim::osa_distance(&given, &fold(name)), name));
    let close = |(distance, name): &(usize, &str)| *distance <= (given.len().max(name.len()) / 3).max(1);
    scored.filter(close).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The mend for an unknown name: the nearest known one, or all of them.
pub(super) fn instead(given: &str, known: &[&str], all: &str) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => format!("there are no {all}"),
        None => format!("the {all} are {}", known.join(", ")),
    }
}

/// A text from a file as it is shown in a message: one line, control characters escaped, at most 60 characters.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    let escaped: String = short.chars().flat_map(|c| escaped(c).chars().collect::<Vec<_>>()).collect();
    format!("{escaped}{dots}")
}

fn escaped(c: char) -> String {
    if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
}

/// 1 to 64 of a-z 0-9 - _: names of agents and milestones.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

/// A letter, then up to 63 letters, digits, `_` and `-`: what every provider takes as a tool's name.
pub(super) fn is_tool_name(name: &str) -> bool {
    let tail = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(tail)
}

/// A letter or `_`, then letters, digits and `_`: names of variables and inputs.
pub(super) fn is_variable(name: &str) -> bool {
    let head = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= 64 && name.starts_with(head) && name.chars().all(|c| head(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_near_or_none() {
        let known = ["timeout", "attempts", "same_by", "class"];
        for (given, expected) in [
            ("timout", Some("timeout")),
            ("same-by", Some("same_by")),
            ("Class", Some("class")),
            ("calss", Some("class")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
    }

    #[test]
    fn odd_characters_are_escaped_and_long_texts_cut() {
        assert_eq!(shown("a\u{1b}[31m`ö"), "a\\u{1b}[31m`ö");
        assert_eq!(shown(&"x".repeat(61)), format!("{}…", "x".repeat(60)));
    }
}
