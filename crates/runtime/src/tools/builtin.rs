//! The built-in tools over folders: reading documents, writing files.

use std::path::Path;

use lodestep_core::effect::Seen;
use serde_json::Value;

use crate::tools::rooted::Rooted;
use crate::tools::{Sight, documents};

/// Performs a function of a built-in tool below a root. Blocks on the disk: call it where blocking is fine.
pub(crate) fn perform(builtin: &str, function: &str, root: &Path, arguments: &Value) -> Sight {
    let rooted = match Rooted::open(root) {
        Ok(rooted) => rooted,
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
