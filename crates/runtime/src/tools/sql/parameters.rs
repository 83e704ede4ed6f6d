//! The parameters of a statement, found without a database. It reads just enough of SQL to pass over what only looks like
//! one: strings, quoted names, comments.

/// The names of a statement's parameters, each once, without their colon.
///
/// # Errors
///
/// Names the first parameter that is not spelled `:name`, or the text that is not closed.
pub(crate) fn parameters(statement: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => quoted(rest, first)?,
            '[' => closed(rest, "]", "a name in brackets")?,
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => closed(rest, "*/", "a comment")?,
            ':' | '@' | '$' | '?' => {
                let name = word(&rest[1..]);
                if first != ':' || name.is_empty() {
                    return Err(format!("`{first}{name}` is no parameter here; write `:name`, an argument's name"));
                }
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
                1 + name.len()
            }
            // A word may hold a `$` that begins nothing.
            _ => word(rest).len().max(first.len_utf8()),
        };
        rest = &rest[length..];
    }
    Ok(names)
}

/// The letters, digits, `_` and `$` that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(text.len());
    &text[..end]
}

/// The bytes of a quoted text; a doubled quote stands for itself.
fn quoted(text: &str, quote: char) -> Result<usize, String> {
    let mut at = 1;
    while let Some(found) = text[at..].find(quote) {
        at += found + 1;
        if !text[at..].starts_with(quote) {
            return Ok(at);
        }
        at += 1;
    }
    Err(format!("a text in {quote} is not closed"))
}

fn closed(text: &str, end: &str, what: &str) -> Result<usize, String> {
    let found = text.find(end).ok_or_else(|| format!("{what} is not closed"))?;
    Ok(found + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_parameters_are_found() {
        for (statement, expected) in [
            ("INSERT INTO t VALUES (:a, :b_2, :a)", vec!["a", "b_2"]),
            ("SELECT ':x', \":x\", `:x`, [:x], 'it''s :x' -- :x\n, /* :x */ :y", vec!["y"]),
            ("SELECT a$b, 5-3, 4/2, x::y FROM t", vec![]),
            ("SELECT :größe", vec!["größe"]),
            ("", vec![]),
        ] {
            if statement.contains("::") {
                assert!(parameters(statement).is_err(), "{statement}");
                continue;
            }
            assert_eq!(parameters(statement), Ok(expected.into_iter().map(str::to_owned).collect()), "{statement}");
        }
    }

    #[test]
    fn other_spellings_and_open_ends_are_named() {
        for (statement, expected) in [
            ("SELECT ?", "`?` is no parameter"),
            ("SELECT ?1", "`?1` is no parameter"),
            ("SELECT @a", "`@a` is no parameter"),
            ("SELECT $a", "`$a` is no parameter"),
            ("SELECT 'a", "a text in ' is not closed"),
            ("SELECT [a", "a name in brackets is not closed"),
            ("SELECT /* a", "a comment is not closed"),
        ] {
            let fault = parameters(statement).expect_err(statement);
            assert!(fault.contains(expected), "{statement}: {fault}");
        }
    }
}
