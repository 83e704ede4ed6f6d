//! References in texts of a definition: `${input:x}`, `${arg:x}`, `${env:X}`, `${env:X:-default}`, `${key}`, and `$${` for a
//! literal `${`.

use serde_json::Value;

/// A piece of a text with references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text as it stands.
    Text(&'a str),
    /// An input of the run.
    Input(&'a str),
    /// An argument of the action.
    Argument(&'a str),
    /// A variable of the worker's environment, and what stands in for it.
    Environment(&'a str, Option<&'a str>),
    /// The action's idempotency key.
    Key,
}

/// Splits a text into its pieces.
///
/// # Errors
///
/// Says which reference is not one.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            // `$${` stands for `${`: the text up to the first `$`, then the braces as they are.
            pieces.push(Piece::Text(&rest[..at - 1]));
            pieces.push(Piece::Text(&rest[at..at + 2]));
            rest = &rest[at + 2..];
            continue;
        }
        pieces.push(Piece::Text(&rest[..at]));
        let Some(end) = rest[at..].find('}') else {
            return Err(format!("`{}` has no closing brace; write $${{ for a literal ${{", &rest[at..]));
        };
        pieces.push(reference(&rest[at + 2..at + end])?);
        rest = &rest[at + end + 1..];
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| *piece != Piece::Text(""));
    Ok(pieces)
}

fn reference(inside: &str) -> Result<Piece<'_>, String> {
    let piece = match inside.split_once(':') {
        Some(("input", name)) => Piece::Input(name),
        Some(("arg", name)) => Piece::Argument(name),
        Some(("env", name)) => match name.split_once(":-") {
            Some((name, default)) => Piece::Environment(name, Some(default)),
            None => Piece::Environment(name, None),
        },
        None if inside == "key" => Piece::Key,
        _ => {
            return Err(format!(
                "`${{{inside}}}` is no reference; there are ${{input:x}}, ${{arg:x}}, ${{env:X}} and ${{key}}"
            ));
        }
    };
    let (Piece::Input(name) | Piece::Argument(name) | Piece::Environment(name, _)) = piece else {
        return Ok(piece);
    };
    if name.is_empty() {
        return Err(format!("`${{{inside}}}` names nothing"));
    }
    Ok(piece)
}

/// Fills in the inputs and leaves every other reference as it stands: secrets stay references.
pub fn with_inputs(text: &str, inputs: &Value) -> String {
    let Ok(pieces) = pieces(text) else {
        return text.to_owned();
    };
    let mut filled = String::with_capacity(text.len());
    for piece in pieces {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Input(name) => match inputs.get(name) {
                Some(Value::String(text)) => filled.push_str(text),
                Some(other) => filled.push_str(&other.to_string()),
                None => {}
            },
            Piece::Argument(name) => filled.push_str(&format!("${{arg:{name}}}")),
            Piece::Key => filled.push_str("${key}"),
            Piece::Environment(name, None) => filled.push_str(&format!("${{env:{name}}}")),
            Piece::Environment(name, Some(default)) => filled.push_str(&format!("${{env:{name}:-{default}}}")),
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_found_and_faults_named() {
        assert_eq!(
            pieces("a ${input:x} ${env:K:-d}$${input:y}"),
            Ok(vec![
                Piece::Text("a "),
                Piece::Input("x"),
                Piece::Text(" "),
                Piece::Environment("K", Some("d")),
                Piece::Text("${"),
                Piece::Text("input:y}"),
            ])
        );
        for bad in ["${x}", "${input:}", "${input:x", "${secret:x}"] {
            assert!(pieces(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_inputs_are_filled_in() {
        let inputs = json!({"topic": "Pin", "n": 3});
        assert_eq!(with_inputs("${input:topic} ${input:n} ${env:KEY} $${x}", &inputs), "Pin 3 ${env:KEY} ${x}");
    }
}
