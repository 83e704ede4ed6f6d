//! The built-in tools over folders: reading documents, writing files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lodestep_core::effect::Seen;
use serde_json::Value;

use crate::tools::rooted::Rooted;
use crate::tools::{Sight, documents};

/// What a tool is told whose root would let it touch the store: one that writes may not have the store below its root,
/// and none may have its root in the store. Documents leave out hidden folders and all that is no document.
pub(crate) fn beside_the_store(builtin: &str, root: &Path, own: &[PathBuf]) -> Option<Sight> {
    // A folder that is not there is told by whoever opens it.
    let real = root.canonicalize().ok()?;
    let writes = builtin == "file";
    let touched = own.iter().find(|own| real.starts_with(own) || (writes && own.starts_with(&real)))?;
    let text = format!("the folder {} holds the store {}: a tool's root may not", root.display(), touched.display());
    Some(Sight::new(Seen::Refused, text))
}

/// Performs a function of a built-in tool below a root. Blocks on the disk: call it where blocking is fine.
pub(crate) fn perform(builtin: &str, function: &str, root: &Path, arguments: &Value) -> Sight {
    let rooted = match Rooted::open(root) {
        Ok(rooted) => rooted,
        // It is not there, and no retry makes it: a plain no, which the model is told at once.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let is = if error.kind() == ErrorKind::NotFound { "does not exist" } else { "is no folder" };
            return Sight::new(Seen::Refused, format!("the folder {} {is}", root.display()));
        }
        Err(error) => {
            let text = format!("the folder {} can't be opened: {error}", root.display());
            return Sight::new(Seen::NotStarted, text);
        }
    };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let number = |name: &str| arguments.get(name).and_then(Value::as_f64).map(|number| number.max(0.0) as u64);
    let answer = match (builtin, function) {
        ("documents", "list") => documents::list(&rooted, text("after"), number("limit")),
        ("documents", "read") => {
            documents::read(&rooted, text("name").unwrap_or_default(), number("from"), number("lines"))
        }
        ("documents", "search") => documents::search(&rooted, text("query").unwrap_or_default(), number("limit")),
        ("file", "write") => write(&rooted, text("name").unwrap_or_default(), text("text").unwrap_or_default()),
        _ => Err(format!("this build has no {builtin}.{function}")),
    };
    match answer {
        Ok(answer) => Sight::new(Seen::Done, answer),
        Err(fault) => Sight::new(Seen::Refused, fault),
    }
}

/// A repeat leaves the same file: it is replaced whole.
fn write(rooted: &Rooted, name: &str, text: &str) -> Result<String, String> {
    rooted.write_atomically(name, text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(format!("wrote {name}, {} bytes", text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_a_no_and_not_a_try() {
        let base = tempfile::tempdir().expect("a folder");
        std::fs::write(base.path().join("file"), "").expect("written");
        for (name, says) in [("gone", "does not exist"), ("file", "is no folder"), ("file/below", "is no folder")] {
            let root = base.path().join(name);
            let sight = perform("documents", "list", &root, &Value::Null);
            assert!(matches!(sight.seen, Seen::Refused), "{name}: {:?}", sight.seen);
            let said = String::from_utf8_lossy(&sight.text).into_owned();
            assert!(said.contains(says) && said.contains(&root.display().to_string()), "{said}");
        }
    }
}
