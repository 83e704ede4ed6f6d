//! `[notify]`: the command that hears when a run needs somebody or is over.

use std::path::Path;

use lodestep_core::definition::Notify;

use super::duration::SECOND_MS;
use super::reader::Item;
use super::references::Allowed;

/// How long the command may take unless the file says.
const TIMEOUT_MS: u64 = 10 * SECOND_MS;

/// The longest that the command may take.
const LONGEST_MS: u64 = 60 * SECOND_MS;

/// Reads `[notify]`; the command runs in `folder`.
pub(super) fn notify(item: &Item<'_>, folder: &Path) -> Option<Notify> {
    let table = item.table("notify", "[notify] with `command = [\"sh\", \"tell-the-team.sh\"]`")?;
    let argv = table.need("command", "command = [\"sh\", \"tell-the-team.sh\"]");
    let argv = argv.and_then(|item| item.argv(&Allowed::Nothing));
    let timeout = table.get("timeout").and_then(|item| item.duration(1..=LONGEST_MS));
    table.close();
    let folder = folder.to_string_lossy().into_owned();
    Some(Notify { argv: argv?, folder, timeout_ms: timeout.unwrap_or(TIMEOUT_MS) })
}
