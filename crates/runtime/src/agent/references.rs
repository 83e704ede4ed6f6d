//! Where `${input:x}`, `${env:X}` and `${arg:x}` may stand in an agent file.
//!
//! Inputs are filled in when a run is used, secrets when an attempt is sent. A reference anywhere else would reach the
//! model or a program as it stands, so it is refused, with the reason.

use lodestep_core::reference::{Piece, pieces};

use super::inputs::InputSpec;
use super::names::{instead, is_variable, shown};

/// What a text may refer to.
pub(super) enum Allowed<'a> {
    /// Nothing; a `${` that is no reference stays plain text.
    Nothing,
    /// The inputs of the file.
    Inputs(&'a [InputSpec]),
    /// Variables of the worker's environment.
    Environment,
    /// Arguments of the action.
    Arguments,
    /// Whatever a request is filled in with.
    Request(&'a Fillable<'a>),
}

/// What the texts of a request may name.
pub(super) struct Fillable<'a> {
    /// The inputs of the file.
    pub inputs: &'a [InputSpec],
    /// The arguments of the tool; nothing when its `input` is at fault already.
    pub properties: Option<&'a [String]>,
}

/// A reference that can't stand where it does.
pub(super) struct BadReference {
    /// As it is written.
    pub reference: String,
    /// Its byte in the text.
    pub at: usize,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

/// Every `${…}` that is not escaped, with its byte: from the opening to the closing brace, or to the end of the line.
fn found(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut start) = (Vec::new(), 0);
    while let Some(at) = text[start..].find("${").map(|at| start + at) {
        if text[start..at].ends_with('$') {
            start = at + 2;
            continue;
        }
        let rest = &text[at..];
        let end = rest.find('}').map(|end| end + 1);
        let shown_end = end.or_else(|| rest.find('\n')).unwrap_or(rest.len());
        found.push((at, &rest[..shown_end]));
        start = at + end.unwrap_or(rest.len());
    }
    found
}

/// The arguments that a text refers to.
pub(super) fn arguments_of(text: &str) -> Vec<String> {
    let name = |piece| match piece {
        Piece::Argument(name) => Some(name.to_owned()),
        _ => None,
    };
    pieces(text).unwrap_or_default().into_iter().filter_map(name).collect()
}

/// What is wrong with a text's references.
pub(super) fn check(text: &str, allowed: &Allowed<'_>) -> Vec<BadReference> {
    let bad = |(at, reference): (usize, &str)| {
        let (what, mend) = fault(reference, allowed)?;
        Some(BadReference { reference: reference.to_owned(), at, what, mend })
    };
    found(text).into_iter().filter_map(bad).collect()
}

/// The variables that a text needs: those without a default.
pub(super) fn needed(text: &str) -> Vec<String> {
    let name = |piece| match piece {
        Piece::Environment(name, None) => Some(name.to_owned()),
        _ => None,
    };
    pieces(text).unwrap_or_default().into_iter().filter_map(name).collect()
}

/// Adds the variables that a text needs, each once.
pub(super) fn note(secrets: &mut Vec<String>, text: &str) {
    for secret in needed(text) {
        if !secrets.contains(&secret) {
            secrets.push(secret);
        }
    }
}

fn fault(reference: &str, allowed: &Allowed<'_>) -> Option<(String, String)> {
    let piece = match pieces(reference) {
        Ok(pieces) => pieces.into_iter().next()?,
        Err(_) if matches!(allowed, Allowed::Nothing) => return None,
        Err(why) => {
            let mend = match allowed {
                Allowed::Arguments => "here may stand ${arg:x}; $${ is a literal ${",
                Allowed::Environment => "here may stand ${env:X} and ${env:X:-default}; $${ is a literal ${",
                Allowed::Request(_) => "here may stand ${arg:x}, ${input:x}, ${env:X} and ${key}; $${ is a literal ${",
                _ => "here may stand ${input:x}; $${ is a literal ${",
            };
            return Some((why, mend.to_owned()));
        }
    };
    let shown = shown(reference);
    match (piece, allowed) {
        (Piece::Text(_), _) => None,
        (Piece::Input(name), Allowed::Inputs(inputs)) => unknown_input(&shown, name, inputs),
        (Piece::Input(name), Allowed::Request(fillable)) => unknown_input(&shown, name, fillable.inputs),
        (Piece::Argument(name), Allowed::Request(fillable)) => unknown_argument(&shown, name, fillable.properties?),
        (Piece::Key, Allowed::Request(_)) => None,
        (Piece::Environment(name, _), Allowed::Environment | Allowed::Request(_)) => (!is_variable(name)).then(|| {
            (
                format!("`{shown}` names no variable"),
                "a name has letters, digits and _, and begins with no digit".to_owned(),
            )
        }),
        (Piece::Argument(_), Allowed::Arguments) => None,
        (Piece::Input(_), Allowed::Arguments) => Some((
            format!("`{shown}`: a dedupe key is the same whatever the run was given"),
            "make it of ${arg:x}".to_owned(),
        )),
        (Piece::Input(_), Allowed::Environment) => Some((
            format!("`{shown}`: an environment is filled in without the inputs"),
            "give the input as an argument of `command`".to_owned(),
        )),
        (Piece::Input(_), Allowed::Nothing) => Some((
            format!("`{shown}` is not filled in here"),
            "inputs may stand in objective, instructions, and a tool's root, command, http and lookup".to_owned(),
        )),
        (Piece::Environment(name, _), _) => Some((
            format!("`{shown}` can't stand here: its value would be pinned into the run's definition"),
            format!("a tool's environment takes it: env = {{ {name} = \"{shown}\" }}; so do url and headers of `http`"),
        )),
        (Piece::Argument(_), _) => Some((
            format!("`{shown}`: arguments stand only in `dedupe`, and in url, headers and body of `http`"),
            "a program gets its arguments as JSON on stdin".to_owned(),
        )),
        (Piece::Key, _) => Some((
            format!("`{shown}`: the key stands only in url and headers of `http`"),
            "a program gets it as LODESTEP_IDEMPOTENCY_KEY".to_owned(),
        )),
    }
}

fn unknown_input(shown: &str, name: &str, inputs: &[InputSpec]) -> Option<(String, String)> {
    if inputs.iter().any(|input| input.name == name) {
        return None;
    }
    let known: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let mend = match instead(name, &known, "inputs") {
        near if near.starts_with("did") => near,
        _ => format!("declare it: [inputs] {name} = {{ type = \"string\" }}"),
    };
    Some((format!("`{shown}`: there is no input `{}`", self::shown(name)), mend))
}

fn unknown_argument(shown: &str, name: &str, properties: &[String]) -> Option<(String, String)> {
    if properties.iter().any(|property| property == name) {
        return None;
    }
    let known: Vec<&str> = properties.iter().map(String::as_str).collect();
    let what = format!("`{shown}`: `input` has no property `{}`", self::shown(name));
    Some((what, instead(name, &known, "properties")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_references_are_found_as_are_filled_in() {
        for text in ["a ${input:x} b", "$${input:x}", "$$${input:x}", "${input:a}${env:B}$", "${arg:x}$${y}${env:C:-d}"]
        {
            let parts = found(text).into_iter().map(|(_, part)| pieces(part).unwrap().remove(0));
            let filled = pieces(text).unwrap().into_iter().filter(|piece| !matches!(piece, Piece::Text(_)));
            assert_eq!(parts.collect::<Vec<_>>(), filled.collect::<Vec<_>>(), "{text}");
        }
        assert_eq!(found("x ${input:a\nb"), [(2, "${input:a")]);
    }
}
