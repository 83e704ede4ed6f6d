//! What dead processes left beside the store: drafts of files that were never renamed, locks of workers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use lodestep_core::Timestamp;

use super::place::Place;
use super::value::entries;
use crate::garbage::is_due;

/// The drafts that nobody has touched for a day, with their sizes. A folder that can't be read has none.
pub(super) fn drafts(place: &Place, now: Timestamp) -> Vec<(PathBuf, u64)> {
    let within = |folder: &Path| entries(folder).unwrap_or_default();
    let named =
        |path: &Path, is_draft: fn(&str) -> bool| path.file_name().and_then(|name| name.to_str()).is_some_and(is_draft);
    let values = within(&place.values()).into_iter().flat_map(|folder| within(&folder));
    let values = values.filter(|path| named(path, |name| name.starts_with('.')));
    let witnesses = within(&place.files).into_iter().filter(|path| named(path, |name| name.starts_with("witness.")));
    let locks = within(&place.workers()).into_iter().filter(|path| named(path, |name| name.ends_with(".new")));
    values.chain(witnesses).chain(locks).filter_map(|path| old(path, now)).collect()
}

fn old(path: PathBuf, now: Timestamp) -> Option<(PathBuf, u64)> {
    let about = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let written = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let written = Timestamp::from_micros(i64::try_from(written.as_micros()).ok()?);
    is_due(written, now).then_some((path, about.len()))
}
