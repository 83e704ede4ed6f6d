//! Listing, reading and searching the text documents below a root.
//!
//! The functions return the text that a model gets, `Ok` as a result and `Err` as an error. An
//! error names the value that was wrong and what to do next. They wait for the disk, so call them
//! where waiting is allowed.
//!
//! A document is a plain file with one of the endings `.md .markdown .txt .rst .adoc .org .html`,
//! in any case, that is not hidden and not in a hidden folder, in `target` or in `node_modules`. No
//! other file is listed, read or searched, whatever its name.
//!
//! Documents are read as streams: memory does not grow with the size of a file.
//!
//! # Layout
//!
//! - `lines`: a file as lines of bounded length.
//! - `read`, `search`: one function each. Listing is here.

mod lines;
mod read;
mod search;
#[cfg(test)]
mod tests;

use super::rooted::{Kind, Listing, Rooted, RootedError, check_name};

pub use read::read;
pub use search::search;

/// What a listing shows when no limit is given.
const LIST_DEFAULT: u64 = 100;
/// What it shows at most.
const LIST_MOST: u64 = 500;
/// How much text one answer holds at most, in bytes.
const ANSWER_BYTES: usize = 24_000;
/// The endings of text documents.
const ENDINGS: [&str; 7] = ["md", "markdown", "txt", "rst", "adoc", "org", "html"];
/// Folders with files that a person did not write.
const SKIPPED_FOLDERS: [&str; 2] = ["target", "node_modules"];
/// How many names an error proposes.
const PROPOSALS: usize = 3;
/// How alike a proposal is at least, of 1.
const PROPOSAL_LIKENESS: f64 = 0.5;

/// Lists documents, sorted by the bytes of their names: those after `after`, at most `limit` (100
/// unless given, 500 at most).
///
/// ```text
/// 2033-experimental-coroutines.md    494 lines    22488 bytes
/// 1 of 12 documents; more after "2033-experimental-coroutines.md"
/// ```
///
/// There is one tab between the columns.
///
/// # Errors
///
/// A limit of 0, or a root that cannot be read.
pub fn list(root: &Rooted, after: Option<&str>, limit: Option<u64>) -> Result<String, String> {
    let limit = at_least_one("limit", limit, LIST_DEFAULT)?.min(LIST_MOST) as usize;
    let listing = documents(root)?;
    let all = &listing.files;
    let start = after.map_or(0, |after| all.partition_point(|file| file.name.as_str() <= after));
    let page = &all[start..all.len().min(start + limit)];
    let mut text = String::new();
    for file in page {
        let lines = match root.open_for_read(&file.name).map(lines::count) {
            Ok(Ok(count)) => format!("{count} lines"),
            // It was there a moment ago; one such file must not cost the whole page.
            Ok(Err(_)) | Err(_) => "unreadable".to_string(),
        };
        text += &format!("{}\t{lines}\t{} bytes\n", file.name, file.bytes);
    }
    text += &format!("{} of {} documents", page.len(), all.len());
    if let Some(last) = page.last().filter(|_| start + page.len() < all.len()) {
        text += &format!("; more after \"{}\"", last.name);
    }
    if listing.unreadable_folders > 0 {
        text += &format!("; {} folders could not be read", listing.unreadable_folders);
    }
    Ok(text)
}

fn documents(root: &Rooted) -> Result<Listing, String> {
    root.list(is_wanted).map_err(|error| format!("the documents cannot be listed: {error}; check their folder"))
}

fn is_wanted(name: &str, kind: Kind) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let named = !last.starts_with('.') && !SKIPPED_FOLDERS.contains(&last);
    named && (kind == Kind::Folder || has_ending(last))
}

fn has_ending(part: &str) -> bool {
    let ending = part.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

/// Opens a document by its name.
///
/// # Errors
///
/// Text that says what is wrong with the name, with the nearest names when there is no such
/// document.
fn open(root: &Rooted, name: &str) -> Result<std::fs::File, String> {
    check_name(name).map_err(|error| error.to_string())?;
    let last = name.rsplit('/').next().unwrap_or(name);
    let hidden = name.split('/').any(|part| !is_wanted(part, Kind::Folder));
    if hidden || !has_ending(last) {
        let endings = ENDINGS.join(" .");
        return Err(format!(
            "{name:?} is not a text document: use a name that is not hidden and ends in one of .{endings}{}",
            nearest(root, name)
        ));
    }
    root.open_for_read(name).map_err(|error| match error {
        RootedError::Missing(_) | RootedError::NotAFolder(_) => {
            format!("there is no document {name:?}{}; list the documents to see every name", nearest(root, name))
        }
        other => other.to_string(),
    })
}

/// Text that proposes the documents whose names are most like `name`; empty when none is.
fn nearest(root: &Rooted, name: &str) -> String {
    let Ok(listing) = documents(root) else {
        return String::new();
    };
    let wanted = name.to_lowercase();
    let likeness = |document: &str| {
        let document = document.to_lowercase();
        let last = document.rsplit('/').next().unwrap_or(&document);
        let wanted_last = wanted.rsplit('/').next().unwrap_or(&wanted);
        let whole = strsim::normalized_damerau_levenshtein(&wanted, &document);
        // The right file in the wrong folder is nearer than a like one in the right folder.
        whole.max(strsim::normalized_damerau_levenshtein(wanted_last, last))
    };
    let mut names: Vec<(f64, String)> =
        listing.files.into_iter().map(|file| (likeness(&file.name), file.name)).collect();
    names.retain(|(likeness, _)| *likeness >= PROPOSAL_LIKENESS);
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let names: Vec<String> = names.into_iter().take(PROPOSALS).map(|(_, name)| format!("\"{name}\"")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

fn at_least_one(what: &str, value: Option<u64>, default: u64) -> Result<u64, String> {
    match value {
        Some(0) => Err(format!("{what} is 0: give 1 or more, or leave it out for {default}")),
        value => Ok(value.unwrap_or(default)),
    }
}
