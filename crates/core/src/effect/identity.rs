//! Who an action is (its key) and whether it is the same as another (its sameness).

use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::ids::{Ordinal, RunKey};
use crate::json::canonical;
use crate::reference::{Piece, pieces};

/// The idempotency key of an action: `k1:` and 32 hex digits over namespace, run, ordinal, tool and canonical
/// arguments. Minted once, at the proposal; every attempt sends this one.
pub fn effect_key(run: &RunKey, ordinal: Ordinal, tool: &str, canonical_arguments: &[u8]) -> String {
    let digest = Digest::over(
        "lodestep key 1",
        &[
            run.namespace.as_bytes(),
            run.run.as_str().as_bytes(),
            &ordinal.0.to_le_bytes(),
            tool.as_bytes(),
            canonical_arguments,
        ],
    );
    format!("k1:{}", &digest.to_hex()[..32])
}

/// What makes two effects of a lineage the same: the tool and the arguments, or only those that `same_by` names.
///
/// A path of `same_by` is a top-level argument's name. An argument that is missing differs from null.
pub fn sameness(tool: &str, arguments: &Value, same_by: Option<&[String]>) -> Digest {
    let compared = match (same_by, arguments) {
        (Some(names), Value::Object(all)) => {
            let kept = all.iter().filter(|(name, _)| names.contains(name));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
        }
        _ => arguments.clone(),
    };
    Digest::over("lodestep same 1", &[tool.as_bytes(), &canonical(&compared)])
}

/// The most bytes of a dedupe key: people read it.
const DEDUPE_BYTES: usize = 256;

/// The dedupe key of an action: the tool's text with its arguments filled in, texts as they are and anything else as its
/// canonical JSON.
///
/// # Errors
///
/// Says which argument is missing or that the key is too long, in words that a model can act on.
pub fn dedupe_key(text: &str, arguments: &Value) -> Result<String, String> {
    let mut key = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => key.push_str(text),
            Piece::Argument(name) => match arguments.get(name) {
                Some(Value::String(text)) => key.push_str(text),
                None | Some(Value::Null) => {
                    return Err(format!("the argument `{name}` is missing: it makes the dedupe key"));
                }
                Some(other) => key.push_str(&String::from_utf8_lossy(&canonical(other))),
            },
            Piece::Key => return Err("an action's own key can't make a dedupe key".to_owned()),
            Piece::Input(name) | Piece::Environment(name, _) => {
                return Err(format!("`{name}` can't make a dedupe key"));
            }
        }
    }
    if key.len() > DEDUPE_BYTES {
        return Err(format!("the arguments make a dedupe key of {} bytes; it may have {DEDUPE_BYTES}", key.len()));
    }
    Ok(key)
}

/// The name of a request for a person: what was seen is what is approved, so a changed action has another name.
pub fn request_name(run: &RunKey, ordinal: Ordinal, tool: &str, tool_digest: &Digest, arguments: &Digest) -> Digest {
    Digest::over(
        "lodestep request 1",
        &[
            run.namespace.as_bytes(),
            run.run.as_str().as_bytes(),
            &ordinal.0.to_le_bytes(),
            tool.as_bytes(),
            tool_digest.as_bytes(),
            arguments.as_bytes(),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunId;
    use serde_json::json;

    fn run(id: &str) -> RunKey {
        RunKey::new(RunId::parse(id).expect("sound"))
    }

    #[test]
    fn a_key_depends_on_every_part() {
        let base = effect_key(&run("a"), Ordinal(1), "pay", b"{}");
        assert!(base.starts_with("k1:") && base.len() == 35);
        for other in [
            effect_key(&run("b"), Ordinal(1), "pay", b"{}"),
            effect_key(&run("a"), Ordinal(2), "pay", b"{}"),
            effect_key(&run("a"), Ordinal(1), "play", b"{}"),
            effect_key(&run("a"), Ordinal(1), "pay", b"[]"),
        ] {
            assert_ne!(base, other);
        }
        assert_eq!(base, effect_key(&run("a"), Ordinal(1), "pay", b"{}"));
    }

    #[test]
    fn same_by_compares_only_what_it_names() {
        let by = ["invoice".to_owned()];
        let a = json!({"invoice": 7, "note": "x"});
        let b = json!({"invoice": 7, "note": "y"});
        assert_eq!(sameness("pay", &a, Some(&by)), sameness("pay", &b, Some(&by)));
        assert_ne!(sameness("pay", &a, None), sameness("pay", &b, None));
        assert_ne!(sameness("pay", &json!({}), Some(&by)), sameness("pay", &json!({"invoice": null}), Some(&by)));
    }
}
